"""narrow_products: scores of bfloat16 that was widened stream as those of bfloat16 do, on a GPU.

    float32(q) @ float32(k).T              ->    float32(q @ k.T)
    bfloat16(float32 scores @ float32(k))  ->    bfloat16(scores) @ k        gradients

Scores are written so that they are not rounded before the softmax, which those of a stream are not
anyway: tensor cores add exact products up in float32. A gradient that becomes bfloat16 has its
scores rounded as every product of weights has. None of float16: its gradients may be out of range.
"""

from collections.abc import Sequence

from picograd.dtype import bfloat16, float32
from picograd.graph.node import Node, toposort
from picograd.graph.row import EXPONENTIALS
from picograd.schedule.moved_factors import (
    CONTRACTIONS,
    Scale,
    counted,
    factor_of,
    scaled,
    viewed,
    views_above,
)
from picograd.schedule.order import nodes_of
from picograd.schedule.score_boxes import streamed_nodes
from picograd.schedule.scores import openers
from picograd.schedule.values import is_leaf
from picograd.schedule.weighted_sums import replaced
from picograd.target import Target


def narrow_products(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Multiply what was widened as it was before, if that streams; `order` lists inputs first."""
    if not target.copies_boxes or not nodes_of(order, EXPONENTIALS):
        return list(roots)
    new: dict[int, Node] = {}
    sizes: set[int] = set()
    for node in openers(order, 1):
        found = [unwidened(each) for each in node.inputs]
        narrow = [each for each in found if each is not None]
        if len(narrow) == 2 and node.dtype is float32:
            (first, scales), (second, others) = narrow
            value = first.contract(second, node.arg).cast(float32)
            new[id(node)] = scaled(value, scales + others)
            sizes.add(node.size)
    if not new:
        return list(roots)
    changed = replaced(roots, order, new | narrow_results(roots, order, sizes))
    order = toposort(changed, is_leaf)
    streamed = streamed_nodes(changed, order, target)
    for node in order:
        if node.size in sizes and is_widening(node):
            (product,) = node.inputs
            if product.op in CONTRACTIONS and id(product) not in streamed:
                return list(roots)
    return changed


def narrow_results(
    roots: Sequence[Node], order: Sequence[Node], sizes: set[int]
) -> dict[int, Node]:
    """Find what stands for products of scores of some sizes that only become bfloat16."""
    readers = counted(roots, order)
    new: dict[int, Node] = {}
    for node in order:
        if is_leaf(node) or not node.row.keeps_value or node.dtype is not bfloat16:
            continue
        (whole,) = node.inputs
        top, after = unscaled(whole)
        *views, product = views_above(top)
        is_alone = all(readers[id(each)] == 1 for each in (whole, *views, product))
        if is_leaf(product) or product.op not in CONTRACTIONS or not is_alone:
            continue
        operands = [unwidened(each) for each in product.inputs]
        kept = [place for place, each in enumerate(operands) if each is None]
        if len(kept) == 1 and product.inputs[kept[0]].size in sizes:
            scores = product.inputs[kept[0]]
            (other,) = (each for each in operands if each is not None)
            pair = [other[0], other[0]]
            pair[kept[0]] = scaled(scores, other[1] + after).cast(bfloat16)
            new[id(node)] = viewed(pair[0].contract(pair[1], product.arg), views)
    return new


def unwidened(node: Node) -> tuple[Node, list[Scale]] | None:
    """Find the bfloat16 that views of a node show in float32, and numbers that scale it there;
    None if it is something else."""
    *views, base = views_above(node)
    base, scales = unscaled(base)
    *others, base = views_above(base)
    if not is_widening(base):
        return None
    (value,) = base.inputs
    return viewed(value, views + others), scales


def unscaled(node: Node) -> tuple[Node, list[Scale]]:
    """Find what a node scales, if it does, and by what."""
    found = None if is_leaf(node) else factor_of(node)
    if found is None:
        return node, []
    value, scale = found
    return value, [scale]


def is_widening(node: Node) -> bool:
    """Tell whether a node has the numbers of bfloat16 in float32."""
    is_cast = not is_leaf(node) and node.row.keeps_value and node.dtype is float32
    return is_cast and node.inputs[0].dtype is bfloat16
