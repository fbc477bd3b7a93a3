"""What arguments may be, read from signatures: a float where an int belongs is named at the door.

A definition would record such an argument, and fail when somebody asks for the values. `checks_of`
lists what is looked at in every call: ints, axes, numbers, tensors; a tensor or a NumPy number that
stands for an int is read there. `misfit` looks at all arguments of a call that has failed, and
harder: a tensor without axes may stand for a number at the door.
"""

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import numpy as np

from picograd.errors import ChoiceError, DTypeError, not_a_tensor
from picograd.graph.node import Node
from picograd.helpers import product
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
    """This class is how one argument of a definition is looked at."""

    place: int
    plain: frozenset[type]  # a value of these classes needs no look
    look: Callable[[str, Any], Any]  # raises for what does not fit, and reads what stands for it


def is_int(value: Any) -> bool:
    """Tell whether a value is a whole number, or a tensor of one."""
    if isinstance(value, Recorded):
        return value.dtype.is_integer and not value.ndim
    return is_whole(value)


def is_size(value: Any) -> bool:
    """Tell whether a value is a whole number, or a tensor of one element, with axes or without."""
    if isinstance(value, Recorded):
        return value.dtype.is_integer and product(value.shape) == 1
    return is_whole(value)


def is_whole(value: Any) -> bool:
    """Tell whether a value is a whole number, True and False being none."""
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
    """Tell whether a value is True or False; 1 and 0 are numbers, as axes are."""
    return isinstance(value, (bool, np.bool_))


def is_string(value: Any) -> bool:
    """Tell whether a value is a string."""
    return isinstance(value, str)


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


def may_be_ints(value: Any) -> bool:
    """Tell whether a value may be sizes or axes: no flag, tensor of several elements, or dict."""
    if isinstance(value, (list, tuple)):
        return not any(isinstance(each, (bool, np.bool_)) for each in value)
    if isinstance(value, Recorded):
        return is_size(value)
    return not isinstance(value, (bool, np.bool_, Mapping, Set))


def is_anything(value: Any) -> bool:
    """Tell that a value may pass: what it is for looks at it."""
    return True


def read_whole(value: Any) -> Any:
    """Read what stands for an int, also in a list: a tensor of one element, a NumPy number.

    An array of ints is a list of them.
    """
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu":
        return tuple(value.tolist())
    if isinstance(value, (list, tuple)):
        found = tuple(map(read_whole, value))
        return value if all(map(operator.is_, found, value)) else found
    number: Any = value
    if isinstance(value, Recorded):
        return operator.index(number) if is_size(value) else value
    is_numpy = isinstance(value, np.integer)
    return int(value) if is_numpy else value


def read_number(value: Any) -> Any:
    """Read what stands for a number: a tensor of one that nothing is learned of."""
    is_one = isinstance(value, Recorded) and not value.ndim and not value.requires_grad
    number: Any = value
    return number.item() if is_one else value


def read_float(value: Any) -> Any:
    """Turn a tensor of a whole number into floats: 1 / p of an int would be another number."""
    is_whole_tensor = isinstance(value, Recorded) and not value.dtype.is_differentiable
    return value.float() if is_whole_tensor else value


def takes_number(word: Any) -> bool:
    """Tell whether an annotation has a number, alone or beside other kinds."""
    if get_origin(word) in (Union, UnionType):
        return any(map(takes_number, get_args(word)))
    return word in NUMBERS


def with_numbers(
    words: Mapping[str, Any], names: Sequence[str], args: Sequence[Any], options: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]] | None:
    """Read all that stands for a number, for a function that could not; None if nothing does."""
    is_changed = False

    def read(name: str, value: Any) -> Any:
        nonlocal is_changed
        word = words.get(name)
        is_numpy = isinstance(value, np.generic)
        if not takes_number(word):
            return value
        if Tensor in get_args(word) and not is_numpy:
            return value
        number = value.item() if is_numpy else read_number(value)
        is_changed |= number is not value
        return number

    found = list(map(read, names, args))
    found += args[len(found) :]
    by_name = {name: read(name, value) for name, value in options.items()}
    return (found, by_name) if is_changed else None


