"""Scatters on a GPU that add up at few places: in bins, and what else would be summed before.

Updates of numbers have rows where an index is the position of the update; those of rows are added
up column by column.

    scatter(0, sum(x, batch), index)  ->  bins of x, whose places in the batch have one number

What is summed before only to be put in bins is put there as it is, some neighbours at a time: the
gradient of a table of relative positions, which a batch of attention's scores share.
"""

from collections.abc import Sequence

from picograd.dtype import bool_, int32, int64
from picograd.graph.binning import (
    SPARSE,
    beside_of,
    lanes_of,
    may_bin,
    only_number,
    summed_beside,
    summed_in_bins,
)
from picograd.graph.node import Node, constant
from picograd.graph.row import MOVES, NUMBERS, SHOWING, Role
from picograd.graph.shape import Shape
from picograd.helpers import product, row_major
from picograd.late_methods import dataclass
from picograd.target import Target

MOST_BINNED = 1 << 21  # numbers in rows of updates of many bins: more are sorted
MOST_TOGETHER = 8  # terms of a sum that a thread reads at a time


def in_bins(node: Node, updates: "Updates", target: Target) -> Node | None:
    """Add updates up in shared memory; None where there are too many places.

    Where rows are fewer than those of the base, nothing is added to the others.
    """
    base = node.inputs[0]
    outside = updates.outside
    terms = updates.terms
    if terms is None:
        values = updates.values.accumulated()
        terms = values.reshape((1, *values.shape))
    holds = is_mask(updates.values) and terms.rank == 1 + updates.indices[0].rank
    one = only_number(terms)
    if holds or (one is not None and one.arg == 1):
        terms = constant(1, terms.shape, int32, terms.device)
    sizes = [base.shape[axis] for axis in updates.axes[outside:]]
    bins = product(tuple(sizes))
    shape = updates.indices[0].shape
    columns = terms.shape[1 + len(shape) :]
    rows = product((*shape[:outside], *columns))
    place = Placing(base, updates)
    is_beside = place.is_turned and not outside and goes_beside(terms, rows, bins, target)
    if not is_beside and not is_binned(terms, rows, bins, bool(columns), target):
        return None
    number = numbered(updates.indices[outside:], sizes)
    if holds:
        (mask,) = updates.values.inputs
        number = mask.where(number, bins)  # what is counted is looked at once
    for inside in updates.inside:
        number = inside.where(number, bins)
    terms, number = in_rows(terms, number, shape, outside)
    is_alone = base.op in NUMBERS and base.arg == 0
    dtype = node.dtype if is_alone else base.accumulated().dtype
    if is_beside:
        found = summed_beside(terms, number, bins, dtype)
    else:
        found = summed_in_bins(terms, number, bins, target, dtype, place.is_turned)
    found = place.back(found)
    return found if is_alone else (base.accumulated() + found).cast(node.dtype)


def in_rows(terms: Node, number: Node, shape: Shape, outside: int) -> tuple[Node, Node]:
    """Bring terms (N, *shape, *columns), and the number of each, into rows (R, N)."""
    axes = [*range(terms.rank)]
    lead = axes[1 : 1 + outside]
    within = axes[1 + outside : 1 + len(shape)]
    last = axes[1 + len(shape) :]
    terms = terms.permute((*lead, *last, 0, *within))
    ones = (1,) * len(last)
    wide = *shape[:outside], *ones, 1, *shape[outside:]
    number = number.reshape(wide)
    number = number.expand(terms.shape)
    rows = product(terms.shape[: outside + len(last)])
    flat = rows, terms.size // rows
    return terms.reshape(flat), number.reshape(flat)


@dataclass(frozen=True, slots=True)
class Updates:
    """Updates of a scatter: the first `outside` indices are positions, so many axes are rows.

    `terms` (N, *shape of values) are what the values are sums of, if that is known.
    """

    values: Node
    terms: Node | None
    indices: list[Node]
    inside: list[Node]
    axes: tuple[int, ...]
    outside: int


class Placing:
    """This class says where sums of rows, and of bins, are in a base."""

    def __init__(self, base: Node, updates: Updates) -> None:
        every = [*range(base.rank)]
        own = updates.axes[: updates.outside]
        bins = [*updates.axes[updates.outside :]]
        others = [axis for axis in every if axis not in updates.axes]
        rows = [*own, *others]
        self.is_turned: bool = bins + rows == every
        self.axes: list[int] = every if self.is_turned else rows + bins
        self.wanted: list[int] = [base.shape[axis] for axis in self.axes]
        found = dict(zip(own, updates.indices[0].shape))
        self.there: list[int] = [found.get(axis, base.shape[axis]) for axis in self.axes]

    def back(self, found: Node) -> Node:
        """Bring sums into the order of the base, with nothing where there are none."""
        found = found.reshape(tuple(self.there))
        sizes = zip(self.wanted, self.there, strict=True)
        missing = [(0, size - own) for size, own in sizes]
        found = found.pad(tuple(missing))
        order = map(self.axes.index, range(found.rank))
        return found.permute(tuple(order))


def without_zeros(values: Node, indices: list[Node]) -> tuple[Node, list[Node]]:
    """Leave out whole rows of zeros: what tells them is one more of what is wanted."""
    shape = indices[0].shape
    is_rows = values.rank > len(shape) and len(values.inputs) == 3
    is_made = values.realized is None and not values.is_asked
    if not is_rows or not is_made or values.inputs[0].dtype is not bool_:
        return values, indices
    holds, found, other = values.inputs
    count = product(shape)
    while holds.realized is None and holds.op in SHOWING and holds.size > count:
        (holds,) = holds.inputs
    nothing = only_number(other)
    ones = (1,) * (values.rank - len(shape))
    if nothing is None or nothing.arg != 0 or holds.shape != (*shape, *ones):
        return values, indices
    return found, [*indices, holds.reshape(shape)]


