"""The rows of gather and scatter, adjoint to each other.

A scatter that overwrites has one more input than its axes need if not every update is wanted: a
bool, true where one is.

Scatter on a GPU: updates are sorted by destination, then every run of them is reduced.

A CPU applies updates one after the other (`scatter`). With more than a few updates on CUDA the op
expands, so that the work is parallel, proportional to the updates, and the same in every run:

    keys    the number of each update's destination slice, sorted: a stable radix sort; axes whose
            index is the update's own position, as in `scatter_add`, lie outside and need none
    first   where the run of equal keys around each position begins: a running maximum
    levels  `FAN` neighbouring updates combined, then `FAN` such groups, ...
    out     scatter_runs(base, updates in order, keys, first, *levels)

Extremes, and updates that overwrite, need no order (`updates_at_once.py`). Sums at few destinations
are added up in bins (`binned_updates.py`). Of few updates they are masked
sums of all, one for each destination.

A run is combined in the order of its updates, whole groups of a long one from the levels, so that
a million updates of one slice do not wait for each other. Runs of fewer than `FAN` updates give the
bits that the CPU gives, except in 16-bit floats, which a run adds up in float32. Masked sums add
in an order of their own, the same in every run.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from picograd.dtype import accumulate_dtype, bool_, int32, int64, uint32
from picograd.graph.axes import Axes, NoRule, link_gather, link_scatter
from picograd.graph.batch_rules import batch_gather, batch_scatter, refused
from picograd.graph.binned_updates import (
    Updates,
    in_bins,
    is_summed,
    numbered,
    terms_of,
    without_zeros,
)
from picograd.graph.bounded import Bounded
from picograd.graph.bounded_rules import bound_gather, bound_scatter
from picograd.graph.bounds import same_element
from picograd.graph.bucketed_updates import Pieces, in_buckets
from picograd.graph.node import Gradients, Node, Nodes, constant, toposort
from picograd.graph.row import ANY, NUMBERS, POSITIONS, Op, Role, Sizes, table
from picograd.graph.scanning import scan
from picograd.graph.shape import first_shape, gather_shape
from picograd.graph.sorting import BLOCK_RUN, along, ordered, radix_sorted, sort_read, take_sorted
from picograd.graph.updates_at_once import ONCE, at_once, is_at_once
from picograd.helpers import ceil_div, product
from picograd.target import Target

Array = Any
Read = Callable[[Node], Node]
Combined = Callable[[Node, Node, str], Node]
FAN = 32  # updates of a group
SECTOR = 256  # bits that memory gives at once: shorter rows are brought before runs are walked
FEW = 32  # so many updates are applied one after the other
FEW_OPERATIONS = 16  # that each destination may do again to number an update
# Of updates by destinations: sorting takes about as long as so many (docs/records/0012).
MOST_VISITS = 1 << 26
FEW_VISITS = 1 << 24  # that take no longer than clearing bins does, and reading them
FEW_OF_SUMS = 1 << 22  # the same, and the sums before them
UPDATES: dict[str, Any] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def axes_first(x: Array, axes: tuple[int, ...]) -> Array:
    """Move the indexed axes to the front."""
    return np.moveaxis(x, axes, range(len(axes)))


def expand_scatter(node: Node, target: Target) -> Node:
    """Sort the updates by destination and reduce the runs; few of them, or a CPU's, stay."""
    base, values, *rest = node.inputs
    axes, monoid = node.arg
    shape, sizes = rest[0].shape, tuple(base.shape[axis] for axis in axes)
    count = product(shape)
    is_small = count <= FEW or not values.size or not base.size
    if (
        is_small
        or not target.has_blocks
        or max(count, product(sizes) << len(rest) - len(axes)) >= 1 << 31
    ):
        return node
    if is_at_once(node):
        return node
    if monoid == "sum":
        found = summed(node, product(sizes), target)
    else:
        found = at_once(node)
    if found is not None:
        return found
    values, rest, axes, outside = own_places_first(node)
    indices, inside = rest[: len(axes)], rest[len(axes) :]
    sizes = tuple(base.shape[axis] for axis in axes)
    keys, order = sorted_keys(indices, sizes, outside, *inside)
    for each in inside:
        values = kept(each, values, base.gather(tuple(indices), axes))
    rows = values.reshape((count, *values.shape[len(shape) :]))
    is_short = rows.size // count * rows.dtype.bits < SECTOR and order.op not in POSITIONS
    rows = stored_if_dear(rows) if is_short else rows
    in_order = rows.gather((order,), (0,))
    if is_short:
        in_order = rows = in_order.stored()
        order = order.iota(0)  # levels read neighbours
    inputs = [base, in_order, keys, run_starts(keys)]
    if monoid is not None:
        inputs += levels_of(rows, keys, order, monoid)
    arg = (axes, monoid, FAN)
    return Node("scatter_runs", tuple(inputs), arg, node.shape, node.dtype, node.device)


