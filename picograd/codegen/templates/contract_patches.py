"""Windows of the result of a CUDA contraction, each of them in the registers of one thread.

    rows n, h, w  ->  n, p, q, u, v with h = 2 * p + u and w = 2 * q + v      for windows of 2 x 2

The rows of a window follow one another: which rows they are is told by how operands are read. A
thread holds patches of neighbouring rows, so whole windows, and reduces them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from picograd.codegen.layout import Blocked
from picograd.codegen.operands import (
    Contraction,
    Role,
    bind,
    cast,
    is_element,
    reorder,
    role,
    size_of,
)
from picograd.codegen.templates.contract_windows import Inside, after_product
from picograd.codegen.tensor_core import SimtSchedule
from picograd.codegen.tile import Store
from picograd.errors import check
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, constant, flatten, substitute
from picograd.schedule.loop import Compute, Expr, rewrite, walk

Places = dict[Axis, Index]


@dataclass(frozen=True, slots=True)
class Side:
    """Rows or columns of a tile, counted by window: `dim` counts what is stored."""

    inside: tuple[Axis, ...]  # axes inside a window; none on the other side
    dim: Axis
    axes: Role

    @property
    def count(self) -> int:
        """Elements of a window."""
        return size_of(self.inside)

    def place(self, point: Inside) -> Index:
        """Find a row or column of the tile: an element of the window that `dim` counts."""
        index = axis_index(self.dim) * self.count
        within = [point.get(axis, constant(0)) for axis in self.inside]
        sizes = [axis.size for axis in self.inside]
        return index + flatten(within, sizes)


def split_windows(c: Contraction) -> Contraction:
    """Count the elements along axes with windows by window, and inside of one."""
    places: Places = {}
    for compute in c.computes:
        for expr in walk(compute.body):
            if expr.op == "element":
                places |= dict(expr.arg[1])
    if not places:
        return c
    made = replace(
        c,
        computes=tuple(split_compute(each, places) for each in c.computes),
        a=bind(c.a, places),
        b=bind(c.b, places),
    )
    rows = split_axes(c.rows, places)
    columns = split_axes(c.columns, places)
    return reorder(made, rows, columns)


def split_compute(compute: Compute, places: Places) -> Compute:
    """Count what a compute is of by window, and inside of one: its elements are those there."""

    def here(expr: Expr) -> Expr | None:
        if expr.op != "element":
            return None
        return Expr("ref", (), expr.arg[0], expr.dtype)

    store = compute.store
    if store:
        slot, index = store
        store = slot, substitute(index, places)
    body = rewrite(compute.body, places, here)
    axes = split_axes(compute.axes, places)
    return replace(compute, axes=axes, body=body, store=store)


def split_axes(axes: Sequence[Axis], places: Places) -> tuple[Axis, ...]:
    """Replace axes with windows by those that count the windows, then those inside."""
    return tuple(chain.from_iterable(parts_of(axis, places) for axis in axes))


def parts_of(axis: Axis, places: Places) -> list[Axis]:
    """List the axes that count the elements along one, the slowest first."""
    if axis not in places:
        return [axis]
    terms = sorted(places[axis].terms, key=lambda term: -term[1])
    return [atom for atom, _ in terms if isinstance(atom, Axis)]


def inside_axes(c: Contraction) -> tuple[Axis, ...]:
    """List the axes inside windows; none where a product has no windows."""
    own = c.computes[c.number]
    for compute in c.computes:
        is_after = compute is not own and not is_element(c, compute)
        if is_after and compute.reduce:
            return compute.reduce
    return ()


def windows_last(c: Contraction) -> Contraction:
    """Let the elements of a window follow one another."""
    inside = inside_axes(c)

    def last(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        others = [axis for axis in axes if axis not in inside]
        return (*others, *inside) if len(others) < len(axes) else axes

    return reorder(c, last(c.rows), last(c.columns))


def store_windows(
    c: Contraction, schedule: SimtSchedule, tile: tuple[Index, Index]
) -> Iterator[Store]:
    """Store what the windows of a tile give; `tile` counts tiles along rows and columns."""
    inside = set(inside_axes(c))
    if not inside:
        return
    rows = side_of("p", c.rows, inside, tile[0], schedule.block[0])
    columns = side_of("q", c.columns, inside, tile[1], schedule.block[1])
    values = {**rows.axes.values, **columns.axes.values}
    conditions = (*rows.axes.conditions, *columns.axes.conditions)
    layout = layout_of(schedule, rows, columns)

    def value(compute: Compute, point: Inside, done: Mapping[int, Expr]) -> Expr:
        where = rows.place(point), columns.place(point)
        acc = Expr("tile", (), ("acc", where), c.dtype)

        def known(expr: Expr) -> Expr | None:
            if expr.op != "ref":
                return None
            return cast(acc, expr.dtype) if expr.arg == c.number else done[expr.arg]

        return rewrite(compute.body, {**values, **point}, known)

    for (slot, index), total in after_product(c, value):
        place = substitute(index, values)
        yield Store(slot, place, (rows.dim, columns.dim), total, conditions, layout)


def side_of(name: str, axes: tuple[Axis, ...], inside: set[Axis], tile: Index, size: int) -> Side:
    """Count the windows of a tile's rows or columns."""
    within = tuple(axis for axis in axes if axis in inside)
    others = tuple(axis for axis in axes if axis not in inside)
    dim = Axis(name, size // size_of(within))
    position = tile * dim.size + axis_index(dim)
    return Side(within, dim, role(others, position))


def layout_of(schedule: SimtSchedule, rows: Side, columns: Side) -> Blocked:
    """Give each thread the windows of which it holds the elements."""
    vector = schedule.vector
    per_window = max(rows.count, columns.count)
    check(vector % per_window == 0, "a patch holds whole windows", schedule)
    shape = rows.dim.size, columns.dim.size
    patch = vector // rows.count, vector // columns.count
    return replace(schedule.layout, shape=shape, vector=patch)
