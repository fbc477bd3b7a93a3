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

import numpy as np

from picograd.engine import foreign, pending
from picograd.engine.backends import get_device
from picograd.engine.carried import entries
from picograd.engine.debug import user_place
from picograd.engine.executable import copy_buffer
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import is_watched, leaf
from picograd.engine.tracing import RUNNING, is_tracing
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.row import MEMORY, WRITES
from picograd.helpers import product
from picograd.target import is_host
from picograd.tensor.core.autocast import REGIONS
from picograd.tensor.core.autograd import MODE, TRACKED
from picograd.tensor.core.recording import (
    VERSIONS,
    Recorded,
    attach,
    is_view,
    made,
    note_view,
    renew_views,
    root_of,
    start,
    wrap,
)

MANY = 8  # tensors that are stacked at once
SMALL = 1 << 20  # bytes of these


@pending.locked
def joined(tensors: Any, axis: int, is_stack: bool) -> Any:
    """Join many small tensors in memory of the host along an axis, or stack them: at once.

    A plan of so many inputs is told by which of them are one memory, which is another each time
    where rows are drawn from a list: past steps of a game, images of a data set; or by how many
    there are, where a list grows. The few that are pending are computed. None for any others.
    """
    if type(axis) is not int or type(tensors) not in (list, tuple) or len(tensors) < MANY:
        return None
    if RUNNING.active or RUNNING.traces or {*map(type, tensors)} != {Recorded.kind}:
        return None
    if REGIONS.dtypes or is_watched():
        return None
    first = tensors[0]._node
    rank = first.rank + is_stack
    if not -rank <= axis < rank:
        return None
    axis %= rank
    rest = rest_of(first, axis, is_stack)
    waiting: list[Node] = []
    for each in tensors:
        node = each._node
        is_alike = node.rank == first.rank and rest_of(node, axis, is_stack) == rest
        is_alike = is_alike and node.dtype is first.dtype and node.device == first.device
        if not is_alike or (MODE.enabled and each._tracks):
            return None
        if leaf_buffer(node) is None:
            waiting.append(node)
    nbytes = [each._node.size * first.dtype.itemsize for each in tensors]
    is_small = 0 < sum(nbytes) <= SMALL and len(waiting) * MANY <= len(tensors)
    if not is_small or not is_host(first.device):
        return None
    if waiting:
        pending.compute(waiting)
    count = sum(nbytes) // first.dtype.itemsize
    made = get_device(first.device).new_buffer(first.dtype, count, user_place())
    copy_together(made, [leaf_buffer(each._node) for each in tensors], product(rest[:axis]))
    size = len(tensors) if is_stack else sum(each._node.shape[axis] for each in tensors)
    return wrap(leaf(made, (*rest[:axis], size, *rest[axis:])), False)


def rest_of(node: Node, axis: int, is_stack: bool) -> tuple[int, ...]:
    """List the sizes of all axes but the one along which is joined."""
    shape = node.shape
    return shape if is_stack else shape[:axis] + shape[axis + 1 :]


def copy_together(made: Any, parts: Sequence[Any], rows: int) -> None:
    """Copy arrays of some rows into one, row by row behind one another."""
    if rows == 1:
        place = made.address
        for part in parts:
            ctypes.memmove(place, part.address, part.nbytes)
            place += part.nbytes
        return
    columns = [bytes_of(part).reshape(rows, -1) for part in parts]
    np.concatenate(columns, 1, out=bytes_of(made).reshape(rows, -1))


def bytes_of(buffer: Any) -> "np.ndarray[Any, Any]":
    """Show what a buffer has, for as long as the caller holds it."""
    memory = (ctypes.c_char * buffer.nbytes).from_address(buffer.address)
    return np.frombuffer(memory, np.uint8)


@pending.locked
def moved_at_once(tensor: Any, device: str) -> Any:
    """Copy memory that nobody is about to write to another device, without a plan: a leaf there.

    A way sees it as one sees new data. None where a copy has to be recorded.
    """
    node, place = tensor._node, (tensor.device, device)
    buffer = leaf_buffer(node) if type(node) is Node else None
    if buffer is None or tensor._tracks or "meta" in place or RUNNING.active or RUNNING.traces:
        return None
    if entries(pending.WRITES) or node.dtype.is_complex or is_watched():
        return None
    target = get_device(device).new_buffer(buffer.dtype, buffer.count, user_place())
    copy_buffer(target, buffer)
    found = made(leaf(target, node.shape))
    if MODE.enabled and node.dtype.kind in TRACKED:  # as `settle` has it
        found._history = build.copy(node, device)
        found._history.realized = target
        found._node.arg.source = weakref.ref(found._history)
    return found


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


def lay_open(tensor: Recorded) -> None:
    """Let the views of a tensor read its memory, which others are to write.

    A view of a constant is a constant, and reads none.
    """
    root: Any = root_of(tensor)
    views = [each for each in (reference() for reference in root._views or ()) if each is not None]
    memory = foreign.behind_views(root.realize()._node)
    if root._tracks and not root.is_leaf:
        return
    if any(foreign.behind_views(each._node) is not memory for each in views):
        root._move(pending.next_leaf(root._node))
        renew_views(root)


@pending.locked
def shallow(tensor: Recorded) -> Any:
    """Copy a tensor, not its memory: what is written into either is seen in both."""
    result = copied(tensor)
    if tensor.is_leaf and not is_tracing():
        note_view(result, tensor, build.detach)
    return result


def deep(tensor: Recorded, memo: dict[int, Any]) -> Any:
    """Copy a leaf and its memory; what a view shows is copied whole, once.

    A view that gradients pass is no leaf: what is cut off from it is copied alone."""
    base = None
    shown: Any = tensor._view
    if shown is not None and is_view(tensor) and not is_tracing():
        base = copy.deepcopy(shown.base, memo) if shown.base.is_leaf else None
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
