"""Windows of the result of a CPU contraction: reduced over some axes of its rows, block by block.

    for block of results, for window: store monoid over its elements, each of which is computed
                                      from the block, in cache

Blocks of rows hold whole windows (`cut_rows`), so that nothing is added up between them. What a
block has beyond its last window is left over.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product as combinations

from picograd.codegen.cuts import Piece
from picograd.codegen.operands import Contraction, cast, is_element
from picograd.codegen.templates.contract_plan import Plan
from picograd.codegen.tile import Step, Store
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, substitute
from picograd.schedule.loop import Compute, Condition, Expr, rewrite
from picograd.schedule.monoid import COMBINE


@dataclass(frozen=True, slots=True)
class Block:
    """Windows in one piece of a block of results: `dims` count them, and the columns."""

    plan: Plan
    dims: tuple[Axis, ...]
    values: Mapping[Axis, Index]
    guards: tuple[Condition, ...]
    position: tuple[Index, Index]  # of a row and a column, by the axes that `starts` names
    starts: Mapping[Axis, tuple[Axis | None, Index]]  # where a piece of an axis begins


def pool_block(plan: Plan, row: Piece, column: Piece) -> Iterator[Step]:
    """Reduce the windows of one piece of a block, and store what is computed of them."""
    block = windows_in(plan, row, column)
    if block is None:
        return
    product = plan.product
    done: dict[int, Expr] = {}
    for number, compute in enumerate(product.computes):
        if number == product.number or is_element(product, compute):
            continue
        if compute.reduce:
            done[number] = combined(block, compute, done)
        else:
            done[number] = element_of(block, compute, {}, done)
        if compute.store:
            slot, index = compute.store
            place = substitute(index, block.values)
            yield Store(slot, place, block.dims, done[number], block.guards)


def windows_in(plan: Plan, row: Piece, column: Piece) -> Block | None:
    """Count the windows of a piece in place of their elements; None if it has none."""
    dims: list[Axis] = list(row.dims)
    values = {**row.values, **column.values}
    starts: dict[Axis, tuple[Axis | None, Index]] = {}
    for each in plan.product.windows:
        local, start = starts[each.axis] = beginning(row, each.axis)
        size = local.size if local is not None else 1
        count = (size - each.extent) // each.stride + 1
        if count < 1:
            return None
        windows = Axis(f"{each.axis.name}w", count)
        if each.number is not None:
            values[each.number] = start // each.stride + axis_index(windows)
        if local is not None:
            dims[dims.index(local)] = windows
    guards = (*row.guards, *column.guards)
    place = row.position, column.position
    return Block(plan, (*dims, *column.dims), values, guards, place, starts)


def beginning(row: Piece, axis: Axis) -> tuple[Axis | None, Index]:
    """Find what counts the elements of an axis in a piece, if it has several, and the first."""
    if axis not in row.values:
        return axis, constant(0)
    value = row.values[axis]
    within = axes_of(value)
    local = next((each for each in row.dims if each in within), None)
    return local, value if local is None else value - axis_index(local)


def combined(block: Block, compute: Compute, done: Mapping[int, Expr]) -> Expr:
    """Combine the elements of a window, in order."""
    op = COMBINE[compute.monoid or "sum"]
    points = points_of(compute.reduce)
    total, *rest = [element_of(block, compute, inside, done) for inside in points]
    for each in rest:
        total = Expr(op, (total, each), None, compute.dtype)
    return total


def points_of(axes: tuple[Axis, ...]) -> Iterator[dict[Axis, Index]]:
    """Yield every point of some axes, row-major."""
    places = [range(axis.size) for axis in axes]
    for point in combinations(*places):
        yield dict(zip(axes, map(constant, point), strict=True))


def element_of(
    block: Block, compute: Compute, inside: dict[Axis, Index], done: Mapping[int, Expr]
) -> Expr:
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
    """Read an element of a product's result from the block."""
    moved: dict[Axis, Index] = {}
    for axis, index in element.arg[1]:
        local, start = block.starts[axis]
        if local is not None:
            moved[local] = index - start
    row, column = block.position
    place = substitute(row, moved), column
    where = block.plan.c, place
    return Expr("tile", (), where, product.dtype)
