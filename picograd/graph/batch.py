"""Vectorisation, graph -> graph: what was recorded for one sample computes a whole batch.

    sample f32(3) --exp--> f32(3) --sum--> f32()      one sample, recorded by the user's function
    batch  f32(8, 3) -exp-> f32(8, 3) -sum-> f32(8)   what `convert` makes of it

The batch axis is always the first. Only nodes that depend on a sample change; everything else is
used as it is. The row of an op has its rule (graph/batch_rules.py); a composite without one is
expanded.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from picograd.buffer import Sample
from picograd.errors import GradientError, internal
from picograd.graph.gradient import HOOKS
from picograd.graph.node import Node, toposort

Guard = Callable[[], AbstractContextManager[Any]]


class Batch:
    """This class is one vectorisation: its size, and what became of the nodes of one sample.

    `done` maps the id of a node to the node, which it keeps alive, and to its batched form: None if
    it is the same for all samples. `guard` opens a block in which a function of samples may run.
    """

    def __init__(self, size: int, guard: Guard = nullcontext) -> None:
        self.size: int = size
        self.guard: Guard = guard
        self.done: dict[int, tuple[Node, Node | None]] = {}
        self.numbers: dict[int, list[int]] = {}  # of the nodes of a batched loop's body

    def sample(self, batched: Node) -> Node:
        """Make the leaf that stands for one slice along the first axis of a node."""
        shape = batched.shape[1:]
        leaf = Node("buffer", (), Sample(), shape, batched.dtype, batched.device)
        self.done[id(leaf)] = leaf, batched
        return leaf

    def convert(self, roots: Sequence[Node]) -> list[Node | None]:
        """Find the batched form of nodes, each input before its users; linear in the graph."""
        done = self.done
        for node in toposort(roots, lambda node: id(node) in done or node.realized is not None):
            if id(node) not in done:
                done[id(node)] = node, self.converted(node)
        return [done[id(root)][1] for root in roots]

    def converted(self, node: Node) -> Node | None:
        """Apply the rule of one node whose inputs are converted."""
        if node.realized is not None:
            return None
        found = [self.done[id(child)][1] for child in node.inputs]
        if all(each is None for each in found):
            return None
        if node in HOOKS:
            text = "a tensor inside has a gradient hook, which sees one sample"
            raise GradientError("vmap", text, "register the hook on a tensor outside")
        row = node.row
        if row.batch is not None:
            return row.batch(self, node, found)
        if row.batch_arg is not None or row.is_elementwise:
            return same_op(self, node, found)
        if row.expand is None:
            internal(f"{node.op} has no batching rule")
        return self.convert([row.expand(node)])[0]

    def inner(self) -> "Batch":
        """Begin the vectorisation of a graph inside of this one, of as many samples."""
        return Batch(self.size, self.guard)

    def full(self, node: Node) -> Node:
        """Give the batched form of a node, repeated if it is the same for all samples."""
        (found,) = self.convert([node])
        return self.repeat(node) if found is None else found

    def repeat(self, node: Node) -> Node:
        """Repeat a value that all samples share."""
        return node.reshape((1, *node.shape)).expand((self.size, *node.shape))

    def filled(self, node: Node, found: Sequence[Node | None]) -> list[Node]:
        """Give the batched form of every input of a node."""
        pairs = zip(node.inputs, found)
        return [self.repeat(child) if each is None else each for child, each in pairs]


def same_op(batch: Batch, node: Node, found: Sequence[Node | None]) -> Node:
    """Apply the op to batched inputs, its axes counted one further."""
    argument = node.row.batch_arg
    arg = node.arg if argument is None else argument(node.arg, batch.size)
    inputs, shape = (tuple(batch.filled(node, found)), (batch.size, *node.shape))
    return Node(node.op, inputs, arg, shape, node.dtype, node.device)
