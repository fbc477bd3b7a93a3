"""Stores of values computed along one axis, into memory that runs along another, on a CPU.

    for run of `along`:  tile[within, columns] = value       vectors of columns
                         slot[...] = tile[within, columns]   cache lines of one column at a time

One by one, elements of a column are written far apart: where they lie a power of two apart, all in
the same few lines of the cache. Rows that memory runs across are worked on a block at a time:

    for row of block:  reductions of the row, kept
    for columns:       tile[row, columns] = value;  slot[...] = tile[row, columns]
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from picograd.codegen.operands import step_of
from picograd.codegen.templates.grid import Cut, balanced
from picograd.codegen.tile import Assign, For, Step, Store, Tile, When
from picograd.helpers import ceil_div
from picograd.schedule.index import Axis, Index, axis_index, constant, substitute
from picograd.schedule.loop import Compute, Condition, Expr, Part, const, rewrite

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


def runs_along(index: Index, axis: Axis) -> bool:
    """Tell whether memory runs along an axis."""
    return step_of(index, axis) == 1


def place_along(store: Store) -> int | None:
    """Find which of the dims of a store memory runs along, if it is not the last one."""
    if not store.dims or store.dims[-1].size < LEAST:
        return None
    if runs_along(store.index, store.dims[-1]):
        return None
    for place, axis in enumerate(store.dims[:-1]):
        if axis.size >= LEAST and runs_along(store.index, axis):
            return place
    return None


def in_runs(store: Store, place: int, tiles: list[Tile]) -> list[Step]:
    """Write a store in runs along one of its dims, and pieces of the last."""
    last = len(store.dims) - 1
    found: list[Step] = []
    for runs, piece in pieces(store, place, RUN):
        steps: list[Step] = []
        for columns, part in pieces(piece, last, WIDE):
            steps += loops(columns, through_tile(part, place, tiles))
        found += loops(runs, steps)
    return loops(store.dims[:place], found)


def pieces(store: Store, place: int, size: int) -> Iterator[tuple[tuple[Axis, ...], Store]]:
    """Cut a dim of a store: give the loops over full pieces, and one; then what is left over."""
    axis = store.dims[place]
    count, rest = divmod(axis.size, size)
    if count:
        run = Axis(f"{axis.name}_run", count)
        start = axis_index(run) * size
        yield (run,) if count > 1 else (), moved(store, place, size, start)
    if rest:
        start = constant(count * size)
        yield (), moved(store, place, rest, start)


def moved(store: Store, place: int, size: int, start: Index) -> Store:
    """Walk one of the dims of a store along a piece of it."""
    axis = store.dims[place]
    within = Axis(f"{axis.name}_in", size)
    values = {axis: start + axis_index(within)}
    dims = list(store.dims)
    dims[place] = within
    return replace(
        store,
        index=substitute(store.index, values),
        dims=tuple(dims),
        expr=rewrite(store.expr, values),
        conditions=moved_tests(store.conditions, values),
    )


def moved_tests(
    conditions: Iterable[Condition], values: Mapping[Axis, Index]
) -> tuple[Condition, ...]:
    """Substitute axes in conditions."""
    found = []
    for test, low, high in conditions:
        place = substitute(test, values)
        found.append((place, low, high))
    return tuple(found)


def through_tile(store: Store, place: int, tiles: list[Tile]) -> list[Step]:
    """Compute columns side by side, then store each."""
    within, *columns = store.dims[place:]
    dims = (within, *columns)
    name, dtype = f"x{len(tiles)}", store.expr.dtype
    shape = tuple(axis.size for axis in dims)
    tiles.append(Tile(name, shape, dtype, "shared", row_padding=PADDING))
    value = store.expr
    if store.conditions:
        fill = const(0, dtype)
        value = Expr("guard", (value, fill), store.conditions, dtype)
    here = tuple(map(axis_index, dims))
    read = Expr("tile", (), (name, here), dtype)
    across = replace(store, dims=(*columns, within), expr=read)
    return [Assign(name, dims, value), across]


def crossed_axis(part: Part) -> Axis | None:
    """Find the last axis of rows, if what is stored of their elements runs along it in memory."""
    rows = set(part.rows)
    inner = [c for c in part.computes if not set(c.axes) <= rows]
    if not part.rows or part.ends:
        return None
    if any(compute.reduce for compute in inner):
        return None
    last = part.rows[-1]
    is_crossed = any(crosses(compute, last, rows) for compute in inner)
    return last if is_crossed else None


def crosses(compute: Compute, row: Axis, rows: set[Axis]) -> bool:
    """Tell whether elements of a row are stored along the rows."""
    column = compute.axes[-1]
    if not compute.store or column in rows:
        return False
    if min(row.size, column.size) < LEAST:
        return False
    index = compute.store[1]
    return runs_along(index, row) and not runs_along(index, column)


def in_blocks(space: Cut) -> Cut:
    """Cut the last dim of a space into blocks of rows: two dims."""
    *dims, axis = space.dims
    size = balanced(axis.size, RUN)
    block = Axis("block", ceil_div(axis.size, size))
    within = Axis("row", size)
    at = axis_index(block) * size + axis_index(within)
    values = {axis: at}
    axes = dict(values)
    for each, index in space.axes.items():
        axes[each] = substitute(index, values)
    conditions = moved_tests(space.conditions, values)
    if axis.size % size:
        last = axis.size - 1
        conditions = (*conditions, (at, 0, last))
    new = (*dims, block, within)
    return Cut(space.grid, new, axes, conditions)


def across_rows(steps: Sequence[Step], space: Cut, tiles: list[Tile]) -> list[Step]:
    """Work on blocks of rows, given the steps of one: its stores across come after the block."""
    *outer, within = space.dims
    across = [step for step in steps if isinstance(step, Store) and is_across(step, within)]
    kept: dict[str, Step] = {}

    def keep(expr: Expr) -> Expr | None:
        if expr.op != "tile" or expr.arg[1]:
            return None
        name, here = f"k{expr.arg[0]}", (axis_index(within),)
        if name not in kept:
            tiles.append(Tile(name, (within.size,), expr.dtype, "register"))
            kept[name] = Assign(name, (), expr, here)
        return Expr("tile", (), (name, here), expr.dtype)

    stores = [store_block(step, space, keep) for step in across]
    own = [step for step in steps if step not in across]
    row: tuple[Step, ...] = (*own, *kept.values())
    if space.conditions:
        row = (When(space.conditions, row),)
    return loops(outer, [For(within, row), *write_out(stores, tiles)])


def is_across(store: Store, row: Axis) -> bool:
    """Tell whether a store of elements of a row runs along the rows in memory."""
    if not store.dims or not runs_along(store.index, row):
        return False
    return not runs_along(store.index, store.dims[-1])


def store_block(store: Store, space: Cut, keep: Callable[[Expr], Expr | None]) -> Store:
    """Store the elements of a block of rows, given the store of one."""
    dims = (space.dims[-1], *store.dims)
    expr = rewrite(store.expr, {}, keep)
    conditions = (*store.conditions, *space.conditions)
    return replace(store, expr=expr, dims=dims, conditions=conditions)


def loops(axes: Sequence[Axis], steps: list[Step]) -> list[Step]:
    """Nest loops around steps, the first axis outermost."""
    for axis in reversed(axes):
        steps = [For(axis, tuple(steps))]
    return steps
