"""What waiting tensors are made of, kept: each computation asks that of all that wait.

A program may hold any number of tensors that nobody asked for yet: the first values of another
network, or results for later. Each computation has to know which of them read what is about to be
written, and which read what it computes. A node never changes what it reads, so that is looked up
once, and again when some of it was computed meanwhile.
"""

import weakref
from collections.abc import Container
from operator import attrgetter

from picograd.engine.plan_key import leaf_buffer
from picograd.graph.node import Node
from picograd.graph.row import WRITES
from picograd.helpers import reached
from picograd.late_methods import dataclass

NEAR = 16  # nodes that are looked at
INPUTS, REALIZED = attrgetter("inputs"), attrgetter("realized")


@dataclass(frozen=True, slots=True)
class Below:
    """What is still to be computed below a node, and the memory and writes where that ends."""

    inner: tuple[Node, ...]
    names: frozenset[int]  # of `inner` and of writes
    memory: tuple[Node, ...]

    def is_present(self) -> bool:
        """Tell whether nothing of it was computed meanwhile."""
        return all(map(INPUTS, self.inner)) and not any(map(REALIZED, self.inner))


KNOWN: "weakref.WeakKeyDictionary[Node, Below]" = weakref.WeakKeyDictionary()


def below(node: Node) -> Below:
    """Find what a waiting node is made of."""
    found = KNOWN.get(node)
    if found is None or not found.is_present():
        found = KNOWN[node] = look_below(node)
    return found


def look_below(node: Node, told: Container[Node] = ()) -> Below:
    """Walk what a node is made of, as far as memory and writes, and what is told elsewhere."""
    inner, memory = [], []  # type: ignore[var-annotated]
    stack = [*node.inputs]
    for each in reached(stack):
        is_inner = each.realized is None and each.inputs and each.op not in WRITES
        if is_inner and each not in told:
            inner.append(each)
            stack += each.inputs
        elif each.inputs or leaf_buffer(each) is not None:
            memory.append(each)
    names = [id(each) for each in (*inner, *memory)]
    return Below(tuple(inner), frozenset(names), tuple(memory))


def reads_any(
    node: Node, written: Container[Node], buffers: Container[int], told: Container[Node] = ()
) -> bool:
    """Tell whether a waiting node is made of some nodes, or of buffers, which are given by id.

    Which of the nodes that are `told` are is said by `written`: it does not look below them.
    """
    found = KNOWN.get(node)
    if found is None or not found.is_present():
        found = look_below(node, told)
        if not any(each in told for each in found.memory):
            KNOWN[node] = found
    return any(each in written or id(leaf_buffer(each)) in buffers for each in found.memory)


def is_near(node: Node, before: Node) -> bool:
    """Tell whether a value is seen to be computed of another: from a few nodes."""
    waiting = [node]
    for _ in range(NEAR):
        if not waiting:
            return False
        found = waiting.pop(0)
        if found is before:
            return True
        waiting += found.inputs
    return False