def summed(node: Node, places: int, target: Target) -> Node | None:
    """Add up updates at few places: by masks, if they are few too, or in bins; else None."""
    values, rest, axes, outside = own_places_first(node, is_sorted=False)
    visits = places * values.size
    is_few = places <= rest[0].size and visits <= MOST_VISITS
    if not outside:
        values, rest = without_zeros(values, rest)
    terms = terms_of(values, rest[0].rank - 1)
    most = FEW_VISITS if terms is None else FEW_OF_SUMS if is_summed(values) else 0
    if is_few and visits <= most:
        return masked_sums(node)
    count = len(axes)
    updates = Updates(values, terms, rest[:count], rest[count:], axes, outside)
    found = in_bins(node, updates, target)
    if found is None and is_few:
        return masked_sums(node)
    pieces = in_buckets(node.inputs[0], updates, target) if found is None else None
    return found if pieces is None else sums_of_buckets(node, *pieces)


def sums_of_buckets(node: Node, rows: Node, pieces: Pieces) -> Node:
    """Add up the pieces of each bucket, and what is there: (pieces, places of a bucket)."""
    base = node.inputs[0]
    buckets = ceil_div(base.size, rows.shape[1])
    zeros = constant(0, (buckets, rows.shape[1]), rows.dtype, base.device)
    keys = pieces.bucket.cast(uint32)
    levels = levels_of(rows, keys, keys.iota(0), "sum")
    inputs = zeros, rows, keys, pieces.first, *levels
    arg = ((0,), "sum", FAN)
    found = Node("scatter_runs", inputs, arg, zeros.shape, rows.dtype, base.device)
    found = found.reshape((zeros.size,)).slice(((0, base.size, 1),)).reshape(base.shape)
    is_alone = base.op in NUMBERS and base.arg == 0
    return (found if is_alone else base.accumulated() + found).cast(node.dtype)


