"""Windows of the result of a CPU contraction: reduced over some axes of its rows, block by block.

    for block of results, for window: store monoid over its elements, each of which is computed
                                      from the block, in cache

Blocks of rows hold whole windows, which lie side by side, and what a block has beyond its last one
is left over. Or a task walks down an image, and has above each block the last rows of the one
before (`Plan.kept`), so that every window is whole in the block with its last row.

Windows of the result of a CUDA contraction, each of them in the registers of one thread.

    rows n, h, w  ->  n, p, q, u, v with h = 2 * p + u and w = 2 * q + v      for windows of 2 x 2

The rows of a window follow one another: which rows they are is told by how operands are read. A
thread holds patches of neighbouring rows, so whole windows, and reduces them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from itertools import product as combinations

from picograd.codegen.cuts import Piece
from picograd.codegen.layout import Blocked
from picograd.codegen.operands import (
    Contraction,
    Role,
    Windows,
    bind,
    is_across,
    is_element,
    reorder,
    role,
    size_of,
)
from picograd.codegen.templates.contract_plan import Plan
from picograd.codegen.tensor_core import SimtSchedule
from picograd.codegen.tile import Assign, Step, Store, When
from picograd.errors import check
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, flatten, substitute
from picograd.schedule.loop import Compute, Condition, Expr, cast, rewrite, walk
from picograd.schedule.monoid import COMBINE

Inside = dict[Axis, Index]  # a place inside a window


@dataclass(frozen=True, slots=True)
class Stretch:
    """Windows along one axis that a block reduces: `number` tells which, by what `axis` counts."""

    axis: Axis
    number: Index
    when: tuple[Condition, ...] = ()
    guards: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Windows of one piece of a block of results: `dims` count them, and the columns."""

    plan: Plan
    row: Piece
    column: Piece
    dims: tuple[Axis, ...]
    values: Mapping[Axis, Index]
    when: tuple[Condition, ...]
    guards: tuple[Condition, ...]


def keep_rows(plan: Plan) -> Step:
    """Move the last rows of the block before, which was a full one, above this block."""
    width = plan.panels * plan.columns.lanes
    dims = Axis("row", plan.kept), Axis("column", width)
    row, column = map(axis_index, dims)
    last = plan.c, (row + plan.rows.size, column)
    value = Expr("tile", (), last, plan.product.dtype)
    return Assign(plan.c, dims, value, (row, column))


def pool_block(plan: Plan, row: Piece, column: Piece) -> list[Step]:
    """Reduce the windows of one piece of a block, and store what is computed of them."""
    found: list[Step] = []
    for block in windows_in(plan, row, column):
        steps = tuple(reduced(block))
        found += (When(block.when, steps),) if block.when else steps
    return found


def reduced(block: Block) -> Iterator[Step]:
    """Reduce windows, and store what is computed of them."""

    def value(compute: Compute, inside: Inside, done: Mapping[int, Expr]) -> Expr:
        return element_of(block, compute, inside, done)

    for (slot, index), total in after_product(block.plan.product, value):
        yield Store(slot, substitute(index, block.values), block.dims, total, block.guards)


def after_product(
    product: Contraction, value: Callable[[Compute, Inside, Mapping[int, Expr]], Expr]
) -> Iterator[tuple[tuple[int, Index], Expr]]:
    """Combine the elements of windows, in order, and compute what follows; yield what is stored.

    `value` computes the body of a compute at a place inside a window, of what has been computed.
    """
    done: dict[int, Expr] = {}
    for number, compute in enumerate(product.computes):
        if number == product.number or is_element(product, compute):
            continue
        op = COMBINE[compute.monoid or "sum"]
        total, *rest = [value(compute, inside, done) for inside in points_of(compute.reduce)]
        for each in rest:
            total = Expr(op, (total, each), None, compute.dtype)
        done[number] = total
        if compute.store:
            yield compute.store, total


def windows_in(plan: Plan, row: Piece, column: Piece) -> Iterator[Block]:
    """Count the windows of a piece in place of their elements."""
    along = plan.product.windows
    for chosen in combinations(*(stretches(each, row) for each in along)):
        dims = list(row.dims)
        values = {**row.values, **column.values}
        when: list[Condition] = []
        guards = [*row.guards, *column.guards]
        for each, stretch in zip(along, chosen, strict=True):
            local, _ = beginning(row, each.axis)
            place = dims.index(local) if local is not None else 0
            dims[place] = stretch.axis
            if each.number is not None:
                values[each.number] = stretch.number
            when += stretch.when
            guards += stretch.guards
        every = (*dims, *column.dims)
        yield Block(plan, row, column, every, values, tuple(when), tuple(guards))


