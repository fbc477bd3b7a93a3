"""long_sums: products of few results whose sums are long are summed in parts, on a GPU with boxes.

    a[m, k] b[k, n]     ->     sum[s] (a[m, s, k'] b[s, k', n])      k = s k', parts in float32

The parts are one product of as many batches: their tiles are enough for all multiprocessors, and
those of a part, which run together, read the same places of K. Scores that stream stay as they are.
"""

from collections.abc import Sequence

from picograd.dtype import float32
from picograd.graph.node import Node
from picograd.schedule.cost import sum_parts
from picograd.schedule.order import nodes_of
from picograd.schedule.score_boxes import streamed_nodes
from picograd.schedule.weighted_sums import replaced
from picograd.target import Target


def split_sums(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Sum products in parts where that is faster; `order` lists inputs first."""
    found: dict[Node, int] = {}
    products = nodes_of(order, {"contract"}) if target.copies_boxes else ()
    for node in products:
        parts = parts_of(node, target)
        if parts > 1:
            found[node] = parts
    if not found:
        return list(roots)
    streamed = streamed_nodes(roots, order, target)
    new = {}
    for node, parts in found.items():
        if id(node) not in streamed:
            new[id(node)] = summed(node, parts)
    return replaced(roots, order, new)


def parts_of(node: Node, target: Target) -> int:
    """Choose the number of parts of a product; 1 for what is no single product of matrices."""
    dtype = node.dtype
    if dtype.bits != 16 or any(each.dtype is not dtype for each in node.inputs):
        return 1
    left, right, out = node.arg
    depth = set(left) & set(right)
    if len(depth) != 1 or not depth.isdisjoint(out):
        return 1
    first, second = node.inputs
    sizes = *first.shape, *second.shape
    if any(type(size) is not int for size in sizes):
        return 1
    k = first.shape[left.index(*depth)]
    if not k:
        return 1
    m, n = first.size // k, second.size // k
    return sum_parts(m, n, k, dtype.itemsize, target)


def summed(node: Node, parts: int) -> Node:
    """Write a product as the sum of products of so many parts."""
    left, right, out = node.arg
    (depth,) = set(left) & set(right)
    part = max((*left, *right)) + 1
    sides, labels = [], []
    for each, own in zip(node.inputs, (left, right), strict=True):
        at = own.index(depth)
        before, after = each.shape[:at], each.shape[at + 1 :]
        length = each.shape[at] // parts
        shape = *before, parts, length, *after
        sides.append(each.reshape(shape))
        labels.append((*own[:at], part, *own[at:]))
    labels.append((part, *out))
    shape = parts, *node.shape
    inputs, arg = tuple(sides), tuple(labels)
    whole = Node("contract", inputs, arg, shape, float32, node.device)
    return whole.reduce("sum", (0,)).cast(node.dtype)
