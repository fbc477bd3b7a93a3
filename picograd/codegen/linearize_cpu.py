"""Linearize for the CPU: TileKernel -> Program, one task a grid point, tiles walked by plain loops.

Consecutive steps over the same dims share one loop nest, so `t[i] = f(x[i]); s[i] = t[i]` keeps t
in a register: a tile that is only read at the same point of the same nest never touches memory.
Consecutive accumulations over the same axes share a nest too. The innermost loop is left to LLVM's
vectoriser, so it must stay free of branches: conditions become loop bounds where they can.
"""

from collections.abc import Callable, Sequence

from picograd.codegen import (
    linearize_cpu_dot,
    linearize_cpu_pack,
    linearize_scan,
    linearize_sort_cpu,
    nests,
)
from picograd.codegen.decompose import LLVM
from picograd.codegen.dot import Dot
from picograd.codegen.emit import Emitter, compute_dtype
from picograd.codegen.linearize_cpu_draws import Ahead, draw_around, drawn_ahead, in_pieces
from picograd.codegen.linearize_cpu_pack import as_bounds, flat_position, tile_strides
from picograd.codegen.program import Program, zeroed_last
from picograd.codegen.quick import relaxed
from picograd.codegen.quick_cpu import RELAXED
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    For,
    LastBlock,
    SortStep,
    Step,
    Store,
    Tile,
    TileKernel,
    TilePart,
    When,
)
from picograd.dtype import bool_, int32
from picograd.errors import internal
from picograd.helpers import product, round_up
from picograd.schedule.assemble import is_chain
from picograd.schedule.index import Axis, Index, axis_index, unflatten
from picograd.schedule.loop import Condition, Expr, Scan, Scatter, walk
from picograd.schedule.monoid import COMBINE, identity
from picograd.target import Target

LEAST_VECTOR = 8  # columns that are summed faster as a vector than one by one
SHORT_ROW = 8  # elements of rows that are reduced side by side: LLVM makes vectors of several rows
SHORT_CHAIN = 15  # and of rows that are worked on again: several pieces of vectors take longer
LONG_ROW = 64  # elements of rows whose loops LLVM does not unroll whole
UNROLLED_WORK = 512  # expressions of a window without a loop: more compile slowly
STACK_BYTES = 32 * 1024  # larger register tiles go to the worker's scratch memory


def linearize(tiles: TileKernel, target: Target) -> Program:
    """Turn a tile kernel into the program of one task."""
    builder = CpuBuilder(tiles, target.vector_bytes)
    emitter = builder.emitter
    task, first = emitter.add("task", emitter.index_dtype), 0
    for part in tiles.parts:
        tasks = part.blocks
        condition = None
        if len(tiles.parts) > 1:
            low, high = emitter.integer(first), emitter.integer(first + tasks - 1)
            above = emitter.raw("less_equal", bool_, low, task)
            below = emitter.raw("less_equal", bool_, task, high)
            condition = emitter.both(above, below)
        with emitter.when(condition):
            builder.part(part, emitter.arithmetic("add", task, emitter.integer(-first)))
        first += tasks
    kernel = tiles.kernel
    instructions, workspaces = zeroed_last(emitter.instructions, builder.workspaces)
    return Program(
        kernel.name,
        tuple(instructions),
        tuple((slot.dtype, slot.role) for slot in kernel.slots),
        tuple(workspaces),
        kernel.scalars,
        tasks=first,
        scratch_bytes=builder.scratch_bytes,
    )


