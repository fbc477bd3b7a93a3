"""Updates on a GPU that are made all at once, in no order, with the same bits in every run.

    the greatest of what a place gets    integers have no rounding: an atomic maximum
    amax, amin                           elements become unsigned integers of the same order, as for
                                         a sort; of what wins the element is made again
    x[index] = v                         the last update of a place is the one of the greatest
                                         number; then no two updates of those have one place

A scatter of "max" in `uint32` and one of `ONCE` have a thread for each element of the updates
(codegen/templates/scatter.py).
"""

from picograd.dtype import int32, uint32
from picograd.graph.binned_updates import numbered
from picograd.graph.node import Node, constant
from picograd.graph.row import POSITIONS
from picograd.graph.sorting import ordered_keys, values_of_keys
from picograd.helpers import product

ONCE = "once"  # in the place of a monoid: one wanted update a place at most
MOST_PLACES = 1 << 24  # of which each has the number of its last update; clearing them takes 20 us


def is_at_once(node: Node) -> bool:
    """Tell whether the updates of a scatter are made in no order."""
    monoid = node.arg[1]
    if monoid == "max":
        return node.dtype is uint32
    return bool(monoid == ONCE)


def at_once(node: Node) -> Node | None:
    """Write a scatter as updates in no order; None for sums, products and long numbers."""
    monoid = node.arg[1]
    if monoid is None:
        return last_ones(node)
    if monoid == "prod" or node.dtype.bits > 32:
        return None
    return greatest(node, monoid == "min")


def greatest(node: Node, is_least: bool) -> Node:
    """Find extremes as those of keys; the element that is there stays itself."""
    base, values, *indices = node.inputs
    axes = node.arg[0]
    before = keys_of(base, is_least)
    keys = keys_of(values, is_least).cast(uint32)
    wide = before.cast(uint32)
    found = wide.scatter(keys, indices, axes, "max")
    found = found.cast(before.dtype)
    made = values_of_keys(found, node.dtype, is_least)
    is_kept = found.binary("equal", before)
    return is_kept.where(base, made)


def keys_of(x: Node, is_least: bool) -> Node:
    """Map elements to unsigned integers of their order, or the reverse; NaN comes last in both."""
    keys = ordered_keys(x, is_least)
    if not is_least or not x.dtype.is_float:
        return keys
    last = (1 << keys.dtype.bits) - 1
    return x.unary("isnan").where(last, keys)


def last_ones(node: Node) -> Node | None:
    """Leave out all updates of a place but the last one."""
    base, _, *rest = node.inputs
    axes = node.arg[0]
    indices = rest[: len(axes)]
    inside = rest[len(axes) :]
    if are_apart(indices):
        return once(node, inside)
    sizes = [base.shape[axis] for axis in axes]
    places = product(sizes)
    if places > MOST_PLACES:
        return None
    shape = indices[0].shape
    number = numbered(indices, sizes).cast(int32)
    number = number.reshape((number.size,))
    position = number.iota(0, int32) + 1
    position = position.cast(uint32)  # 0: none
    for each in inside:
        is_wanted = each.reshape(position.shape)
        position = is_wanted.where(position, 0)
    none = constant(0, (places,), uint32, base.device)
    last = none.scatter(position, (number,), (0,), "max")
    found = last.gather((number,), (0,))
    is_last = found.binary("equal", position)
    is_last = is_last.reshape(shape)
    for each in inside:
        is_last = is_last.binary("logical_and", each)
    return once(node, [is_last])


def are_apart(indices: list[Node]) -> bool:
    """Tell whether no two updates have one place: each has positions of its own in some axes."""
    own = {index.arg for index in indices if index.op in POSITIONS}
    shape = indices[0].shape
    left = [size for axis, size in enumerate(shape) if axis not in own]
    return product(left) == 1


def once(node: Node, inside: list[Node]) -> Node:
    """Write a scatter whose wanted updates have a place each."""
    axes = node.arg[0]
    given = node.inputs[: 2 + len(axes)]
    inputs = (*given, *inside)
    arg = axes, ONCE
    return Node("scatter", inputs, arg, node.shape, node.dtype, node.device)
