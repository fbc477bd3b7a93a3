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
    has_any = any(node.op in EXPONENTIALS for node in order)
    if not target.packs_operands or not has_any:
        return list(roots)
    few = {id(node) for node in order if is_few(node)}
    if not few:
        return list(roots)
    made = made_of_exponentials(order)
    scores = below_exponentials(order, made)
    readers = counted(roots, order)
    wide: dict[int, Node] = {}
    new = {}
    for node in order:
        key = id(node)
        if is_leaf(node) or key not in scores:
            continue
        below = list(map(id, node.inputs))
        has_wide = not wide.keys().isdisjoint(below)
        if has_wide and node.row.keeps_value and node.dtype is float32:
            new[key] = wide[below[0]]
            continue
        is_alone = readers[key] == 1 and type(node) is Node
        is_made = has_wide and node.row.role in MADE and node.dtype.bits == 16
        if is_alone and (key in few or is_made):
            wide[key] = widened(node, wide)
    return replaced(roots, order, new) if new else list(roots)


def is_few(node: Node) -> bool:
    """Tell whether a node is a product of 16-bit floats that is too small to stream."""
    is_narrow = node.op in CONTRACTIONS and node.dtype.bits == 16
    if is_leaf(node) or not is_narrow:
        return False
    first, second, out = node.arg
    sizes = list(zip(out, node.shape, strict=True))
    rows = product(size for label, size in sizes if label not in second)
    columns = product(size for label, size in sizes if label not in first)
    return min(rows, columns) < LEAST_SIDE


def widened(node: Node, wide: dict[int, Node]) -> Node:
    """Compute a node in float32."""
    inputs = []
    for each in node.inputs:
        found = wide.get(id(each), each)
        if found.dtype is node.dtype:
            found = found.cast(float32)
        inputs.append(found)
    return Node(node.op, tuple(inputs), node.arg, node.shape, float32, node.device)
