"""Memory that somebody else may write at any time: NumPy's, or another library's.

A tensor over such memory shows what is there now. What is computed from it must not change any
more, so an operation that reads it is computed when it is recorded, and so is a write into it.
Views stay views: they show what is there now, too.
"""

import weakref

from picograd.buffer import Buffer, Storage
from picograd.engine import pending
from picograd.engine.tracing import is_tracing
from picograd.graph.node import Node

Shared = dict[int, "weakref.ref[Buffer]"]
SHARED: Shared = {}  # buffers over such memory, by id, while they live
APART: "weakref.WeakSet[Node]" = weakref.WeakSet()  # nodes known not to read any
VIEWS = ("reshape", "permute", "expand", "slice", "detach")


def share(node: Node) -> Node:
    """Note that others write the memory of a leaf; returns the leaf."""
    buffer = node.arg.buffer
    key = id(buffer)

    def forget(_gone: "weakref.ref[Buffer]", shared: Shared = SHARED) -> None:
        shared.pop(key, None)

    SHARED[key] = weakref.ref(buffer, forget)
    return node


def settle(node: Node) -> None:
    """Compute a node now if it reads memory others write. A trace has a moment of its own."""
    if not is_tracing() and reads(node):
        pending.compute([node])


def reads(node: Node) -> bool:
    """Tell whether a node that is no view reads such memory; every node is looked at once."""
    below = node
    while below.inputs and (below.op in VIEWS or is_same_value(below)):
        below = below.inputs[0]
    if is_shared(below):
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


def is_same_value(node: Node) -> bool:
    """Tell whether a node is a cast to the dtype its input has."""
    return node.op == "cast" and node.dtype is node.inputs[0].dtype


def is_shared(node: Node) -> bool:
    """Tell whether a node is a leaf over such memory."""
    if node.op != "buffer" or type(node.arg) is not Storage:
        return False
    return id(node.arg.buffer) in SHARED
