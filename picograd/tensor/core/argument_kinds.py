"""What arguments may be, read from signatures: a float where an int belongs is named at the door.

A definition would record such an argument, and fail when somebody asks for the values. `checks_of`
lists what is looked at in every call: ints, numbers, tensors. `misfit` looks at all arguments
of a call that has failed, and harder: a tensor without axes may stand for a number at the door.
"""

import functools
import inspect
import operator
import sys
from collections.abc import Callable, Sequence
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import numpy as np

from picograd.errors import DTypeError, not_a_tensor
from picograd.graph.node import Node
from picograd.tensor.core.annotations import (
    Axis,
    Data,
    DeviceLike,
    Scalar,
    Sizes,
    Tensor,
    TensorLike,
)
from picograd.tensor.core.operands import UNSET
from picograd.tensor.core.recording import Recorded

REAL = (bool, int, float, np.bool_, np.integer, np.floating)
NUMBER = (*REAL, complex, np.complexfloating)


class Check(NamedTuple):
    """This class is what one argument of a definition has to be: an int, or a number."""

    place: int
    name: str
    fits: Callable[[Any], bool]
    word: Any
    is_optional: bool


def is_int(value: Any) -> bool:
    """Tell whether a value is a whole number, or a tensor of one."""
    if isinstance(value, Recorded):
        return value.dtype.is_integer and not value.ndim
    kind = value.__class__  # what a traced number claims to be
    return hasattr(kind, "__index__") and not issubclass(kind, (bool, np.ndarray))


def is_real(value: Any) -> bool:
    """Tell whether a value is a real number, or a tensor of one."""
    if isinstance(value, Recorded):
        return not value.ndim and not value.dtype.is_complex
    return isinstance(value, REAL)


def is_number(value: Any) -> bool:
    """Tell whether a value is a number, or a tensor of one."""
    return not value.ndim if isinstance(value, Recorded) else isinstance(value, NUMBER)


def is_flag(value: Any) -> bool:
    """Tell whether a value is True, False, 1 or 0."""
    return isinstance(value, (bool, np.bool_, int))


def is_tensor(value: Any) -> bool:
    """Tell whether a value is a tensor."""
    return isinstance(value, Recorded)


def is_tensor_like(value: Any) -> bool:
    """Tell whether a value may stand beside a tensor."""
    kinds = (Recorded, *NUMBER, list, tuple)
    return isinstance(value, kinds) or hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def are_sizes(value: Any) -> bool:
    """Tell whether a value is a whole number or several."""
    return is_int(value) or (isinstance(value, (list, tuple)) and all(map(is_int, value)))


# what annotations are called, and which values are so, as far as that can be told
KINDS: dict[Any, tuple[str, Callable[[Any], bool] | None]] = {
    int: ("an int", is_int),
    float: ("a number", is_real),
    Scalar: ("a number", is_real),
    bool: ("True or False", is_flag),
    str: ("a string", lambda value: isinstance(value, str)),
    NoneType: ("None", lambda value: value is None),
    Node: ("a Tensor", None),
    Tensor: ("a Tensor", is_tensor),
    TensorLike: ("a Tensor or a number", is_tensor_like),
    Data: ("", is_tensor_like),
    Sizes: ("an int or a tuple of ints", are_sizes),
    Axis: ("an int or a tuple of ints", lambda value: value is None or are_sizes(value)),
    DeviceLike: ("a device", lambda value: isinstance(value, str) or is_int(value)),
}
WORDS = {kind: words for kind, (words, _) in KINDS.items() if words}
FITS = {kind: fits for kind, (_, fits) in KINDS.items() if fits is not None}
# at the door; complex numbers multiply complex tensors
DOOR = {
    int: is_int, float: is_real, Scalar: is_number, bool: is_flag,
    Tensor: is_tensor, Node: is_tensor,
}  # fmt: skip
WHOLE = (int, Tensor, Node)
NUMBERS = (int, float, Scalar)  # for which a tensor may stand at the door


def checks_of(
    definition: Callable[..., Any], names: Sequence[str], most: int = sys.maxsize
) -> tuple[Check, ...]:
    """List the arguments of a definition that every call is looked at for; `most` go by place."""
    found = []
    for place, name in enumerate(names):
        word = definition.__annotations__.get(name)
        looked_at = door_of(word)
        if looked_at is not None:
            found.append(Check(place if place < most else sys.maxsize, name, *looked_at))
    return tuple(found)


