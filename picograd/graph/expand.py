"""Expansion of composites into primitives, done before scheduling so that fusion sees through."""

from collections.abc import Sequence

from picograd.graph.node import Node
from picograd.graph.ops import OPS


def expand_composites(roots: Sequence[Node]) -> list[Node]:
    """Replace every composite under `roots`; nodes without one below stay the same objects.

    softmax(x) -> div(exp(sub(x, max)), sum(...)). A realized node is a leaf: it is left alone, with
    everything below it. Iterative and memoised: each node is visited once.
    """
    done: dict[int, Node] = {}
    expansions: dict[int, Node] = {}  # also keeps the expansions alive while ids are keys
    stack: list[Node] = list(reversed(roots))
    while stack:
        node = stack[-1]
        if id(node) in done:
            stack.pop()
            continue
        if node.realized is not None or not node.inputs:
            done[id(node)] = node
            continue
        row = OPS[node.op]
        if row.expand is not None:
            if id(node) not in expansions:
                expansions[id(node)] = row.expand(node)
            waiting = [expansions[id(node)]]
        else:
            waiting = list(node.inputs)
        pending = [child for child in waiting if id(child) not in done]
        if pending:
            stack += reversed(pending)
            continue
        stack.pop()
        done[id(node)] = done[id(waiting[0])] if row.expand else rebuilt(node, done)
    return [done[id(root)] for root in roots]


def rebuilt(node: Node, done: dict[int, Node]) -> Node:
    """Give a node its expanded inputs; the same node if none changed."""
    inputs = tuple(done[id(child)] for child in node.inputs)
    if all(a is b for a, b in zip(inputs, node.inputs)):
        return node
    return Node(node.op, inputs, node.arg, node.shape, node.dtype, node.device)
