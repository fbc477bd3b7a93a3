"""wide_scores: scores of few rows, of 16-bit floats, are not rounded on the way to the exponential.

    float32((q @ k.T) * scale)    ->    (float32(q) @ float32(k).T) * scale

Scores that stream are sums of float32 wherever they are read. A CPU stores those of few rows, and
rounded they cost a digit: an error of 1 of 100 in a weight. Nothing else may read them.
"""

from collections.abc import Sequence

from picograd.dtype import float32
from picograd.graph.node import Node
from picograd.graph.row import Role, ops_of
from picograd.helpers import product
from picograd.schedule.moved_factors import below_exponentials, counted, made_of_exponentials
from picograd.schedule.scores import EXPONENTIALS, LEAST_SIDE
from picograd.schedule.values import is_leaf
from picograd.schedule.weighted_sums import replaced
from picograd.target import Target

CONTRACTIONS = ops_of(Role.CONTRACT)
MADE = (Role.ELEMENTWISE, Role.VIEW)


def widen_scores(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Multiply few rows to float32 where that is read; `order` lists inputs first."""
    if not target.packs_operands or not any(node.op in EXPONENTIALS for node in order):
        return list(roots)
    few = {id(node) for node in order if is_few(node)}
    if not few:
        return list(roots)
    scores = below_exponentials(order, made_of_exponentials(order))
    readers = counted(roots, order)
    wide: dict[int, Node] = {}
    new = {}
    for node in order:
        if is_leaf(node) or id(node) not in scores:
            continue
        is_conversion = node.row.keeps_value and node.dtype is float32
        if is_conversion and id(node.inputs[0]) in wide:
            new[id(node)] = wide[id(node.inputs[0])]
        elif readers[id(node)] == 1 and type(node) is Node and node.dtype.bits == 16:
            if id(node) in few or (node.row.role in MADE and has_wide(node, wide)):
                wide[id(node)] = widened(node, wide)
    return replaced(roots, order, new) if new else list(roots)


def is_few(node: Node) -> bool:
    """Tell whether a node is a product of 16-bit floats that is too small to stream."""
    if is_leaf(node) or node.op not in CONTRACTIONS or node.dtype.bits != 16:
        return False
    first, second, out = node.arg
    sizes = dict(zip(out, node.shape, strict=True))
    sides = (set(out) - set(second), set(out) - set(first))
    return min(product(sizes[label] for label in side) for side in sides) < LEAST_SIDE


def has_wide(node: Node, wide: dict[int, Node]) -> bool:
    """Tell whether a node is made of scores that are widened."""
    return not wide.keys().isdisjoint(map(id, node.inputs))


def widened(node: Node, wide: dict[int, Node]) -> Node:
    """Compute a node in float32."""
    inputs = []
    for each in node.inputs:
        is_narrow = each.dtype is node.dtype
        found = wide.get(id(each))
        inputs.append(found or (each.cast(float32) if is_narrow else each))
    return Node(node.op, tuple(inputs), node.arg, node.shape, float32, node.device)
