"""Errors: what the message says, what they can be caught as, and how our own bugs differ."""

import pytest

from picograd import errors
from picograd.errors import (
    InternalError,
    PicogradError,
    ShapeError,
    ValueRangeError,
    check,
    check_known,
    internal,
)


def test_message_has_op_problem_and_fix() -> None:
    error = ShapeError("matmul", "inner sizes differ", "transpose b")
    assert str(error) == "matmul: inner sizes differ. Fix: transpose b."
    assert (error.op, error.problem, error.fix) == ("matmul", "inner sizes differ", "transpose b")
    assert str(ShapeError("add", "no")) == "add: no."


@pytest.mark.parametrize(
    ("name", "builtin"),
    [("ShapeError", ValueError), ("ShapeError", RuntimeError), ("ValueRangeError", ValueError),
     ("DTypeError", TypeError), ("AxisError", IndexError), ("DeviceError", RuntimeError),
     ("GradientError", RuntimeError), ("TraceError", RuntimeError),
     ("MemberError", KeyError), ("MemberError", AttributeError),
     ("OutOfMemoryError", MemoryError), ("StateError", ValueError), ("DataError", OSError)],
)  # fmt: skip
def test_user_errors_are_built_in_errors_too(name: str, builtin: type) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, PicogradError) and issubclass(kind, builtin)


def test_check_raises_only_when_false() -> None:
    check([1], "never")
    with pytest.raises(InternalError, match=r"lost\. This is a bug in picograd.*\nthe ir"):
        check([], "lost", "the ir")


def test_our_bugs_are_not_user_errors() -> None:
    with pytest.raises(InternalError) as caught:
        internal("broken")
    assert not isinstance(caught.value, PicogradError)


def test_a_word_is_one_of_those_that_are_known() -> None:
    check_known("qr", "mode", "r", ("reduced", "r"))
    text = 'qr: mode=\'x\' is unknown. Fix: use "reduced" or "r".'
    with pytest.raises(ValueRangeError, match=text):
        check_known("qr", "mode", "x", ("reduced", "r"))
    with pytest.raises(ValueRangeError, match=r"use None, 1 or 2\."):
        check_known("qr", "mode", [3], (None, 1, 2))
