"""Bins template: a block of threads adds part of a row to bins in shared memory, of each warp.

grid: rows, and their parts    steps: clear the bins; each warp adds its share of the part; then a
thread adds up a bin of all warps, and stores it
"""

from picograd.codegen.templates.grid import merge_part
from picograd.codegen.terms import as_term, tile_at
from picograd.codegen.tile import Assign, Barrier, BinStep, Store, Tile, TileKernel, TilePart
from picograd.errors import internal
from picograd.graph.binning import warps_of
from picograd.helpers import ceil_div, round_up
from picograd.schedule.index import Axis, axis_index, constant
from picograd.schedule.loop import Bins, Kernel
from picograd.target import Target

WARP = 32


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write sums of values by their numbers for a GPU."""
    step = merge_part(kernel.parts[0]).along
    if not isinstance(step, Bins) or not target.has_blocks:
        internal("a kernel of bins needs bins, and blocks", kernel)
    dtype = step.body.dtype
    count = step.place.size
    warps = warps_of(count, dtype.itemsize, target)
    warp = Axis("warp", warps)
    share = round_up(ceil_div(step.run, warps), WARP)
    begin = axis_index(step.tile) * step.run
    stop = begin + step.run
    first = begin + axis_index(warp) * share
    place = axis_index(step.place)
    here = axis_index(warp), place
    own = [tile_at("bins", (constant(row), place), dtype) for row in range(warps)]
    total = own[0]
    for each in own[1:]:
        total = total + each
    nothing = as_term(0, dtype)
    steps = (
        Assign("bins", (warp, step.place), nothing.expr, here),
        Barrier(),
        BinStep("bins", warp, step.axis, first, share, stop, step.key, step.body),
        Barrier(),
        Store(step.slot, step.target, (step.place,), total.expr),
    )
    tile = Tile("bins", (warps, count), dtype, "shared")
    made = TilePart((*step.rows, step.tile), (tile,), steps)
    return TileKernel(kernel, (made,), warps * WARP)
