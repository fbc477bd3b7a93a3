"""moved_divisors: what a row of a result is divided by divides its weights, in the stream of both.

    (e @ v) / (sum(e) + c)    ->    (e / (sum(e) + c)) @ v

A stream knows the maximum and the total of its rows, and divides what it leaves by what is made of
them (`take_divisor` in schedule/score_sinks.py). Behind it a kernel would read the result again.
"""

from collections.abc import Sequence

from picograd.graph.node import Node
from picograd.graph.row import Role
from picograd.schedule.moved_factors import (
    CONTRACTIONS,
    counted,
    is_movable,
    is_plain_view,
    made_of_exponentials,
    weights_of,
)
from picograd.schedule.score_boxes import has_scores, streamed_nodes
from picograd.schedule.values import is_leaf
from picograd.schedule.weighted_sums import replaced, unconverted
from picograd.target import Target

MOST = 6  # operations between the sums of a stream and a divisor


def move_divisors(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Divide weights instead of results that nothing else reads; `order` lists inputs first."""
    quotients = [node for node in order if is_quotient(node)]
    if not quotients or not has_scores(order, target):
        return list(roots)
    made, readers = made_of_exponentials(order), counted(roots, order)
    new: dict[int, Node] = {}
    for node in quotients:
        product, divisor = node.inputs
        if readers[id(product)] == 1 and is_movable(product):
            weight = weights_of(product, made)
            found = None if weight is None else divided(product, weight, divisor)
            if found is not None:
                new[id(node)] = found
    streamed = streamed_nodes(roots, order, target) if new else set()
    kept = {id(x): new[id(x)] for x in quotients if id(x) in new and id(x.inputs[0]) in streamed}
    return replaced(roots, order, kept) if kept else list(roots)


def is_quotient(node: Node) -> bool:
    """Tell whether a node divides a product by what is repeated."""
    if is_leaf(node) or node.row.linear != (0,) or len(node.inputs) != 2:
        return False
    product, divisor = node.inputs
    return product.op in CONTRACTIONS and not is_leaf(divisor) and divisor.row.is_repeating


def divided(product: Node, weight: int, divisor: Node) -> Node | None:
    """Divide the weights of a product; None if the divisor is of no row, or not of their sums."""
    labels, out = product.arg[weight], product.arg[2]
    (row,) = divisor.inputs
    columns = [d for d, label in enumerate(out) if label not in labels]
    if row.rank != len(out) or any(row.shape[d] != 1 for d in columns):
        return None
    operands = list(product.inputs)
    weights = operands[weight]
    if not is_of_sums(row, weights):
        return None
    places = [out.index(label) for label in labels if label in out]
    turned = row.permute((*places, *columns))
    sizes = [row.shape[out.index(label)] if label in out else 1 for label in labels]
    shape = tuple(sizes)
    operands[weight] = weights / turned.reshape(shape).expand(weights.shape)
    return operands[0].contract(operands[1], product.arg)


def is_of_sums(row: Node, power: Node) -> bool:
    """Tell whether a value is made of the maximum and the total of exponentials, and of leaves."""
    stack, count, has_total = [row], 0, False
    while stack:
        node = stack.pop()
        if is_leaf(node) or node.row.role is Role.NUMBER:
            continue
        if node.row.role is Role.REDUCE:
            monoid, _ = node.arg
            (values,) = node.inputs
            is_total = monoid == "sum" and unconverted(values) is unconverted(power)
            if not is_total and (monoid != "max" or values.size != power.size):
                return False
            has_total = has_total or is_total
            continue
        is_made = node.row.role is Role.ELEMENTWISE
        count += is_made
        if count > MOST or not (is_made or is_plain_view(node)):
            return False
        stack += node.inputs
    return has_total
