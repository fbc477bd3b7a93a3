"""Windows of the result of a CPU contraction: reduced over some axes of its rows, block by block.

    for block of results, for window: store monoid over its elements, each of which is computed
                                      from the block, in cache

Blocks of rows hold whole windows (`cut_rows`), so that nothing is added up between them.
"""

from collections.abc import Iterator
from itertools import product as combinations

from picograd.codegen.cuts import Piece
from picograd.codegen.operands import element_values, is_element
from picograd.codegen.templates.contract_plan import Plan
from picograd.codegen.tile import Step, Store
from picograd.schedule.index import Axis, Index, constant, substitute
from picograd.schedule.loop import Compute, Expr, rewrite
from picograd.schedule.monoid import COMBINE


def pool_block(plan: Plan, row: Piece, column: Piece) -> Iterator[Step]:
    """Reduce the windows of one piece of a block, and store what is computed of them."""
    product = plan.product
    rows = tuple(axis for axis in row.dims if axis not in product.window)
    dims = (*rows, *column.dims)
    values = {**row.values, **column.values}
    guards = (*row.guards, *column.guards)
    done: dict[int, Expr] = {}

    def replace_ref(expr: Expr) -> Expr | None:
        return done[expr.arg] if expr.op == "ref" else None

    for number, compute in enumerate(product.computes):
        is_known = number == product.number
        if is_known or is_element(product, compute):
            continue
        if compute.reduce:
            done[number] = combined(plan, compute, row, column)
        else:
            done[number] = rewrite(compute.body, values, replace_ref)
        if compute.store:
            slot, index = compute.store
            place = substitute(index, values)
            yield Store(slot, place, dims, done[number], guards)


def combined(plan: Plan, compute: Compute, row: Piece, column: Piece) -> Expr:
    """Combine the elements of a window, in order."""
    op = COMBINE[compute.monoid or "sum"]
    piece = row, column
    total, *rest = [
        element_of(plan, compute, piece, inside) for inside in points_of(compute.reduce)
    ]
    for each in rest:
        total = Expr(op, (total, each), None, compute.dtype)
    return total


def points_of(axes: tuple[Axis, ...]) -> Iterator[dict[Axis, Index]]:
    """Yield every point of some axes, row-major."""
    places = [range(axis.size) for axis in axes]
    for point in combinations(*places):
        yield dict(zip(axes, map(constant, point), strict=True))


def element_of(
    plan: Plan, compute: Compute, piece: tuple[Piece, Piece], inside: dict[Axis, Index]
) -> Expr:
    """Compute what is combined at one place inside a window."""
    product = plan.product
    row, column = piece
    values = {**row.values, **column.values, **inside}
    place = substitute(row.position, inside), column.position
    result = Expr("tile", (), (plan.c, place), product.dtype)
    known = element_values(product, values, {product.number: result})
    return rewrite(compute.body, values, known)
