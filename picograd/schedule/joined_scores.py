"""joined_scores: rows of scores that something joins which is no score, as sinks of attention.

    maximum(max(s), c)       ->    max(maximum(s, c))
    (g / t + sum(-(g / t) * w)) * exp(x)    ->    exp(x) / t * (g - sum(g * w))

The maximum that a softmax with a sink subtracts is one of its row, so that it streams: a stream
begins with `c` as the greatest so far. Gradients of exponentials over a total that is not their
sum alone have one power then, as those of a softmax.
"""

from collections.abc import Sequence
from operator import is_

from picograd.graph.node import Node
from picograd.graph.row import EXPONENTIALS, OPS, Role, ops_of
from picograd.schedule.monoid import COMBINE
from picograd.schedule.order import nodes_of, ops_in
from picograd.schedule.scores import score_sizes
from picograd.schedule.weighted_sums import is_along, is_reshaped, is_sum, number_of, replaced

REDUCTIONS = ops_of(Role.REDUCE)


def widen_maxima(roots: Sequence[Node], order: Sequence[Node]) -> list[Node] | None:
    """Put what limits the maxima of scores into them; None if nothing does."""
    sizes = score_sizes(order)
    new: dict[int, Node] = {}
    maximum_op = COMBINE["max"]
    wanted = {op for op in ops_in(order) if op == maximum_op or len(OPS[op].linear) > 1}
    for node in nodes_of(order, wanted):
        if node.realized is not None:
            continue
        if node.row.linear == (0, 1) and node.size in sizes:
            first, second = node.inputs
            found = gathered(first, second)
            found = found or gathered(second, first)
            if found is not None:
                new[id(node)] = found
        several = greater_of(node)
        for number, each in enumerate(several):
            maximum = reduction_under(each)
            if maximum is not None and maximum.inputs[0].size in sizes:
                new[id(node)] = widened(maximum, several[1 - number])
                break
    return replaced(roots, order, new) if new else None


def greater_of(node: Node) -> tuple[Node, ...]:
    """List the two values that a node is the greater of, also where it is written as a choice."""
    if node.op == COMBINE["max"]:
        return node.inputs
    if node.row.linear != (1, 2) or node.inputs[0].row.least != 1:
        return ()
    condition, limit, value = node.inputs
    first, second = condition.inputs
    are_numbers = isinstance(number_of(limit), float | int)
    is_limit = are_numbers and number_of(limit) == number_of(second)
    return (value, limit) if first is value and is_limit else ()


def is_named(node: Node) -> bool:
    """Tell whether a node is the value of its only input, which nobody asks for in memory."""
    is_pass = node.realized is None and node.row.role is Role.PASS and len(node.inputs) == 1
    return is_pass and not node.row.is_stored


def reduction_under(node: Node) -> Node | None:
    """Find the maximum that dimensions of one position are added to."""
    while is_reshaped(node) or is_named(node):
        (node,) = node.inputs
    is_maximum = node.realized is None and node.op in REDUCTIONS and node.arg[0] == "max"
    return node if is_maximum else None


def widened(maximum: Node, limit: Node) -> Node:
    """Reduce the greater of scores and a limit of their row; the result has the limit's shape."""
    (scores,) = maximum.inputs
    axes = maximum.arg[1]
    kept = [1 if axis in axes else size for axis, size in enumerate(scores.shape)]
    wide = limit.reshape(tuple(kept)).expand(scores.shape)
    greater = scores.binary(COMBINE["max"], wide)
    return greater.reduce("max", axes).reshape(limit.shape)


def gathered(factor: Node, power: Node) -> Node | None:
    """Divide an exponential by the total that a gradient beside it is divided by."""
    if power.op not in EXPONENTIALS or factor.realized is not None:
        return None
    if factor.row.factors != (1, 1):
        return None
    for quotient, rest in (factor.inputs, factor.inputs[::-1]):
        is_quotient = quotient.realized is None and quotient.row.linear == (0,)
        if not is_quotient or len(quotient.inputs) != 2:
            continue
        gradient, total = quotient.inputs
        axis = power.rank - 1
        if not (is_along(total, axis) and is_along(rest, axis)):
            continue
        found = undivided(rest.inputs[0], quotient)
        if found is not None:
            wide = found.expand(power.shape)
            weight = power / total
            return weight * (gradient - wide)
    return None


def undivided(short: Node, quotient: Node) -> Node | None:
    """Multiply what subtracts products with a quotient by its divisor, and turn the sign round."""
    found = short
    while is_reshaped(found):
        (found,) = found.inputs
    if not is_sum(found) or found.inputs[0].row.linear != (0, 1):
        return None
    (product,) = found.inputs
    for number, each in enumerate(product.inputs):
        if each.realized is not None or each.row.factors != (-1,):
            continue
        (under,) = each.inputs
        if under.op != quotient.op or under.realized is not None:
            continue
        are_same = map(is_, under.inputs, quotient.inputs)
        if all(are_same):
            axes = found.arg[1]
            inputs = list(product.inputs)
            inputs[number] = under.inputs[0]
            whole = product.with_inputs(tuple(inputs))
            total = whole.reduce("sum", axes)
            return total.reshape(short.shape)
    return None
