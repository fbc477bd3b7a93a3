"""Copies of tensors, shallow and deep: what shares memory with what.

A deep copy of a view is a view of a copy of its base, so that what shared memory still does:
Python's `memo` tells which bases were copied. A shallow copy shows the memory of the original.
A part that is copied to where it lies changes nothing: `x[i] += y` ends that way.
"""

import copy
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from picograd.engine import foreign, pending
from picograd.engine.followed import EVENTS
from picograd.engine.tracing import RUNNING, is_tracing
from picograd.graph import build
from picograd.graph.row import MEMORY, WRITES
from picograd.number import GivenInt
from picograd.tensor.core.aliasing import show_items
from picograd.tensor.core.recording import (
    VERSIONS,
    Recorded,
    attach,
    is_view,
    note_view,
    root_of,
    start,
)

BASIC = {int, GivenInt, slice, type(None), type(...)}  # indices that are compared as they are


def copied(tensor: "Recorded", is_deep: bool = False, base: Any = None) -> Any:
    """Make a leaf of the same class, values and attributes; `is_deep` in memory of its own.

    That is the memory of `base`, a copy of what the tensor shows, if it is given.
    """
    result = type(tensor).__new__(type(tensor))
    node = foreign.apart(tensor._node) if is_deep else tensor._node
    view: Any = tensor._view
    start(result, build.detach(node if base is None else view.on(base._node)), False)
    if base is not None:
        attach(result, replace(view, base=base))
    if is_deep:
        foreign.settle(result._node)
    result._node.leaf = weakref.ref(result)
    result._tracks, result.name = tensor._tracks, tensor.name
    result._is_frozen = tensor._is_frozen
    for key, value in getattr(tensor, "__dict__", {}).items():
        setattr(result, key, value)
    return result


def shallow(tensor: Recorded) -> Any:
    """Copy a tensor, not its memory: what is written into either is seen in both."""
    result = copied(tensor)
    if tensor.is_leaf and not is_tracing():
        note_view(result, tensor, build.detach)
    return result


def deep(tensor: Recorded, memo: dict[int, Any]) -> Any:
    """Copy a leaf and its memory; what a view shows is copied whole, once."""
    base = None
    if tensor._view is not None and is_view(tensor) and not is_tracing():
        base = copy.deepcopy(tensor._view.base, memo) if root_of(tensor).is_leaf else None
    result = memo[id(tensor)] = copied(tensor, True, base)
    return result


def is_part(source: "Recorded", target: "Recorded", items: Sequence[Any]) -> bool:
    """Tell whether a tensor shows what basic indices choose of one that is no view.

    Who learns a way, or follows one, has to see a write of it as any other.
    """
    view, is_told = source._view, EVENTS.record is not None or EVENTS.learning is not None
    if view is None or view.base is not target or view.function is not show_items or is_told:
        return False
    (chosen,) = view.operands
    if target._view is not None or RUNNING.traces or RUNNING.active:
        return False
    is_basic = {*map(type, items), *map(type, chosen)} <= BASIC
    return is_basic and chosen == items and is_view(source)


@pending.locked
def count_write(target: "Recorded") -> None:
    """Count a write that changes nothing."""
    node = target._node
    while node.op in WRITES:
        node = node.inputs[0]
    if node.op in MEMORY:
        node.arg.version += 1
    else:
        VERSIONS[node] = VERSIONS.get(node, 0) + 1