def masked_sums(node: Node) -> Node:
    """Add up the updates of each destination by itself: all are looked at."""
    base, values, *rest = node.inputs
    axes, monoid = node.arg
    sizes = tuple([base.shape[axis] for axis in axes])
    flat = [each.reshape((each.size,)) for each in rest]
    count = flat[0].size
    rows = values.accumulated().reshape((1, count, values.size // count))
    wide = (product(sizes), *rows.shape[1:])
    number = stored_if_dear(numbered(flat[: len(axes)], sizes).cast(int32))
    number = number.reshape((1, count, 1)).expand(wide)
    is_own = number.binary("equal", number.iota(0, int32))
    for inside in flat[len(axes) :]:
        is_wanted = inside.reshape((1, count, 1)).expand(wide)
        is_own = is_own.binary("logical_and", is_wanted)
    total = is_own.where(rows.expand(wide), 0).reduce(monoid, (1,))
    others = [axis for axis in range(base.rank) if axis not in axes]
    order = [*axes, *others]
    first = total.reshape(tuple([base.shape[axis] for axis in order]))
    back = tuple([order.index(axis) for axis in range(base.rank)])
    return (base.accumulated() + first.permute(back)).cast(node.dtype)


def stored_if_dear(number: Node) -> Node:
    """Ask for what every destination looks at in memory, unless it is made by a few operations."""
    below = toposort([number], lambda node: node.realized is not None)
    cost = sum(each.row.cost for each in below if each.inputs)
    return number if cost <= FEW_OPERATIONS else number.stored()


def kept(inside: Node, values: Node, there: Node) -> Node:
    """Let an update that is not wanted write what is there; it comes before the others."""
    rest = values.rank - inside.rank
    wide = inside.reshape((*inside.shape, *(1,) * rest))
    return wide.expand(values.shape).where(values, there)


def own_places_first(
    node: Node, is_sorted: bool = True
) -> tuple[Node, list[Node], tuple[int, ...], int]:
    """Put indices first that are the position of an update along an axis of the updates.

    The axes of the updates follow them, so that no sort has to move an update along these. Gives
    the values, indices (and what is wanted), indexed axes, and how many of them lie outside.
    What is sorted is read several times: it is brought into this order in memory.
    """
    values, *rest = node.inputs[1:]
    axes, rank = node.arg[0], rest[0].rank
    own: dict[int, int] = {}  # axis of the updates: index that is the position along it
    for number, index in enumerate(rest[: len(axes)]):
        if index.op in POSITIONS and len(own) < len(axes) - 1:  # one is left to sort by
            own.setdefault(index.arg, number)
    turn = (*own, *(axis for axis in range(rank) if axis not in own))
    order = (*own.values(), *(n for n in range(len(axes)) if n not in own.values()))
    rest = [turned(rest[n], turn, is_sorted) for n in (*order, *range(len(axes), len(rest)))]
    values = values.permute((*turn, *range(rank, values.rank)))
    if is_sorted and rank == values.rank and turn != tuple(range(rank)):
        values = values.stored()
    return values, rest, tuple([axes[n] for n in order]), len(own)


def turned(index: Node, axes: tuple[int, ...], is_sorted: bool) -> Node:
    """Bring an index into the order of axes: in memory, as sorting reads it along them twice."""
    is_short = index.op in POSITIONS or index.dtype is bool_ or axes == tuple(range(index.rank))
    if is_short or not is_sorted:
        return index.permute(axes)
    return index.cast(uint32).permute(axes).stored().cast(int64)


def sorted_keys(
    indices: list[Node], sizes: tuple[int, ...], outside: int, inside: Node | None = None
) -> tuple[Node, Node]:
    """Number the destinations and sort them: the ascending keys, and their permutation.

    The first `outside` indices ascend as the first axes of the updates do. Of updates with one
    destination those that are not `inside` come first.
    """
    if inside is not None:
        twice, order = sorted_keys([*indices, inside], (*sizes, 2), outside)
        keys = twice.binary("shift_right", 1)
        return keys, order
    count, slices = indices[0].size, product(sizes[outside:])
    rows = product(indices[0].shape[:outside])
    shape = (rows, count // rows) if outside else (count,)
    keys = numbered(indices[outside:], sizes[outside:]).cast(uint32).reshape(shape)
    bits, last = max(slices - 1, 1).bit_length(), len(shape) - 1
    if shape[-1] == 1:
        order = keys.iota(last)
    elif shape[-1] <= BLOCK_RUN:
        order = ordered(keys, last, bits, True)
        keys = along(keys, order, last)
    else:
        keys, order = radix_sorted(keys, bits)
    if outside:
        outer = numbered(indices[:outside], sizes[:outside]) * slices
        keys = keys + outer.cast(uint32).reshape(shape)
        order = order + order.iota(0) * shape[-1]
    return keys.reshape((count,)), order.reshape((count,))


def run_starts(keys: Node) -> Node:
    """Find where the run of equal keys around each position begins."""
    before = keys.slice(((0, keys.size - 1, 1),)).pad(((1, 0),))
    is_first = keys.binary("not_equal", before)
    return scan(is_first.where(keys.iota(0, int32), 0), "max", 0)


def levels_of(rows: Node, keys: Node, order: Node, monoid: str) -> list[Node]:
    """Combine groups of neighbours, level above level.

    A group of several keys is never asked for: it reads update 0 again and again, which costs no
    memory traffic, and only the keys at its ends.
    """
    count = rows.shape[0] // FAN
    if count < 2:
        return []
    groups = order.slice(((0, count * FAN, 1),)).reshape((count, FAN))
    ends = keys.slice(((0, count * FAN, 1),)).reshape((count, FAN))
    first, last = (
        ends.slice(((0, count, 1), (n, n + 1, 1))).expand((count, FAN)) for n in (0, FAN - 1)
    )
    chosen = first.binary("equal", last).where(groups, 0)
    level = rows.accumulated().gather((chosen,), (0,)).reduce(monoid, (1,))
    return [level, *levels_above(level, monoid, 2 * FAN)]


def levels_above(level: Node, monoid: str, least: int) -> list[Node]:
    """Combine groups of neighbours, until there are fewer than `least`."""
    found: list[Node] = []
    count, *rest = level.shape
    while count >= least:
        count //= FAN
        whole = ((0, count * FAN, 1), *((0, size, 1) for size in rest))
        level = level.slice(whole).reshape((count, FAN, *rest)).reduce(monoid, (1,))
        found.append(level)
    return found


def last_of_runs(values: Node, keys: Node, count: int, target: Target) -> Node:
    """Take the last value of each run of equal keys: out[key] = value, for keys below `count`.

    The keys 0..count-1 come in runs, each key in one of them; so a permutation will do.
    """
    zeros = constant(0, (count,), values.dtype, values.device)
    if not target.has_blocks or keys.size >= 1 << 31:
        return zeros.scatter(values, (keys,), (0,), None)
    inputs = (zeros, values, keys.cast(uint32), keys.iota(0, int32))
    arg = ((0,), None, FAN)
    return Node("scatter_runs", inputs, arg, (count,), values.dtype, values.device)


def scatter_runs(node: Node, base: Array, rows: Array, keys: Array, *rest: Array) -> Array:
    """Update a copy by the rows of each run of keys, in order."""
    axes, monoid, _, *lanes = node.arg
    if lanes:
        number, place = places_of_runs(*rest[:2])
        keys, rows = keys[number], rows[place]
    wide = rows.dtype if rows.dtype == np.float64 else accumulate_dtype(node.dtype).numpy
    out = base.astype(wide)
    turned = axes_first(out, axes)
    indices = np.unravel_index(keys.astype(np.int64), turned.shape[: len(axes)])
    if monoid is not None:
        UPDATES[monoid].at(turned, indices, rows.astype(wide))
        return out
    for row, place in zip(rows, zip(*indices, strict=True), strict=True):
        turned[place] = row
    return out


def places_of_runs(first: Array, stop: Array) -> tuple[Array, Array]:
    """List the number of the run of each update of runs, and where it is."""
    sizes = np.maximum(stop - first, 0)
    number: Array = np.repeat(np.arange(len(sizes)), sizes)
    return number, np.arange(len(number)) + (first - np.cumsum(sizes) + sizes)[number]


def link_runs(axes: Axes, node: Node) -> None:
    """Follow the base; values and their keys lie side by side."""
    base, values, *beside = node.inputs
    axes.link_all(node, base)
    for each in beside[:2] if len(node.arg) == 3 else ():
        axes.link(values, 0, each, 0)


def bound_runs(graph: Bounded, node: Node) -> Node:
    """Let what there is not be one more run, whose key lies beyond the sizes."""
    base, values, keys, *rest = graph.inputs(node)
    if node.arg[1] is not None or values.rank > 1:
        raise NoRule("sums of runs whose number varies")
    keys = graph.mask(node.inputs[2], keys, [0], base.size - 1)
    return graph.same(node, [base, values, keys, *rest])


SCATTER_ROWS = table(
    Op(
        "scatter_runs",
        Role.SCATTER,
        -1,
        ANY,
        scatter_runs,
        hero="runs",
        shape=first_shape,
        data=(0, 1),
        sizes=Sizes(link_runs, bound_runs),
        batch=refused("it is what a scatter becomes on CUDA"),
    )
)


def gather(node: Node, x: Array, *indices: Array) -> Array:
    """Index the axes, put first."""
    return axes_first(x, node.arg)[indices]


def scatter(node: Node, base: Array, values: Array, *rest: Array) -> Array:
    """Update a copy in the order of the index, so that the last one wins."""
    axes, monoid = node.arg
    out, indices = base.copy(), rest[: len(axes)]
    turned = axes_first(out, axes)
    if len(rest) > len(axes):
        wanted = np.nonzero(rest[-1])
        indices, values = tuple(index[wanted] for index in indices), values[wanted]
    if monoid not in (None, ONCE):
        UPDATES[monoid].at(turned, indices, values)
    else:
        for position in np.ndindex(*indices[0].shape):
            turned[tuple(index[position] for index in indices)] = values[position]
    return out


def gather_vjp(gradient: Node, output: Node, x: Node, *indices: Node) -> Gradients:
    """Add the gradients up where the elements came from."""
    found = one_of_each(gradient, output, x, indices)
    if found is None:
        found = x.const_like(0).scatter(gradient, indices, output.arg, "sum")
    return (found, *(None for _ in indices))


def one_of_each(gradient: Node, output: Node, x: Node, indices: Sequence[Node]) -> Node | None:
    """Put each gradient where its element came from, if no two came from one place.

    x[i, index[i]]: all indices but one are positions, each along an axis of its own, and no axis is
    left over. So all others are zero: elementwise work, which fuses.
    """
    shape, count = indices[0].shape, len(indices)
    along = [n for n, index in enumerate(indices) if index.op not in POSITIONS]
    places = [index.arg for index in indices if index.op in POSITIONS]
    left = [axis for axis in range(len(shape)) if axis not in places]
    is_whole = all(x.shape[n] == shape[i.arg] for n, i in enumerate(indices) if n not in along)
    is_once = len(set(places)) == len(places) and all(shape[axis] == 1 for axis in left)
    if output.arg != tuple(range(count)) or len(along) != 1 or not (is_whole and is_once):
        return None
    (axis,) = along
    order = (*places, *left)
    few = (*x.shape[:axis], 1, *x.shape[axis + 1 : count])
    rest = range(len(shape), gradient.rank)
    values = gradient.permute((*order, *rest)).reshape((*few, *x.shape[count:]))
    index = indices[axis].permute(order).reshape((*few, *(1 for _ in rest)))
    is_here = x.iota(axis, index.dtype).binary("equal", index.expand(x.shape))
    return is_here.where(values.expand(x.shape), 0)


def bound_read(graph: Bounded, node: Node) -> Node:
    """Read by an index that is 0 where there is none; what is sorted is read in its whole order."""
    found = sort_read(node)
    if found is None:
        return bound_gather(graph, node)
    order = graph.made[id(found)]
    return along(order.inputs[0], order, found.arg[0])


def scatter_vjp(gradient: Node, output: Node, base: Node, values: Node, *rest: Node) -> Gradients:
    """Split the gradient between the base and the values.

    Overwriting with repeated indices gives every one of the values the gradient, as PyTorch does.
    """
    axes, monoid = output.arg
    indices, inside = rest[: len(axes)], rest[len(axes) :]
    if monoid is None:
        for_base = gradient.scatter(values.const_like(0), indices, axes, None, *inside)
        for_values = gradient.gather(indices, axes)
    else:
        for_base, for_values = combined_vjp(
            monoid, (gradient, output, base, values), lambda x: x.gather(indices, axes),
            lambda x, values, monoid: x.scatter(values, indices, axes, monoid),
        )  # fmt: skip
    if inside:
        for_values = is_wanted(inside[0], values).where(for_values, 0)
    return (for_base, for_values, *(None for _ in rest))


def combined_vjp(monoid: str, nodes: Nodes, read: Read, combined: Combined) -> tuple[Node, Node]:
    """Split the gradient of `output = combined(base, values, monoid)` between the two.

    `nodes` are the gradient and these three; `read` gives each value what its place has.
    """
    gradient, output, base, values = nodes
    if monoid == "sum":
        return gradient, read(gradient)
    if monoid == "prod":
        return product_gradients(gradient, base, values, read, combined)
    return extremum_gradients(gradient, output, base, values, read, combined)


def is_wanted(inside: Node, values: Node) -> Node:
    """Repeat what says of each update whether it is wanted, for its elements."""
    ones = (1,) * (len(values.shape) - len(inside.shape))
    return inside.reshape((*inside.shape, *ones)).expand(values.shape)


def product_gradients(
    gradient: Node, base: Node, values: Node, read: Read, combined: Combined
) -> tuple[Node, Node]:
    """Multiply the other factors of each: a zero among them is there as itself, two leave nothing.

    It adds nothing, but its own gradient is that of the product.
    """

    def added(part: Node) -> Node:
        """Add up what the other factors of the same product have."""
        return read(combined(base.const_like(0), part, "sum")) - part

    one, is_zero = base.const_like(1), values.binary("equal", 0)
    for_base = gradient * combined(one, values, "prod")
    safe = is_zero.where(1, values)
    whole = gradient * combined(base, safe, "prod")
    others = read(whole) / safe
    zeros = added(is_zero.cast(base.dtype))
    with_zero = others * added(is_zero.where(values, 0))
    more = zeros.binary("equal", 1).where(with_zero, 0)
    return for_base, zeros.binary("equal", 0).where(others, more)


def extremum_gradients(
    gradient: Node, output: Node, base: Node, values: Node, read: Read, combined: Combined
) -> tuple[Node, Node]:
    """Share the gradient evenly among the base and the values that attain the extremum."""
    output = output.again()
    base_wins = base.binary("equal", output)
    value_wins = values.binary("equal", read(output))
    one = base_wins.cast(gradient.dtype)
    count = combined(one, value_wins.cast(gradient.dtype), "sum")
    share = gradient / count
    rest = share * 0  # NaN where the extremum is: it equals nothing
    return base_wins.where(share, rest), value_wins.where(read(share), read(rest))


def index_problem(indices: Nodes, axes: tuple[int, ...]) -> str:
    """Say what is wrong with the indices of some axes, and what follows them."""
    if not all(index.dtype.is_integer for index in indices[: len(axes)]):
        return "an index is not an integer"
    if not all(each.dtype is bool_ for each in indices[len(axes) :]):
        return "what says where to write is not bool"
    return ""


INDEX_ROWS = table(
    Op("gather", Role.GATHER, -1, ANY, gather, gather_vjp,
        shape=lambda axes, x, index, *others: gather_shape(x, index, axes), data=(0, 1),
        check=lambda node: index_problem(node.inputs[1:], node.arg), batch=batch_gather,
        expand_on=take_sorted, is_shifting=True, sizes=Sizes(link_gather, bound_read),
        bounds=same_element, cost=2),
    Op("scatter", Role.SCATTER, -1, ANY, scatter, scatter_vjp, hero="scatter",
        expand_on=expand_scatter, shape=first_shape, data=(0, 2),
        check=lambda node: index_problem(node.inputs[2:], node.arg[0]), batch=batch_scatter,
        sizes=Sizes(link_scatter, bound_scatter)),
)  # fmt: skip
