"""The front door: wrong arguments of public functions become picograd's errors, naming the op.

The functions behind it assume arguments of the documented types. If one fails with an error of
Python's own (an attribute a number does not have, a string that is no index), the guard says which
function and which arguments it was, in the class that PyTorch raises. Errors of the user's own
code, which a function may call, pass as they are; so do calls that do not fit a signature.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Any

import numpy as np

from picograd.errors import DTypeError, PicogradError, ShapeError, ValueRangeError
from picograd.tensor.recording import Recorded

RAW = (AttributeError, KeyError, TypeError, IndexError, ValueError, ArithmeticError)
OURS = (str(Path(__file__).parents[1]), str(Path(np.__file__).parent))


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function whose raw errors name it and its arguments."""

    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except RAW as error:
            trace = error.__traceback__
            if isinstance(error, PicogradError) or not is_inside(trace and trace.tb_next):
                raise
            raise translated(function.__name__, error, (*args, *options.values())) from error

    return checked


def is_inside(trace: TracebackType | None) -> bool:
    """Tell whether an error was raised in picograd or NumPy, and by no function of the user's."""
    if trace is None:  # the call itself failed: the arguments do not fit the signature
        return False
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith((*OURS, "<__array_function__")):
            return False
        trace = trace.tb_next
    return True


def translated(op: str, error: Exception, arguments: tuple[Any, ...]) -> PicogradError:
    """Choose the class PyTorch raises, and say what was passed."""
    given = ", ".join(map(described, arguments))
    if isinstance(error, AttributeError):
        for number, argument in enumerate(arguments):
            if argument is error.obj and not isinstance(argument, Recorded):
                text = f"argument {number} must be a Tensor, not {type(argument).__name__}"
                return DTypeError(op, text, "wrap it in picograd.Tensor(...)")
    reason = str(error).split("\n")[0].strip(".") or type(error).__name__
    text = f"the arguments ({given}) do not fit: {reason}"
    fix = f"see help(picograd.Tensor.{op}) or the function's own for what it takes"
    if isinstance(error, (TypeError, AttributeError)):
        return DTypeError(op, text, fix)
    if isinstance(error, IndexError):
        return ShapeError(op, text, fix)
    return ValueRangeError(op, text, fix)


def described(argument: Any) -> str:
    """Describe an argument: a tensor by its dtype and shape, others by their text or type."""
    if isinstance(argument, Recorded):
        return f"{argument.dtype.name}{argument.shape}"
    if argument is None or isinstance(argument, (bool, int, float, str)):
        return repr(argument) if len(repr(argument)) < 40 else type(argument).__name__
    return type(argument).__name__


def guard_methods(kinds: Iterable[type], least: int = 1) -> None:
    """Guard the public methods that classes define themselves, of `least` arguments or more."""
    for kind in kinds:
        for name, value in list(vars(kind).items()):
            if name.startswith("_"):
                continue
            if isinstance(value, FunctionType):
                if inspect.unwrap(value).__code__.co_argcount >= least:
                    setattr(kind, name, guarded(value))
            elif isinstance(value, staticmethod):
                setattr(kind, name, staticmethod(guarded(value.__func__)))


def guard_functions(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Guard the functions of a module; methods are guarded by their classes."""
    for name in names:
        value = namespace.get(name)
        if not isinstance(value, FunctionType) or "." in value.__qualname__:
            continue
        if value.__module__.startswith("picograd.") and not is_guarded(value):
            namespace[name] = made = guarded(value)
            made.__module__, made.__qualname__ = namespace["__name__"], name  # for pickle


def is_guarded(function: FunctionType) -> bool:
    """Tell whether a function came out of `guarded`, by way of other wrappers or not."""
    inner = getattr(function, "__wrapped__", None)
    return function.__code__ is GUARD or (inner is not None and is_guarded(inner))


GUARD = guarded(described).__code__  # type: ignore[attr-defined]  # that of every guarded function
