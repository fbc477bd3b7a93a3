"""Reductions of the result of a CPU contraction: over all of its rows, or all of its columns.

    task: for block of results: sums of the columns (or rows) of the block
          leave them in a workspace; the last task of these columns adds up those of all, in order,
          and finishes

The block is in cache when it is reduced: nothing is read again. `Contraction.computes` holds the
product, its elements, the reductions of elements, and what is computed of those.
"""

from picograd.codegen.cuts import Cut, Piece
from picograd.codegen.operands import Contraction, element_values, finished, guarded, size_of
from picograd.codegen.templates.contract_plan import Plan
from picograd.codegen.templates.contract_thin import guarded_steps
from picograd.codegen.tile import Accumulate, Assign, LastBlock, Step, Store, Tile
from picograd.errors import check
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, position_over
from picograd.schedule.loop import Compute, Expr, const, rewrite
from picograd.schedule.monoid import identity

PARTS = 2  # workspaces of a product whose K several tasks share


@dataclass(frozen=True, slots=True)
class Sums:
    """The reductions of one contraction, at the blocks of its tasks.

    `kept` cuts the role that the results run along, `gone` the other; `blocks` are the axes that
    number the blocks along the first, `others` along the second, `width` the positions of a block.
    """

    product: Contraction
    kept: Cut
    gone: Cut
    blocks: tuple[Axis, ...]
    others: tuple[Axis, ...]
    width: int
    is_transposed: bool  # rows are kept: a block is [kept, gone]
    first: int  # number of the first workspace

    @property
    def reductions(self) -> list[tuple[int, Compute]]:
        """Reductions of elements, with their numbers."""
        return [(n, c) for n, c in enumerate(self.product.computes) if n and c.reduce]

    @property
    def workspaces(self) -> tuple[tuple[int, bool], ...]:
        """Memory for the results of every task, and to count those that are done."""
        count = size_of(self.blocks) * size_of(self.others) * self.width
        sizes = [(count * c.dtype.itemsize, False) for _, c in self.reductions]
        return (*sizes, (4 * size_of(self.blocks), True))

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """Sums of a block, of all blocks, and the workspaces between them."""
        found = []
        for place, (number, compute) in enumerate(self.reductions):
            dtype, first = compute.dtype, self.first + place
            for name, piece in self.named(number):
                shape = tuple(axis.size for axis in piece.dims)
                found.append(Tile(name, shape, dtype, "register"))
            found.append(Tile(f"total{number}", (self.width,), dtype, "register"))
            shape = (size_of(self.blocks), size_of(self.others), self.width)
            found.append(Tile(f"left{number}", shape, dtype, "workspace", workspace=first))
        return tuple(found)

    def named(self, number: int) -> list[tuple[str, Piece]]:
        """Pieces of a block along what is kept, and the tiles of their sums."""
        return [(f"sum{number}_{n}", piece) for n, piece in enumerate(self.kept.pieces)]


def sums_of(plan: Plan) -> Sums | None:
    """Find the reductions of the result: of its rows, or of its columns."""
    product = plan.product
    found = next((c for c in product.computes[1:] if c.reduce), None)
    if found is None or product.windows:
        return None
    first = PARTS if plan.is_split else 0
    rows, columns = plan.rows, plan.columns.cut
    if set(found.reduce) == set(product.rows):
        width = plan.panels * plan.columns.lanes
        grid = columns.outer, plan.task
        return Sums(product, columns, rows, *grid, width, False, first)
    is_known = set(found.reduce) == set(product.columns)
    check(is_known, "a reduction over rows or columns", found)
    grid = (*plan.task, plan.row_loop), columns.outer
    return Sums(product, rows, columns, *grid, plan.rows_padded, True, first)


def is_at_once(plan: Plan, sums: Sums) -> bool:
    """Tell whether a block has all its task sums: else they go on over blocks of rows."""
    return plan.is_split or sums.is_transposed


def begin(sums: Sums) -> list[Step]:
    """Start the sums of a task."""
    found: list[Step] = []
    for number, compute in sums.reductions:
        start = const(identity(compute.monoid or "sum", compute.dtype), compute.dtype)
        for name, piece in sums.named(number):
            found += guarded_steps(piece.when, [Assign(name, piece.dims, start)])
    return found


def add_block(sums: Sums) -> list[Step]:
    """Add the block of results to the sums."""
    found: list[Step] = []
    for place, kept in enumerate(sums.kept.pieces):
        for gone in sums.gone.pieces:
            at = (kept.position, gone.position)[:: 1 if sums.is_transposed else -1]
            value = Expr("tile", (), ("c", at), sums.product.dtype)
            found_sums = {sums.product.number: value}
            done = element_values(sums.product, {**kept.values, **gone.values}, found_sums)
            steps: list[Step] = []
            for number, compute in sums.reductions:
                monoid = compute.monoid or "sum"
                body = rewrite(compute.body, {**kept.values, **gone.values}, done)
                body = guarded(body, (*gone.guards, *kept.guards), identity(monoid, body.dtype))
                name = f"sum{number}_{place}"
                steps.append(Accumulate(name, kept.dims, gone.dims, monoid, body, False))
            found += guarded_steps((*kept.when, *gone.when), steps)
    return found


def leave(sums: Sums) -> list[Step]:
    """Leave the sums of a task; the last one adds up those of all, and stores what they give."""
    block, other = (position_over(sums.blocks), position_over(sums.others))
    found: list[Step] = []
    for number, compute in sums.reductions:
        for name, piece in sums.named(number):
            here = tuple(map(axis_index, piece.dims))
            value = Expr("tile", (), (name, here), compute.dtype)
            step = Assign(f"left{number}", piece.dims, value, (block, other, piece.position))
            found += guarded_steps(piece.when, [step])
    counter = sums.first + len(sums.reductions)
    count = size_of(sums.others)
    return [*found, LastBlock(counter, block, count, tuple(finish(sums, block, count)))]


def finish(sums: Sums, block: Index, count: int) -> list[Step]:
    """Add up the sums of all tasks, and store what is wanted of them."""
    found: list[Step] = []
    place, other = Axis("place", sums.width), Axis("other", count)
    for number, compute in sums.reductions:
        at = block, axis_index(other), axis_index(place)
        read = Expr("tile", (), (f"left{number}", at), compute.dtype)
        monoid = compute.monoid or "sum"
        found.append(Accumulate(f"total{number}", (place,), (other,), monoid, read))
    for piece in sums.kept.pieces:
        found += guarded_steps(piece.when, list(final_stores(sums, piece)))
    return found


def final_stores(sums: Sums, piece: Piece) -> list[Step]:
    """Store the results, and what is computed of them, at one piece of a block."""

    def total(number: int, compute: Compute) -> Expr:
        return Expr("tile", (), (f"total{number}", (piece.position,)), compute.dtype)

    stored = finished(sums.product, dict(piece.values), total)
    return [Store(out.slot, out.index, piece.dims, out.expr, piece.guards) for out in stored]
