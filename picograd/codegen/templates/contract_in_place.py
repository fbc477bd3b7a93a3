"""Operands of products that a CPU reads where they lie, and does not pack.

    a, contiguous along K, in rows that register blocks divide, of few columns
    b, contiguous along N, in whole panels, of few rows

Packing an operand takes as long as multiplying it with some tens of rows or columns. Where it is
read more often, packed blocks come faster from the cache.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from picograd.codegen import cuts
from picograd.codegen.dot import InPlace
from picograd.codegen.operands import size_of, step_of
from picograd.codegen.templates.contract_plan import Plan, reads_rows_in_place
from picograd.schedule.index import Axis, Index, constant, substitute
from picograd.schedule.loop import Expr

FEW_ROWS = 64  # of a product, for which columns of b are


def with_places(plan: Plan) -> Plan:
    """Let a product read operands where they lie, if that is no slower than packing them."""
    if not is_plain(plan):
        return plan
    rows = place_of_rows(plan)
    columns = place_of_columns(plan)
    return replace(plan, a_place=rows, b_place=columns)


def is_plain(plan: Plan) -> bool:
    """Tell whether blocks are those of a packed product, whose sizes do not vary."""
    product, depth = plan.product, plan.depth
    if plan.image is not None or plan.patches is not None or plan.is_split:
        return False
    if product.ends or product.windows or any(plan.reach):
        return False
    return depth.size > 0 and divides(depth, depth.size)


def divides(cut: cuts.Cut, size: int) -> bool:
    """Tell whether pieces are whole numbers of blocks: nothing is read beyond their ends."""
    if cut.total % size:
        return False
    sizes = [size_of(piece.dims) for piece in cut.pieces]
    return all(each % size == 0 for each in sizes)


def place_of_rows(plan: Plan) -> InPlace | None:
    """Say where a block of a lies, if its rows need not be packed."""
    product = plan.product
    if not reads_rows_in_place(product):
        return None
    if not divides(plan.rows, plan.height):
        return None
    return located(product.a, plan, plan.rows.pieces, in_rows)


def place_of_columns(plan: Plan) -> InPlace | None:
    """Say where a block of b lies, if its columns need not be packed."""
    product, columns = plan.product, plan.columns
    _, m, _, _ = product.sizes
    if m > FEW_ROWS or not columns.is_looped:
        return None
    if not divides(columns.cut, columns.lanes):
        return None
    return located(product.b, plan, columns.cut.pieces, in_columns)


Combined = Callable[[cuts.Piece, cuts.Piece, Index], tuple[Index, int] | None]


def located(
    expr: Expr, plan: Plan, pieces: Sequence[cuts.Piece], place: Combined
) -> InPlace | None:
    """Find the memory of a block, if every piece of it lies there in rows."""
    if expr.op != "load" or expr.dtype is not plan.product.dtype:
        return None
    slot, index = expr.arg
    found: set[tuple[Index, int] | None] = set()
    for piece in pieces:
        for deep in plan.depth.pieces:
            here = substitute(index, piece.values)
            here = substitute(here, deep.values)
            found.add(place(piece, deep, here))
    only = found.pop()
    if only is None or found:
        return None
    start, step = only
    return InPlace(slot, start, step)


def in_rows(piece: cuts.Piece, deep: cuts.Piece, index: Index) -> tuple[Index, int] | None:
    """Find where a piece of a begins, and how far from one another its rows do."""
    step = step_along(index, piece.dims)
    start = first_of(index, piece, deep)
    wanted = start + piece.position * step + deep.position
    return (start, step) if index == wanted else None


def in_columns(piece: cuts.Piece, deep: cuts.Piece, index: Index) -> tuple[Index, int] | None:
    """Find where a piece of b begins, and how far from one another its depths do."""
    step = step_along(index, deep.dims)
    start = first_of(index, piece, deep)
    wanted = start + deep.position * step + piece.position
    return (start, step) if index == wanted else None


def first_of(index: Index, *pieces: cuts.Piece) -> Index:
    """Find the first element that pieces read."""
    dims = [dim for piece in pieces for dim in piece.dims]
    return substitute(index, dict.fromkeys(dims, constant(0)))


def step_along(index: Index, dims: Sequence[Axis]) -> int:
    """Say how far an index moves along the last of some dims."""
    step = step_of(index, dims[-1]) if dims else 0
    return step or 0
