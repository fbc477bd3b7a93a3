"""Short rows on a CPU, worked on side by side: blocks of rows are turned round in a tile.

    for block of 16 rows:
      for row, element:  t[element, row] = slot[...]              memory runs along the elements
      reductions over elements, and what follows, in vectors of rows
      for row, element:  slot[...] = x[element, row]

One after the other, rows of 9 to 31 elements are a vector and up to 15 elements one by one. LLVM
loads up to 8 elements of several rows at once, but longer rows by gathers, which take long.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from picograd.codegen.operands import step_of
from picograd.codegen.templates.grid import Cut, substitute_part
from picograd.codegen.templates.rows import Rows
from picograd.codegen.templates.transposed import loops
from picograd.codegen.tile import Assign, Step, Tile, TilePart, When
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, Part, Scan, rewrite, walk

BLOCK = 16  # rows: a vector of float32
SHORTEST, LONGEST = 9, 128  # elements of rows that are turned round
TURNING = 1.5  # vectors one after the other take as long as one that is turned round


def turned_axis(part: Part) -> Axis | None:
    """Find the axis of the elements of rows that are better turned round."""
    axis = only_axis(part)
    if axis is None or part.ends:
        return None
    last = part.rows[-1]
    exprs = list(bodies(part))
    widest = max(expr.dtype.itemsize for expr in exprs)
    if last.size < BLOCK or not least(widest) <= axis.size <= LONGEST:
        return None
    is_regular = all(may_turn(expr, last, axis) for expr in exprs)
    return axis if is_regular and is_slow(axis.size) else None


def only_axis(part: Part) -> Axis | None:
    """Find the axis of the elements of all computes of a part, if there is one."""
    rows, inner = set(part.rows), set[Axis]()
    for compute in part.computes:
        here = set(compute.axes)
        is_window = compute.reduce and here != rows
        if is_window or not here >= rows:
            return None
        inner |= here - rows
        inner |= set(compute.reduce)
    return inner.pop() if rows and len(inner) == 1 else None


def least(itemsize: int) -> int:
    """Count the elements from which on rows are turned: 8 of 8 bytes are no group for LLVM."""
    return SHORTEST - 1 if itemsize == 8 else SHORTEST


def is_slow(length: int) -> bool:
    """Tell whether rows take longer one after the other: vectors, elements left over, and a sum."""
    vectors, left = divmod(length, BLOCK)
    return vectors + left + 1 > TURNING * length / BLOCK


def may_scan(scan: Scan) -> bool:
    """Tell whether rows are better scanned side by side: one by one, elements make no vectors."""
    if scan.inner or scan.conditions or scan.monoid not in ("sum", "prod"):
        return False
    axis = scan.axis
    is_short = SHORTEST <= axis.size <= LONGEST
    if not is_short or not scan.outer or scan.outer[-1].size < BLOCK:
        return False
    row = scan.outer[-1]
    is_regular = all(may_turn(expr, row, axis) for expr in walk(scan.body))
    return is_regular and step_of(scan.target, axis) == 1


def bodies(part: Part) -> Iterator[Expr]:
    """Yield every expression of a part."""
    for compute in part.computes:
        yield from walk(compute.body)


def may_turn(expr: Expr, row: Axis, axis: Axis) -> bool:
    """Tell whether an expression reads nothing, or at places a constant distance apart."""
    if expr.op != "load":
        return expr.op != "guard"
    index = expr.arg[1]
    return step_of(index, row) is not None and step_of(index, axis) is not None


def whole_blocks(part: Part, last: Axis) -> list[Part]:
    """Cut the last axis of rows into blocks, two axes then, and a part of the rows left over."""
    count, left = divmod(last.size, BLOCK)
    block = Axis("block", count)
    row = Axis("row", BLOCK)
    place = axis_index(block) * BLOCK + axis_index(row)
    whole = substitute_part(part, {last: place}, {last: (block, row)})
    if not left:
        return [whole]
    row = Axis(last.name, left)
    place = axis_index(row) + count * BLOCK
    rest = substitute_part(part, {last: place}, {last: (row,)})
    return [whole, rest]


def build_turned(part: Part, axis: Axis, space: Cut) -> TilePart:
    """Write a part of whole blocks, given how all its axes but the rows of a block are cut."""
    row = part.rows[-1]
    turned = Turned(row, axis, space)
    computes = []
    for compute in part.computes:
        body = turned.read(compute.body)
        computes.append(replace(compute, body=body))
    part = replace(part, computes=tuple(computes))
    rows = Rows(part, (row,), space.axes, (), None, True)
    rows.tiles += turned.tiles
    steps = [*turned.copies, *rows.whole()]
    return in_loops(space, rows.tiles, steps)


def in_loops(space: Cut, tiles: Sequence[Tile], steps: Sequence[Step]) -> TilePart:
    """Run the steps of a block for all blocks of a task."""
    body = list(steps)
    if space.conditions:
        body = [When(space.conditions, tuple(steps))]
    return TilePart(space.grid, tuple(tiles), tuple(loops(space.dims, body)))


class Turned:
    """This class collects the tiles of what lies along rows, and the steps that fill them."""

    def __init__(self, row: Axis, axis: Axis, space: Cut) -> None:
        self.row, self.axis, self.space = row, axis, space
        self.reads: dict[Expr, Expr] = {}
        self.tiles: list[Tile] = []
        self.copies: list[Step] = []

    def read(self, body: Expr) -> Expr:
        """Read tiles in place of loads along rows."""
        return rewrite(body, {}, self.turned)

    def turned(self, expr: Expr) -> Expr | None:
        """Make a tile for a load along rows; None if an expression is none."""
        if expr.op != "load":
            return None
        index = expr.arg[1]
        is_along = step_of(index, self.axis) == 1
        if not is_along or step_of(index, self.row) in (0, 1):
            return None
        if expr not in self.reads:
            self.reads[expr] = self.copied(expr)
        return self.reads[expr]

    def copied(self, expr: Expr) -> Expr:
        """Fill a tile with what is loaded."""
        name = f"t{len(self.tiles)}"
        shape = self.axis.size, self.row.size
        here = axis_index(self.axis), axis_index(self.row)
        source = rewrite(expr, self.space.axes)
        self.tiles.append(Tile(name, shape, expr.dtype, "shared"))
        self.copies.append(Assign(name, (self.row, self.axis), source, here))
        return Expr("tile", (), (name, here), expr.dtype)
