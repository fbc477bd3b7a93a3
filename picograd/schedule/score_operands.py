"""score_operands: what streams over scores read, and whether the copy engine brings it in boxes.

An operand lies in memory, as it is or seen through views, or in pages that a table in memory
orders: a gather is read through it then.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from picograd.dtype import int64
from picograd.graph.row import Role
from picograd.late_methods import dataclass
from picograd.number import GivenInt
from picograd.schedule.group import Facts
from picograd.schedule.index import (
    Axis,
    Dynamic,
    Index,
    Indices,
    atom_index,
    axis_index,
    constant,
    flatten,
)
from picograd.schedule.loop import Expr
from picograd.schedule.pages import Paged, axes_in, pages_of, tables_in
from picograd.schedule.scores import lone_axis
from picograd.schedule.viewindex import view_source
from picograd.schedule.views import strip_views

LEAST_COLUMNS, MOST_COLUMNS = 8, 256  # of an operand: its registers beside those of the scores
ALIGNMENT, MOST_DIMENSIONS = 16, 5  # bytes, and of what boxes are of


@dataclass(frozen=True, slots=True)
class Boxed:
    """What a stream reads in boxes: an operand, its labels, and which of them are what.

    Elements of the `near` one lie next to one another; `shared` ones count products of a batch.
    The `far` ones are places of the stream, or rows, as of one dimension. A forward pass finds the
    pages of what it streams over.
    """

    operand: Facts
    labels: tuple[int, ...]
    near: set[int]
    shared: set[int]
    far: tuple[int, ...] = ()
    has_pages: bool = False

    def axes(self) -> dict[Axis, int]:
        """Make an axis of each dimension, with its label."""
        named = enumerate(zip(self.labels, self.operand.node.shape, strict=True))
        return {Axis(f"d{number}", size): label for number, (label, size) in named}

    def far_axes(self, axes: Mapping[Axis, int]) -> list[Axis]:
        """List the axes of places, the last the fastest."""
        every = [axis for label in self.far for axis, own in axes.items() if own == label]
        return [axis for axis in every if axis.size > 1]

    @property
    def near_sizes(self) -> list[int]:
        """Sizes of the nearest dimension."""
        named = zip(self.labels, self.operand.node.shape, strict=True)
        return [size for name, size in named if name in self.near]


def is_boxed(boxed: Boxed, cuts: set[int]) -> bool:
    """Tell whether an operand is an array whose dimension `near` is contiguous.

    Heads may be repeated: products of a batch read those before `cuts` of an axis in turn.
    """
    names = boxed.axes()
    index = memory_index(boxed.operand, tuple(map(axis_index, names)))
    if index is None or not has_columns(boxed):
        return False
    far = boxed.far_axes(names)
    paged = paged_index(boxed, names)
    if paged is not None:
        index, far = paged.index, [paged.place]
    (near,) = (axis for axis in names if names[axis] in boxed.near)
    if dict(index.terms).get(near) != 1:
        return False
    rest = [(atom, step) for atom, step in index.terms if atom is not near]
    is_moved = any(isinstance(atom, Dynamic) for atom, _ in rest)
    if is_moved and len(index.terms) + (not far) > MOST_DIMENSIONS:
        return False
    if not is_one_dimension(far, index):
        return False
    for atom, _ in rest:
        if isinstance(atom, Axis | Dynamic):
            continue
        axis = lone_axis(atom.index)
        if axis is None or names[axis] not in boxed.shared or axis.size % atom.n:
            return False
        cuts.add(atom.n)
    steps = [index.const, *(step for _, step in rest)]
    itemsize = boxed.operand.node.dtype.itemsize
    return len(cuts) <= 1 and all(step * itemsize % ALIGNMENT == 0 for step in steps)


def has_pages(boxed: Boxed) -> bool:
    """Tell whether boxes bring an operand from where a table says its pages are."""
    return paged_index(boxed, boxed.axes()) is not None


def paged_index(boxed: Boxed, axes: Mapping[Axis, int]) -> Paged | None:
    """Find where pages have an operand that a table in memory orders; None if nothing does."""
    gather = strip_views(boxed.operand)
    if not boxed.has_pages or gather.is_loaded or gather.node.row.role is not Role.GATHER:
        return None
    starts = tuple(map(axis_index, axes))
    index = memory_index(boxed.operand, starts, gathered_index)
    if index is None:
        return None
    found = pages_of(index, boxed.far_axes(axes))
    own = [axis for axis, label in axes.items() if label in boxed.near]
    tables = () if found is None else tables_in(found.index)
    is_free = all(step > 0 and axes_in(atom).isdisjoint(own) for atom, step in tables)
    return found if tables and is_free else None


def is_one_dimension(axes: Sequence[Axis], index: Index) -> bool:
    """Tell whether the places of axes, the last the fastest, are at equal steps in memory."""
    steps = [dict(index.terms).get(axis, 0) for axis in axes]
    sizes = [axis.size for axis in axes]
    are_beside = (far == near * n for (far, near), n in zip(pairwise(steps), sizes[1:]))
    return all(are_beside) and min(steps, default=1) > 0


def has_columns(boxed: Boxed) -> bool:
    """Tell whether an operand has a dtype, and as many columns, as kernels are for."""
    dtype = boxed.operand.node.dtype
    is_known = dtype.is_float and dtype.bits in (16, 32)
    near = boxed.near_sizes
    return is_known and len(near) == 1 and LEAST_COLUMNS <= near[0] <= MOST_COLUMNS


def memory_index(
    facts: Facts, indices: Indices, below: Callable[[Facts, Indices], Index | None] | None = None
) -> Index | None:
    """Find where in memory views of a row-major array have an element; None if they copy.

    `below` finds what the array is read from instead.
    """
    base = strip_views(facts)
    while facts is not base:
        node = facts.node
        if node.row.view is None or not node.row.is_showing:
            return None
        if node.row.role is Role.VIEW:  # else it gives another name
            indices = view_source(node, indices, position)
        facts = facts.inputs[0]
    return flatten(indices, base.node.shape) if below is None else below(base, indices)


def position(start: int, room: int) -> Index:
    """Where a slice begins: a number that is code, or one of the plan, whatever it is now."""
    if type(start) is not GivenInt:
        return constant(start)
    number = Expr("scalar", (), id(start), int64)
    return atom_index(Dynamic(number, 0, room))


def gathered_index(gather: Facts, indices: Indices) -> Index | None:
    """Find where in memory a gather reads an element; what a table says is anything."""
    source, *tables = gather.inputs
    rank = tables[0].node.rank
    rest = iter(indices[rank:])
    numbers = dict(zip(gather.node.arg, tables, strict=True))
    found = []
    for axis, size in enumerate(source.node.shape):
        table = numbers.get(axis)
        if table is None:
            found.append(next(rest))
        elif size > 1:
            at = flatten(indices[:rank], table.node.shape)
            read = Expr("load", (), (table.number, at), table.node.dtype)
            found.append(atom_index(Dynamic(read, 0, size - 1)))
        else:
            found.append(constant(0))
    return memory_index(source, tuple(found))
