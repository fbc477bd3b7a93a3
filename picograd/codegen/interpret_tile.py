"""Interpret a TileKernel with NumPy: the meaning of Tile IR, and the oracle for the linearizers.

Grid points run one after another (in an order the caller may choose), each with fresh tiles; a step
computes all its points at once. Tiles are read as if they were further slots of the kernel, so that
expressions mean exactly what they mean in Loop IR. Layouts and barriers have no meaning here.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from picograd.codegen.boxes import CopyBox, Join, Persistent, Pipeline
from picograd.codegen.dot import Dot, InPlace, places_of
from picograd.codegen.interpret_async import read_box
from picograd.codegen.operands import guarded
from picograd.codegen.templates.grid import substitute_along
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    Barrier,
    BinStep,
    For,
    LastBlock,
    MainLoop,
    Member,
    RunStep,
    SortStep,
    Step,
    Store,
    TileKernel,
    TilePart,
    When,
)
from picograd.codegen.tile_products import unpaired
from picograd.conversion import convert
from picograd.dtype import DType
from picograd.errors import check, internal
from picograd.graph.sorting import starts_of
from picograd.helpers import product
from picograd.schedule.index import (
    Axis,
    Index,
    axis_index,
    constant,
    flatten,
    substitute,
    unflatten,
)
from picograd.schedule.interpret import FOLDS, PartInterpreter, rank_in_group
from picograd.schedule.loop import DIGITS, Condition, Expr, Part, Radix, Scan, Scatter, rewrite
from picograd.schedule.monoid import identity

Array = Any


def interpret(
    tiles: TileKernel,
    slots: Sequence[Array],
    scalars: Sequence[Any] = (),
    is_reversed: bool = False,
) -> None:
    """Run a tile kernel on flat arrays, writing its outputs."""
    with np.errstate(all="ignore"):
        for part in tiles.parts:
            first, *_ = members = part.members or (Member((), ()),)
            for each in members:
                own = renamed(slots, first.slots, each.slots)
                numbers = renamed(scalars, first.scalars, each.scalars)
                BlockInterpreter(tiles, part, own, numbers).run(is_reversed, each)


def renamed(values: Sequence[Any], names: Sequence[int], places: Sequence[int]) -> list[Any]:
    """Put the values at `places` where the first member's have their names."""
    found = list(values)
    for name, place in zip(names, places, strict=True):
        found[name] = values[place]
    return found


def accumulations(step: MainLoop) -> list[Accumulate]:
    """Write a main loop as sums."""
    m, n, k = step.dims
    places = [axis_index(k) - stop for stop in step.stops]
    found = []
    for acc, b in step.products:
        body = Expr("mul", (step.a, b), None, step.a.dtype)
        body = guarded(body, [(place, place.lo, -1) for place in places])
        found.append(Accumulate(acc, (m, n), (k,), "sum", body))
    return found


