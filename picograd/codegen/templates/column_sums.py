"""Column sums: rows that are worked on by a GPU, and sums over all of them, in one kernel.

    ahead:  for each row of a share: its reductions and stores; c[j] += body
            q[share, j] = c[j]
    then:   out[j] = sum over shares of q[share, j]

A block takes a share of the rows and keeps its sums in registers. When all shares are done, each
block sums a few columns over the shares, in order: the same inputs give the same bits.
"""

from dataclasses import replace

from picograd.codegen.layout import Blocked
from picograd.codegen.templates.grid import rebind
from picograd.codegen.templates.map import CUDA_THREADS, vector_lanes
from picograd.codegen.templates.rows import Rows, is_across
from picograd.codegen.templates.threads import Threads, spread
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    Barrier,
    For,
    Step,
    Store,
    Tile,
    TilePart,
    When,
)
from picograd.dtype import float32
from picograd.errors import check
from picograd.helpers import ceil_div, product, round_up
from picograd.schedule.cost import WARP, row_threads, summing_blocks
from picograd.schedule.index import Axis, Index, axes_of, axis_index, flatten, unflatten
from picograd.schedule.loop import Compute, Condition, Expr, Kernel, Part, const, rewrite, walk
from picograd.target import Target


def sums_of(part: Part) -> list[Compute]:
    """List the sums over all rows."""
    return [each for each in part.computes if is_across(part, each) and each.reduce]


def threads_of_row(part: Part) -> int:
    """Count the threads that share a row."""
    sums, rows = sums_of(part), set(part.rows)
    exprs = [expr for compute in part.computes for expr in walk(compute.body)]
    loads = [expr for expr in exprs if expr.op == "load"]
    read = {expr.arg[0]: expr.dtype for expr in loads if axes_of(expr.arg[1]) > rows}
    nbytes = sum(dtype.itemsize for dtype in read.values())
    return row_threads(product(axis.size for axis in sums[0].axes), len(sums), nbytes)


def block_threads(kernel: Kernel) -> int:
    """Count the threads of a block, if a part of its kernel has sums over all rows; 0: none has.

    Parts without reductions have as many as maps.
    """
    wanted = [threads_of_row(part) for part in kernel.parts if sums_of(part)]
    has_maps = any(not any(each.reduce for each in part.computes) for part in kernel.parts)
    least = CUDA_THREADS if has_maps else 0
    return max(summing_blocks(max(wanted))[0], least) if wanted else 0


def build_column_sums(kernel: Kernel, part: Part, target: Target) -> TilePart:
    """Write a part with sums over all of its rows."""
    inner, own, threads = sums_of(part)[0].axes, threads_of_row(part), block_threads(kernel)
    check(all(each.axes == inner for each in sums_of(part)), "sums of other elements", part)
    total, at_once = product(axis.size for axis in part.rows), threads // own
    groups, (_, together) = ceil_div(total, at_once), summing_blocks(threads)
    blocks = together * target.multiprocessors
    step = Axis("step", ceil_div(groups, min(groups, blocks)))
    share, lane = Axis("share", ceil_div(groups, step.size)), Axis("row_in", at_once)
    group = axis_index(share) * step.size + axis_index(step)
    row = group * at_once + axis_index(lane)
    ended: tuple[Condition, ...] = ((row, 0, total - 1),) if total % at_once else ()
    spread_out = Threads((at_once,), (at_once,), (1,), own, lanes_of(kernel, part, inner[-1]))
    rows = Rows(part, (lane,), rows_at(part, row), ended, spread_out, False)
    body = tuple(rows.whole())
    body = (When(((group, 0, groups - 1),), body),)
    sums = [each.tile for each in rows.columns]
    first = [Assign(e.tile, e.dims, const(0, e.expr.dtype)) for e in rows.columns]
    last = [each for name in sums for each in leave(rows, name, inner, share, threads)]
    if at_once > 1:
        shape = at_once, *(axis.size for axis in inner)
        rows.tiles.append(Tile("s", shape, float32, "shared"))
    ahead = TilePart((share,), tuple(rows.tiles), (*first, For(step, body), *last))
    return replace(sum_shares(part, inner, ahead, threads), together=together)


