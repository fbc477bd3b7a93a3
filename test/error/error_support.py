"""One wrong program per case: its exact error, and that nothing else suffered from it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from picograd import Tensor
from picograd.errors import (
    AssertedError,
    AxisError,
    CompileError,
    DataError,
    DeviceError,
    DTypeError,
    GradientError,
    IndexDTypeError,
    MemberError,
    MissingFileError,
    OutOfMemoryError,
    PicogradError,
    ShapeError,
    StateError,
    TraceError,
    ValueRangeError,
)

# What a program written for PyTorch or NumPy catches.
BUILTINS: dict[type, tuple[type, ...]] = {
    ShapeError: (ValueError, RuntimeError),
    AssertedError: (ValueError, RuntimeError, AssertionError),
    ValueRangeError: (ValueError, RuntimeError),
    DTypeError: (TypeError, RuntimeError),
    AxisError: (IndexError, RuntimeError),
    IndexDTypeError: (TypeError, IndexError, RuntimeError),
    MemberError: (KeyError, AttributeError),
    DeviceError: (RuntimeError,),
    GradientError: (RuntimeError,),
    TraceError: (RuntimeError,),
    OutOfMemoryError: (MemoryError, RuntimeError),
    CompileError: (RuntimeError,),
    StateError: (ValueError, RuntimeError),
    DataError: (RuntimeError, OSError),
    MissingFileError: (RuntimeError, FileNotFoundError),
}


@dataclass(frozen=True)
class Case:
    """A program that is wrong, the class of its error and the whole message."""

    name: str
    program: Callable[[], Any]
    error: type[PicogradError]
    message: str


def check(case: Case) -> None:
    """Run a case between two halves of an innocent computation.

    The program only records: nothing is read from its result, so an error that came at `realize`
    instead of at the user's line would not be seen here, and the case would fail.
    """
    kept = Tensor([1.0, 2.0]).realize()
    waiting = kept * 3.0
    with pytest.raises(case.error) as caught:
        case.program()
    assert type(caught.value) is case.error
    for builtin in BUILTINS[case.error]:
        assert isinstance(caught.value, builtin)
    assert re.sub(r", at \S+\.py:\d+", ", at LINE", str(caught.value)) == case.message
    assert caught.value.op and caught.value.problem and caught.value.fix
    check_usable(kept, waiting)


def check_usable(kept: Tensor, waiting: Tensor) -> None:
    """Check that tensors of before, and new ones with gradients, still compute."""
    assert waiting.tolist() == [3.0, 6.0]
    assert kept.tolist() == [1.0, 2.0]
    leaf = Tensor([2.0, 5.0], requires_grad=True)
    (leaf * leaf).sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [4.0, 10.0]


def named(cases: list[Case]) -> Any:
    """Parametrize a test by cases."""
    assert len({case.name for case in cases}) == len(cases)
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)
