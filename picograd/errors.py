"""Every error picograd raises: user mistakes (one class per built-in class) and our own bugs.

PyTorch raises RuntimeError for most mistakes that Python and NumPy call a ValueError, TypeError or
IndexError, and NotImplementedError, which is one, for dtypes that an operation does not take. The
classes here are both, so that either `except` catches them.

A message has the form `op: problem. Fix: what to do.` so that the reader can mend the program
without opening picograd. `check` guards invariants of picograd itself and raises `InternalError`.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

ARTICLE = re.compile(r"\ba (?=[AEIO]|int)")  # of names that are put into a message


def worded(op: str, problem: str, fix: str) -> str:
    """Write a message, with "an" before the types and dtypes that want it."""
    return f"{op}: {ARTICLE.sub('an ', problem)}." + (f" Fix: {fix}." if fix else "")


class PicogradError(Exception):
    """This class is the base of every error a user's program can cause."""

    def __init__(self, op: str, problem: str, fix: str = "") -> None:
        self.op: str = op
        self.problem: str = problem
        self.fix: str = fix
        super().__init__(worded(op, problem, fix))

    def __reduce__(self) -> Any:
        """Travel between processes by what the message is made of; notes and the like go along."""
        return type(self), (self.op, self.problem, self.fix), vars(self)

    def rename(self, op: str, inner: str = "") -> None:
        """Name the op that the user called; `inner` is the one in it that found the problem."""
        self.op = op
        if inner:
            self.problem += f" (in {inner})"
        self.args = (worded(op, self.problem, self.fix),)


class ShapeError(PicogradError, ValueError, RuntimeError):
    """Shapes that do not fit."""


class ValueRangeError(PicogradError, ValueError, RuntimeError):
    """An argument outside its allowed values."""


class AssertedError(ShapeError, ValueRangeError, AssertionError):
    """Sizes of a layer or of data that PyTorch states by `assert`."""


class LinAlgError(ValueRangeError):
    """A matrix that is singular, or not positive definite, where it must be."""


class DTypeError(PicogradError, TypeError, NotImplementedError):
    """A dtype or Python type the operation does not take."""


class ChoiceError(DTypeError, ValueRangeError):
    """A value of another type where one of a few words belongs: a TypeError and a ValueError."""


class AxisError(PicogradError, IndexError, RuntimeError):
    """An axis or index out of range."""


class IndexDTypeError(DTypeError, IndexError):
    """An index that is no integer."""


class MemberError(PicogradError, KeyError, AttributeError):
    """A name of a module, parameter or buffer that is missing, taken or no name."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the quotes of a key


class DeviceError(PicogradError, RuntimeError):
    """A device that is missing, or operands on different devices."""


class NoDataError(DeviceError, NotImplementedError):
    """The values of a tensor that has none: its device is "meta"."""


class GradientError(PicogradError, RuntimeError):
    """A gradient asked for where there is none."""


class ExportError(PicogradError, BufferError, ValueError, RuntimeError):
    """Memory that cannot be shared with another library."""


class TraceError(PicogradError, RuntimeError):
    """A value read while `picograd.jit` traces, or an argument it cannot take."""


class OutOfMemoryError(PicogradError, MemoryError, RuntimeError):
    """A device could not give the memory asked for."""


class CompileError(PicogradError, RuntimeError):
    """A generated kernel did not compile; carries the compiler's log."""


class StateError(PicogradError, ValueError, RuntimeError):
    """A state dict or state file that is damaged or does not fit."""


class DataError(PicogradError, RuntimeError, OSError):
    """A data file that is missing, damaged or cannot be fetched."""


class MissingFileError(DataError, FileNotFoundError):
    """A file that is not there."""


def not_a_tensor(op: str, name: str, value: object) -> DTypeError:
    """Say what stands where a tensor should, and how one gets there."""
    kind, fix = type(value).__name__, "wrap it in picograd.Tensor(...)"
    if value is None:
        fix = "return a tensor from the function or forward() that made it"
    elif isinstance(value, tuple) and any(hasattr(each, "backward") for each in value):
        fix = "pass one of the tensors in it, such as [0]"
    elif isinstance(value, type):
        kind, fix = f"the class {value.__name__}", f"make one and call it: {value.__name__}()(x)"
    elif callable(value):
        fix = "call it on a tensor, and pass what it returns"
    return DTypeError(op, f"the {name} must be a Tensor, not {kind}", fix)


def check_known(op: str, name: str, value: object, known: Collection[object]) -> None:
    """Raise ValueRangeError where an argument is none of what it may be."""
    if value not in known:
        *most, last = (f'"{each}"' if isinstance(each, str) else str(each) for each in known)
        fix = f"{', '.join(most)} or {last}" if most else last
        kind = ValueRangeError if isinstance(value, tuple(map(type, known))) else ChoiceError
        raise kind(op, f"{name}={value!r} is unknown", f"use {fix}")


def check_least(op: str, name: str, value: Any, least: int = 0) -> None:
    """Raise ValueRangeError where an argument is below 0, or below another number."""
    if not value >= least:
        text = f"{name}={value} is {'less than ' + str(least) if least else 'negative'}"
        raise ValueRangeError(op, text, f"use {least} or more")


def check_positive(op: str, name: str, value: Any) -> None:
    """Raise ValueRangeError where an argument is not above 0."""
    if not value > 0:
        raise ValueRangeError(op, f"{name}={value} is not positive", "use more than 0")


def class_of_index(index: int) -> type[PicogradError]:
    """Choose what is raised for an axis or index out of range: past 64 bits it is no index."""
    return AxisError if -(1 << 63) <= index < 1 << 63 else ValueRangeError


def check_probability(op: str, name: str, value: Any) -> None:
    """Raise ValueRangeError where an argument is no number from 0 to 1, or a tensor of one."""
    if not hasattr(value, "__float__"):
        raise DTypeError(op, f"{name} must be a number, not {value!r}", f"use 0 <= {name} <= 1")
    number = value if isinstance(value, (int, float)) else float(value)
    if not 0.0 <= number <= 1.0:
        raise ValueRangeError(op, f"{name}={value!r} is not a probability", f"use 0 <= {name} <= 1")


def check_callable(op: str, value: object, fix: str = "pass a function") -> None:
    """Raise DTypeError where an argument cannot be called."""
    if not callable(value):
        raise DTypeError(op, f"{type(value).__name__} is no function", fix)


@contextmanager
def writing(
    op: str, path: object, fix: str = "check the folder, its permissions and the free space"
) -> Iterator[None]:
    """Raise DataError where a file cannot be written in this block."""
    try:
        yield
    except OSError as error:
        raise DataError(op, f"cannot write {path}: {error.strerror}", fix) from error


def no_data(op: str) -> NoDataError:
    """Say that a tensor of the device "meta" has no values."""
    fix = 'make it on another device, or use Module.to_empty(device="cpu")'
    return NoDataError(op, "a tensor on the device meta has a shape and no values", fix)


class InternalError(Exception):
    """A bug of picograd's own: an invariant of an IR or of a stage does not hold."""


def check(condition: object, problem: str, ir: object = None) -> None:
    """Raise InternalError with the printed IR when an invariant of ours does not hold."""
    if not condition:
        internal(problem, ir)


def internal(problem: str, ir: object = None) -> NoReturn:
    """Raise InternalError: `problem`, then the IR it was found in."""
    where = f"\n{ir}" if ir is not None else ""
    raise InternalError(f"{problem}. This is a bug in picograd: please report it.{where}")
