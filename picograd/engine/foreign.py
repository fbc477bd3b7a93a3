"""Memory that somebody else may write at any time: NumPy's, or another library's.

A tensor over such memory shows what is there now. What is computed from it must not change any
more, so an operation that reads it reads a copy where that is small, and is computed when it is
recorded where it is large. A write into it is computed at once. Views stay views: they show what is
there now, too. What only looks like one, because an operation changes nothing (x + 0, the sum of an
axis of one element), is a copy (`apart`).
"""

import weakref
from collections.abc import Sequence
from typing import Any

from picograd.buffer import Buffer, Storage
from picograd.engine import pending
from picograd.engine.followed import EVENTS
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import buffer_view, node_from_numpy
from picograd.engine.tracing import is_tracing
from picograd.errors import check
from picograd.graph.node import Node, is_renaming
from picograd.target import is_host

Shared = dict[int, "weakref.ref[Buffer]"]
SHARED: Shared = {}  # buffers over such memory, by id, while they live
APART: "weakref.WeakSet[Node]" = weakref.WeakSet()  # nodes known not to read any
COPIED = 1 << 26  # bytes of an operand that are copied at most, for a gradient
SMALL = 1 << 18  # without one: a copy takes less time than a computation of its own
VIEWS = ("reshape", "permute", "expand", "slice", "detach", "window")


def share(node: Node) -> Node:
    """Note that others write the memory of a leaf; returns the leaf."""
    note_shared(node.arg.buffer)
    return node


def note_shared(buffer: Buffer) -> None:
    """Note that others write the memory of a buffer, as long as it lives."""
    key = id(buffer)

    def forget(_gone: "weakref.ref[Buffer]", shared: Shared = SHARED) -> None:
        shared.pop(key, None)

    SHARED[key] = weakref.ref(buffer, forget)


def entangled(buffers: Sequence[Buffer | None]) -> dict[int, int]:
    """Say of buffers over such memory with which other one they have bytes in common."""
    found: dict[int, int] = {}
    if not SHARED:
        return found
    shared = [(n, each) for n, each in enumerate(buffers) if each and id(each) in SHARED]
    end, last = 0, -1
    for number, each in sorted(shared, key=lambda pair: pair[1].address):
        if each.address < end and each is not buffers[last]:
            found[number], found[last] = last, number
        if each.address + each.nbytes > end:
            end, last = each.address + each.nbytes, number
    return found


def hand_out(node: Node) -> None:
    """Note that others may write a leaf's memory from now on: what still has to read it does so.

    Nothing has where they might before, and views are to show what they write.
    """

    def is_view(reader: Node) -> bool:
        tensor = pending.LIVE.get(id(reader))
        while tensor is not None and (view := tensor._view) is not None:
            tensor = None if view.strides() is None else view.base
        return tensor is not None and tensor._node is node

    if not is_shared(node):
        pending.before_writes([node], is_view)
        note_shared(leaf_buffer(node))  # type: ignore[arg-type]


def apart(node: Node) -> Node:
    """Give a copy of what is nothing but a view of such memory, else the node itself."""
    below = behind_views(node)
    return node if is_tracing() or not is_shared(below) else node.stored()


def settle(node: Node) -> None:
    """Compute a node now if it reads memory others write. A trace has a moment of its own."""
    if not is_tracing() and reads(node):
        pending.compute([node])


def are_read(operands: Sequence[Any]) -> bool:
    """Tell whether an operation on these reads such memory. A trace has a moment of its own."""
    return bool(SHARED) and not is_tracing() and any(map(shows, operands))


def shows(operand: Any) -> bool:
    """Tell whether an operand shows such memory: of what waits, views alone do."""
    return isinstance(operand, Node) and is_shared(behind_views(operand))


def kept(nodes: Sequence[Any], operands: Sequence[Any], tracks: bool) -> list[Any]:
    """Copy what shows such memory now, of the nodes of operands, but for what is large.

    What follows can then wait, and becomes one plan. Reading what is large is computed, but for a
    gradient that will read it later. Of what asks for gradients the copies are computed, so that
    gradients pass.
    """
    copies: dict[int, Node] = {}
    limit = COPIED if tracks else SMALL
    for node, each in zip(nodes, operands, strict=True):
        if shows(node) and node.size * node.dtype.itemsize <= limit and id(node) not in copies:
            copies[id(node)] = copy_now(node, tracks and each._tracks)
    return [copies.get(id(node), node) for node in nodes]


def steady(node: Node) -> Node:
    """Give what an index shows now, which nobody else may change. No gradient passes."""
    return copy_now(node, False) if SHARED and not is_tracing() and shows(node) else node


def copy_now(node: Node, asks: bool) -> Node:
    """Copy what memory shows now; `asks` tells whether gradients pass to it."""
    if asks or not is_host(node.device):
        copy = node.stored()
        pending.compute([copy])
        return copy
    copy = snapshot(node)
    if EVENTS.learning is not None:
        EVENTS.learning.note_copy(copy, node)
    return copy


def snapshot(node: Node) -> Node:
    """Make a leaf of what memory of the CPU, or a view of it, shows now."""
    return node_from_numpy(shown(node), node.dtype, node.device)


def shown(node: Node) -> Any:
    """Give memory of the CPU, or a view of it, as an array over the same memory."""
    source, views = node, []
    while source.realized is None and source.inputs:
        views.append(source)
        source = source.inputs[0]
    buffer = leaf_buffer(source)
    check(buffer is not None, "what is to be copied is not in memory", node)
    return seen_through(buffer_view(buffer, source.shape), views)  # type: ignore[arg-type]


def seen_through(values: Any, views: Sequence[Node]) -> Any:
    """Apply views to an array, the last one first in the list."""
    for view in reversed(views):
        meaning = view.row.numpy
        if view.row.view is not None and meaning is not None:
            values = meaning(view, values)
    return values


def reads(node: Node) -> bool:
    """Tell whether a node that is no view reads such memory; every node is looked at once."""
    if is_shared(behind_views(node)):
        return False
    stack, seen = [node], {id(node): node}
    while stack:
        each = stack.pop()
        if is_shared(each):
            return True
        if each.realized is not None or each in APART:
            continue
        for child in each.inputs:
            if id(child) not in seen:
                seen[id(child)] = child
                stack.append(child)
    for each in seen.values():
        APART.add(each)
    return False


def behind_views(node: Node) -> Node:
    """Find what a view was taken from."""
    while node.realized is None and node.inputs and (node.op in VIEWS or is_renaming(node)):
        node = node.inputs[0]
    return node


def is_shared(node: Node) -> bool:
    """Tell whether a node is a leaf over such memory, or was computed into it."""
    if node.realized is not None:
        return id(node.realized) in SHARED
    if node.op != "buffer" or type(node.arg) is not Storage:
        return False
    return id(node.arg.buffer) in SHARED