@functools.cache
def door_of(word: Any) -> tuple[Callable[[Any], bool], Any, bool] | None:
    """Find what an argument of this annotation is looked at for; None if any value may pass."""
    parts = get_args(word) if get_origin(word) in (Union, UnionType) else (word,)
    kinds = [word] if word in NUMBERS else [each for each in parts if each is not NoneType]
    known = DOOR if len(kinds) == 1 else WHOLE  # complex numbers stand beside tensors
    if word is Node or not kinds or not all(each in known for each in kinds):
        return None
    fits = DOOR[kinds[0]] if len(kinds) == 1 else any_of(kinds)
    return fits, word, NoneType in parts


def any_of(kinds: Sequence[Any]) -> Callable[[Any], bool]:
    """Make the test of a value that may be of several kinds."""
    return lambda value: any(DOOR[each](value) for each in kinds)


def check_arguments(op: str, checks: tuple[Check, ...], args: Any) -> Any:
    """Raise DTypeError for a value of another kind than an int, a number, ... where one belongs.

    A tensor that stands for an int is read: what is asked for one is known when it is recorded.
    """
    count = len(args)
    for place, name, fits, word, is_optional in checks:
        if place < count:
            value = args[place]
            if not (fits(value) or value is UNSET or (is_optional and value is None)):
                raise wrong(op, name, word, value)
            if word is int and isinstance(value, Recorded):
                number: Any = value
                args = [*args[:place], operator.index(number), *args[place + 1 :]]
    return args


def check_call(
    op: str, checks: tuple[Check, ...], args: Sequence[Any], options: dict[str, Any]
) -> None:
    """Look at the arguments of a call by place and by name."""
    check_arguments(op, checks, args)
    for _, name, fits, word, is_optional in checks if options else ():
        value = options.get(name)
        if name in options and not (fits(value) or (is_optional and value is None)):
            raise wrong(op, name, word, value)


def wrong(op: str, name: str, word: Any, value: Any) -> DTypeError:
    """Word the error of an argument that is something else."""
    if word in (Tensor, Recorded.kind):
        return not_a_tensor(op, name, value)
    wanted = in_words(word)
    kind = "a tensor " if isinstance(value, Recorded) else ""
    text = f"{name} must be {wanted}, not {kind}{described(value)}"
    return DTypeError(op, text, f"pass {wanted}")


def described(argument: Any) -> str:
    """Describe an argument: a tensor by its dtype and shape, others by their text or type."""
    if isinstance(argument, Recorded):
        return f"{argument.dtype.name}{argument.shape}"
    is_plain = argument is None or isinstance(argument, (bool, int, float, complex, str))
    return repr(argument) if is_plain and len(repr(argument)) < 40 else type(argument).__name__


def in_words(word: Any) -> str:
    """Say what an annotation means."""
    if word in WORDS:
        return WORDS[word]
    if names_tensor(word):
        return WORDS[Tensor]
    if get_origin(word) in (Union, UnionType):
        parts = [in_words(each) for each in get_args(word)]
        return " or ".join(dict.fromkeys(parts))
    return "a function" if get_origin(word) is Callable else "a list"


def names_tensor(word: Any) -> bool:
    """Tell whether an annotation is the class of tensors, or that of a method."""
    return word is Recorded.kind or getattr(word, "__name__", "") == "Same"


def is_fitting(word: Any, value: Any) -> bool:
    """Tell whether a value is what an annotation says, as far as that can be told."""
    if names_tensor(word):
        return is_tensor(value)
    if word in FITS:
        return FITS[word](value) and not (word in NUMBERS and isinstance(value, Recorded))
    origin, parts = get_origin(word), get_args(word)
    if origin in (Union, UnionType):
        return any(is_fitting(each, value) for each in parts)
    if origin is Callable:
        return callable(value)
    if origin in (Sequence, tuple, list):
        is_list = isinstance(value, (list, tuple, np.ndarray))
        return is_list and all(is_fitting(parts[0], each) for each in value)
    return True


def misfit(
    op: str, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> DTypeError | None:
    """Find the first argument of a call that is not what the signature says."""
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*args, **options).arguments
    except TypeError:  # other names of parameters
        return None
    for name, value in bound.items():
        parameter = signature.parameters[name]
        is_spread = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        listed = value if is_spread else [value]
        for each in listed if parameter.kind is not inspect.Parameter.VAR_KEYWORD else ():
            if not is_fitting(parameter.annotation, each):
                return wrong(op, name, parameter.annotation, each)
    return None
