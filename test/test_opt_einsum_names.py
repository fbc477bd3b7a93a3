"""opt_einsum's functions of tensors take NumPy's arguments."""

import sys
from types import ModuleType
from typing import Any

import pytest

from picograd import Tensor


def test_functions_take_the_names_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = ModuleType("opt_einsum.backends.dispatch")
    fake._cached_funcs = {}
    monkeypatch.setitem(sys.modules, "opt_einsum.backends.dispatch", fake)
    monkeypatch.delitem(sys.modules, "picograd.opt_einsum_names", raising=False)
    __import__("picograd.opt_einsum_names")
    x, found = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), fake._cached_funcs
    assert found["tensordot", "picograd"](x, x, axes=((1,), (1,))).tolist() == [[14, 32], [32, 77]]
    assert found["transpose", "picograd"](x, (1, 0)).shape == (3, 2)
    sys.modules.pop("picograd.opt_einsum_names")  # the real package's import makes it anew
