"""What goes into a jitted function and comes out of it: containers of tensors and static values.

Tuples, named tuples, lists, dicts and dataclasses are taken apart; what is inside is a tensor, or
*static*: part of the key, by value. Objects that compare by identity (modules, functions, objects
of a class without `__eq__`) are static by identity, and held weakly: their traces die with them.
"""

import dataclasses
import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from picograd.dtype import DType
from picograd.errors import TraceError
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.jit_progress import is_iterator
from picograd.tensor.transforms.pytree import copy_of, is_named_tuple
from picograd.traced_number import KINDS, TracedNumber

NUMBER = "number"  # its value is told beside too, if the trace depends on it
BY_VALUE = (int, bool, str, type(None), bytes, complex, slice, range, type(Ellipsis))
TENSOR = "tensor"  # what describes a tensor: its own properties are told beside


def signature_of(function: Any) -> inspect.Signature | None:
    """Find how the arguments of a function are called; a module's are those of its `forward`."""
    if hasattr(type(function), "_trace_state"):
        function = getattr(function, "forward", function)
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def names_of(signature: Any, call: Any, opened: Any, what: str = "tensors") -> list[str]:
    """Name the argument, or the place in Python's state, of each tensor, or number, of a call."""
    bound, args, kwargs = call
    try:
        given = signature.bind(*bound, *args, **kwargs).arguments
    except (AttributeError, TypeError):
        given = {str(number): each for number, each in enumerate((*args, *kwargs.values()))}
    pairs = [*given.items()][len(bound) :] + ([] if opened is None else opened.pairs())
    found: list[str] = []
    for name, value in pairs:
        flattener = Flattener()
        flattener.flatten(value)
        found += [name] * len(getattr(flattener, what))
    return found


def changed_sizes(names: Sequence[str], before: Any, after: Any) -> str:
    """Say which axes of which arguments have other sizes; empty if something else changed."""
    found: list[str] = []
    for name, was, now in zip(names, before, after):
        if was == now:
            continue
        if len(was[0]) != len(now[0]) or was[1:3] != now[1:3]:
            return ""
        sizes = [(axis, a, b) for axis, (a, b) in enumerate(zip(was[0], now[0])) if a != b]
        found += [f"axis {axis} of argument {name} (from {a} to {b})" for axis, a, b in sizes]
    return ", ".join(list(dict.fromkeys(found))[:4])


class Place:
    """This class stands for tensor `number` in a value that calls build again and again.

    Or for the number in a slot of a trace's program.
    """

    __slots__ = ("number", "slot")

    def __init__(self, number: int, slot: int = -1) -> None:
        self.number = number
        self.slot = slot


VALUES = int, float, complex, str, bytes  # of which programs make classes of their own


class Flattener:
    """This class takes values apart into tensors, objects and a hashable description."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.numbers: list[Any] = []
        self.objects: list[Any] = []
        self.opened: Any = None  # places of Python's state that are flattened too

    def flatten_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Describe the arguments of a call, as `flatten` does; most are of tensors alone."""
        if kwargs or any(type(each) is not Tensor for each in args):
            try:
                return self.flatten((args, kwargs))
            except RecursionError:
                text = "an argument contains itself, or hundreds of containers in one another"
                raise TraceError("jit", text, "pass it in other parts") from None
        self.tensors = list(args)
        return structure_of_tensors(len(args))

    def flatten(self, value: Any) -> Any:
        """Describe a value; its tensors and the objects in it are listed."""
        kind = type(value)
        if isinstance(value, Tensor):
            self.tensors.append(value)
            return TENSOR if kind is Tensor else kind  # code may ask for its class
        if kind in KINDS:
            self.numbers.append(value)
            return NUMBER, kind
        if kind is TracedNumber:  # when it is looked for what a function did to its arguments
            return NUMBER
        if kind in BY_VALUE:
            return kind, value if kind is not slice else repr(value)
        inner = parts(value)
        if inner is None:
            return self.static(kind, value)
        names = tuple(value) if isinstance(value, dict) else None
        return kind, names, tuple([self.flatten(item) for item in inner])

    def static(self, kind: type, value: Any) -> Any:
        """Describe what is no tensor and no container."""
        if isinstance(value, np.ndarray):
            text = "an argument is a NumPy array, whose values a trace would keep for ever"
            raise TraceError("jit", text, "pass picograd.Tensor(array)")
        if kind.__hash__ is object.__hash__ and kind.__weakrefoffset__:
            self.objects.append(value)
            return "object", kind, id(value)
        if kind is set and not any(isinstance(each, Tensor) for each in value):
            return kind, frozenset([(type(each), each) for each in value])
        if isinstance(value, VALUES) and hasattr(value, "__dict__"):
            # of a class of the user's, whose `__eq__` need not tell numbers or attributes apart
            base = next(each for each in VALUES if isinstance(value, each))
            held = tuple([(name, type(each), each) for name, each in vars(value).items()])
            value = base.__repr__(value), held
        try:
            hash(value)
        except TypeError:
            text = f"an argument of type {kind.__name__} cannot be hashed, so no trace can be kept"
            fix = "pass tensors, numbers, strings, or tuples, lists, dicts and dataclasses of them"
            raise TraceError("jit", text, fix) from None
        return kind, value


