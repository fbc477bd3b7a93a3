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
from picograd.schedule.index import constant, substitute
from picograd.schedule.loop import Compute, Expr, rewrite
from picograd.schedule.monoid import COMBINE


def pool_block(plan: Plan, row: Piece, column: Piece) -> Iterator[Step]:
    """Reduce the windows of one piece of a block, and store what is computed of them."""
    product = plan.product
    inside = product.window
    dims = (*(axis for axis in row.dims if axis not in inside), *column.dims)
    values = {**row.values, **column.values}
    guards = (*row.guards, *column.guards)
    done: dict[int, Expr] = {}

    def replace_ref(expr: Expr) -> Expr | None:
        return done[expr.arg] if expr.op == "ref" else None

    for number, compute in enumerate(product.computes):
        if number == product.number or is_element(product, compute):
            continue
        if compute.reduce:
            done[number] = pooled(plan, compute, row, column)
        else:
            done[number] = rewrite(compute.body, values, replace_ref)
        if compute.store:
            slot, index = compute.store
            yield Store(slot, substitute(index, values), dims, done[number], guards)


def pooled(plan: Plan, compute: Compute, row: Piece, column: Piece) -> Expr:
    """Combine the elements of a window, in order."""
    number, dtype = plan.product.number, plan.product.dtype
    found: list[Expr] = []
    for point in combinations(*(range(axis.size) for axis in compute.reduce)):
        inside = dict(zip(compute.reduce, map(constant, point), strict=True))
        place = substitute(row.position, inside), column.position
        at = {**row.values, **column.values, **inside}
        known = element_values(plan.product, at, {number: Expr("tile", (), (plan.c, place), dtype)})
        found.append(rewrite(compute.body, at, known))
    total, *rest = found
    for each in rest:
        total = Expr(COMBINE[compute.monoid or "sum"], (total, each), None, compute.dtype)
    return total
