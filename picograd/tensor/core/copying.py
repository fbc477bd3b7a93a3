"""Copies of tensors, shallow and deep: what shares memory with what.

A deep copy of a view is a view of a copy of its base, so that what shared memory still does:
Python's `memo` tells which bases were copied. A shallow copy shows the memory of the original.
"""

import copy
import ctypes
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from picograd.engine import foreign, pending
from picograd.engine.backends import get_device
from picograd.engine.crossing import is_in_memory
from picograd.engine.debug import user_place
from picograd.engine.plan_key import leaf_buffer, walk_pending
from picograd.engine.realize import is_watched, leaf
from picograd.engine.tracing import RUNNING, is_tracing
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.row import INPUTS, MEMORY, WRITES
from picograd.target import is_host
from picograd.tensor.core.autocast import REGIONS
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.recording import (
    VERSIONS,
    Recorded,
    attach,
    is_view,
    note_view,
    root_of,
    start,
    wrap,
)

MANY = 8  # tensors that are stacked at once
SMALL = 1 << 20  # bytes of these


@pending.locked
def joined(tensors: Sequence[Any]) -> Any:
    """Stack many small tensors that are in memory of the host: at once; None for any others.

    A plan of so many inputs is told by which of them are one memory, which is another each time
    where rows are drawn from a list: past steps of a game, images of a data set.
    """
    if len(tensors) < MANY or RUNNING.active or RUNNING.traces:
        return None
    if REGIONS.dtypes or is_watched():
        return None
    first = tensors[0]._node
    buffers: list[Any] = []
    for each in tensors:
        node = each._node
        is_alike = node.shape == first.shape and node.dtype is first.dtype
        if not is_alike or node.device != first.device or (MODE.enabled and each._tracks):
            return None
        buffers.append(leaf_buffer(node))
    count, width = first.size, first.size * first.dtype.itemsize
    if None in buffers or not count or not is_host(first.device) or width * len(tensors) > SMALL:
        return None
    made = get_device(first.device).new_buffer(first.dtype, count * len(tensors), user_place())
    for number, buffer in enumerate(buffers):
        ctypes.memmove(made.address + number * width, buffer.address, width)
    return wrap(leaf(made, (len(tensors), *first.shape)), False)


@pending.locked
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


@pending.locked
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
    for key, value in getattr(tensor, "__dict__", {}).items():
        setattr(result, key, copy.deepcopy(value, memo))
    return result


def put_back(tensor: "Recorded") -> None:
    """Count a write to a tensor of what is there already."""
    with pending.LOCK:
        node = root_of(tensor)._node
        while node.op in WRITES:
            node = node.inputs[0]
        if node.op in MEMORY:
            node.arg.version += 1
        else:
            VERSIONS[node] = VERSIONS.get(node, 0) + 1


def compute_sources(nodes: Sequence[Node]) -> None:
    """Compute what is about to be copied to another device, unless its values are not known yet."""
    if not is_tracing():
        sources = [node for node in nodes if node.device != "meta" and not is_in_memory(node)]
        if sources and not any(node.op in INPUTS for node in walk_pending(sources)):
            pending.compute(sources)
