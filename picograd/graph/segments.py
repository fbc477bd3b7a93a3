"""The row of segments: runs of an axis, known by where they end, that a monoid combines.

A CPU numbers the segment of each element, as gradients do, and scatters. On a GPU a segment has
threads of its own, which read where it begins and stops: one launch, behind sums of neighbours that
stand for groups within long segments.
"""

from picograd.dtype import int32, uint32
from picograd.graph import indexing
from picograd.graph.batch_rules import first_next
from picograd.graph.indexing import combined_vjp, levels_above
from picograd.graph.node import Gradients, Node, constant
from picograd.graph.row import ANY, Op, Role, table
from picograd.graph.scanning import scan
from picograd.graph.shape import first_shape
from picograd.helpers import product
from picograd.target import Target

WALKED = 128  # groups that a thread may walk: fewer have no level above, which is a launch
LANES = 32  # threads of a warp, which share a segment of few columns


def reduced_segments(data: Node, ends: Node, monoid: str, start: float) -> Node:
    """Combine what lies in each segment of an axis, the last one of where they end, and `start`."""
    shape = (*ends.shape, *data.shape[ends.rank :])
    return reduced(constant(start, shape, data.dtype, data.device), data, ends, monoid)


def reduced(base: Node, data: Node, ends: Node, monoid: str) -> Node:
    """Combine what is there and the elements of each segment."""
    inputs, arg = (base, data, ends), (ends.rank - 1, monoid)
    return Node("reduce_segments", inputs, arg, base.shape, base.dtype, base.device)


def expand_segments(node: Node, target: Target) -> Node:
    """Reduce runs of known bounds on a GPU; elsewhere a scatter, without what follows the last."""
    base, data, ends = node.inputs
    axis, monoid = node.arg
    if not target.has_blocks or not node.size or not indexing.FEW < data.size < 1 << 31:
        axes, numbers = tuple(range(axis + 1)), numbers_of(ends, data.shape[axis])
        found = one_more(base, axis).scatter(data, numbers, axes, monoid)
        return found.slice(tuple([(0, n, 1) for n in node.shape]))
    fan, size, count, after = indexing.FAN, data.shape[axis], ends.size, data.shape[axis + 1 :]
    stops = ends.binary("maximum", 0).binary("minimum", size).cast(int32)
    before = tuple([(0, n, 1) for n in ends.shape[:-1]])
    first = stops.slice((*before, (0, ends.shape[-1] - 1, 1)))
    first = first.pad((*((0, 0) for _ in before), (1, 0)))
    for row in range(axis):
        rest = product(ends.shape[row + 1 : axis]) * size
        first, stops = (each + each.iota(row, int32) * rest for each in (first, stops))
    bounds = [each.reshape((count,)) for each in (first, stops)]
    columns = product(after)
    lanes = LANES // columns if columns <= LANES and LANES % columns == 0 else 1
    rows = data.reshape((data.size // columns, *after))
    groups, levels = rows.shape[0] // fan, list[Node]()
    if groups >= 2:
        whole = ((0, groups * fan, 1), *((0, n, 1) for n in after))
        level = rows.slice(whole).accumulated().reshape((groups, fan, *after)).reduce(monoid, (1,))
        levels = [level, *levels_above(level, monoid, WALKED * lanes)]
    keys = bounds[0].iota(0, uint32)
    inputs = (base.reshape((count, *after)), rows, keys, *bounds, *levels)
    arg = (0,), monoid, fan, lanes
    found = Node("scatter_runs", inputs, arg, (count, *after), node.dtype, node.device)
    return found.reshape(node.shape)


def numbers_of(ends: Node, size: int) -> tuple[Node, ...]:
    """Number the segment of each of `size` elements, behind the rows; beyond the last is one more.

    It is a running maximum of what begins at a place.
    """
    axis = ends.rank - 1
    begun = constant(0, (*ends.shape[:-1], size + 1), int32, ends.device)
    last = ends.binary("maximum", 0).binary("minimum", size)
    places = (*(ends.iota(row) for row in range(axis)), last)
    begun = begun.scatter(ends.iota(axis, int32) + 1, places, tuple(range(axis + 1)), "max")
    into = scan(begun.slice(tuple([(0, n, 1) for n in (*ends.shape[:-1], size)])), "max", axis)
    return (*(into.iota(row) for row in range(axis)), into)


def one_more(node: Node, axis: int) -> Node:
    """Add a zero at the end of an axis."""
    return node.pad(tuple([(0, int(each == axis)) for each in range(node.rank)]))


def segments_vjp(gradient: Node, output: Node, base: Node, data: Node, ends: Node) -> Gradients:
    """Split the gradient between what is there and the elements."""
    axis, monoid = output.arg
    numbers, axes = numbers_of(ends, data.shape[axis]), tuple(range(axis + 1))
    split = combined_vjp(
        monoid,
        (gradient, output, base, data),
        lambda x: one_more(x, axis).gather(numbers, axes),
        lambda x, values, monoid: reduced(x, values, ends, monoid),
    )
    return (*split, None)


SEGMENT_ROWS = table(
    Op("reduce_segments", Role.COMPOSITE, 3, ANY, None, segments_vjp, expand_on=expand_segments,
        shape=first_shape, data=(0, 1), batch_arg=first_next),
)  # fmt: skip
