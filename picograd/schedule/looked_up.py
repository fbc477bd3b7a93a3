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
from picograd.schedule.score_boxes import has_scores
from picograd.schedule.weighted_sums import is_product, is_reshaped, replaced, unconverted
from picograd.target import Target

Labels = Sequence[int]


def look_up(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Look up what is multiplied by rows of one 1; `order` lists inputs first."""
    new: dict[int, Node] = {}
    for node in order:
        if type(node) is not Node or not is_product(node) or not node.dtype.is_float:
            continue
        for place in (0, 1):
            found = one_hot(node.inputs[place])
            instead = None if found is None else looked_up(node, place, *found)
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
        if axis is None or not number.row.is_repeating or number.realized is not None:
            continue
        (source,) = number.inputs
        sizes = list(compared.shape)
        sizes[axis] = 1
        if source.shape == tuple(sizes) and source.dtype.is_integer:
            del sizes[axis]
            return source.reshape(tuple(sizes)), axis
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
    own, other, out = node.arg[place], node.arg[1 - place], node.arg[2]
    label = own[axis]
    rest = [each for each in own if each != label]
    beside = [each for each in other if each not in own]
    others = node.inputs[1 - place]
    count = node.inputs[place].shape[axis]
    is_summed = label in other and label not in out
    if is_summed and set(out) == {*rest, *beside} and set(rest).isdisjoint(other):
        found = read(others, number, other.index(label), count)
        return turned(found, (*rest, *beside), out)
    if label in out and set(other) == {*rest, *beside} and set(out) == {label, *beside}:
        values = turned(others, other, (*rest, *beside))
        return turned(added(values, number, count), (label, *beside), out)
    return None


def read(table: Node, number: Node, axis: int, count: int) -> Node:
    """Read a table where numbers are positions along an axis, 0 elsewhere."""
    inside = inside_of(number, count)
    if inside is None:
        return table.gather((number,), (axis,))
    safe = limited(number, count)
    found = table.gather((safe,), (axis,))
    wide = inside.reshape((*inside.shape, *(1,) * (found.rank - inside.rank)))
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
    low, high = (
        build.const(value, number.shape, number.dtype, number.device) for value in (0, count - 1)
    )
    above = number.binary("less", low).where(low, number)
    return high.binary("less", above).where(high, above)


def inside_of(number: Node, count: int) -> Node | None:
    """Tell which numbers are positions; None if all are known to be."""
    found = bounds(number)
    if found is not None and 0 <= found[0] and found[1] < count:
        return None
    low = build.const(-1, number.shape, number.dtype, number.device)
    high = build.const(count, number.shape, number.dtype, number.device)
    return low.binary("less", number).binary("logical_and", number.binary("less", high))


def turned(node: Node, labels: Labels, wanted: Labels) -> Node:
    """Put the dimensions of a node, which have labels, in another order."""
    return node.permute(tuple([labels.index(each) for each in wanted]))
