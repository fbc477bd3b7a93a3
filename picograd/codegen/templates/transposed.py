"""Stores of values computed along one axis, into memory that runs along another, on a CPU.

    for run of `along`:  tile[within, columns] = value       vectors of columns
                         slot[...] = tile[within, columns]   cache lines of one column at a time

One by one, elements of a column are written far apart: where they lie a power of two apart, all in
the same few lines of the cache. Rows that memory runs across are worked on a block at a time:

    for row of block:  reductions of the row, kept
    for columns:       tile[row, columns] = value;  slot[...] = tile[row, columns]
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from picograd.codegen.templates.grid import Cut, balanced
from picograd.codegen.tile import Assign, For, Step, Store, Tile, When
from picograd.helpers import ceil_div
from picograd.schedule.index import Axis, Index, axis_index, constant, substitute
from picograd.schedule.loop import Expr, Part, const, rewrite

RUN = 64  # elements stored one after the other: four cache lines of float32
WIDE = 256  # columns of a tile
LEAST = 8  # columns, and elements of each, from which on a tile pays
PADDING = 16  # of the rows of a tile, so that its columns do not fall into one cache set


def write_out(stores: Sequence[Store], tiles: list[Tile]) -> list[Step]:
    """Write stores, those of transposed values through tiles, which are added to `tiles`."""
    steps: list[Step] = []
    for store in stores:
        place = place_along(store)
        if place is None:
            steps.append(store)
        else:
            steps += in_runs(store, place, tiles)
    return steps


def place_along(store: Store) -> int | None:
    """Find which of the dims of a store memory runs along, if it is not the last one."""
    *rest, last = store.dims or (None,)
    factors = dict(store.index.terms)
    if last is None or not rest or last.size < LEAST or abs(factors.get(last, 1)) == 1:
        return None
    found = [n for n, axis in enumerate(rest) if factors.get(axis) == 1 and axis.size >= LEAST]
    return found[0] if found else None


def in_runs(store: Store, place: int, tiles: list[Tile]) -> list[Step]:
    """Write a store in runs along one of its dims, and pieces of the last."""
    found: list[Step] = []
    for runs, piece in pieces(store, place, RUN):
        steps: list[Step] = []
        for columns, part in pieces(piece, len(piece.dims) - 1, WIDE):
            steps += loops(columns, through_tile(part, place, tiles))
        found += loops(runs, steps)
    return loops(store.dims[:place], found)


def pieces(store: Store, place: int, size: int) -> Iterator[tuple[tuple[Axis, ...], Store]]:
    """Cut a dim of a store: give the loops over full pieces, and one; then what is left over."""
    axis = store.dims[place]
    count, rest = divmod(axis.size, size)
    start = constant(0)
    if count > 1:
        run = Axis(f"{axis.name}_run", count)
        yield (run,), moved(store, place, size, axis_index(run) * size)
    elif count:
        yield (), moved(store, place, size, start)
    if rest:
        yield (), moved(store, place, rest, start + count * size)


def moved(store: Store, place: int, size: int, start: Index) -> Store:
    """Walk one of the dims of a store along a piece of it."""
    within = Axis(f"{store.dims[place].name}_in", size)
    values = {store.dims[place]: start + axis_index(within)}
    dims = (*store.dims[:place], within, *store.dims[place + 1 :])
    conditions = tuple((substitute(test, values), lo, hi) for test, lo, hi in store.conditions)
    index, expr = substitute(store.index, values), rewrite(store.expr, values)
    return replace(store, index=index, dims=dims, expr=expr, conditions=conditions)


def through_tile(store: Store, place: int, tiles: list[Tile]) -> list[Step]:
    """Compute columns side by side, then store each."""
    within, *columns = store.dims[place:]
    dims = (within, *columns)
    name, dtype = f"x{len(tiles)}", store.expr.dtype
    shape = tuple(axis.size for axis in dims)
    tiles.append(Tile(name, shape, dtype, "shared", row_padding=PADDING))
    value = store.expr
    if store.conditions:
        value = Expr("guard", (value, const(0, dtype)), store.conditions, dtype)
    here = tuple(map(axis_index, dims))
    read = Expr("tile", (), (name, here), dtype)
    return [Assign(name, dims, value), replace(store, dims=(*columns, within), expr=read)]


def crossed_axis(part: Part) -> Axis | None:
    """Find the last axis of rows, if what is stored of their elements runs along it in memory."""
    rows = set(part.rows)
    inner = [c for c in part.computes if not set(c.axes) <= rows]
    if not part.rows or part.ends or any(c.reduce for c in inner):
        return None
    last = part.rows[-1]
    for compute in inner:
        if compute.store:
            factors = dict(compute.store[1].terms)
            column = compute.axes[-1]
            is_far = abs(factors.get(column, 1)) != 1 and column not in rows
            if is_far and factors.get(last) == 1 and min(last.size, column.size) >= LEAST:
                return last
    return None


def in_blocks(space: Cut) -> Cut:
    """Cut the last dim of a space into blocks of rows: two dims."""
    *dims, axis = space.dims
    size = balanced(axis.size, RUN)
    block, within = Axis("block", ceil_div(axis.size, size)), Axis("row", size)
    at = axis_index(block) * size + axis_index(within)
    values = {axis: at}
    axes = {each: substitute(index, values) for each, index in space.axes.items()}
    conditions = [(substitute(test, values), lo, hi) for test, lo, hi in space.conditions]
    if axis.size % size:
        conditions.append((at, 0, axis.size - 1))
    return Cut(space.grid, (*dims, block, within), values | axes, tuple(conditions))


def across_rows(steps: Sequence[Step], space: Cut, tiles: list[Tile]) -> tuple[Step, ...]:
    """Work on blocks of rows, given the steps of one: its stores across come after the block."""
    *outer, within = space.dims
    known = {tile.name: tile.dtype for tile in tiles}
    kept: dict[str, Step] = {}

    def keep(expr: Expr) -> Expr | None:
        if expr.op != "tile" or expr.arg[1]:
            return None
        name, here = f"k{expr.arg[0]}", (axis_index(within),)
        if name not in kept:
            tiles.append(Tile(name, (within.size,), known[expr.arg[0]], "register"))
            kept[name] = Assign(name, (), expr, here)
        return Expr("tile", (), (name, here), expr.dtype)

    own: list[Step] = []
    across: list[Step] = []
    for step in steps:
        if not isinstance(step, Store) or not is_across(step, within):
            own.append(step)
            continue
        expr, dims = rewrite(step.expr, {}, keep), (within, *step.dims)
        conditions = (*step.conditions, *space.conditions)
        across += write_out([replace(step, expr=expr, dims=dims, conditions=conditions)], tiles)
    row: tuple[Step, ...] = (*own, *kept.values())
    if space.conditions:
        row = (When(space.conditions, row),)
    return tuple(loops(outer, [For(within, row), *across]))


def is_across(store: Store, row: Axis) -> bool:
    """Tell whether a store of elements of a row runs along the rows in memory."""
    factors = dict(store.index.terms)
    return bool(store.dims) and factors.get(row) == 1 and abs(factors.get(store.dims[-1], 1)) != 1


def loops(axes: Sequence[Axis], steps: list[Step]) -> list[Step]:
    """Nest loops around steps, the first axis outermost."""
    for axis in reversed(axes):
        steps = [For(axis, tuple(steps))]
    return steps
