"""Windows of the result of a CPU contraction: reduced over some axes of its rows, block by block.

    for block of results, for window: store monoid over its elements, each of which is computed
                                      from the block, in cache

Blocks of rows hold whole windows, which lie side by side, and what a block has beyond its last one
is left over. Or a task walks down an image, and has above each block the last rows of the one
before (`Plan.kept`), so that every window is whole in the block with its last row.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product as combinations

from picograd.codegen.cuts import Piece
from picograd.codegen.operands import Contraction, Windows, cast, is_element, size_of
from picograd.codegen.templates.contract_plan import Plan
from picograd.codegen.tile import Assign, Step, Store, When
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, substitute
from picograd.schedule.loop import Compute, Condition, Expr, rewrite
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
        place = substitute(index, block.values)
        yield Store(slot, place, block.dims, total, block.guards)


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
    guard = number, 0, windows.count - 1
    return Stretch(axis, number, guards=(guard,))


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
        result = result_at(block, product, expr)
        return cast(result, expr.dtype)

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
