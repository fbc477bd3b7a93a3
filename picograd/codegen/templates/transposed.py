"""Stores of values computed along one axis, into memory that runs along another, on a CPU.

    for run of `along`:  tile[within, columns] = value       vectors of columns
                         slot[...] = tile[within, columns]   a cache line of each column at a time

One by one, elements of a column are written far apart: where they lie a power of two apart, all in
the same few lines of the cache.
"""

from collections.abc import Sequence
from dataclasses import replace

from picograd.codegen.tile import Assign, For, Step, Store, Tile

from picograd.schedule.index import Axis, Index, axis_index, substitute
from picograd.schedule.loop import Expr, const, rewrite

RUN = 64  # elements stored one after the other: four cache lines of float32
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
    factors = {atom: factor for atom, factor in store.index.terms}
    if last is None or not rest or last.size < LEAST or abs(factors.get(last, 1)) == 1:
        return None
    found = [n for n, axis in enumerate(rest) if factors.get(axis) == 1 and axis.size >= LEAST]
    return found[0] if found else None


def in_runs(store: Store, place: int, tiles: list[Tile]) -> list[Step]:
    """Write a store in runs along one of its dims, and what is left of it."""
    axis = store.dims[place]
    count, rest = divmod(axis.size, RUN)
    found: list[Step] = []
    if count:
        run, within = Axis(f"{axis.name}_run", count), Axis(f"{axis.name}_in", RUN)
        at = axis_index(run) * RUN + axis_index(within)
        found += loops((run,), through_tile(moved(store, place, within, at), place, tiles))
    if rest:
        within = Axis(f"{axis.name}_in", rest)
        at = axis_index(within) + count * RUN
        found += through_tile(moved(store, place, within, at), place, tiles)
    return loops(store.dims[:place], found)


def moved(store: Store, place: int, within: Axis, at: Index) -> Store:
    """Walk one of the dims of a store along a piece of it."""
    values = {store.dims[place]: at}
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


def loops(axes: Sequence[Axis], steps: list[Step]) -> list[Step]:
    """Nest loops around steps, the first axis outermost."""
    for axis in reversed(axes):
        steps = [For(axis, tuple(steps))]
    return steps