class BlockInterpreter:
    """Runs the grid points of one part."""

    def __init__(
        self, tiles: TileKernel, part: TilePart, slots: Sequence[Array], scalars: Sequence[Any]
    ) -> None:
        self.tiles, self.part, self.count = tiles, part, len(slots)
        self.numbers: dict[str, int] = {tile.name: n for n, tile in enumerate(part.tiles)}
        self.slots = [*slots, *(np.zeros(product(t.shape), t.dtype.numpy) for t in part.tiles)]
        self.arrivals: list[Array] = [np.zeros(size // 4, np.int32) for size, _ in part.workspaces]
        self.points = PartInterpreter(tiles.kernel, Part((), ()), self.slots, scalars)
        self.outer = self.points.outer
        self.made: dict[Any, tuple[Any, Any]] = {}  # what was made of a step or an expression
        self.grid_point = 0
        self.brought: list[Any] = []  # the boxes of a block that its neighbours want too
        self.wanted: dict[Any, Any] = {}  # the same, of the first of them

    def run(self, is_reversed: bool, member: Member) -> None:
        """Run every grid point of a member."""
        for part in self.part.ahead:
            shared = tuple(tile for tile in self.part.tiles if tile.space == "workspace")
            both = replace(part, tiles=(*shared, *part.tiles))
            own = BlockInterpreter(self.tiles, both, self.slots[: self.count], self.points.scalars)
            for tile in shared:
                own.slots[self.count + own.numbers[tile.name]] = self.memory(tile.name)[0]
            own.run(is_reversed, Member((), ()))
        order = range(member.blocks or product(axis.size for axis in self.part.grid))
        for point in reversed(order) if is_reversed else order:
            self.outer.clear()
            self.grid_point, self.brought = point, []
            self.stand(self.part.grid, point)
            if self.part.extent is not None:
                self.outer[self.part.extent] = member.size
            for tile in self.part.tiles:
                if tile.space != "workspace":  # what a block did not write is poison
                    poison = np.nan if tile.dtype.is_float else 99
                    self.slots[self.count + self.numbers[tile.name]][...] = poison
            self.steps(self.part.steps)
        check(not any(a.any() for a in self.arrivals), "a counter was not left zero")

    def stand(self, axes: Sequence[Axis], point: int) -> None:
        """Go to a point of a space, by its row-major number."""
        places = unflatten(constant(point), tuple(axis.size for axis in axes))
        self.outer.update((axis, place.const) for axis, place in zip(axes, places, strict=True))

    def once(self, source: Any, make: Callable[[], Any]) -> Any:
        """Make something of a step or an expression, when it is met first."""
        found = self.made.get(id(source))
        if found is None:
            found = self.made[id(source)] = source, make()  # it lives as long as its number
        return found[1]

    def steps(self, steps: Sequence[Step]) -> None:
        """Run steps in order."""
        for step in steps:
            run = STEPS.get(type(step))
            check(run is not None, f"no meaning for {step}")
            run(self, step)  # type: ignore[misc]

    def loop(self, step: For) -> None:
        """Run a loop."""
        for position in range(step.axis.size):
            self.outer[step.axis] = position
            self.steps(step.body)

    def when(self, step: When) -> None:
        """Run steps if conditions hold."""
        if self.held(step.conditions, ()).all():
            self.steps(step.body)

    def assign(self, step: Assign) -> None:
        """Run an Assign where its conditions hold."""
        index = step.index or tuple(Index(((d, 1),), 0) for d in step.dims)
        value = self.value(step.expr, step.dims)
        places, held = self.places(step.tile, index, step.dims), ...
        if step.conditions:
            held = self.held(step.conditions, step.dims)
        self.write(step.tile, places[held], value[held])

    # -- expressions ------------------------------------------------------------------------------

    def here(self, index: Index) -> int:
        """Compute an index over the present grid point and loop positions alone."""
        return int(self.index(index, ()))

    def placed(self, index: Index) -> Index:
        """Turn the tile reads inside an index into loads."""
        return substitute(index, {}, self.readable)

    def readable(self, expr: Expr) -> Expr:
        """Turn tile reads into loads of the slots that stand for the tiles."""

        def replace(node: Expr) -> Expr | None:
            if node.op != "tile":
                return None
            number = self.numbers[node.arg[0]]
            flat = flatten(node.arg[1], self.part.tiles[number].shape)
            return Expr("load", (), (self.count + number, flat), node.dtype)

        return self.once(expr, lambda: rewrite(expr, {}, replace))

    def value(self, expr: Expr, axes: Sequence[Axis]) -> Array:
        """Compute an expression over axes."""
        places, shape = self.points.places(axes)
        return np.broadcast_to(self.points.body(self.readable(expr), places, axes), shape)

    def index(self, index: Index, axes: Sequence[Axis]) -> Array:
        """Compute an index over axes."""
        places, shape = self.points.places(axes)
        return np.broadcast_to(self.points.at(self.placed(index), places, axes), shape)

    def held(self, conditions: Sequence[Condition], axes: Sequence[Axis]) -> Array:
        """Tell where all conditions hold."""
        held: Array = np.ones(tuple(axis.size for axis in axes), bool)
        for index, lo, hi in conditions:
            value = self.index(index, axes)
            held &= (value >= lo) & (value <= hi)
        return held

    # -- tiles ------------------------------------------------------------------------------------

    def memory(self, name: str) -> tuple[Array, DType]:
        """Find a tile's array and dtype."""
        number = self.numbers[name]
        return self.slots[self.count + number], self.part.tiles[number].dtype

    def places(self, name: str, index: Sequence[Index], dims: Sequence[Axis]) -> Array:
        """Flat positions in a tile, over dims."""
        shape = self.part.tiles[self.numbers[name]].shape
        return self.index(flatten(index, shape), dims)

    def write(self, name: str, places: Array, value: Array) -> None:
        """Write a tile."""
        array, dtype = self.memory(name)
        array[places] = convert(value, dtype)

    def accumulate(self, step: Accumulate) -> None:
        """Reduce over `over` and combine with the tile."""
        array, dtype = self.memory(step.tile)
        value = self.value(step.expr, (*step.dims, *step.over))
        over = tuple(range(len(step.dims), len(step.dims) + len(step.over)))
        wide = np.float64 if value.dtype.kind == "f" else dtype.numpy
        start = identity(step.monoid, dtype)
        value = FOLDS[step.monoid].reduce(value.astype(wide), axis=over, initial=start)
        index = tuple(Index(((d, 1),), 0) for d in step.dims)
        places = self.places(step.tile, index, step.dims)
        if not step.is_first:
            value = FOLDS[step.monoid](array[places], value)
        self.write(step.tile, places, value)

    def store(self, step: Store) -> None:
        """Store where the conditions hold; the expression is not evaluated elsewhere."""
        expr = self.once(step, lambda: guarded(step.expr, step.conditions))
        held, value = (self.held(step.conditions, step.dims), self.value(expr, step.dims))
        index, slot = self.index(step.index, step.dims), self.slots[step.slot]
        slot[index[held]] = convert(value, self.points.kernel.slots[step.slot].dtype)[held]

    def last_block(self, step: LastBlock) -> None:
        """Count an arrival; the last one runs the body."""
        cell = self.here(step.cell)
        cells = self.arrivals[step.counter]
        cells[cell] += 1
        if cells[cell] == step.total:
            cells[cell] = 0
            self.steps(step.body)

    def scatter(self, step: Scatter) -> None:
        """Apply the updates of this grid point."""
        conditions = tuple((self.placed(i), lo, hi) for i, lo, hi in step.conditions)
        body, target = self.readable(step.body), self.placed(step.target)
        self.points.scatter(replace(step, body=body, target=target, conditions=conditions))

    def scan(self, step: Scan) -> None:
        """Scan what this grid point has."""
        self.points.scan(substitute_along(step, tuple, self.placed, self.readable))

    def sort(self, step: SortStep) -> None:
        """Sort a run of a row."""
        first, sort = self.here(step.first), step.sort
        last = min(first + sort.run, sort.axis.size)
        if step.stop is not None:
            last = min(last, int(self.index(step.stop, ())))
        run = slice(first, last)
        keys, places = self.value(sort.body, (sort.axis,)), self.index(sort.target, (sort.axis,))
        order = np.argsort(keys[run], kind="stable")
        self.slots[sort.slot][places[run]] = order + first

    def bins(self, step: BinStep) -> None:
        """Add what the warps have to their rows."""
        array, _ = self.memory(step.tile)
        rows = array.reshape(self.part.tiles[self.numbers[step.tile]].shape)
        along = (step.axis, step.lane) if step.queue else (step.axis,)
        for warp in range(step.warp.size):
            self.outer[step.warp] = warp
            key, value = self.value(step.key, (step.axis,)), self.value(step.expr, along)
            first = self.here(step.first)
            here = slice(first, max(first, min(first + step.count, self.here(step.stop))))
            is_bin = (key[here] >= 0) & (key[here] < rows.shape[1])
            lane: Any = np.arange(len(is_bin))[is_bin] % rows.shape[2]
            cells: Any = key[here][is_bin], slice(None) if step.queue else lane
            np.add.at(rows[warp % len(rows)], cells, value[here][is_bin])

    def radix(self, step: Radix) -> None:
        """Count the digits of one tile, or move its elements."""
        tile = self.here(axis_index(step.tile))
        part = slice(tile * step.run, (tile + 1) * step.run)
        body = self.value(step.body, (step.axis,))[part].astype(np.uint64)
        digit = (body >> np.uint64(step.shift)).astype(np.int64) % DIGITS
        slot, cells = self.slots[step.slot], (step.digit, step.tile)
        count = np.bincount(digit, minlength=DIGITS)
        if step.counted is None:
            slot[self.index(step.target, cells)[:, tile]] = count
            return
        start = starts_of(self.value(step.counted, cells)[:, [tile, -1]], count[:, None])[:, 0]
        place = start[digit] + rank_in_group(digit)
        slot[self.index(step.target, (step.axis,))[place]] = body

    def runs(self, step: RunStep) -> None:
        """Reduce the runs that end here; a run is reduced whole, from its first position on."""
        held, runs = self.held(step.conditions, step.dims), step.runs
        first = self.value(runs.first, (runs.number,))
        if runs.stop:
            stops = self.value(runs.stop, (runs.number,))
            is_last: Array = stops > first
        else:
            key, stops = self.value(runs.key, (runs.axis,)), np.arange(1, runs.axis.size + 1)
            is_last = np.append(key[1:] != key[:-1], True)
        place = np.where(held, self.index(step.place, step.dims), 0)
        held &= is_last[place] & (self.index(step.lane, step.dims) == 0)
        expr = self.once(step, lambda: guarded(runs.body, step.conditions))
        body = self.value(expr, (*step.dims, runs.axis))
        target = self.index(runs.target, (*step.dims, runs.number))
        slot, dtype = (self.slots[runs.slot], self.points.kernel.slots[runs.slot].dtype)
        for point in np.argwhere(held):
            number = place[tuple(point)]
            run = body[tuple(point)][first[number] : stops[number]]
            where = target[tuple(point)][number]
            wide = np.float64 if run.dtype.kind == "f" else run.dtype
            total = run[-1]
            if runs.monoid:
                start = slot[where].astype(wide)
                total = FOLDS[runs.monoid].reduce(run.astype(wide), initial=start)
            slot[where] = convert(total, dtype)

    def main_loop(self, step: MainLoop) -> None:
        """Multiply two operands up to where the sum stops."""
        for each in self.once(step, lambda: accumulations(step)):
            self.accumulate(each)

    def pipeline(self, step: Pipeline) -> None:
        """Run what fills stages and what reads them, in order."""
        first = 0 if step.first is None else int(self.index(step.first, ()))
        stop = step.axis.size if step.stop is None else int(self.index(step.stop, ()))
        for position in range(max(first, 0), min(stop, step.axis.size)):
            self.outer[step.axis] = position
            for axis, index in step.known:
                self.outer[axis] = int(self.index(index, ()))
            if step.seen is None or int(self.index(step.seen, ())) >= 0 or position == first:
                self.steps((*step.produce, *step.consume))

    def persistent(self, step: Persistent) -> None:
        """Run the points of a block."""
        block = int(self.index(axis_index(step.block), ()))
        if step.shares is None:
            for point in step.points_of(block):
                self.point(step, point)
            return
        count = product(axis.size for axis in step.points)
        for point, first, stop in step.shares.stretch(count, step.block.size, block):
            self.outer[step.shares.first] = first
            self.outer[step.shares.stop] = stop
            self.point(step, point)

    def point(self, step: Persistent, point: int) -> None:
        """Run the body of a persistent loop at one of its points."""
        self.stand(step.points, point)
        self.steps(step.body)

    def join(self, step: Join) -> None:
        """Leave a part of a point, or add the others' parts and go on."""
        block, first = (int(self.index(i, ())) for i in (axis_index(step.block), step.first))
        acc, parts = self.memory(step.acc)[0], self.memory(step.partial)[0]
        parts, flags = parts.reshape(step.block.size, -1), self.arrivals[step.flags]
        if not self.held((step.last,), ()).all():
            parts[block], flags[block] = acc.reshape(-1), 1
            return
        for other in range(first, block):
            check(flags[other] == 1, "a part is read that nobody has left", self.part)
            flags[other] = 0
            acc += parts[other].reshape(acc.shape)
        self.steps(step.body)

    def copy_box(self, step: CopyBox) -> None:
        """Fill the slabs of a tile with boxes of a slot."""
        tile = self.part.tiles[self.numbers[step.tile]]
        columns = self.memory(step.tile)[0].reshape(tile.shape)
        span = step.tensor.box[0]
        before, row = divmod(step.start // span, tile.shape[0])
        for slab in range(step.slab.size):
            self.outer[step.slab] = slab
            at, offsets = ([int(self.index(i, ())) for i in x] for x in (step.at, step.offsets))
            if step.together > 1:
                self.brought.append((step.tile, at))
                key = self.grid_point // step.together, len(self.brought)
                is_same = self.wanted.setdefault(key, self.brought[-1]) == self.brought[-1]
                check(is_same, "blocks of a cluster want different boxes", step)
            value = read_box(self.slots[step.tensor.slot], step.tensor, at, offsets)
            first = (before + slab) * span
            columns[row : row + len(value), first : first + span] = value

    def dots(self, step: Dot) -> None:
        """Add a product, run after run."""
        for each in step.each_run():
            self.dot(each)

    def dot(self, step: Dot) -> None:
        """Add a product of two tiles, or of blocks inside them."""
        acc = self.block(step, step.acc)
        rows, columns = step.block or acc.shape
        a, b = self.left(step, rows), self.right(step, columns)
        wide = np.float64 if acc.dtype.kind == "f" else acc.dtype
        depth = step.depth
        if step.stop is not None:
            depth = min(depth, max(int(self.index(step.stop, ())), 0))
        made = a[:rows, :depth].astype(wide) @ b[:depth, :columns].astype(wide)
        target = acc[:rows, :columns]
        target[...] = made if step.is_first else target + made

    def left(self, step: Dot, rows: int) -> Array:
        """Find the left operand of a product, [m, k]."""
        if step.a_place is not None:
            return self.lying(step.a_place, rows, step.depth)
        a = self.block(step, step.a)
        return a.T if step.a_is_km else a

    def right(self, step: Dot, columns: int) -> Array:
        """Find the right operand of a product, [k, n]."""
        if step.b_place is not None:
            return self.lying(step.b_place, step.depth, columns)
        if step.taps:
            return self.shifted(step, columns)
        b = self.block(step, step.b)
        if step.unit == "tiles":
            return unpaired(b[: step.depth // 2, : 2 * columns], columns)
        return b.T if step.b_is_nk else b

    def lying(self, place: InPlace, rows: int, columns: int) -> Array:
        """Read an operand that lies in memory."""
        places = place.elements(int(self.here(place.index)), rows, columns)
        return self.slots[place.slot].ravel()[places]

    def shifted(self, step: Dot, columns: int) -> Array:
        """Read a row a depth from where its taps lead."""
        tile = self.part.tiles[self.numbers[step.b]]
        start = int(self.here(flatten(step.b_origin or (), tile.shape)))
        places = places_of(step.taps, start)
        return self.memory(step.b)[0].ravel()[places[:, None] + np.arange(columns)]

    def block(self, step: Dot, name: str) -> Array:
        """View a tile from where the product starts."""
        origins = {step.acc: step.acc_origin, step.a: step.a_origin, step.b: step.b_origin}
        tile = self.part.tiles[self.numbers[name]]
        view = self.memory(name)[0].reshape(tile.shape)
        if origins[name] is None:
            return view
        starts = [self.here(i) for i in origins[name] or ()]
        if not starts:
            internal(f"{name} has an empty origin", step)
        view = view[tuple(starts[:-2])]
        return view[starts[-2] :, starts[-1] :]


STEPS: dict[type, Callable[[BlockInterpreter, Any], None]] = {
    Assign: BlockInterpreter.assign,
    Accumulate: BlockInterpreter.accumulate,
    Store: BlockInterpreter.store,
    For: BlockInterpreter.loop,
    When: BlockInterpreter.when,
    Barrier: lambda block, step: None,
    LastBlock: BlockInterpreter.last_block,
    Scatter: BlockInterpreter.scatter,
    Scan: BlockInterpreter.scan,
    SortStep: BlockInterpreter.sort,
    Radix: BlockInterpreter.radix,
    RunStep: BlockInterpreter.runs,
    BinStep: BlockInterpreter.bins,
    Dot: BlockInterpreter.dots,
    MainLoop: BlockInterpreter.main_loop,
    Persistent: BlockInterpreter.persistent,
    Pipeline: BlockInterpreter.pipeline,
    CopyBox: BlockInterpreter.copy_box,
    Join: BlockInterpreter.join,
}
