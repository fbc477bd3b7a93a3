"""Bins of rows beside one another, which have one key: a lane of a warp has a row.

grid: rows, 32 at a time, and some of the bins    steps: clear the bins of each warp; each looks at
its share of all keys, and adds up what goes to the bins of the block; add up the bins of all warps

Only what is added is read, some rows of it at a time (codegen/linearize_bin_rows_cuda.py).
"""

from picograd.codegen.layout import Blocked
from picograd.codegen.templates.grid import guard
from picograd.codegen.terms import Term, as_term, position, tile_at
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
from picograd.dtype import int32
from picograd.errors import internal
from picograd.graph.binning import LANES, QUEUED, beside_of
from picograd.helpers import ceil_div, product, round_up
from picograd.schedule.index import Axis, axis_index, constant, substitute
from picograd.schedule.loop import Bins, Kernel, rewrite
from picograd.target import Target


def build(kernel: Kernel, step: Bins, target: Target) -> TileKernel:
    """Write sums of rows that have one key at each place."""
    dtype = step.body.dtype
    bins, count = step.place.size, step.axis.size
    *pieces, row = step.rows
    parts = product(axis.size for axis in pieces)
    found = beside_of(bins, row.size, count, dtype.itemsize, target, parts)
    if found is None:
        internal("bins of rows need room", kernel)
    each, warps = found
    group = Axis("group", ceil_div(row.size, LANES))
    part = Axis("part", ceil_div(bins, each))
    warp, place = Axis("warp", warps), Axis("place", each)
    lane = Axis("lane", LANES)
    column = axis_index(group) * LANES + axis_index(lane)
    first = axis_index(part) * each
    number = first + axis_index(place)
    is_row = column, 0, row.size - 1
    body = guard(rewrite(step.body, {row: column}), 0, (is_row,))
    key = Term(rewrite(step.key, {row: constant(0)})) - position(first)
    share = round_up(ceil_div(count, warps), LANES)
    start = axis_index(warp) * share
    stop = constant(count)
    every = warp, place, lane
    here = tuple(map(axis_index, every))
    nothing = as_term(0, dtype).expr
    one = tile_at("bins", here, dtype).expr
    sharing = Blocked((each, LANES, warps), (warps, LANES, 1), (1, 1, 1))
    whole = Blocked((each, LANES), (warps, LANES), (1, 1))
    total = tile_at("total", here[1:], dtype).expr
    at = substitute(step.target, {row: column, step.place: number})
    tests = is_row, (number, 0, bins - 1)
    steps = (
        Assign("bins", every, nothing, here),
        Barrier(),
        BinStep("bins", warp, step.axis, start, share, stop, key.expr, body, lane, "queue"),
        Barrier(),
        Accumulate("total", (place, lane), (warp,), "sum", one, True, sharing),
        Store(step.slot, at, (place, lane), total, tests, whole),
    )
    tiles = (
        Tile("bins", (warps, each, LANES), dtype, "shared"),
        Tile("queue", (warps, 2, QUEUED), int32, "shared"),
        Tile("total", (each, LANES), dtype, "register", whole),
    )
    made = TilePart((*pieces, group, part), tiles, steps)
    return TileKernel(kernel, (made,), warps * LANES)