def rows_at(part: Part, row: Index) -> dict[Axis, Index]:
    """Find the place of a row along each of the axes of rows."""
    places = unflatten(row, tuple(axis.size for axis in part.rows))
    return dict(zip(part.rows, places, strict=True))


def lanes_of(kernel: Kernel, part: Part, last: Axis) -> int:
    """Choose how many elements of a row a thread reads at once: sums are stored apart.

    Half as many as fill 16 bytes, where all threads have as many elements then.
    """
    computes = (replace(c, store=None) if is_across(part, c) else c for c in part.computes)
    most = vector_lanes(kernel, replace(part, computes=tuple(computes)), last)
    own = threads_of_row(part)
    return min((most, max(most // 2, 1)), key=lambda lanes: round_up(last.size, own * lanes))


def leave(rows: Rows, name: str, inner: tuple[Axis, ...], share: Axis, threads: int) -> list[Step]:
    """Leave the sums of a block in memory, added up over the rows that it works on at once."""
    (lane,), layout = rows.dims, rows.layout(inner)
    here = tuple(map(axis_index, inner))
    value = Expr("tile", (), (name, (axis_index(lane), *here)), float32)
    place = axis_index(share), flatten(here, [axis.size for axis in inner])
    if lane.size == 1:
        return [Assign(f"q{name}", (lane, *inner), value, place, layout)]
    sizes = tuple(axis.size for axis in inner)
    ones = (1,) * len(sizes)
    own = Blocked(sizes, spread(sizes, ones, threads), ones)
    alone = own.with_alone((lane.size,))
    rows.tiles.append(Tile(f"d{name}", sizes, float32, "register", own))
    told = Expr("tile", (), ("s", (axis_index(lane), *here)), float32)
    total = Expr("tile", (), (f"d{name}", here), float32)
    return [
        Assign("s", (lane, *inner), value, None, layout),
        Barrier(),
        Accumulate(f"d{name}", inner, (lane,), "sum", told, True, alone),
        Assign(f"q{name}", inner, total, place, own),
        Barrier(),
    ]


def sum_shares(part: Part, inner: tuple[Axis, ...], ahead: TilePart, threads: int) -> TilePart:
    """Write what follows when all shares are done: a block for a few columns each."""
    sizes = tuple(axis.size for axis in inner)
    width, shares = product(sizes), ahead.blocks
    tiles: list[Tile] = []
    steps: list[Step] = []
    stores: list[Step] = []
    needed = ceil_div(width, WARP)
    block, lane = Axis("block", max(shares, needed)), Axis("column", WARP)
    over = Axis("part", shares)
    column = axis_index(block) * WARP + axis_index(lane)
    held: tuple[Condition, ...] = ((column, 0, width - 1),) if width % WARP else ()
    places = dict(zip(inner, unflatten(column, sizes), strict=True))
    own = Blocked((WARP,), (WARP,), (1,), True)
    whole = Blocked((WARP, shares), (WARP, threads // WARP), (1, 1), True)
    values: dict[int, Expr] = {}
    workspaces: list[tuple[int, bool]] = []
    for number, compute in enumerate(part.computes):
        if not is_across(part, compute):
            continue
        if compute.reduce:
            name = f"qc{number}"
            tiles.append(Tile(name, (shares, width), float32, "workspace", None, len(workspaces)))
            tiles.append(Tile(f"t{number}", (WARP,), float32, "register", own))
            workspaces.append((shares * width * float32.itemsize, False))
            left = Expr("tile", (), (name, (axis_index(over), column)), float32)
            left = Expr("guard", (left, const(0, float32)), held, float32) if held else left
            steps.append(Accumulate(f"t{number}", (lane,), (over,), "sum", left, True, whole))
            values[number] = Expr("tile", (), (f"t{number}", (axis_index(lane),)), float32)
        else:
            values[number] = rewrite(
                compute.body, places, lambda e: values[e.arg] if e.op == "ref" else None
            )
        if compute.store:
            slot, index = compute.store[0], rebind(compute.store[1], places)
            stores.append(Store(slot, index, (lane,), values[number], held, own))
    body = When(((axis_index(block), 0, needed - 1),), (*steps, *stores))
    return TilePart((block,), tuple(tiles), (body,), tuple(workspaces), ahead=(ahead,))
