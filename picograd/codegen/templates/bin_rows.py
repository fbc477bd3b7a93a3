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
    Step,
    Store,
    Tile,
    TileKernel,
    TilePart,
)
from picograd.dtype import int32
from picograd.errors import internal
from picograd.graph.binning import LANES, QUEUED, beside_of
from picograd.helpers import ceil_div, round_up
from picograd.schedule.index import Axis, Index, axis_index, constant, substitute
from picograd.schedule.loop import Bins, Condition, Kernel, rewrite
from picograd.target import Target


def build(kernel: Kernel, step: Bins, target: Target) -> TileKernel:
    """Write sums of rows that have one key at each place."""
    (row,) = step.rows
    itemsize = step.body.dtype.itemsize
    found = beside_of(step.place.size, row.size, step.axis.size, itemsize, target)
    if found is None:
        internal("bins of rows need room", kernel)
    each, warps = found
    group = Axis("group", ceil_div(row.size, LANES))
    part = Axis("part", ceil_div(step.place.size, each))
    dims = Axis("warp", warps), Axis("place", each), Axis("lane", LANES)
    first = axis_index(part) * each
    dtype = step.body.dtype
    whole = Blocked((each, LANES), (warps, LANES), (1, 1))
    tiles = (
        Tile("bins", (warps, each + 1, LANES), dtype, "shared"),
        Tile("queue", (warps, 2, QUEUED), int32, "shared"),
        Tile("total", (each, LANES), dtype, "register", whole),
    )
    steps = steps_of(step, dims, axis_index(group) * LANES, first, whole)
    made = TilePart((group, part), tiles, steps)
    return TileKernel(kernel, (made,), warps * LANES)


def steps_of(
    step: Bins, dims: tuple[Axis, Axis, Axis], before: Index, first: Index, whole: Blocked
) -> tuple[Step, ...]:
    """Write what a block does of the rows from `before` on, and of the bins from `first` on."""
    warp, place, lane = dims
    row = step.rows[-1]
    column = before + axis_index(lane)
    number = first + axis_index(place)
    is_row: Condition = column, 0, row.size - 1
    is_bin: Condition = number, 0, step.place.size - 1
    body = guard(rewrite(step.body, {row: column}), 0, (is_row,))
    own = rewrite(step.key, {row: constant(0)})
    key = Term(own) - position(first)
    count = step.axis.size
    share = round_up(ceil_div(count, warp.size), LANES)
    start = axis_index(warp) * share
    stop = constant(count)
    here = tuple(map(axis_index, dims))
    every = warp, Axis("cell", place.size + 1), lane
    dtype = step.body.dtype
    nothing = as_term(0, dtype).expr
    one = tile_at("bins", here, dtype).expr
    total = tile_at("total", here[1:], dtype).expr
    shape = place.size, LANES, warp.size
    sharing = Blocked(shape, (*whole.threads, 1), (1, 1, 1))
    at = substitute(step.target, {row: column, step.place: number})
    return (
        Assign("bins", every, nothing, tuple(map(axis_index, every))),
        Barrier(),
        BinStep("bins", warp, step.axis, start, share, stop, key.expr, body, lane, "queue"),
        Barrier(),
        Accumulate("total", dims[1:], (warp,), "sum", one, True, sharing),
        Store(step.slot, at, dims[1:], total, (is_row, is_bin), whole),
    )
