"""Short rows on a CPU, worked on side by side: blocks of rows are turned round in a tile.

    for block of 16 rows:
      for row, element:  t[element, row] = slot[...]              memory runs along the elements
      reductions over elements, and what follows, in vectors of rows
      for row, element:  slot[...] = x[element, row]

Rows of which 2 to 7 lie between one another are turned round with those:

      for row, place:    t[place, row] = slot[...]                place = element * 5 + near

One after the other, rows of 9 to 31 elements are a vector and up to 15 elements one by one. LLVM
loads up to 8 elements of several rows at once, but longer rows by gathers, which take long.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from picograd.codegen.operands import step_of
from picograd.codegen.templates.grid import Cut, substitute_part
from picograd.codegen.templates.rows import Rows
from picograd.codegen.templates.transposed import loops
from picograd.codegen.tile import Assign, Step, Store, Tile, TilePart, When
from picograd.dtype import DType
from picograd.helpers import product
from picograd.schedule.index import Axis, Index, axis_index, substitute
from picograd.schedule.loop import MONOIDS, Expr, Part, Scan, rewrite, walk
from picograd.target import Target

BLOCK = 16  # rows: a vector of float32
SHORTEST, LONGEST = 9, 128  # elements of rows that are turned round
LEAST_EXTREMES = 17  # of rows of running extremes: LLVM compares shorter ones side by side
TURNING = 1.5  # vectors one after the other take as long as one that is turned round
MOST_NEAR = 7  # rows between one another: more are worked on as columns
MOST_PLACES = 512  # of their elements: those of a block stay in the second-level cache
MOST_TURNED = 12  # arrays of a part: to turn one takes LLVM as long as the work on five (measured)


def turned_axis(part: Part) -> Axis | None:
    """Find the axis of the elements of rows that are better turned round."""
    axis = only_axis(part)
    if axis is None or part.ends:
        return None
    row = block_axis(part)
    near = near_axis(part)
    exprs = list(bodies(part))
    size = axis.size
    if near is None:
        widest = max(expr.dtype.itemsize for expr in exprs)
        is_short = least(widest) <= size <= LONGEST
        is_gain = is_short and is_slow(size)
    else:
        is_gain = SHORTEST <= size <= MOST_PLACES // near.size
    if row.size < BLOCK or not is_gain:
        return None
    is_regular = all(may_turn(expr, row, axis, near) for expr in exprs)
    turned = {expr.arg for expr in exprs if expr.op == "load" and step_of(expr.arg[1], axis)}
    return axis if is_regular and len(turned) <= MOST_TURNED else None


def near_axis(part: Part) -> Axis | None:
    """Find the axis of rows between one another, if they are few."""
    last = part.rows[-1]
    is_near = len(part.rows) > 1 and 1 < last.size <= MOST_NEAR
    return last if is_near else None


def block_axis(part: Part) -> Axis:
    """Find the axis of rows that is cut into blocks."""
    return part.rows[-1 if near_axis(part) is None else -2]


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


def may_scan(scan: Scan, target: Target) -> bool:
    """Tell whether rows are better scanned side by side: one by one, elements make no vectors."""
    if scan.inner or scan.conditions or scan.monoid not in MONOIDS:
        return False
    axis = scan.axis
    is_total = scan.monoid in ("sum", "prod")
    if (
        axis.size < (SHORTEST if is_total else LEAST_EXTREMES)
        or not scan.outer
        or scan.outer[-1].size < BLOCK
    ):
        return False
    if axis.size > LONGEST and not may_scan_long(scan, target):
        return False
    row = scan.outer[-1]
    is_regular = all(may_turn(expr, row, axis) for expr in walk(scan.body))
    return is_regular and step_of(scan.target, axis) == 1


def may_scan_long(scan: Scan, target: Target) -> bool:
    """Tell whether long rows are too: for all workers, and not of 8 bytes, of which few turn."""
    blocks = product(each.size for each in scan.outer) // BLOCK
    loads = [expr.dtype.itemsize for expr in walk(scan.body) if expr.op == "load"]
    return blocks >= target.threads and max(loads, default=8) < 8


def bodies(part: Part) -> Iterator[Expr]:
    """Yield every expression of a part."""
    for compute in part.computes:
        yield from walk(compute.body)


def may_turn(expr: Expr, row: Axis, axis: Axis, near: Axis | None = None) -> bool:
    """Tell whether an expression reads nothing, or along rows, or what vectors of rows can read."""
    if expr.op != "load":
        return expr.op != "guard"
    index = expr.arg[1]
    across = step_of(index, row)
    along = step_of(index, axis)
    if across is None or along is None:
        return False
    return across in (0, 1) or along == 0 or is_along(index, axis, near)


def is_along(index: Index, axis: Axis, near: Axis | None) -> bool:
    """Tell whether memory runs along the elements of a row, and of those near it."""
    if near is None:
        return step_of(index, axis) == 1
    return step_of(index, axis) == near.size and step_of(index, near) == 1


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
    return [whole, substitute_part(part, {last: place}, {last: (row,)})]


def build_turned(part: Part, axis: Axis, row: Axis, space: Cut) -> TilePart:
    """Write a part of whole blocks, given how all its axes but those of a block are cut."""
    near = part.rows[-1] if part.rows[-1] is not row else None
    turned = Turned(row, axis, space, near)
    computes = []
    for compute in part.computes:
        computes.append(replace(compute, body=turned.read(compute.body)))
    part = replace(part, computes=tuple(computes))
    dims = (row,) if near is None else (near, row)
    rows = Rows(part, dims, space.axes, (), None, True)
    rows.tiles += turned.tiles
    steps = [*turned.copies, *rows.whole()]
    if near is not None:
        steps = turned.stored(steps, rows.tiles)
    return in_loops(space, rows.tiles, steps)


def in_loops(space: Cut, tiles: Sequence[Tile], steps: Sequence[Step]) -> TilePart:
    """Run the steps of a block for all blocks of a task."""
    body = list(steps)
    if space.conditions:
        body = [When(space.conditions, tuple(steps))]
    return TilePart(space.grid, tuple(tiles), tuple(loops(space.dims, body)))


class Turned:
    """This class collects the tiles of what lies along rows, and the steps that fill them."""

    def __init__(self, row: Axis, axis: Axis, space: Cut, near: Axis | None = None) -> None:
        self.row, self.axis = row, axis
        self.near = near
        self.place = axis
        at = axis_index(axis)
        self.moved = dict(space.axes)  # memory is walked along all between two rows of a block
        if near is not None:
            count = near.size
            self.place = Axis("place", axis.size * count)
            at = at * count + axis_index(near)
            walked = axis_index(self.place)
            self.moved[axis] = walked // count
            self.moved[near] = walked % count
        column = axis_index(row)
        self.at = at, column
        self.here = axis_index(self.place), column
        self.reads: dict[Expr, Expr] = {}
        self.tiles: list[Tile] = []
        self.copies: list[Step] = []

    def read(self, body: Expr) -> Expr:
        """Read tiles in place of loads along rows."""
        return rewrite(body, {}, self.turned)

    def turned(self, expr: Expr) -> Expr | None:
        """Make a tile for a load along rows; None if an expression is none."""
        if expr.op != "load" or not self.is_along(expr.arg[1]):
            return None
        if expr not in self.reads:
            self.reads[expr] = self.copied(expr)
        return self.reads[expr]

    def is_along(self, index: Index) -> bool:
        """Tell whether memory runs along rows, one after the other."""
        is_across = step_of(index, self.row) not in (0, 1)
        return is_across and is_along(index, self.axis, self.near)

    def tile(self, letter: str, dtype: DType, tiles: list[Tile]) -> str:
        """Make a tile of the rows of a block."""
        name = f"{letter}{len(tiles)}"
        tiles.append(Tile(name, (self.place.size, BLOCK), dtype, "shared"))
        return name

    def copied(self, expr: Expr) -> Expr:
        """Fill a tile with what is loaded."""
        name = self.tile("t", expr.dtype, self.tiles)
        source = rewrite(expr, self.moved)
        self.copies.append(Assign(name, (self.row, self.place), source, self.here))
        return Expr("tile", (), (name, self.at), expr.dtype)

    def stored(self, steps: Sequence[Step], tiles: list[Tile]) -> list[Step]:
        """Store what lies along rows through tiles."""
        found: list[Step] = []
        for step in steps:
            if not isinstance(step, Store) or not self.is_along(step.index):
                found.append(step)
                continue
            dtype = step.expr.dtype
            name = self.tile("x", dtype, tiles)
            read = Expr("tile", (), (name, self.here), dtype)
            index = substitute(step.index, self.moved)
            found.append(Assign(name, step.dims, step.expr, self.at))
            found.append(Store(step.slot, index, (self.row, self.place), read))
        return found
