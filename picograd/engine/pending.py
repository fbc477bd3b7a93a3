"""Which tensors are alive and not yet computed, and what must be computed together.

In-place writes make this necessary: when a write runs, every live tensor recorded before it that
still reads the old contents has to be computed in the same plan ("a reader recorded before sees
the old value"). And work that nobody asks for is bounded: after `BUDGET` recorded operations
everything pending is computed, so that a loop of a million lazy additions has constant memory.

Tensors are seen here as objects with a `node` and a method `settle`; they are held weakly.
"""

import weakref
from collections.abc import Sequence
from typing import Any

from picograd.buffer import Buffer, Storage
from picograd.engine.plan_key import leaf_buffer, walk_pending
from picograd.engine.realize import realize
from picograd.engine.tracing import is_tracing
from picograd.errors import ValueRangeError
from picograd.graph.node import Node

BUDGET = 10_000  # operations recorded since the last flush; a training step records about 1000
LEAVES_OF_THE_GRAPH = ("const", "iota", "scalar", "buffer")

LIVE: "weakref.WeakValueDictionary[int, Any]" = weakref.WeakValueDictionary()
WRITES: "weakref.WeakSet[Node]" = weakref.WeakSet()
RECORDED = [0]


class Overwritten(Storage):
    """What a leaf names once its contents are gone: reading it is the user's mistake."""

    def __init__(self) -> None:
        self.version = 0

    @property
    def buffer(self) -> Buffer | None:  # type: ignore[override]
        """Raise: the contents are not there any more."""
        text = "a value recorded earlier was overwritten in place before it was computed"
        raise ValueRangeError("realize", text, "call backward() before changing tensors in place")


def next_version(write: Node) -> Storage:
    """Give the storage a computed write wrote to; the leaf it overwrote names nothing any more."""
    target = write.inputs[0]
    while target.op == "assign":
        target = target.inputs[0]
    storage: Storage = target.arg
    target.arg = Overwritten()
    return storage


def track(node: Node, tensor: Any) -> None:
    """Remember which tensor owns a node."""
    LIVE[id(node)] = tensor


def forget(node: Node, tensor: Any) -> None:
    """Drop the entry of a node its tensor no longer has."""
    if LIVE.get(id(node)) is tensor:
        del LIVE[id(node)]


def owner(node: Node) -> Any:
    """Find the live tensor whose node this is, or None."""
    return LIVE.get(id(node))


def is_over_budget() -> bool:
    """Count one recorded operation and tell whether it is time to compute what is pending."""
    RECORDED[0] += 1
    return RECORDED[0] > BUDGET and not is_tracing()


def live_tensors() -> list[Any]:
    """List every live tensor."""
    return list(LIVE.values())


def realize_all() -> None:
    """Compute all that live tensors still wait for."""
    RECORDED[0] = 0
    nodes = [tensor.node for tensor in live_tensors()]
    compute([node for node in nodes if node.op not in LEAVES_OF_THE_GRAPH])


def flush_assigns() -> None:
    """Run the in-place writes that are still to run."""
    compute(pending_writes())


def compute(nodes: Sequence[Node]) -> None:
    """Compute nodes, with what has to run in the same plan, and let their tensors settle."""
    RECORDED[0] = 0
    roots = with_readers(nodes)
    realize(roots)
    settle(roots)


def pending_writes() -> list[Node]:
    """List the in-place writes that are still to run."""
    return [node for node in WRITES if node.realized is None]


def with_readers(nodes: Sequence[Node]) -> list[Node]:
    """Add to the nodes asked for what has to run with them.

    When they depend on a pending write, all pending writes join (a write may read what another
    overwrites), and every live tensor that reads contents about to be overwritten, first.
    """
    writes = pending_writes()
    if not writes:
        return list(nodes)
    wanted = {id(node) for node in walk_pending(nodes)}
    if not any(id(node) in wanted for node in writes):
        return list(nodes)
    live = [tensor.node for tensor in list(LIVE.values())]
    readers = [node for node in readers_of(writes, live) if node.op != "assign"]
    return [*readers, *nodes, *writes]


def readers_of(writes: Sequence[Node], candidates: Sequence[Node]) -> list[Node]:
    """List the pending candidates that read, other than through a write, what a write overwrites.

    One walk over their graphs, marking a node when one of its inputs is marked.
    """
    pending = [node for node in candidates if leaf_buffer(node) is None]
    targets = {id(node.inputs[0]) for node in writes}
    buffers: set[int] = set()
    for node in writes:
        buffer: Buffer | None = leaf_buffer(node.inputs[0])
        if buffer is not None:
            buffers.add(id(buffer))
    marked: set[int] = set()
    for node in walk_pending(pending):
        held = leaf_buffer(node)
        is_target = id(node) in targets or (held is not None and id(held) in buffers)
        reads = node.op != "assign" and held is None and any(id(x) in marked for x in node.inputs)
        if is_target or reads:
            marked.add(id(node))
    return [node for node in pending if id(node) in marked]


def settle(nodes: Sequence[Node]) -> None:
    """Tell the tensors of computed nodes, so that they let their graphs go."""
    for node in nodes:
        tensor = LIVE.get(id(node))
        if tensor is not None:
            tensor.settle()
