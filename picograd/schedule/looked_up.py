"""looked_up: products with rows of one 1 are looked up, or added up, in graphs that attend.

    (number[..., None] == positions) @ table          ->    table[number]
    (number[..., None] == positions).T @ values       ->    sums of the values of each number

As tables of relative positions are written for machines without lookups. Products with zeros are
left out; a number that is no position of the table gives 0, as the product does.
"""

from collections.abc import Sequence

from picograd.graph import build
from picograd.graph.bounds import bounds
from picograd.graph.node import Node
from picograd.graph.row import POSITIONS
from picograd.schedule.order import nodes_of
from picograd.schedule.score_boxes import has_scores
from picograd.schedule.weighted_sums import (
    CONTRACTIONS,
    is_product,
    is_reshaped,
    replaced,
    unconverted,
)
from picograd.target import Target

Labels = Sequence[int]


def look_up(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Look up what is multiplied by rows of one 1; `order` lists inputs first."""
    new: dict[int, Node] = {}
    for node in nodes_of(order, CONTRACTIONS):
        is_plain = type(node) is Node and is_product(node)
        if not is_plain or not node.dtype.is_float:
            continue
        for place in (0, 1):
            found = one_hot(node.inputs[place])
            if found is None:
                continue
            instead = looked_up(node, place, *found)
            if instead is not None:
                new[id(node)] = instead
    if not new or not has_scores(order, target):
        return list(roots)
    return replaced(roots, order, new)


def one_hot(node: Node) -> tuple[Node, int] | None:
    """Find the numbers whose positions are 1 along an axis, and that axis."""
    compared = unconverted(node)
    if compared.realized is not None or compared.row.logic != "same":
        return None
    for position, number in (compared.inputs, compared.inputs[::-1]):
        axis = axis_of(position)
        is_repeated = number.row.is_repeating and number.realized is None
        if axis is None or not is_repeated:
            continue
        (source,) = number.inputs
        sizes = list(compared.shape)
        sizes[axis] = 1
        is_along = source.shape == tuple(sizes)
        if is_along and source.dtype.is_integer:
            del sizes[axis]
            found = source.reshape(tuple(sizes))
            return found, axis
    return None


def axis_of(node: Node) -> int | None:
    """Find the axis along which a node counts positions; None if it does not."""
    axis = None
    while node.realized is None:
        node = unconverted(node)
        if node.op in POSITIONS:
            return node.arg if axis is None else axis
        if not (node.row.is_repeating or is_reshaped(node)):
            return None
        if axis is None and node.row.is_repeating:
            (source,) = node.inputs
            wide = [d for d, size in enumerate(source.shape) if size > 1]
            if len(wide) != 1:
                return None
            (axis,) = wide
        (node,) = node.inputs
    return None


def looked_up(node: Node, place: int, number: Node, axis: int) -> Node | None:
    """Write a product with rows of one 1 without it; None where it is of another form."""
    out = node.arg[2]
    own = node.arg[place]
    other = node.arg[1 - place]
    others = node.inputs[1 - place]
    label = own[axis]
    rest = [each for each in own if each != label]
    beside = [each for each in other if each not in own]
    count = node.inputs[place].shape[axis]
    every = *rest, *beside
    is_read = set(out) == set(every) and set(other) == {label, *beside}
    if is_read:
        position = other.index(label)
        found = read(others, number, position, count)
        return turned(found, every, out)
    is_added = set(other) == set(every) and set(out) == {label, *beside}
    if is_added:
        values = turned(others, other, every)
        sums = added(values, number, count)
        return turned(sums, (label, *beside), out)
    return None


def read(table: Node, number: Node, axis: int, count: int) -> Node:
    """Read a table where numbers are positions along an axis, 0 elsewhere."""
    inside = inside_of(number, count)
    if inside is None:
        return table.gather((number,), (axis,))
    safe = limited(number, count)
    found = table.gather((safe,), (axis,))
    ones = (1,) * (found.rank - inside.rank)
    wide = inside.reshape((*inside.shape, *ones))
    return wide.expand(found.shape).where(found, 0)


def added(values: Node, number: Node, count: int) -> Node:
    """Add up the values of each number."""
    shape = (count, *values.shape[number.rank :])
    zeros = build.const(0, shape, values.dtype, values.device)
    inside = inside_of(number, count)
    place = number if inside is None else limited(number, count)
    return zeros.scatter(values, (place,), (0,), "sum", inside)


def limited(number: Node, count: int) -> Node:
    """Take the nearest position for what is none."""
    low = like(number, 0)
    high = like(number, count - 1)
    is_low = number.binary("less", low)
    above = is_low.where(low, number)
    is_high = high.binary("less", above)
    return is_high.where(high, above)


def inside_of(number: Node, count: int) -> Node | None:
    """Tell which numbers are positions; None if all are known to be."""
    found = bounds(number)
    if found is not None and 0 <= found[0] and found[1] < count:
        return None
    low = like(number, -1)
    high = like(number, count)
    is_above = low.binary("less", number)
    is_below = number.binary("less", high)
    return is_above.binary("logical_and", is_below)


def like(node: Node, value: int) -> Node:
    """Make a number of the shape and dtype of a node."""
    return build.const(value, node.shape, node.dtype, node.device)


def turned(node: Node, labels: Labels, wanted: Labels) -> Node:
    """Put the dimensions of a node, which have labels, in another order."""
    axes = [labels.index(each) for each in wanted]
    return node.permute(tuple(axes))
