"""Bins of columns: a warp of a block has a column in memory, of neighbours, and bins for it.

grid: columns, some at a time, and their parts    steps: clear the bins; each warp adds its part of
its column; store the bins, which no other block has

What one warp reads of a line of memory is still there for the others.
"""

from picograd.codegen.layout import Blocked
from picograd.codegen.operands import step_of
from picograd.codegen.terms import as_term, tile_at
from picograd.codegen.tile import Assign, Barrier, BinStep, Store, Tile, TilePart
from picograd.helpers import product
from picograd.schedule.index import Axis, Index, axis_index, constant, substitute
from picograd.schedule.loop import Bins, rewrite, walk
from picograd.target import Target

WARP = 32
LEAST_BLOCKS = 2  # for each multiprocessor


def are_columns(step: Bins, warps: int, target: Target) -> bool:
    """Tell whether neighbouring rows are neighbours in memory, and the elements of one are not.

    Their parts must stay apart, as nobody else adds them up, and there must be enough blocks: fewer
    warps than those that share a row have more each.
    """
    if not step.rows or step.lanes > 1:
        return False
    if step.tile.size > 1 and not step.is_apart:
        return False
    last = step.rows[-1]
    if warps == 1 or last.size % warps:
        return False
    rows = product(axis.size for axis in step.rows)
    blocks = rows // warps * step.tile.size
    if blocks < LEAST_BLOCKS * target.multiprocessors:
        return False
    for root in (step.key, step.body):
        for expr in walk(root):
            if expr.op != "load":
                continue
            _, place = expr.arg
            if not is_across(place, last, step.axis):
                return False
    return True


def is_across(place: Index, row: Axis, along: Axis) -> bool:
    """Tell whether rows lie beside one another at a place, and not the elements of a row."""
    beside = step_of(place, row)
    stride = step_of(place, along)
    is_far = stride not in (0, 1, None)
    return beside == 1 and is_far


def build(step: Bins, warps: int) -> TilePart:
    """Let warps of a block have neighbouring rows."""
    *others, last = step.rows
    place, run = step.place, step.run
    dtype = step.body.dtype
    count = last.size // warps
    group = Axis("group", count)
    warp = Axis("warp", warps)
    lane = Axis("lane", 1)
    number = axis_index(group) * warps
    row = {last: number + axis_index(warp)}
    first = axis_index(step.tile) * run
    stop = first + run
    every = warp, place, lane
    here = tuple(map(axis_index, every))
    own = *here[:2], constant(0)
    found = tile_at("bins", own, dtype)
    nothing = as_term(0, dtype)
    key = rewrite(step.key, row)
    body = rewrite(step.body, row)
    target = substitute(step.target, row)
    sizes = warps, place.size
    threads = warps, WARP
    layout = Blocked(sizes, threads, (1, 1))
    steps = (
        Assign("bins", every, nothing.expr, here),
        Barrier(),
        BinStep("bins", warp, step.axis, first, run, stop, key, body),
        Barrier(),
        Store(step.slot, target, (warp, place), found.expr, (), layout),
    )
    tile = Tile("bins", (*sizes, 1), dtype, "shared")
    grid = *others, group, step.tile
    return TilePart(grid, (tile,), steps)
