"""Gradients of what a jitted function returned, asked for outside of it.

A replay records one node for each output that asks for gradients: its value is the plan's, and its
gradient is that of the graph the trace recorded, over the arguments, captured tensors and random
numbers of this call. The kept graph holds no memory: its leaves are stand-ins.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from picograd.buffer import Buffer, RuntimeScalar, Storage
from picograd.engine.plan_key import GraphKey, leaf_buffer
from picograd.engine.realize import leaf
from picograd.graph import build
from picograd.graph.build_composite import custom
from picograd.graph.gradient import AFTER, HOOKS, gradient
from picograd.graph.node import Node, substituted, toposort
from picograd.graph.row import NUMBERS, SCALARS, WRITES
from picograd.graph.starts import moved, starts_of
from picograd.late_methods import dataclass
from picograd.number import GivenInt
from picograd.tensor.core.recording import same_value, wrap


@dataclass(slots=True)
class KeptGraph:
    """The graph of the outputs of a trace over stand-ins, each with where its value comes from.

    `arguments` are pairs with the number of an argument, `captured` with a weak reference, `fixed`
    with a leaf of memory the trace made, `scalars` with the place among the plan's scalars, where
    those of the positions in the graph are `starts`, by identity.
    """

    roots: dict[int, Node]
    arguments: list[tuple[Node, int]]
    captured: list[tuple[Node, Any]]
    fixed: list[tuple[Node, Node]]
    scalars: list[tuple[Node, int]]
    starts: dict[int, int]
    hooked: list[Node] = field(default_factory=list)  # of which hooks see the gradients


def stand_in(node: Node) -> Node:
    """Make a leaf without memory."""
    return Node("buffer", (), Storage(None), node.shape, node.dtype, node.device)


def keep_graph(
    roots: dict[int, Node], found: GraphKey, argument_of: dict[int, int], owner: Any
) -> KeptGraph | None:
    """Copy the graph of some roots over stand-ins; None where a value comes from a write."""
    nodes = toposort(list(roots.values()), lambda node: leaf_buffer(node) is not None)
    if any(node.op in WRITES for node in nodes):
        return None
    kept = KeptGraph({}, [], [], [], [], {})
    values: dict[int, Node] = {}
    scalars = {id(scalar): number for number, scalar in enumerate(found.scalars)}
    for node in nodes:
        buffer = leaf_buffer(node)
        for start in starts_of(node):
            kept.starts[id(start)] = scalars[id(start)]
        if node.op in SCALARS or (node.op in NUMBERS and id(node.arg) in scalars):
            values[id(node)] = stand_in(node)
            kept.scalars.append((values[id(node)], scalars[id(node.arg)]))
        elif buffer is not None:
            made = values[id(node)] = stand_in(node)
            tensor = owner(node)
            if id(buffer) in argument_of:
                kept.arguments.append((made, argument_of[id(buffer)]))
            elif tensor is not None:
                kept.captured.append((made, tensor))
            else:
                kept.fixed.append((made, leaf(buffer, node.shape)))
    kept.hooked = [node for node in nodes if node in HOOKS and id(node) not in values]
    ends = [*roots.values(), *kept.hooked]
    copies = with_hooks(ends, substituted(ends, values))
    kept.roots, kept.hooked = dict(zip(roots, copies)), copies[len(roots) :]
    return kept


def with_hooks(nodes: Sequence[Node], copies: list[Node]) -> list[Node]:
    """Let the hooks of nodes see the gradients of their copies too; gives the copies."""
    tables: tuple[Any, ...] = HOOKS, AFTER
    for table in tables:
        table.update({now: table[was] for was, now in zip(nodes, copies) if was in table})
    return copies


class Recording:
    """This class is one call of a jitted function, for the gradients of its outputs."""

    def __init__(
        self, kept: KeptGraph, arguments: Sequence[Any], values: Sequence[int | float]
    ) -> None:
        self.kept = kept
        pairs = [(made, arguments[number]) for made, number in kept.arguments]
        pairs += [(made, find()) for made, find in kept.captured]
        self.leaves = [(made, tensor._node) for made, tensor in pairs] + kept.fixed
        asked = [(made, tensor._node) for made, tensor in pairs if tensor.dtype.is_differentiable]
        self.made: list[Node] = [made for made, _ in asked]
        self.inputs: list[Any] = [node for _, node in asked]
        self.values = [(made, values[number]) for made, number in kept.scalars]
        self.starts = {start: GivenInt(values[at]) for start, at in kept.starts.items()}

    def output(self, number: int, buffer: Buffer, shape: tuple[int, ...]) -> Any:
        """Make one output, computed already, whose gradient is that of the trace."""
        ends = [self.kept.roots[number], *self.kept.hooked]
        if self.starts:
            ends = with_hooks(ends, moved(ends, lambda start: self.starts[id(start)]))

        def vjp(flowing: Node, node: Node, *nodes: Node) -> list[Node | None]:
            values = {id(made): given for made, given in self.leaves}
            for made, value in self.values:
                scalar = RuntimeScalar(value)
                number = build.scalar(scalar, made.device, made.dtype)
                values[id(made)] = number.broadcast_to(made.shape)
            targets = [same_value(each) for each in nodes]  # no path leads from one to another
            values.update(zip(map(id, self.made), targets))
            root, *_ = with_hooks(ends, substituted(ends, values))
            return gradient([(root, flowing)], targets)

        node = custom(leaf(buffer, shape), self.inputs, vjp)
        node.realized = buffer
        return wrap(node, True)
