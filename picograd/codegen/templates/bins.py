"""Bins template: a block of threads adds part of a row to bins in shared memory, of each warp.

grid: rows, and their parts    steps: clear the bins; each warp adds its share of the part; then a
thread adds up a bin of all warps, and stores it, or leaves it: the last block of a row to finish
adds up what all its parts left, and stores that
"""

from picograd.codegen.layout import Blocked
from picograd.codegen.templates import bin_columns, bin_rows
from picograd.codegen.templates.grid import merge_part
from picograd.codegen.terms import as_term, tile_at
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    Barrier,
    BinStep,
    LastBlock,
    Step,
    Store,
    Tile,
    TileKernel,
    TilePart,
    is_counting,
)
from picograd.dtype import int32
from picograd.errors import internal
from picograd.graph.binning import MOST_WARPS, copies_of, warps_of
from picograd.helpers import ceil_div, product, round_up
from picograd.schedule.index import Axis, axis_index, position_over
from picograd.schedule.loop import Bins, Kernel
from picograd.target import Target

WARP = 32


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write sums of values by their numbers for a GPU."""
    step = merge_part(kernel.parts[0]).along
    if not isinstance(step, Bins) or not target.has_blocks:
        internal("a kernel of bins needs bins, and blocks", kernel)
    if step.is_beside:
        return bin_rows.build(kernel, step, target)
    count = step.place.size
    if is_counting(step.body):
        warps, copies = MOST_WARPS, copies_of(count)
    else:
        warps = warps_of(count, step.body.dtype.itemsize, step.lanes, target)
        copies = warps
    if copies == warps and bin_columns.are_columns(step, warps, target):
        part = bin_columns.build(step, warps)
    else:
        part = in_copies(step, warps, copies)
    return TileKernel(kernel, (part,), warps * WARP)


def in_copies(step: Bins, warps: int, copies: int) -> TilePart:
    """Write sums in bins of which a block has some copies, a warp one or part of one."""
    dtype = step.body.dtype
    count = step.place.size
    lanes = step.lanes
    warp = Axis("warp", warps)
    share = round_up(ceil_div(step.run, warps), WARP)
    begin = axis_index(step.tile) * step.run
    stop = begin + step.run
    first = begin + axis_index(warp) * share
    every = Axis("own", copies), step.place, Axis("lane", lanes)
    here = tuple(map(axis_index, every))
    nothing = as_term(0, dtype)
    copy = Axis("copy", copies * lanes)
    number = axis_index(copy)
    own = number // lanes, axis_index(step.place), number % lanes
    is_each = lanes == 1 and count >= warps * WARP  # a thread adds up what all warps have of a bin
    across = 1 if is_each else min(WARP, copy.size)
    sharing = Blocked((count, copy.size), (warps * WARP // across, across), (1, 1))
    one = tile_at("bins", own, dtype)
    steps = (
        Assign("bins", every, nothing.expr, here),
        Barrier(),
        BinStep("bins", warp, step.axis, first, share, stop, step.key, step.body),
        Barrier(),
        Accumulate("total", (step.place,), (copy,), "sum", one.expr, True, sharing),
    )
    whole = sharing_of(sharing)
    tiles = (
        Tile("bins", (copies, count, lanes), dtype, "shared"),
        Tile("total", (count,), dtype, "register", whole),
    )
    return added_up(step, whole, tiles, steps, warps)


def sharing_of(layout: Blocked) -> Blocked:
    """Lay out sums as the first dimension of their terms."""
    return Blocked(layout.shape[:1], layout.threads[:1], (1,))


def added_up(
    step: Bins, whole: Blocked, tiles: tuple[Tile, ...], steps: tuple[Step, ...], warps: int
) -> TilePart:
    """Store the sums of a block, or let the last block of a row add up those of its parts."""
    grid = *step.rows, step.tile
    dtype = step.body.dtype
    count, parts = step.place.size, step.tile.size
    place = axis_index(step.place)
    if parts == 1 or step.is_apart:
        return TilePart(grid, tiles, (*steps, stored(step, "total", whole)))
    rows = product(axis.size for axis in step.rows)
    row = position_over(step.rows)
    partial = Tile("partial", (rows, count, parts), dtype, "workspace", workspace=0)
    total = tile_at("total", (place,), dtype)
    left = row, place, axis_index(step.tile)
    leave = Assign("partial", (step.place,), total.expr, left, whole)
    sharing = Blocked((count, parts), (warps, WARP), (1, 1))
    number = Axis("number", parts)
    other = tile_at("partial", (row, place, axis_index(number)), dtype)
    add = Accumulate("sum", (step.place,), (number,), "sum", other.expr, True, sharing)
    layout = sharing_of(sharing)
    last = LastBlock(1, row, parts, (add, stored(step, "sum", layout)))
    summed = Tile("sum", (count,), dtype, "register", layout)
    every = (*tiles, partial, summed)
    size = rows * parts * count * dtype.itemsize
    spaces = (size, False), (rows * int32.itemsize, True)
    return TilePart(grid, every, (*steps, leave, last), spaces)


def stored(step: Bins, tile: str, layout: Blocked) -> Store:
    """Store the sums, rounded to what is stored."""
    total = tile_at(tile, (axis_index(step.place),), step.body.dtype)
    return Store(step.slot, step.target, (step.place,), total.expr, (), layout)
