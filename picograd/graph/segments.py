"""The row of segments: runs of an axis, known by where they end, that a monoid combines.

A CPU numbers the segment of each element, as gradients do, and scatters. On a GPU a segment has
threads of its own, which read where it begins and stops: one launch, behind sums of neighbours that
stand for groups within long segments.
"""

from picograd.dtype import int32, int64, uint32
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
MOST = 1 << 31


def reduced_segments(data: Node, ends: Node, monoid: str, start: float) -> Node:
    """Combine what lies in each segment of an axis, the last one of where they end, and `start`."""
    after = data.shape[ends.rank :]
    shape = (*ends.shape, *after)
    base = constant(start, shape, data.dtype, data.device)
    return reduced(base, data, ends, monoid)


def reduced(base: Node, data: Node, ends: Node, monoid: str) -> Node:
    """Combine what is there and the elements of each segment."""
    inputs = base, data, ends
    arg = ends.rank - 1, monoid
    return Node("reduce_segments", inputs, arg, base.shape, base.dtype, base.device)


def expand_segments(node: Node, target: Target) -> Node:
    """Reduce runs of known bounds on a GPU; elsewhere a scatter, without what follows the last."""
    base, data, ends = node.inputs
    axis, monoid = node.arg
    is_worth = indexing.FEW < data.size < MOST
    if not target.has_blocks or not node.size or not is_worth:
        numbers = numbers_of(ends, data.shape[axis])
        axes = tuple(range(ends.rank))
        wide = one_more(base, axis)
        found = wide.scatter(data, numbers, axes, monoid)
        return until(found, node.shape)
    after = data.shape[axis + 1 :]
    columns = product(after)
    is_shared = columns <= LANES and LANES % columns == 0
    lanes = LANES // columns if is_shared else 1
    rows = data.reshape((data.size // columns, *after))
    first, stop = bounds_of(ends, data.shape[axis])
    keys = first.iota(0, uint32)
    shape = (keys.size, *after)
    base = base.reshape(shape)
    levels = levels_of(rows, monoid, lanes)
    inputs = base, rows, keys, first, stop, *levels
    arg = (0,), monoid, indexing.FAN, lanes
    found = Node("scatter_runs", inputs, arg, shape, node.dtype, node.device)
    return found.reshape(node.shape)


def bounds_of(ends: Node, size: int) -> tuple[Node, Node]:
    """Find where each segment begins and stops, counted through all rows of `size` elements."""
    *_, count = ends.shape
    lead = product(ends.shape[:-1])
    last = ends.reshape((lead, count)).binary("maximum", 0)
    last = last.binary("minimum", size).cast(int32)
    before = until(last, (lead, count - 1))
    begin = before.pad(((0, 0), (1, 0)))
    offset = last.iota(0, int32) * size
    flat = (lead * count,)
    first = begin + offset
    stop = last + offset
    return first.reshape(flat), stop.reshape(flat)


def levels_of(rows: Node, monoid: str, lanes: int) -> list[Node]:
    """Combine groups of neighbours, level above level, whatever segments they are of."""
    fan = indexing.FAN
    count, *after = rows.shape
    groups = count // fan
    if groups < 2:
        return []
    whole = until(rows, (groups * fan, *after))
    parts = whole.accumulated().reshape((groups, fan, *after))
    level = parts.reduce(monoid, (1,))
    above = levels_above(level, monoid, WALKED * lanes)
    return [level, *above]


def numbers_of(ends: Node, size: int) -> tuple[Node, ...]:
    """Number the segment of each of `size` elements, behind the rows; beyond the last is one more.

    It is a running maximum of what begins at a place.
    """
    *lead, _ = ends.shape
    axis = len(lead)
    begun = constant(0, (*lead, size + 1), int32, ends.device)
    last = ends.binary("maximum", 0)
    last = last.binary("minimum", size)
    rows = [ends.iota(row) for row in range(axis)]
    following = ends.iota(axis, int32) + 1
    axes = tuple(range(ends.rank))
    begun = begun.scatter(following, (*rows, last), axes, "max")
    begun = until(begun, (*lead, size))
    into = scan(begun, "max", axis).cast(int64)
    rows = [into.iota(row) for row in range(axis)]
    return (*rows, into)


def until(node: Node, shape: tuple[int, ...]) -> Node:
    """Take what lies below a shape."""
    return node.slice(tuple([(0, size, 1) for size in shape]))


def one_more(node: Node, axis: int) -> Node:
    """Add a zero at the end of an axis."""
    pads = [(0, int(each == axis)) for each in range(node.rank)]
    return node.pad(tuple(pads))


def segments_vjp(gradient: Node, output: Node, base: Node, data: Node, ends: Node) -> Gradients:
    """Split the gradient between what is there and the elements."""
    axis, monoid = output.arg
    numbers = numbers_of(ends, data.shape[axis])
    axes = tuple(range(ends.rank))

    def read(x: Node) -> Node:
        """Give each element what its segment has, and 0 where it has none."""
        return one_more(x, axis).gather(numbers, axes)

    def combined(x: Node, values: Node, kind: str) -> Node:
        """Combine values as the elements are."""
        return reduced(x, values, ends, kind)

    nodes = gradient, output, base, data
    split = combined_vjp(monoid, nodes, read, combined)
    return (*split, None)


SEGMENT_ROWS = table(
    Op(
        "reduce_segments",
        Role.COMPOSITE,
        3,
        ANY,
        None,
        segments_vjp,
        expand_on=expand_segments,
        shape=first_shape,
        data=(0, 1),
        batch_arg=first_next,
    )
)
