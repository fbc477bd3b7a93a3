"""Scan template: every point beside the scanned axis is independent, the axis is walked in order.

CPU: a task owns a stretch of neighbouring columns and walks the axis with all of them at once, as
vectors; where the axis is the innermost one, a task owns whole rows. CUDA: a thread owns a column,
or a block owns a row: serial in a thread, a butterfly in a warp, then a sum over warps.
Long axes come in chunks (graph/scanning.py), which are axes of the grid here.
"""

from collections.abc import Iterator
from dataclasses import replace

from picograd.codegen.layout import scan_lanes
from picograd.codegen.operands import strides
from picograd.codegen.templates.grid import Cut, cut, cut_flat, merge_part, rebind, substitute_along
from picograd.codegen.templates.transposed import loops
from picograd.codegen.templates.turned_rows import (
    BLOCK,
    LONGEST,
    Turned,
    in_loops,
    may_scan,
    whole_blocks,
)
from picograd.codegen.tile import Accumulate, Assign, For, Step, Store, Tile, TileKernel, TilePart
from picograd.dtype import DType
from picograd.errors import check, internal
from picograd.helpers import product
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Expr, Kernel, Part, Scan, const, rewrite
from picograd.schedule.monoid import identity
from picograd.target import Target

CPU_COLUMNS = 1024  # 4 KiB of running totals: they stay in the first-level cache
CROSSED_COLUMNS = 16  # a line of what is stored: lines that are read stay in the cache beside it
CPU_POINTS = 65536  # elements of a task made of short rows
PIECE = 64  # elements of long rows that are turned round at once: a tile of 4 to 8 KiB
CUDA_THREADS = 256
SHORT_ROW = 32  # a row this short is scanned by one thread, which waits for every element,
FEW_ROWS = 8192  # but for few of them a warp each: a thread takes 10 us for 25 elements
LEAST_ROW = 8  # that is worth a warp
WARP = 32


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write a scan kernel for the target."""
    check(len(kernel.parts) == 1, "a scan kernel has one part", kernel)
    part = merge_part(kernel.parts[0])
    scan = scan_of(part)
    if not target.has_blocks:
        return TileKernel(kernel, cpu_parts(kernel, part, target), 1)
    if scan.inner or is_for_threads(scan):
        return TileKernel(kernel, (column_part(scan),), CUDA_THREADS)
    return TileKernel(kernel, (row_part(scan),), row_threads(scan))


def is_for_threads(scan: Scan) -> bool:
    """Tell whether rows are short, and so many that a thread each keeps the device busy."""
    size = scan.axis.size
    rows = product(axis.size for axis in scan.outer)
    return size <= LEAST_ROW or (size <= SHORT_ROW and rows > FEW_ROWS)


def scan_of(part: Part) -> Scan:
    """Take the scan of a part, as far as somebody sees it."""
    if not isinstance(part.along, Scan):
        internal("a scan kernel without a scan", part)
    scan = part.along
    conditions = (*scan.conditions, *part.ends)
    return replace(scan, conditions=conditions)


def step_of(scan: Scan, space: Cut) -> Scan:
    """Write the step over the dims of a cut."""

    def body(expr: Expr) -> Expr:
        return rewrite(expr, space.axes)

    made = substitute_along(scan, tuple, lambda index: rebind(index, space.axes), body)
    conditions = (*made.conditions, *space.conditions)
    return replace(made, outer=(), inner=space.dims, conditions=conditions)


def cpu_part(scan: Scan) -> TilePart:
    """Give a task some columns, or some rows one after the other."""
    if scan.inner:
        space = cut(scan.inner, CROSSED_COLUMNS if is_crossed(scan) else CPU_COLUMNS)
        return TilePart((*scan.outer, *space.grid), (), (step_of(scan, space),))
    space = cut(scan.outer, max(1, CPU_POINTS // scan.axis.size))
    return in_loops(space, (), [step_of(scan, Cut((), (), space.axes, ()))])


def cpu_parts(kernel: Kernel, part: Part, target: Target) -> tuple[TilePart, ...]:
    """Scan blocks of short rows side by side, and what they leave, or anything else, as it is."""
    scan = scan_of(part)
    if not may_scan(scan, target):
        return (cpu_part(scan),)
    blocks, *left = whole_blocks(part, scan.outer[-1])
    whole = turned_part(scan_of(blocks), kernel.slots[scan.slot].dtype)
    rest = [cpu_part(scan_of(each)) for each in left]
    return (whole, *rest)


def turned_part(scan: Scan, dtype: DType) -> TilePart:
    """Turn the rows of a block round, a piece after the other, and go down the tile's columns."""
    *outer, row = scan.outer
    space = cut(outer, max(1, CPU_POINTS // (BLOCK * scan.axis.size)))
    wide = scan.body.dtype
    tiles: list[Tile] = []
    start = scan.start or const(identity(scan.monoid, wide), wide)
    steps: list[Step] = [Assign("r", (row,), rewrite(start, space.axes))]
    for pieces, piece in in_pieces(scan):
        turned = Turned(row, piece.axis, space)
        turned.tiles = tiles
        steps += loops(pieces, turned_steps(piece, turned, dtype))
    return in_loops(space, [*tiles, Tile("r", (BLOCK,), wide, "register")], steps)


def in_pieces(scan: Scan) -> Iterator[tuple[tuple[Axis, ...], Scan]]:
    """Cut long rows: give the loop over whole pieces, and one of them; then what is left over."""
    size = scan.axis.size
    if size <= LONGEST:
        yield (), scan
        return
    count, left = divmod(size, PIECE)
    piece = Axis("piece", count)
    within = Axis(f"{scan.axis.name}_in", PIECE)
    yield (piece,), moved(scan, within, axis_index(piece) * PIECE + axis_index(within))
    if left:
        within = Axis(f"{scan.axis.name}_end", left)
        yield (), moved(scan, within, axis_index(within) + count * PIECE)


def moved(scan: Scan, within: Axis, place: Index) -> Scan:
    """Walk a piece of the axis."""
    values = {scan.axis: place}
    body = rewrite(scan.body, values)
    return replace(scan, axis=within, body=body, target=rebind(scan.target, values))


def turned_steps(scan: Scan, turned: Turned, dtype: DType) -> list[Step]:
    """Turn a piece of the rows of a block, go down its columns, and turn it back."""
    row, axis, moves = turned.row, scan.axis, turned.moved
    body = rewrite(turned.read(scan.body), moves)
    here = (axis_index(row),)
    place = axis_index(axis), axis_index(row)
    name = turned.tile("x", dtype, turned.tiles)
    total = Expr("tile", (), ("r", here), scan.body.dtype)
    result = Expr("tile", (), (name, place), dtype)
    add = Accumulate("r", (row,), (), scan.monoid, body, False)
    keep = Assign(name, (row,), total, place)
    out = Store(scan.slot, rebind(scan.target, moves), (row, axis), result)
    return [*turned.copies, For(axis, (add, keep)), out]


def is_crossed(scan: Scan) -> bool:
    """Tell whether columns are read along themselves, each in cache lines of its own."""
    steps = strides(scan.body, (scan.axis, scan.inner[-1]))
    return steps[scan.axis] == 1 and steps[scan.inner[-1]] > 1


def column_part(scan: Scan) -> TilePart:
    """Give every thread a column."""
    space = cut_flat((*scan.outer, *scan.inner), CUDA_THREADS)
    return TilePart(space.grid, (), (step_of(scan, space),))


def row_part(scan: Scan) -> TilePart:
    """Give every block a row."""
    return TilePart(scan.outer, (), (step_of(scan, Cut((), (), {}, ())),))


def row_threads(scan: Scan) -> int:
    """Choose the threads of a block that scans rows."""
    threads, lanes = WARP, scan_lanes(scan.monoid, scan.axis.size)
    while threads < CUDA_THREADS and threads * lanes < scan.axis.size:
        threads *= 2
    return threads