@functools.cache
def structure_of_tensors(count: int) -> Any:
    """Describe the arguments of a call with so many tensors, as `flatten` does."""
    args = tuple, None, (TENSOR,) * count
    return tuple, None, (args, (dict, (), ()))


def parts(value: Any) -> Sequence[Any] | None:
    """List what is directly inside a container; None for what is no container."""
    if isinstance(value, (tuple, list)):
        return value
    if isinstance(value, dict):
        return list(value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, DType)):  # each is one
        if hasattr(value, "_trace_state"):  # a module: state, not a container
            return None
        return [getattr(value, each.name, None) for each in dataclasses.fields(value)]
    return None


def rebuilt(value: Any, change: Callable[[Any], Any], number: Any = None) -> Any:
    """Build the same containers with other tensors (or places of tensors) in them.

    `number` gives other numbers.
    """
    if type(value) in KINDS:
        return value if number is None else number(value)
    if isinstance(value, (Tensor, Place)) or type(value) is TracedNumber:
        return change(value)
    inner = parts(value)
    if inner is None:
        return value.copy() if isinstance(value, np.ndarray) else value
    items = [rebuilt(item, change, number) for item in inner]
    kind = type(value)
    if isinstance(value, dict):
        pairs = dict(zip(value, items))
        return pairs if kind is dict else copy_of(value, pairs)
    if isinstance(value, (tuple, list)):
        return kind(*items) if is_named_tuple(value) else kind(items)
    made = object.__new__(kind)
    for each, item in zip(dataclasses.fields(value), items):
        object.__setattr__(made, each.name, item)
    return made


def template(value: Any, number: Callable[[Tensor], int]) -> Any:
    """Replace the tensors of a returned value by their places."""

    def place(found: Any) -> Place:
        if type(found) is TracedNumber:
            return Place(-1, found.slot)
        return Place(number(found))

    return rebuilt(value, place)


def numbers_in(value: Any) -> list[int]:
    """List the slots of the numbers of a returned value, in a template."""
    if isinstance(value, Place):
        return [value.slot] if value.slot >= 0 else []
    return [slot for item in parts(value) or () for slot in numbers_in(item)]


def tensors_in(value: Any) -> list[Tensor]:
    """List the tensors of a returned value. Raises TraceError for those that are out of reach."""
    if isinstance(value, Tensor):
        return [value]
    inner = parts(value)
    if inner is not None:
        return [tensor for item in inner for tensor in tensors_in(item)]
    return []


def check_returned(value: Any, is_made: Callable[[Tensor], bool]) -> None:
    """Raise TraceError for a returned iterator, or object that holds tensors of the trace."""
    inner = parts(value)
    for item in inner or ():
        check_returned(item, is_made)
    if inner is not None or isinstance(value, (Tensor, type)) or type(value) is TracedNumber:
        return
    if is_iterator(value):
        text = f"the function returned a {type(value).__name__}, which can be read once"
        raise TraceError("jit", text, "return a list")
    held = tensors_in(dict(getattr(value, "__dict__", None) or {}))
    if isinstance(value, (set, frozenset)):
        held = [each for each in value if isinstance(each, Tensor)]
    if any(is_made(each) for each in held):
        text = f"the function returned a {type(value).__name__} with new tensors inside"
        raise TraceError("jit", text, "return tensors in tuples, lists, dicts or dataclasses")


class Reference:
    """This class finds an object for as long as it lives; `gone` is called when it dies.

    One that allows no weak reference is held.
    """

    __slots__ = ("find",)

    def __init__(self, value: Any, gone: Callable[[Any], None] | None = None) -> None:
        try:
            self.find: Callable[[], Any] = weakref.ref(value, gone)
        except TypeError:
            self.find = lambda: value
