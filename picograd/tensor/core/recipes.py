"""What machine code stamps out of an operation that was recorded before: see native_recording.py.

A recipe has the steps over what a call reads, the steps that have a number of the call's, and where
its results are. Python makes it, at the second call of a key.
"""

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from picograd.engine.followed import EVENTS, STEADY
from picograd.engine.native_calls import CODED
from picograd.number import Given, given
from picograd.tensor.core.autograd import TRACKED
from picograd.tensor.core.repeated import PURE, Operands, Recording, Unlike, kept_recording

# Rooms whose functions record what follows from shapes, dtypes, views and plain options.
ROOMS = {
    "picograd.graph.build", "picograd.tensor.math.elementwise", "picograd.tensor.math.primitives",
    "picograd.tensor.math.transcendental", "picograd.tensor.linalg.products",
    "picograd.tensor.network.activation", "picograd.tensor.reductions.reduce",
    "picograd.tensor.shaping.movement", "picograd.tensor.indexing.selecting",
}  # fmt: skip
Record = TypeVar("Record", bound=Callable[..., Any])
RECIPES: dict[Any, Any] = {}  # by the key of a call: False for one that came once, None for others


def note_pure(function: Any) -> None:
    """Note a function of one of the rooms, whose recording follows from what its key has."""
    if getattr(function, "__module__", "") in ROOMS:
        PURE.add(function)


def note_rooms() -> None:
    """Note all functions of the rooms, once they are imported."""
    for room in ROOMS:
        for each in vars(sys.modules[room]).values():
            if type(each) is FunctionType:
                note_pure(each)


def again(read: Callable[[Any], Any]) -> Callable[[Record], Record]:
    """Let machine code do what records a function on nodes, where it did so before.

    `read` gives the node of a tensor, and what is none as it is.
    """

    def decorate(record: Record) -> Record:
        @functools.wraps(record)
        def call(function: Callable[..., Any], *operands: Any) -> Any:
            native = CODED.record
            if native is None or EVENTS.take is not None:
                return record(function, *operands)
            with EVENTS.lock:
                made = native(function, operands)
            if made is None:
                return record(function, *operands)
            if type(made) is not list:
                return made
            result = record(function, *operands)
            keep(made, native, function, operands, read)
            return result

        return call  # type: ignore[return-value]

    return decorate


def again_over(read: Callable[[Any], Any], place: int) -> Callable[[Record], Record]:
    """Let machine code write over a tensor what a function gives of it, where it did so before.

    The tensor is the first argument, and at a place among those of the function.
    """

    def decorate(update: Record) -> Record:
        @functools.wraps(update)
        def call(target: Any, function: Callable[..., Any], *others: Any) -> Any:
            native, record = CODED.update, CODED.record
            if native is None or EVENTS.take is not None:
                return update(target, function, *others)
            operands = *others[:place], target, *others[place:]
            with EVENTS.lock:
                made = native(target, function, operands)
            if made is True:
                return target
            result = update(target, function, *others)
            if made is not None:
                keep(made, record, function, operands, read)
            return result

        return call  # type: ignore[return-value]

    return decorate


def keep(
    key: list[Any],
    native: Callable[..., Any],
    function: Callable[..., Any],
    operands: tuple[Any, ...],
    read: Callable[[Any], Any],
) -> None:
    """Keep how a call is recorded, unless that computed what it reads: its key is another then.

    Where the other key has a recipe, machine code records the call anew, which nobody reads.
    """
    with EVENTS.lock:
        found = native(function, operands)
        if type(found) is list and found == key:
            RECIPES[key[0]] = recipe_of(function, [as_read(each, read) for each in operands])


def as_read(value: Any, read: Callable[[Any], Any]) -> Any:
    """Give an operand as functions on nodes take it."""
    return given(value) if type(value) is float else read(value)


def recipe_of(function: Callable[..., Any], operands: list[Any]) -> tuple[Any, ...] | None:
    """Find how a call is recorded; None if that is not all that its key has."""
    found = Operands()
    try:
        found.keys(operands)
    except Unlike:
        return None
    _, kept = kept_recording(function, operands, found)
    if type(kept) is not Recording or kept.kind is list:
        return None
    first, at_steps = len(found.inputs), sorted(kept.numbered)
    names = [kept.names.get(id(kept.steps[at][3])) for at in at_steps]
    if None in names or min(kept.results) < first:
        return None
    is_float = any(type(each) is Given for each in found.given)
    if function in STEADY and is_float and names != [0]:  # its value is not in the key
        return None
    places = {id(value): place for place, value in enumerate(operands)}
    numbers: list[Any] = []
    for at, name in zip(at_steps, names):
        number: Any = kept.steps[at][3]
        same = names.index(name)
        kind = type(number) if at_steps[same] == at else None  # that of another step
        value = number if kind else first + at_steps[same]
        numbers.append((first + at, places.get(id(number)), value, kind))
    rows = [(place, kept.steps[place - first][5].kind in TRACKED) for place in kept.results]
    return kept.steps, tuple(numbers), tuple(rows), kept.kind is None, kept.demands
