"""The front door: wrong arguments of public functions become picograd's errors, naming the op.

The functions behind it assume arguments of the documented types. If one fails with an error of
Python's own (an attribute a number does not have, a string that is no index), the guard says which
function and which arguments it was, in the class that PyTorch raises. Errors of the user's own
code, which a function may call, pass as they are; so do calls that do not fit a signature.

An error that no argument explains is a bug of picograd's: it becomes an InternalError. An argument
explains an error if the code that failed, in the rooms that read arguments, held it in its hands.
"""

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable
from types import FrameType, FunctionType, TracebackType
from typing import Any

import numpy as np

from picograd.errors import (
    AxisError,
    DTypeError,
    InternalError,
    OutOfMemoryError,
    PicogradError,
    ValueRangeError,
)
from picograd.tensor.core.argument_kinds import (
    check_arguments,
    check_options,
    checks_of,
    described,
    misfit,
    read_whole,
    with_numbers,
)
from picograd.tensor.core.function import FUNCTIONS, innermost
from picograd.tensor.core.recording import Recorded
from picograd.tensor.core.spelling import taking_older
from picograd.tensor.core.subclasses import ask, kinds_at

RAW = (MemoryError, AttributeError, KeyError, TypeError, IndexError, ValueError, ArithmeticError)
READING = (
    "tensor", "nn", "graph", "dtype.py", "conversion.py", "number.py",
)  # rooms that read arguments  # fmt: skip
TOO_BIG = ("array is too big", "Maximum allowed dimension")  # what NumPy says, in a ValueError
HOOKED = ("backward", "grad")  # what runs the user's hooks
SEEN = 64  # elements of a list that are looked at
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
OURS = (PACKAGE, os.path.dirname(np.__file__))
ROOT = __name__.partition(".")[0]
MISFIT = re.compile(r"([\w<>]+)[\w.<>]*\(\) (?:takes|missing|got an unexpected|got multiple) ")
INSIDE = (*OURS, "<__array_function__")
RUNNING = ("engine", "schedule", "codegen", "runtime")


