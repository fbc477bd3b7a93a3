"""Errors: what the message says, what they can be caught as, and how our own bugs differ."""

import copy
import pickle

import pytest

from picograd import errors
from picograd.errors import (
    DataError,
    DTypeError,
    InternalError,
    PicogradError,
    ShapeError,
    ValueRangeError,
    check,
    check_callable,
    check_known,
    check_least,
    check_positive,
    check_probability,
    internal,
    writing,
)


def test_message_has_op_problem_and_fix() -> None:
    error = ShapeError("matmul", "inner sizes differ", "transpose b")
    assert str(error) == "matmul: inner sizes differ. Fix: transpose b."
    assert (error.op, error.problem, error.fix) == ("matmul", "inner sizes differ", "transpose b")
    assert str(ShapeError("add", "no")) == "add: no."


@pytest.mark.parametrize(
    ("name", "builtin"),
    [("ShapeError", ValueError), ("ShapeError", RuntimeError), ("ValueRangeError", ValueError),
     ("AssertedError", AssertionError),
     ("DTypeError", TypeError), ("DTypeError", NotImplementedError),
     ("AxisError", IndexError), ("DeviceError", RuntimeError),
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


def test_arguments_out_of_range_are_named() -> None:
    with pytest.raises(ValueRangeError, match="f: beta=-1 is negative. Fix: use 0 or more"):
        check_least("f", "beta", -1)
    with pytest.raises(ValueRangeError, match="f: count=0 is less than 1. Fix: use 1 or more"):
        check_least("f", "count", 0, 1)
    with pytest.raises(ValueRangeError, match="f: std=nan is not positive"):
        check_positive("f", "std", float("nan"))
    with pytest.raises(
        ValueRangeError, match="f: p=1.5 is not a probability. Fix: use 0 <= p <= 1"
    ):
        check_probability("f", "p", 1.5)
    with pytest.raises(DTypeError, match="f: int is no function. Fix: pass a function"):
        check_callable("f", 1)


def test_a_file_that_cannot_be_written_is_a_data_error() -> None:
    problem = "f: cannot write x: No space left. Fix: check the folder"
    with pytest.raises(DataError, match=problem), writing("f", "x"):
        raise OSError(28, "No space left")


KINDS = [
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, PicogradError)
]


@pytest.mark.parametrize("name", KINDS)
def test_errors_travel_between_processes(name: str) -> None:
    error = getattr(errors, name)("inner", "no", "yes")
    error.rename("outer", "inner")
    error.seen = 3
    for made in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(made) is type(error) and vars(made) == vars(error)
        assert str(made) == str(error) == "outer: no (in inner). Fix: yes."
