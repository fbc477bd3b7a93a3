"""long_sums: products of few results whose sums are long are summed in parts, on a GPU with boxes.

    a[m, k] b[k, n]     ->     sum[s] (a[m, s, k'] b[s, k', n])      k = s k', parts in float32

The parts are one product of as many batches: their tiles are enough for all multiprocessors, and
those of a part, which run together, read the same places of K. Scores that stream stay as they are.
"""

from collections.abc import Sequence

from picograd.dtype import float32
from picograd.graph.node import Node
from picograd.helpers import product
from picograd.schedule.cost import sum_parts
from picograd.schedule.order import nodes_of
from picograd.schedule.score_boxes import streamed_nodes
from picograd.schedule.weighted_sums import replaced
from picograd.target import Target


def split_sums(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Sum products in parts where that is faster; `order` lists inputs first."""
    found = []
    if target.copies_boxes:
        found = [(node, parts_of(node, target)) for node in nodes_of(order, {"contract"})]
        found = [(node, parts) for node, parts in found if parts > 1]
    if not found:
        return list(roots)
    streamed = streamed_nodes(roots, order, target)
    new = {id(x): summed(x, parts) for x, parts in found if id(x) not in streamed}
    return replaced(roots, order, new)


def parts_of(node: Node, target: Target) -> int:
    """Choose the number of parts of a product; 1 for what is no single product of matrices."""
    left, right, out = node.arg
    depth = set(left) & set(right)
    if node.dtype.bits != 16 or len(depth) != 1 or not depth.isdisjoint(out):
        return 1
    if any(each.dtype is not node.dtype for each in node.inputs):
        return 1
    sizes = dict(zip((*left, *right), (s for each in node.inputs for s in each.shape), strict=True))
    if any(type(size) is not int for size in sizes.values()):
        return 1
    m, n = (product(sizes[x] for x in each if x not in depth) for each in (left, right))
    return sum_parts(m, n, sizes[depth.pop()], node.dtype.itemsize, target)


def summed(node: Node, parts: int) -> Node:
    """Write a product as the sum of products of so many parts."""
    left, right, out = node.arg
    (depth,) = set(left) & set(right)
    part = max((*left, *right)) + 1
    sides, labels = [], []
    for each, own in zip(node.inputs, (left, right), strict=True):
        at = own.index(depth)
        shape = *each.shape[:at], parts, each.shape[at] // parts, *each.shape[at + 1 :]
        sides.append(each.reshape(shape))
        labels.append((*own[:at], part, *own[at:]))
    shape = parts, *node.shape
    whole = Node("contract", tuple(sides), (*labels, (part, *out)), shape, float32, node.device)
    return whole.reduce("sum", (0,)).cast(node.dtype)
