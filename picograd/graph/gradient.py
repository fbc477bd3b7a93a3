"""Reverse-mode differentiation, graph -> graph: nothing runs, so unread gradients cost nothing."""

from collections.abc import Sequence

from picograd.errors import GradientError, internal
from picograd.graph.node import Node, toposort
from picograd.graph.ops import OPS
from picograd.helpers import paused_collection


def gradient(
    outputs: Sequence[tuple[Node, Node]], targets: Sequence[Node]
) -> list[Node | None]:
    """Differentiate sum(output * cotangent) with respect to each target; None where no path leads.

    One topological order, walked once backwards; only nodes between outputs and targets get a
    gradient. Rules emit nodes, so the result can be differentiated again.
    """
    for output, cotangent in outputs:
        same = cotangent.dtype is output.dtype and cotangent.device == output.device
        if cotangent.shape != output.shape or not same:
            raise GradientError(
                "backward",
                f"the gradient given is {cotangent.dtype.name}{cotangent.shape}, the output "
                f"{output.dtype.name}{output.shape}",
                "give one of the output's shape, dtype and device",
            )
    order = toposort([output for output, _ in outputs])
    needed = reaching(order, targets)
    gradients: dict[int, Node] = {}
    for output, cotangent in outputs:
        accumulate(gradients, output, cotangent)
    with paused_collection():
        walk_back(order, gradients, needed, {id(target) for target in targets})
    return [gradients.get(id(target)) for target in targets]


def walk_back(
    order: Sequence[Node], gradients: dict[int, Node], needed: set[int], wanted: set[int]
) -> None:
    """Pass every node's gradient on to its inputs, keeping those of `wanted` nodes."""
    for node in reversed(order):
        if id(node) not in needed or id(node) not in gradients:
            continue
        flowing = gradients[id(node)]
        if id(node) not in wanted:
            del gradients[id(node)]
        if any(id(child) in needed for child in node.inputs):
            pass_back(gradients, node, flowing, needed)


def reaching(order: Sequence[Node], targets: Sequence[Node]) -> set[int]:
    """Find the nodes a gradient must pass: targets, and what depends on them differentiably."""
    needed = {id(target) for target in targets}
    for node in order:
        if id(node) in needed or not node.dtype.is_float or not OPS[node.op].is_differentiable:
            continue
        for child in node.inputs:
            if id(child) in needed and child.dtype.is_float:
                needed.add(id(node))
                break
    return needed


def pass_back(
    gradients: dict[int, Node], node: Node, flowing: Node, needed: set[int]
) -> None:
    """Apply the VJP of one node and add the results to its inputs' gradients."""
    vjp = OPS[node.op].vjp
    if vjp is None:
        return
    for child, part in zip(node.inputs, vjp(flowing, node, *node.inputs)):
        if part is None or id(child) not in needed:
            continue
        if part.shape != child.shape or part.dtype is not child.dtype:
            internal(f"the gradient of {node} has {part} for its input {child}")
        accumulate(gradients, child, part)


def accumulate(gradients: dict[int, Node], node: Node, part: Node) -> None:
    """Add to the gradient of a node."""
    found = gradients.get(id(node))
    gradients[id(node)] = part if found is None else found + part
