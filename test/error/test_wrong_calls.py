"""Five hundred wrong calls: no raw error, and of the class that PyTorch raises.

`wrong_calls.txt` has a call a line: L is the library, F its functional module, x a (2, 3) tensor,
and G() makes a leaf with a gradient.
"""

import functools
from pathlib import Path
from typing import Any

import pytest

import picograd
from picograd.errors import InternalError, PicogradError

torch = pytest.importorskip("torch")

CALLS = (Path(__file__).parent / "wrong_calls.txt").read_text().splitlines()


def with_gradient(lib: Any) -> Any:
    leaf = lib.ones(2, requires_grad=True)
    (leaf * 3.0).sum().backward()
    return leaf


def values(found: Any) -> None:
    """Compute what a call gave: an error may come then."""
    if isinstance(found, picograd.Tensor):
        found.detach().numpy()
    elif isinstance(found, (tuple, list)):
        for each in found:
            values(each)


def error_of(lib: Any, call: str) -> Exception | None:
    names = {"L": lib, "F": lib.nn.functional, "x": lib.ones(2, 3)}
    names["G"] = functools.partial(with_gradient, lib)
    try:
        values(eval(call, names))
    except Exception as error:
        return error
    return None


def wanted_class(error: Exception) -> type[Exception]:
    """What an `except` for PyTorch's error would name; rare classes stand for their bases."""
    for rare in (NotImplementedError, torch.linalg.LinAlgError):
        if isinstance(error, rare):
            return RuntimeError
    return Exception if isinstance(error, (AssertionError, AttributeError)) else type(error)


def test_there_are_five_hundred() -> None:
    assert len(CALLS) == len(set(CALLS)) >= 480


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_wrong_call(call: str) -> None:
    wanted = error_of(torch, call)
    assert wanted is not None, "PyTorch takes this"
    found = error_of(picograd, call.replace("L.optim", "L.nn.optim"))
    assert found is not None, f"PyTorch: {wanted!r}"
    assert isinstance(found, wanted_class(wanted)) and not isinstance(found, InternalError)
    text = str(found)
    is_python = isinstance(found, TypeError) and any(each in text for each in PYTHONS)
    assert isinstance(found, PicogradError) or is_python, repr(found)


# Python's own binding of arguments and its operators
PYTHONS = ("unsupported operand", "not supported between", "positional argument", "bad operand")