def stretches(windows: Windows, row: Piece) -> list[Stretch]:
    """List the windows along an axis that a piece reduces."""
    local, start = beginning(row, windows.axis)
    if windows.axis not in row.values:
        return [stretch(windows, start, windows.count)]
    size = local.size if local is not None else 1
    first = start // windows.stride - windows.late
    left = windows.count - first.hi  # in the last block
    is_last = size == windows.axis.size - start.hi
    if windows.is_beside:
        count = (size - windows.extent) // windows.stride + 1
    elif is_last and row.when:
        count = left
    else:
        count = size // windows.stride
    if count < 1:
        return []
    found = [stretch(windows, first, count)]
    if is_last and left > count:
        more = stretch(windows, first + count, left - count)
        last = start, start.hi, start.hi
        found.append(replace(more, when=(last,)))
    return found


def stretch(windows: Windows, first: Index, count: int) -> Stretch:
    """Count windows from one on; those that there are not are left out."""
    axis = Axis(f"{windows.axis.name}w", count)
    number = first + axis_index(axis)
    is_known = number.lo >= 0 and number.hi < windows.count
    if windows.is_beside or is_known:
        return Stretch(axis, number)
    return Stretch(axis, number, guards=((number, 0, windows.count - 1),))


def beginning(row: Piece, axis: Axis) -> tuple[Axis | None, Index]:
    """Find what counts the elements of an axis in a piece, if it has several, and the first."""
    if axis not in row.values:
        return axis, constant(0)
    value = row.values[axis]
    within = axes_of(value)
    local = next((each for each in row.dims if each in within), None)
    return local, value if local is None else value - axis_index(local)


def points_of(axes: tuple[Axis, ...]) -> Iterator[Inside]:
    """Yield every point of some axes, row-major."""
    places = [range(axis.size) for axis in axes]
    for point in combinations(*places):
        yield dict(zip(axes, map(constant, point), strict=True))


def element_of(block: Block, compute: Compute, inside: Inside, done: Mapping[int, Expr]) -> Expr:
    """Compute what is combined at one place inside a window, or what follows of windows."""
    product = block.plan.product

    def known(expr: Expr) -> Expr | None:
        if expr.op == "ref":
            return done[expr.arg]
        if expr.op != "element":
            return None
        return cast(result_at(block, product, expr), expr.dtype)

    return rewrite(compute.body, {**block.values, **inside}, known)


def result_at(block: Block, product: Contraction, element: Expr) -> Expr:
    """Read an element of a product's result from the block, below the rows kept above it."""
    row, plan = block.row, block.plan
    moved: dict[Axis, Index] = {}
    above = constant(plan.kept)
    for axis, index in element.arg[1]:
        local, start = beginning(row, axis)
        if local is not None:
            moved[local] = index - start
        else:
            above = above + (index - start) * size_of(row.dims[1:])
    position = substitute(row.position, moved) + above
    where = plan.c, (position, block.column.position)
    return Expr("tile", (), where, product.dtype)


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
    return reorder(made, split_axes(c.rows, places), split_axes(c.columns, places))


def split_compute(compute: Compute, places: Places) -> Compute:
    """Count what a compute is of by window, and inside of one: its elements are those there."""

    def here(expr: Expr) -> Expr | None:
        return Expr("ref", (), expr.arg[0], expr.dtype) if expr.op == "element" else None

    store = compute.store
    if store:
        slot, index = store
        store = slot, substitute(index, places)
    body = rewrite(compute.body, places, here)
    return replace(compute, axes=split_axes(compute.axes, places), body=body, store=store)


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
        reduced = set(compute.reduce)
        if not reduced or not reduced <= set(own.axes):
            continue
        if not is_across(c, compute):
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
    return Side(within, dim, role(others, tile * dim.size + axis_index(dim)))


def layout_of(schedule: SimtSchedule, rows: Side, columns: Side) -> Blocked:
    """Give each thread the windows of which it holds the elements."""
    vector = schedule.vector
    per_window = max(rows.count, columns.count)
    check(vector % per_window == 0, "a patch holds whole windows", schedule)
    shape = rows.dim.size, columns.dim.size
    patch = vector // rows.count, vector // columns.count
    return replace(schedule.layout, shape=shape, vector=patch)
