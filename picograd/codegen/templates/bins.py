"""Bins template: a block of threads adds part of a row to bins in shared memory, of each warp.

grid: rows, and their parts    steps: clear the bins; each warp adds its share of the part; then a
thread adds up a bin of all warps, and stores it
"""

from picograd.codegen.layout import Blocked
from picograd.codegen.templates.grid import merge_part
from picograd.codegen.terms import as_term, tile_at
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    Barrier,
    BinStep,
    Store,
    Tile,
    TileKernel,
    TilePart,
)
from picograd.errors import internal
from picograd.graph.binning import lanes_of, warps_of
from picograd.helpers import ceil_div, round_up
from picograd.schedule.index import Axis, axis_index
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
    lanes = lanes_of(count, dtype.itemsize, target)
    warps = warps_of(count, dtype.itemsize, target)
    warp = Axis("warp", warps)
    share = round_up(ceil_div(step.run, warps), WARP)
    begin = axis_index(step.tile) * step.run
    stop = begin + step.run
    first = begin + axis_index(warp) * share
    every = warp, step.place, Axis("lane", lanes)
    here = tuple(map(axis_index, every))
    nothing = as_term(0, dtype)
    copy = Axis("copy", warps * lanes)
    number = axis_index(copy)
    own = number // lanes, axis_index(step.place), number % lanes
    across = min(WARP, copy.size)
    sharing = Blocked((count, copy.size), (warps * WARP // across, across), (1, 1))
    whole = Blocked((count,), sharing.threads[:1], (1,))
    one = tile_at("bins", own, dtype)
    total = tile_at("total", (axis_index(step.place),), dtype)
    steps = (
        Assign("bins", every, nothing.expr, here),
        Barrier(),
        BinStep("bins", warp, step.axis, first, share, stop, step.key, step.body),
        Barrier(),
        Accumulate("total", (step.place,), (copy,), "sum", one.expr, True, sharing),
        Store(step.slot, step.target, (step.place,), total.expr, (), whole),
    )
    tiles = (
        Tile("bins", (warps, count, lanes), dtype, "shared"),
        Tile("total", (count,), dtype, "register", whole),
    )
    made = TilePart((*step.rows, step.tile), tiles, steps)
    return TileKernel(kernel, (made,), warps * WARP)