class CpuBuilder:
    """State of one linearization: the emitter, and where the tiles of the present part live."""

    first_workspace: int
    pointers: list[int]

    def __init__(self, tiles: TileKernel, vector_bytes: int) -> None:
        self.vector_bytes = vector_bytes
        self.slots = tiles.kernel.slots
        self.emitter: Emitter = Emitter(tiles.kernel, LLVM, self.read)
        is_row = tiles.kernel.hero == "reduce.row"
        self.is_column = tiles.kernel.hero == "reduce.col"
        self.is_reduction = is_row or self.is_column
        is_again = is_row and any(map(is_chain, tiles.kernel.parts))
        self.short_row = SHORT_CHAIN if is_again else SHORT_ROW
        self.workspaces: list[tuple[int, bool]] = []
        self.scratch_bytes: int = 0
        self.tiles: dict[str, Tile] = {}
        self.memory: dict[str, int] = {}  # tile -> array, or pointer
        self.values: dict[str, int] = {}  # tile -> value at the present point of a nest
        self.uses: dict[str, list[tuple[int, tuple[Index, ...]]]] = {}

    # -- parts and tiles --------------------------------------------------------------------------

    def part(self, part: TilePart, task: int) -> None:
        """Emit one part; `task` counts from the part's first task."""
        emitter = self.emitter
        self.tiles = {tile.name: tile for tile in part.tiles}
        self.first_workspace = len(self.workspaces)
        self.workspaces += part.workspaces
        self.pointers = [
            emitter.add("workspace", int32 if is_zeroed else None, arg=self.first_workspace + n)
            for n, (_, is_zeroed) in enumerate(part.workspaces)
        ]
        self.uses = {}
        for step in part.steps:
            self.note_uses(step)
        scratch = 0
        for tile in part.tiles:
            scratch = self.place(tile, scratch)
        self.scratch_bytes = max(self.scratch_bytes, scratch)
        flat = Axis("task", part.blocks)
        with emitter.scope({flat: task}):
            places = unflatten(axis_index(flat), part.shape)
            for axis, index in zip(part.grid, places, strict=True):
                emitter.bind(axis, emitter.index(index))
            self.steps(part.steps)

    def note_uses(self, step: Step) -> None:
        """Record which leaf steps read which tile where."""
        if isinstance(step, For | When | LastBlock):
            for inner in step.body:
                self.note_uses(inner)
        else:
            for name, indices in nests.reads_of(step):
                self.uses.setdefault(name, []).append((id(step), indices))

    def place(self, tile: Tile, scratch: int) -> int:
        """Give a tile its memory; returns the scratch bytes used so far."""
        dtype, size = compute_dtype(tile.dtype), padded_size(tile)
        if tile.space == "workspace":
            number = self.first_workspace + tile.workspace
            self.memory[tile.name] = self.emitter.add("workspace", tile.dtype, arg=number)
        elif tile.space == "register" and size * dtype.itemsize <= STACK_BYTES:
            self.memory[tile.name] = self.emitter.add("array", dtype, arg=size)
        else:
            self.memory[tile.name] = self.emitter.add("scratch", tile.dtype, arg=scratch)
            return round_up(scratch + size * tile.dtype.itemsize, 64)
        return scratch

    def read(self, emitter: Emitter, expr: Expr) -> int:
        """Resolve a `tile` read."""
        name, indices = expr.arg
        if name in self.values:
            return self.values[name]
        index = flat_position(self.tiles[name], indices)
        vector = emitter.scopes[-1].vector
        lanes = 1
        if vector is not None and vector[0] in emitter.index_axes(index):
            lanes = vector[1]
        return self.get(name, emitter.index(index), lanes)

    def position(self, name: str, indices: Sequence[Index]) -> int:
        """Find the flat position inside a tile."""
        return self.emitter.index(flat_position(self.tiles[name], indices))

    def get(self, name: str, position: int, lanes: int = 1) -> int:
        """Read a tile element, or neighbours."""
        memory, emitter = self.memory[name], self.emitter
        if emitter.instructions[memory].op == "array":
            return emitter.get(memory, position)
        return emitter.load(memory, position, lanes=lanes)

    def put(self, name: str, position: int, value: int) -> None:
        """Write a tile element."""
        memory, emitter = self.memory[name], self.emitter
        if emitter.instructions[memory].op == "array":
            emitter.put(memory, position, emitter.cast(value, emitter.dtype(memory)))
        else:
            emitter.store(memory, position, value)

    # -- steps ------------------------------------------------------------------------------------

    def steps(self, steps: Sequence[Step]) -> None:
        """Emit steps in order, sharing loop nests among neighbours."""
        position = 0
        while position < len(steps):
            count = nests.group_length(steps, position)
            self.emitter.forget()
            self.group(steps[position : position + count])
            position += count

    def group(self, steps: Sequence[Step]) -> None:
        """Emit one group of steps that share a nest, or one other step."""
        step = steps[0]
        if isinstance(step, Assign) and step.layout is not None:
            linearize_cpu_pack.linearize_pack(self, *steps)  # type: ignore[arg-type]
        elif isinstance(step, Accumulate) and not nests.is_pointwise(step):
            self.accumulate(steps)  # type: ignore[arg-type]
        elif linearize_cpu_pack.is_turn(step):
            linearize_cpu_pack.linearize_turn(self, step)  # type: ignore[arg-type]
        elif isinstance(step, Assign | Store | Accumulate):
            self.pointwise(steps)  # type: ignore[arg-type]
        elif isinstance(step, For):
            self.serial(step)
        elif isinstance(step, When):
            with self.emitter.when(self.emitter.conditions(step.conditions)):
                self.emitter.assume(step.conditions)
                self.steps(step.body)
        elif isinstance(step, LastBlock):
            self.last_block(step)
        elif isinstance(step, Scatter):
            self.scatter(step)
        elif isinstance(step, Scan):
            linearize_scan.scan_cpu(self.emitter, self.nest, step)
        elif isinstance(step, SortStep):
            linearize_sort_cpu.sort_cpu(self, step)
        elif isinstance(step, Dot):
            linearize_cpu_dot.linearize_dot(self, step)
        elif type(step).__name__ != "Barrier":  # one worker has nobody to wait for
            internal(f"the CPU has no {type(step).__name__} step")

    def serial(self, step: For) -> None:
        """Emit a loop; conditions that all of its body stands under are its bounds, if they can.

        A branch in it would keep LLVM from computing several rounds in a vector.
        """
        first = step.body[0] if len(step.body) == 1 else None
        if isinstance(first, When):
            body = first.body
            self.nest((step.axis,), first.conditions, lambda: self.steps(body), step.is_unrolled)
            return
        with self.emitter.axis_loop(step.axis, step.is_unrolled):
            self.steps(step.body)

    def nest(
        self,
        dims: Sequence[Axis],
        conditions: Sequence[Condition],
        body: Callable[[], None],
        is_unrolled: bool | None = False,
        drawn: Sequence[Ahead] = (),
    ) -> None:
        """Emit loops over dims where all conditions hold (as bounds if possible) and a body.

        What is `drawn` is drawn ahead of the innermost loop.
        """
        emitter = self.emitter
        ready = [c for c in conditions if emitter.index_axes(c[0]).isdisjoint(dims)]
        later = [c for c in conditions if c not in ready]
        with emitter.when(emitter.conditions(ready)):
            emitter.assume(ready)
            if not dims:
                body()
                return
            axis, rest = dims[0], dims[1:]
            start, stop = emitter.integer(0), emitter.integer(axis.size)
            for condition in list(later):
                bounds = as_bounds(condition, axis, rest)
                if bounds is not None:
                    later.remove(condition)
                    start, stop = self.tighten(start, stop, bounds)
            loops = [(start, stop)]
            is_whole = loops == [(emitter.integer(0), emitter.integer(axis.size))]
            if self.is_reduction and is_whole and not rest and not is_unrolled:
                found = nests.stretches(axis.size, self.is_column)
                loops = [(emitter.integer(low), emitter.integer(high)) for low, high in found]
            ahead = drawn if not rest else ()
            if len(rest) == 1:
                draw_around(emitter, drawn)
            for low, high in loops:
                with (
                    in_pieces(emitter, ahead, low, high) as (start, stop),
                    emitter.loop(start, stop, 1, is_unrolled) as variable,
                ):
                    emitter.bind(axis, variable)
                    emitter.assume(c for c in conditions if c not in later)
                    self.nest(rest, later, body, is_unrolled, drawn)

    def tighten(self, start: int, stop: int, bounds: tuple[Index, Index]) -> tuple[int, int]:
        """Limit loop bounds to bounds[0] <= axis < bounds[1]."""
        emitter, (low, high) = self.emitter, bounds
        begin, end = emitter.instructions[start].arg, emitter.instructions[stop].arg
        if not isinstance(begin, int) or low.hi > begin:
            start = emitter.raw("maximum", emitter.index_dtype, start, emitter.index(low))
        if not isinstance(end, int) or high.lo < end:
            stop = emitter.raw("minimum", emitter.index_dtype, stop, emitter.index(high))
        return start, stop

    def pointwise(self, steps: Sequence[Assign | Store | Accumulate]) -> None:
        """Emit assignments, window reductions and stores at each point of one nest."""
        dims = steps[0].dims
        conditions = next((s.conditions for s in steps if isinstance(s, Store)), ())
        inside = {id(step) for step in steps}

        def body() -> None:
            for step in steps:
                if isinstance(step, Accumulate):
                    self.values_at(step, self.window(step), inside)
                if isinstance(step, Store):
                    slot = self.emitter.slots[step.slot]
                    value = self.emitter.value(self.as_seen(step))
                    self.emitter.store(slot, self.emitter.index(step.index), value)
                    continue
                if isinstance(step, Assign):
                    self.values_at(step, self.emitter.value(step.expr), inside)

        count = product(axis.size for axis in dims)
        is_few: bool | None = bool(dims) and count <= self.short_row
        if self.is_reduction and self.short_row < count and dims[-1].size < LONG_ROW:
            is_few = None
        exprs = [step.expr for step in steps]
        self.nest(dims, conditions, body, is_few, drawn_ahead(self.emitter, exprs, dims))
        self.values.clear()

    def as_seen(self, step: Store) -> Expr:
        """Write what is stored by functions that are as exact as its dtype shows."""
        is_rounded = self.slots[step.slot].dtype.bits == 16
        return relaxed(step.expr, RELAXED) if is_rounded else step.expr

    def values_at(self, step: Assign | Accumulate, value: int, inside: set[int]) -> None:
        """Keep an assigned value for this point, and write it to the tile if others read it."""
        here = tuple(axis_index(d) for d in step.dims)
        index = step.index if isinstance(step, Assign) and step.index else here
        uses = self.uses.get(step.tile, [])
        is_local = all(user in inside and read == here for user, read in uses) and index == here
        if is_local and step.dims:
            self.values[step.tile] = value
        else:
            self.put(step.tile, self.position(step.tile, index), value)

    def window(self, step: Accumulate) -> int:
        """Reduce over a few axes at the present point and return the result."""
        emitter, dtype = self.emitter, compute_dtype(self.tiles[step.tile].dtype)
        total, zero = emitter.add("array", dtype, arg=1), emitter.integer(0)
        if step.is_first:
            start = emitter.const(identity(step.monoid, dtype), dtype)
        else:
            here = tuple(axis_index(d) for d in step.dims)
            start = self.get(step.tile, self.position(step.tile, here))
        emitter.put(total, zero, start)

        count = product(a.size for a in step.over)
        is_unrolled: bool | None = count <= nests.UNROLLED
        if is_unrolled and count * len(walk(step.expr)) > UNROLLED_WORK:
            is_unrolled = None
        is_ordered = bool(is_unrolled and step.dims) and step.dims[-1].size >= LEAST_VECTOR

        def body() -> None:
            value = emitter.value(step.expr)
            made = self.combine(step.monoid, emitter.get(total, zero), value, is_ordered)
            emitter.put(total, zero, made)

        self.nest(step.over, (), body, is_unrolled)
        return emitter.get(total, zero)

    def combine(self, monoid: str, old: int, value: int, is_ordered: bool = False) -> int:
        """Append one reduction step; LLVM may reassociate it, unless sums are in order."""
        dtype = self.emitter.dtype(old)
        value = self.emitter.cast(value, dtype)
        op = COMBINE[monoid]
        if dtype is bool_:
            op = "or" if op in ("add", "maximum") else "and"
        if not is_ordered or op != "add" or not dtype.is_float:
            return self.emitter.add(op, dtype, (old, value), "reduce")
        made = self.emitter.instructions[value]
        if made.op == COMBINE["prod"]:  # one instruction here, whichever passes run
            return self.emitter.raw("fma", dtype, *made.args, old)
        return self.emitter.raw(op, dtype, old, value)

    def accumulate(self, group: Sequence[Accumulate | Store]) -> None:
        """Emit reductions over the same axes in one nest: `over` outside, `dims` inside.

        Stores of what they reduce share it, where they have the same conditions.
        """
        steps = [step for step in group if isinstance(step, Accumulate)]
        emitter, dims = self.emitter, steps[0].dims
        here = tuple(axis_index(d) for d in dims)
        firsts = [step for step in steps if step.is_first]
        is_ordered = bool(dims) and dims[-1].size >= LEAST_VECTOR  # vectors of neighbouring sums

        def clear() -> None:
            for step in firsts:
                dtype = compute_dtype(self.tiles[step.tile].dtype)
                start = emitter.const(identity(step.monoid, dtype), dtype)
                self.put(step.tile, self.position(step.tile, here), start)

        bodies, conditions = nests.split_guards(steps)
        stores = [step for step in group if isinstance(step, Store)]
        beside = [step for step in stores if set(step.conditions) == set(conditions)]

        def body() -> None:
            for step, expr in zip(steps, bodies, strict=True):
                value = emitter.value(expr)
                position = self.position(step.tile, here)
                old = self.get(step.tile, position)
                self.put(step.tile, position, self.combine(step.monoid, old, value, is_ordered))
            for store in beside:
                value = emitter.value(store.expr)
                emitter.store(emitter.slots[store.slot], emitter.index(store.index), value)

        if firsts:
            self.nest(dims, (), clear)
        is_unrolled = unrolling(steps[0], self.short_row)
        axes = (*steps[0].over, *dims)
        exprs = [*bodies, *(store.expr for store in beside)]
        drawn = drawn_ahead(emitter, exprs, axes)
        self.nest(axes, conditions, body, is_unrolled, drawn)
        for step in stores:
            if step not in beside:
                self.pointwise([step])

    def last_block(self, step: LastBlock) -> None:
        """Emit the steps of the task that arrives last."""
        emitter, pointer = self.emitter, self.pointers[step.counter]
        cell = emitter.index(step.cell)
        old = emitter.add("atomic_add", int32, (pointer, cell, emitter.const(1, int32)))
        is_last = emitter.raw("equal", bool_, old, emitter.const(step.total - 1, int32))
        with emitter.when(is_last):
            emitter.add("store", int32, (pointer, cell, emitter.const(0, int32)))
            self.steps(step.body)

    def scatter(self, step: Scatter) -> None:
        """Emit updates in order; the inner dims of one update may run as vectors."""
        emitter, pointer = self.emitter, self.emitter.slots[step.slot]

        def body() -> None:
            target, value = emitter.index(step.target), emitter.value(step.body)
            if step.monoid:
                value = self.combine(step.monoid, emitter.load(pointer, target), value)
            emitter.store(pointer, target, value)

        self.nest((*step.serial, *step.inner), step.conditions, body)


def unrolling(step: Accumulate, short_row: int) -> bool | None:
    """Say whether the loops of a reduction are unrolled whole: None if never.

    A loop over few columns, or over a row that is not long, is not made into vectors then. Shorter
    rows without a loop are reduced side by side.
    """
    if step.dims:
        return None if step.dims[-1].size >= LEAST_VECTOR else False
    length = product(axis.size for axis in step.over)
    if length <= short_row:
        return True
    return None if length < LONG_ROW else False


def padded_size(tile: Tile) -> int:
    """Elements of memory a tile takes."""
    return tile_strides(tile)[0] * tile.shape[0] if tile.shape else 1
