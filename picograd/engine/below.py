"""What waiting tensors are made of, kept: each computation asks that of all that wait.

A program may hold any number of tensors that nobody asked for yet: the first values of another
network, or results for later. Each computation has to know which of them read what is about to be
written, and which read what it computes. A node never changes what it reads, so that is looked up
once, and again when some of it was computed meanwhile.
"""

import weakref
from collections.abc import Container, Sequence, Set
from itertools import chain
from operator import attrgetter
from typing import Any
from weakref import ref

from picograd.engine.plan_key import leaf_buffer
from picograd.graph.node import Node
from picograd.graph.row import WRITES
from picograd.helpers import reached
from picograd.late_methods import dataclass

NEAR = 16  # nodes that are looked at
INPUTS, REALIZED = attrgetter("inputs"), attrgetter("realized")
INNER, MEMORY = attrgetter("inner"), attrgetter("memory")


@dataclass(frozen=True, slots=True)
class Below:
    """What is still to be computed below a node, and the memory and writes where that ends."""

    inner: tuple[Node, ...]
    names: frozenset[int]  # of `inner` and of writes
    memory: tuple[Node, ...]

    def is_present(self) -> bool:
        """Tell whether nothing of it was computed meanwhile."""
        return all(map(INPUTS, self.inner)) and not any(map(REALIZED, self.inner))

    def reads(self, written: Set[Node], buffers: Set[int]) -> bool:
        """Tell whether it reads memory by some nodes, or of buffers, which are given by id."""
        memory = self.memory
        held = map(id, map(leaf_buffer, memory))
        return not (written.isdisjoint(memory) and buffers.isdisjoint(held))


KNOWN: "weakref.WeakKeyDictionary[Node, Below]" = weakref.WeakKeyDictionary()
# Looking there takes no Python.
ENTRIES: dict[Any, Below] = KNOWN.data  # type: ignore[attr-defined]


def below(node: Node, told: Container[Node] = ()) -> Below:
    """Find what a waiting node is made of, as far as memory, writes, and what is told elsewhere."""
    found = KNOWN.get(node)
    if found is None or not found.is_present():
        found = look_below(node, told)
        if not any(each in told for each in found.memory):
            KNOWN[node] = found
    return found


def may_read(reference: "weakref.ref[Node]", computed: Set[int]) -> bool:
    """Tell from what is known of a waiting node whether it may be made of nodes, given by id.

    What was computed since only takes nodes away.
    """
    known = ENTRIES.get(reference)
    return known is None or not known.names.isdisjoint(computed)


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


def readers_among(
    nodes: Sequence[Node], written: Set[Node], buffers: Set[int], told: Container[Node] = ()
) -> list[Node]:
    """List the waiting nodes that are made of some nodes, or of buffers, which are given by id.

    Which of the nodes that are `told` are is said by `written`: it does not look below them.
    """
    known = [ENTRIES.get(ref(node)) for node in nodes]
    if None not in known:  # most often nothing is read: all are asked at once
        together = Below(
            tuple(chain.from_iterable(map(INNER, known))),
            frozenset(),
            tuple(chain.from_iterable(map(MEMORY, known))),
        )
        if together.is_present() and not together.reads(written, buffers):
            return []
    return [node for node in nodes if below(node, told).reads(written, buffers)]


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