def is_mask(values: Node) -> bool:
    """Tell whether values are 1 where something holds, and 0 elsewhere."""
    is_number = values.realized is None and values.row.keeps_value and not values.is_asked
    return is_number and values.inputs[0].dtype is bool_


def goes_beside(terms: Node, rows: int, bins: int, target: Target) -> bool:
    """Tell whether rows beside one another, an index for all of them, go to lanes of a warp."""
    count = terms.size // rows
    is_plain = terms.shape[0] == 1 and may_add(terms)
    is_dense = count * SPARSE >= bins
    itemsize = terms.dtype.itemsize
    found = beside_of(bins, rows, count, itemsize, target)
    return is_plain and is_dense and found is not None


def may_add(values: Node) -> bool:
    """Tell whether bins have sums of the dtype of some values."""
    dtype = values.dtype
    return dtype.kind in ("int", "uint", "float") and dtype.bits >= 32


def is_binned(values: Node, rows: int, bins: int, in_columns: bool, target: Target) -> bool:
    """Tell whether values go to bins: those of their dtype, of which there is room for so many."""
    if not may_add(values) or not may_bin(values, rows, bins, target):
        return False
    if not in_columns or values.size <= MOST_BINNED:
        return True
    return lanes_of(bins, values.dtype.itemsize, rows, values.size // rows, target) > 1


def numbered(indices: Sequence[Node], sizes: Sequence[int]) -> Node:
    """Number the destinations."""
    number = indices[0].cast(int64)
    others = zip(indices[1:], sizes[1:], strict=True)
    for index, size in others:
        number = number * size + index.cast(int64)
    return number


def terms_of(values: Node, axis: int) -> Node | None:
    """Find what values are sums of, some of it added up: (N, *S), of which they are the sums.

    That is where neighbours along an axis lie beside one another, in another order or dtype: what
    is shown so is stored, so that scores may stream.
    """
    steps, below = shown(values)
    is_moved = any(each.op in MOVES for each in steps)
    if not is_moved and not is_sum(below):
        return None
    source, axes = below, ()
    if is_sum(below):
        source = below.inputs[0]
        axes = below.arg[1]
    kept = [axis for axis in range(source.rank) if axis not in axes]
    if not steps or not lies_along(source, kept, steps, axis):
        return None
    count = source.size // below.size
    if is_computed(source):
        source = source.stored()
    terms = source.permute((*axes, *kept))
    terms = terms.reshape((count, *below.shape))
    for step in steps:
        terms = on_terms(step, terms)
    return together(terms.accumulated())


def is_summed(values: Node) -> bool:
    """Tell whether values are sums, in another order or dtype."""
    return is_sum(shown(values)[1])


def shown(values: Node) -> tuple[list[Node], Node]:
    """Find what shows a value in another order or dtype, the last one last, and the value."""
    steps: list[Node] = []
    below = values
    while is_passing(below):
        steps.append(below)
        below = below.inputs[0]
    steps.reverse()
    return steps, below


def on_terms(step: Node, terms: Node) -> Node:
    """Show each of some terms as a step shows their sum, or cast it."""
    view = step.row.view
    argument = step.row.batch_arg
    if view is None or view.show is None or argument is None:
        return terms.cast(step.dtype)
    found: Node = view.show(terms, argument(step.arg, terms.shape[0]))
    return found


def lies_along(source: Node, kept: Sequence[int], steps: Sequence[Node], axis: int) -> bool:
    """Tell whether a value lies along an axis of what these steps make of some axes of it."""
    strides = row_major(source.shape)
    found: Shape | None = tuple(map(strides.__getitem__, kept))
    for step in steps:
        view = step.row.view
        if view is not None and found is not None:
            found = view.strides(step, found)
    return found is not None and found[axis] == 1


def is_computed(node: Node) -> bool:
    """Tell whether a value is computed, rather than shown of memory."""
    while node.realized is None and node.op in SHOWING:
        node = node.inputs[0]
    return node.realized is None and bool(node.inputs)


def is_passing(node: Node) -> bool:
    """Tell whether a value has all elements of its input, in another order or dtype."""
    if node.realized is not None or node.is_asked:
        return False
    is_cast = node.row.keeps_value and node.dtype.is_float
    return is_cast or node.op in MOVES


def is_sum(node: Node) -> bool:
    """Tell whether a node is a sum over axes that is not in memory."""
    if node.realized is not None or node.is_asked or not node.size:
        return False
    return node.row.role is Role.REDUCE and node.arg[0] == "sum"


def together(terms: Node) -> Node:
    """Add up neighbours along the first axis, as many as divide it."""
    count, *rest = terms.shape
    each = max(n for n in range(1, MOST_TOGETHER + 1) if count % n == 0)
    groups = count // each
    apart = terms.reshape((groups, each, *rest))
    whole = tuple([(0, size, 1) for size in rest])
    total: Node | None = None
    for n in range(each):
        one = n, n + 1, 1
        part = apart.slice(((0, groups, 1), one, *whole))
        part = part.reshape((groups, *rest))
        total = part if total is None else total + part
    return terms if total is None else total