# what annotations are called, and which values are so, as far as that can be told
KINDS: dict[Any, tuple[str, Callable[[Any], bool] | None]] = {
    int: ("an int", is_int),
    float: ("a number", is_real),
    Scalar: ("a number", is_real),
    bool: ("True or False", is_flag),
    str: ("a string", is_string),
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
    int: is_int, float: is_real, Scalar: is_number, bool: is_flag, str: is_string,
    Tensor: is_tensor, Node: is_tensor,
}  # fmt: skip
WHOLE = (int, Tensor, Node)
NUMBERS = (int, float, Scalar)  # for which a tensor may stand at the door
LISTS = {int, Axis, Sizes, tuple[int, ...], Iterable[int], Sequence[int], Sequence[int | None]}
PLAIN = {
    int: int, Axis: int, Sizes: int, float: float, bool: bool, str: str, NoneType: NoneType,
}  # fmt: skip
NETWORK = "picograd.tensor.network."  # PyTorch writes many of these in Python: any flag passes


def checks_of(definition: Callable[..., Any], names: Sequence[str]) -> tuple[Check, ...]:
    """List the arguments of a definition that every call is looked at for, in their order."""
    words = definition.__annotations__
    if definition.__module__.startswith(NETWORK):
        words = {name: word for name, word in words.items() if word is not bool}
    found = ((place, door_of(words.get(name), name)) for place, name in enumerate(names))
    return tuple(Check(place, *door) for place, door in found if door is not None)


@functools.cache
def door_of(word: Any, name: str) -> tuple[frozenset[type], Callable[[str, Any], Any]] | None:
    """Find what an argument of this annotation is looked at for; None if any value may pass."""
    parts = get_args(word) if get_origin(word) in (Union, UnionType) else (word,)
    kinds = [word] if word in NUMBERS else [each for each in parts if each is not NoneType]
    plain = frozenset({PLAIN[each] for each in parts if each in PLAIN} | {type(UNSET)})
    if kinds == [int]:
        one = is_int if name.startswith("dim") else is_size
        return plain, look_at(name, word, one, read_whole)
    if set(kinds) & LISTS and set(kinds) <= {*LISTS, bool, str}:
        some = is_anything if bool in kinds else may_be_ints
        return plain | {NoneType}, look_at(name, word, some, read_whole, plain)
    if word not in NUMBERS and len(kinds) > 1 and float in kinds and set(kinds) <= {*REAL, str}:
        return plain, look_at(name, word, is_anything, read_number)
    known = DOOR if len(kinds) == 1 else WHOLE  # complex numbers stand beside tensors
    if word is Node or not kinds or not all(each in known for each in kinds):
        return None
    fits = DOOR[kinds[0]] if len(kinds) == 1 else any_of(kinds)
    return plain, look_at(name, word, fits, read_float if kinds == [float] else None)


def look_at(
    name: str,
    word: Any,
    fits: Callable[[Any], bool],
    read: Callable[[Any], Any] | None = None,
    plain: frozenset[type] = frozenset(),
) -> Callable[[str, Any], Any]:
    """Make what looks at an argument; a list or a tuple of `plain` classes passes."""

    def look(op: str, value: Any) -> Any:
        if plain and (type(value) is tuple or type(value) is list):
            for each in value:
                if type(each) not in plain:
                    break
            else:
                return value
        if not fits(value):
            raise wrong(op, name, word, value)
        return read(value) if read else value

    return look


def any_of(kinds: Sequence[Any]) -> Callable[[Any], bool]:
    """Make the test of a value that may be of several kinds."""
    return lambda value: any(DOOR[each](value) for each in kinds)


def check_arguments(op: str, checks: tuple[Check, ...], args: Any) -> Any:
    """Raise DTypeError for a value of another kind than an int, a number, ... where one belongs.

    A tensor that stands for an int is read: what is asked for one is known when it is recorded.
    """
    count = len(args)
    for place, plain, look in checks:
        if place >= count:
            break
        value = args[place]
        if type(value) not in plain and (number := look(op, value)) is not value:
            args = [*args[:place], number, *args[place + 1 :]]
    return args


def check_options(op: str, names: Sequence[str], checks: Any, options: dict[str, Any]) -> None:
    """Look at the arguments of a call by name, and read those that stand for ints."""
    for place, plain, look in checks:
        name = names[place]
        if name in options and type(value := options[name]) not in plain:
            options[name] = look(op, value)


def wrong(op: str, name: str, word: Any, value: Any) -> DTypeError:
    """Word the error of an argument that is something else."""
    if word in (Tensor, Recorded.kind):
        return not_a_tensor(op, name, value)
    wanted = in_words(word)
    kind = "a tensor " if isinstance(value, Recorded) else ""
    text = f"{name} must be {wanted}, not {kind}{described(value)}"
    kind_of_error = ChoiceError if str in (word, *get_args(word)) else DTypeError
    return kind_of_error(op, text, f"pass {wanted}")


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
