"""Calls with numbers before tensors, as older programs for PyTorch write them."""

import warnings
from typing import Any

import numpy as np
import pytest

import picograd
from picograd.tensor.core.older_calls import OLDER

CALLS = """T.add(x, 2, x) | x.add(0.5, x) | x.clone().add_(0.5, x) | T.sub(x, 2, x)
x.clone().sub_(0.5, x) | x.sub(2, x) | x.clone().addcmul_(0.5, x, x)
x.clone().addcdiv_(-0.1, x, x * 2) | T.addcmul(x, 0.5, x, x) | T.addcdiv(x, 0.5, x, x)
T.addmm(2, a, 3, a, a) | T.addmm(2, a, a, a) | a.addmm(2, 3, a, a) | a.addmm(2, a, a)
a.clone().addmm_(2, 3, a, a) | T.addmv(2, x, 3, a, x) | x.addmv(2, 3, a, x) | a.addr(2, 3, x, x)
T.addr(2, a, 3, x, x) | T.baddbmm(2, s, 3, s, s) | a.addbmm(2, 3, s, s)
T.addbmm(2, a, 3, s, s)"""


@pytest.mark.parametrize("call", CALLS.replace("\n", " | ").split(" | "))
@pytest.mark.filterwarnings("ignore:This overload:UserWarning")
def test_as_in_pytorch(call: str) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for library in (picograd, torch):
        tensor: Any = library.tensor
        x, a = tensor([1.0, 4.0]), tensor([[1.0, 2.0], [3.0, 4.0]])
        with warnings.catch_warnings(action="ignore"):
            results.append(eval(call, {"T": library, "x": x, "a": a, "s": a[None]}))
    np.testing.assert_allclose(results[0].numpy(), results[1].numpy(), rtol=1e-6)


def test_the_order_of_today_stays() -> None:
    x = picograd.tensor([1.0, 4.0])
    assert x.add(x, alpha=2).tolist() == [3.0, 12.0] and x.add(2).tolist() == [3.0, 6.0]
    assert x.addcmul(x, x, value=2).tolist() == [3.0, 36.0]
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3"):
        x.add(1, 2)  # type: ignore[call-arg]
    assert all(hasattr(picograd.Tensor, name) for name in OLDER)
