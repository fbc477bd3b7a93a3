"""Calls that give what they give in PyTorch: dtypes, shapes and values.

`calls.txt` has a call a line: L is the library, F its functional module, T makes a tensor, z is
complex, r real, i of integers, and D gives derivatives.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import picograd

torch = pytest.importorskip("torch")

CALLS = (Path(__file__).parent / "calls.txt").read_text().splitlines()


def slope(function: Any, *values: Any) -> Any:
    """The gradients of a real sum of what a function gives."""
    leaves = [value.clone().requires_grad_() for value in values]
    made = function(*leaves)
    (made.real if made.dtype.is_complex else made).sum().backward()
    return tuple(leaf.grad for leaf in leaves)


def result_of(lib: Any, call: str) -> list[Any]:
    made = lib.tensor
    names = {"L": lib, "F": lib.nn.functional, "T": made, "D": slope}
    names |= dict(z=made([1 + 2j, 3 - 1j, -2 + 0.5j]), r=made([0.5, -1.5, 2.0]))
    names |= dict(i=made([[5, 2, 7, -9, 3]]))
    found = eval(call, names)
    return list(found) if isinstance(found, (tuple, list)) else [found]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_call(call: str) -> None:
    ours, theirs = result_of(picograd, call), result_of(torch, call)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        if not isinstance(b, torch.Tensor):
            assert str(a).replace("picograd", "torch") == str(b)
            continue
        assert str(a.dtype).replace("picograd", "torch") == str(b.dtype)
        want = b.detach().resolve_conj().numpy()
        np.testing.assert_allclose(a.detach().numpy(), want, 2e-5, 1e-6, strict=True)


def test_lost_parts_warn() -> None:
    with pytest.warns(UserWarning, match="without its imaginary part"):
        picograd.tensor([1j]).float()