def guarded(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """Make a function whose raw errors name it and its arguments; users may know another name."""
    op = name or function.__name__

    written = innermost(getattr(function, "recorded", function))  # `pending.locked` wraps it
    code: Any = getattr(written, "__code__", None)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
    words = written.__annotations__ if code else {}
    checks = checks_of(function, names) if code and not is_guarded(function) else ()
    by_place = tuple(each for each in checks if each.place < code.co_argcount)

    def checked(*args: Any, **options: Any) -> Any:
        try:
            if checks:
                args = check_arguments(op, by_place, args)
                if options:
                    check_options(op, names, checks, options)
            made = function(*args, **options)
            if made is NotImplemented:  # what an operator says of an operand it does not know
                raise unknown(op, args, options)
            return made
        except RAW as error:
            if kinds := kinds_at(args, options):
                return ask(call, kinds, args, options)
            if again := with_numbers(words, names, args, options):
                return call(*again[0], **again[1])
            raise explained(function, error, args, options, op)  # noqa: B904 (it says of what)

    def alone(tensor: Any, *others: Any) -> Any:
        try:
            return function(tensor, *others)
        except RAW as error:
            if kinds := kinds_at((tensor, *others), {}):
                return ask(call, kinds, (tensor, *others), {})
            raise explained(function, error, (tensor, *others), {}, op)  # noqa: B904

    is_alone = code and code.co_argcount == 1 and not (checks or code.co_kwonlyargcount)
    is_short = is_alone and not code.co_flags & inspect.CO_VARKEYWORDS
    call = functools.wraps(function)(alone if is_short else checked)
    return call


def unknown(op: str, args: tuple[Any, ...], options: dict[str, Any]) -> DTypeError:
    """Word the error of an operator's named form whose last operand is no tensor or number."""
    kind = type((*args, *options.values())[-1]).__name__
    text = f"operand must be a Tensor or a number, not {kind}"
    return DTypeError(op, text, "wrap it in picograd.Tensor(...)")


def explained(
    function: Callable[..., Any],
    error: Exception,
    args: tuple[Any, ...],
    options: dict[str, Any],
    op: str,
) -> Exception:
    """Choose what to raise where a call failed: the error itself, or what it means."""
    trace = error.__traceback__ and error.__traceback__.tb_next
    if trace is None:  # the call did not fit
        return error
    arguments = (*args, *options.values())
    if isinstance(error, PicogradError):
        return with_name(op, error, trace)
    if isinstance(error, MemoryError) or str(error).startswith(TOO_BIG):
        return because(None, too_large(op, error, arguments))
    if isinstance(error, TypeError) and not fits(function, args, options):
        return error
    if is_own(op, trace, arguments) or is_of_users(error):
        return error
    named = misfit(op, function, args, options)
    if named is not None:
        return because(error, named)
    frames = frames_of(trace)
    if lacks_tensor(function, args) or is_explained(error, frames, flat(arguments)):
        return because(error, translated(op, error, arguments))
    return because(error, unexplained(op, error))


def with_name(op: str, error: PicogradError, trace: TracebackType) -> PicogradError:
    """Let an error of an op inside name the one that was called.

    Not if it came out of the user's own code, or out of a computation that ran: that is of ops
    recorded before.
    """
    inner = error.op.rpartition(".")[2].removesuffix("()")
    is_same = inner.strip("_") == op.strip("_")
    if is_same or op.startswith("_") or not is_recording(trace):
        return error
    is_public = inner in FUNCTIONS and " (in " not in error.problem
    error.rename(op, inner if is_public else "")
    return error


def is_recording(trace: TracebackType) -> bool:
    """Tell whether all that ran is picograd's, and nothing of it computes."""
    for frame in frames_of(trace):
        if not frame.f_code.co_filename.startswith(INSIDE) or room_of(frame) in RUNNING:
            return False
    return True


def because(cause: Exception | None, error: Exception) -> Exception:
    """Let an error say what it was raised from, as `raise ... from` does."""
    error.__cause__ = cause
    return error


def fits(function: Callable[..., Any], args: Any, options: Any) -> bool:
    """Tell whether a call fits a signature, as far as it can be told.

    An in-place form has that of the method it is the form of.
    """
    found = getattr(Recorded.kind, getattr(function, "form_of", ""), function)
    bind = getattr(found, "bind", None) or inspect.signature(found).bind
    try:
        bind(*args, **options)
    except TypeError:
        return False
    except ValueError:  # of a function that has none
        return True
    return True


def lacks_tensor(function: Callable[..., Any], args: Any) -> bool:
    """Tell whether something else stands in the place of the first tensor."""
    first = next(iter(inspect.signature(function).parameters), "")
    return (
        first in ("self", "input", "x", "node") and bool(args) and not isinstance(args[0], Recorded)
    )


def frames_of(trace: TracebackType | None) -> list[FrameType]:
    """List the frames of a traceback, outermost first."""
    frames = []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    return frames


def is_own(op: str, trace: TracebackType, arguments: tuple[Any, ...]) -> bool:
    """Tell whether an error came out of the user's code: a function or an object that was given."""
    if all(frame.f_code.co_filename.startswith(INSIDE) for frame in frames_of(trace)):
        return False
    known = ("builtins", "numpy", "picograd")
    return op in HOOKED or any(
        callable(each) or type(each).__module__.partition(".")[0] not in known
        for each in flat(arguments)
    )


def is_of_users(error: Exception) -> bool:
    """Tell whether a call did not fit the signature of a function that is none of picograd's."""
    found = MISFIT.match(str(error)) if isinstance(error, TypeError) else None
    if found is None:
        return False
    modules = [vars(each) for name, each in sys.modules.copy().items() if name.startswith(ROOT)]
    held = [each[found[1]] for each in modules if found[1] in each]
    return not any(str(getattr(each, "__module__", "")).startswith(ROOT) for each in held)


def flat(arguments: Iterable[Any]) -> list[Any]:
    """List arguments, and what lists, tuples and dicts among them hold."""
    found: list[Any] = []
    for each in arguments:
        found.append(each)
        if isinstance(each, (list, tuple)):
            found.extend(each[:SEEN])
        elif isinstance(each, dict):
            found += list(each.values())[:SEEN]
    return found


def is_explained(error: Exception, frames: list[FrameType], arguments: list[Any]) -> bool:
    """Tell whether an argument explains an error, or picograd has a bug."""
    deepest = [frame for frame in frames if room_of(frame)][-1]
    is_foreign = not frames[-1].f_code.co_filename.startswith(INSIDE)
    if is_foreign or room_of(deepest) not in READING:
        return False
    given = [each for each in arguments if each is not None and not isinstance(each, bool)]
    if "Tensor" not in str(error):
        given = [each for each in given if not isinstance(each, Recorded)]
    if is_named(str(error), given):
        return True
    if any(f"'{type(each).__name__}' object" in str(error) for each in given):
        return True
    if isinstance(error, AttributeError) and error.obj is None:
        return any(each is None for each in arguments)
    is_array = any(isinstance(each, np.ndarray) for each in arguments)
    if is_array and isinstance(error, (AttributeError, KeyError, TypeError)):
        return True  # it stands where a tensor or a number belongs
    if isinstance(error, ZeroDivisionError) and any(
        isinstance(each, (int, float)) and each == 0 for each in given
    ):
        return True
    if isinstance(error, (IndexError, ZeroDivisionError)) or "to unpack" in str(error):
        # a list of too few, or a tensor of too few axes
        is_list = "to unpack" in str(error) and any(isinstance(x, (list, tuple)) for x in given)
        return is_list or any(isinstance(x, Recorded) and x.ndim < 3 for x in arguments)
    if isinstance(error, TypeError) and "'Node'" in str(error):  # a tensor in a number's place
        return any(isinstance(each, Recorded) for each in arguments[1:])
    if isinstance(error, AttributeError):
        kinds = tuple({float if type(x) is int else type(x) for x in given})
        obj = float(error.obj) if type(error.obj) is int else error.obj
        return isinstance(obj, kinds) and not isinstance(obj, Recorded)
    if isinstance(error, KeyError):
        return any(is_same(each, error.args[0]) for each in arguments)
    held = flat(deepest.f_locals.values())
    return any(each is other for each in given for other in held) or any(
        each is None and "NoneType" in str(error) for each in arguments
    )


def is_named(text: str, arguments: list[Any]) -> bool:
    """Tell whether an error's text quotes an argument, or its type where that is no number."""
    foreign = [each for each in arguments if not isinstance(each, (Recorded, int, float, complex))]
    types = {f"'{type(each).__name__}'" for each in foreign}
    return any(kind in text for kind in types) or any(
        isinstance(each, str) and repr(each) in text for each in foreign
    )


def is_same(argument: Any, key: Any) -> bool:
    """Tell whether an argument is the key that was looked up."""
    return argument is key or (type(argument) is type(key) and isinstance(key, str | int | float)
                               and argument == key)  # fmt: skip


def room_of(frame: FrameType) -> str:
    """Name the room of picograd a frame runs in; empty outside."""
    path = frame.f_code.co_filename
    return path[len(PACKAGE) + 1 :].split(os.sep)[0] if path.startswith(PACKAGE) else ""


def too_large(op: str, error: Exception, arguments: tuple[Any, ...]) -> OutOfMemoryError:
    """Word what Python or NumPy had no memory for."""
    given = ", ".join(map(described, arguments))
    reason = f": {error}".rstrip(".") if str(error) else ""
    text = f"the arguments ({given}) take more memory than the host has{reason}"
    return OutOfMemoryError(op, text, "use smaller sizes")


def unexplained(op: str, error: Exception) -> InternalError:
    """Word an error that no argument explains."""
    text = f"{type(error).__name__} in {op}: {error}"
    return InternalError(f"{text}. This is a bug in picograd: please report it.")


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
        return AxisError(op, text, fix)
    return ValueRangeError(op, text, fix)


def guard_methods(kinds: Iterable[type], least: int = 1) -> None:
    """Guard the public methods that classes define themselves, of `least` arguments or more."""
    for kind in kinds:
        for name, value in list(vars(kind).items()):
            if name.startswith("_"):
                continue
            if isinstance(value, FunctionType):
                if innermost(value).__code__.co_argcount >= least:
                    setattr(kind, name, taking_older(guarded(value), name))
            elif isinstance(value, staticmethod):
                setattr(kind, name, staticmethod(guarded(value.__func__)))


def read_constructor(kind: Any) -> None:
    """Let the constructor of a class of ours take what stands for an int: a tensor, an np.int64."""
    made = vars(kind).get("__init__")
    if made is None or not kind.__module__.startswith("picograd."):
        return
    code = made.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    ints = {names[each.place] for each in checks_of(made, names) if int in each.plain}

    @functools.wraps(made)
    def begin(self: Any, *args: Any, **options: Any) -> None:
        given = (read_whole(each) if name in ints else each for name, each in zip(names[1:], args))
        for name in ints.intersection(options):
            options[name] = read_whole(options[name])
        try:
            made(self, *given, *args[len(names) - 1 :], **options)
        except RAW as error:
            if isinstance(error, PicogradError):
                raise
            raise explained(made, error, (self, *args), options, type(self).__name__)  # noqa: B904

    kind.__init__ = begin if ints else made


def guard_functions(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Guard the functions of a module; methods are guarded by their classes."""
    for name in names:
        value = namespace.get(name)
        if not isinstance(value, FunctionType) or "." in value.__qualname__:
            continue
        if value.__module__.startswith("picograd.") and not is_guarded(value):
            namespace[name] = made = guarded(value)
            made.__module__, made.__qualname__ = namespace["__name__"], name  # for pickle


def is_guarded(function: Any) -> bool:
    """Tell whether a function came out of `guarded`, by way of other wrappers or not."""
    inner = getattr(function, "__wrapped__", None)
    return getattr(function, "__code__", None) in GUARD or (inner is not None and is_guarded(inner))


GUARD: set[Any] = set()  # the code of every guarded function
GUARD.update((guarded(described).__code__, guarded(unknown).__code__))  # type: ignore[attr-defined]
