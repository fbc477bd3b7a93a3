"""MainLoop on CUDA: a pipelined matrix product over shared-memory tiles.

All schedules run the same pipeline. While tile t of K is multiplied, later tiles are on their
way: with `cp.async` straight into shared memory where an operand is a plain load of aligned 16-byte
chunks, else through registers, loaded before the multiplication and put into shared memory after.
`MmaSchedule` and `Tf32Schedule` multiply on the tensor cores, `SimtSchedule` with one fma per
product.

Products of shared tiles on CUDA cores: a thread multiplies a patch of rows and columns.

    for groups of 4 of the depth: load the factors of the patch, then multiply and add each pair

What runs along the depth in memory is loaded 4 at once, other operands as vectors of columns.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack

from picograd.codegen import tensor_core
from picograd.codegen.block_cuda import Block, is_multiple, lane_of
from picograd.codegen.dot import Dot
from picograd.codegen.emit import compute_dtype
from picograd.codegen.lanes import is_unit
from picograd.codegen.layout import Blocked
from picograd.codegen.mainloop_operands import Operand, Schedule, forms_of, operands_of, plain_load
from picograd.codegen.tensor_core_tf32 import Float64Schedule, Tf32Schedule, multiply_tf32
from picograd.codegen.tile import MainLoop
from picograd.dtype import DType, bool_
from picograd.errors import check, internal
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, substitute
from picograd.schedule.loop import rewrite, walk


@dataclass(frozen=True, slots=True)
class Copier:
    """Brings tiles of one operand into `shared`; `staging` holds them in registers on the way."""

    operand: Operand
    shared: int
    staging: int | None


def main_loop(block: Block, step: MainLoop) -> None:
    """Write a MainLoop: clear the accumulator, run the pipeline."""
    schedule, emitter = step.schedule, block.emitter
    for name, _ in step.products:
        acc = block.arrays[name]
        registers = Axis("register", emitter.instructions[acc].arg)
        with emitter.axis_loop(registers, True):
            at, zero = (emitter.index(axis_index(registers)), emitter.const(0, emitter.dtype(acc)))
            emitter.put(acc, at, zero)
    operands = operands_of(step)
    copiers = [copier(block, operand, schedule) for operand in operands]
    k = step.dims[2]
    tiles = Axis("k_tile", k.size // schedule.block[2])
    check(tiles.size * schedule.block[2] == k.size, "K is not a multiple of the tile depth", step)
    multiply = MULTIPLIERS[type(schedule)]
    pipeline(
        block,
        schedule,
        tiles,
        tile_count(block, step, tiles),
        copiers,
        lambda: multiply(block, step, tiles, copiers),
    )
    if isinstance(schedule, tensor_core.WgmmaSchedule):
        block.emitter.add("mma", None, (acc,), tensor_core.warpgroup_primitive("finish_multiply"))


def tile_count(block: Block, step: MainLoop, tiles: Axis) -> int:
    """Count the tiles of K that begin before the sum stops."""
    emitter, depth = block.emitter, step.schedule.block[2]
    found = emitter.integer(tiles.size)
    for stop in step.stops:
        count = emitter.index((stop + (depth - 1)) // depth)
        found = emitter.raw("minimum", emitter.index_dtype, found, count)
    return found


def copier(block: Block, operand: Operand, schedule: Schedule) -> Copier:
    """Reserve the shared stages of an operand, and staging registers if it is not plain."""
    emitter, dtype = block.emitter, operand.expr.dtype
    offset = block.reserve(schedule.stages * operand.size * dtype.itemsize)
    shared = emitter.add("shared", dtype, arg=offset)
    for form in forms_of(block.kernel, operand, schedule):
        if plain_load(block.kernel, form) is not None:
            return Copier(form, shared, None)
    count = chunk_count(block, operand)
    staging = emitter.add("array", dtype, arg=count, lanes=operand.lanes)
    return Copier(operand, shared, staging)


def chunk_count(block: Block, operand: Operand) -> int:
    """Chunks of a tile that each thread copies."""
    chunks = operand.rows * operand.columns // operand.lanes
    check(chunks % block.threads == 0, f"{block.threads} threads do not share {chunks} chunks")
    return chunks // block.threads


def pipeline(
    block: Block,
    schedule: Schedule,
    tiles: Axis,
    count: int,
    copiers: list[Copier],
    multiply: Callable[[], None],
) -> None:
    """Write the pipeline over `count` tiles: `ahead` are in flight while one is multiplied.

    The first `ahead` tiles are fetched even if they are more: they exist.
    """
    emitter, stages, ahead = block.emitter, schedule.stages, schedule.ahead
    has_async = any(c.staging is None for c in copiers)
    first, later = Axis("k_tile", tiles.size), Axis("k_tile", tiles.size)
    started = min(ahead, tiles.size)
    with emitter.loop(emitter.integer(0), emitter.integer(started), 1, False) as variable:
        emitter.bind(first, variable)
        fetch(block, copiers, first, stages)
        put(block, copiers, first, stages)
        call(block, "copy_async_commit", has_async)
    for _ in range(ahead - started):
        call(block, "copy_async_commit", has_async)
    with emitter.loop(emitter.integer(0), count, 1, None) as variable:
        emitter.bind(tiles, variable)
        call(block, f"copy_async_wait<{ahead - 1}>", has_async)
        if isinstance(schedule, tensor_core.WgmmaSchedule):
            emitter.add("mma", None, (), tensor_core.warpgroup_primitive("fence_async_proxy"))
        emitter.add("barrier", None)
        following = emitter.arithmetic("add", variable, emitter.integer(ahead))
        is_more = emitter.raw("less", bool_, following, count)
        with emitter.when(is_more):
            emitter.bind(later, following)
            fetch(block, copiers, later, stages)
        call(block, "copy_async_commit", has_async)
        multiply()
        if any(c.staging is not None for c in copiers):
            with emitter.when(is_more):
                emitter.bind(later, following)
                put(block, copiers, later, stages)


def call(block: Block, function: str, is_needed: bool) -> None:
    """Call a primitive without arguments."""
    if is_needed:
        block.emitter.add("mma", None, (), tensor_core.primitive(function))


def chunks(block: Block, stack: ExitStack, operand: Operand) -> tuple[Index, Index, Index]:
    """Open the loop over a thread's chunks; give (number in staging, row, chunk of the row)."""
    turn = Axis("turn", chunk_count(block, operand))
    stack.enter_context(block.emitter.axis_loop(turn, True))
    position = axis_index(turn) * block.threads + axis_index(block.thread)
    across = operand.columns // operand.lanes
    return axis_index(turn), position // across, position % across


def fetch(block: Block, copiers: list[Copier], step: Axis, stages: int) -> None:
    """Start the copies of the tile of depth number `step`."""
    for item in copiers:
        with ExitStack() as stack:
            turn, row, chunk = chunks(block, stack, item.operand)
            if plain_load(block.kernel, item.operand) is None:
                fetch_registers(block, item, step, turn, row, chunk)
            else:
                fetch_async(block, item, step, stages, row, chunk)


def fetch_async(
    block: Block, item: Copier, step: Axis, stages: int, row: Index, chunk: Index
) -> None:
    """Start one asynchronous copy of a chunk; where its guard fails it becomes zeros."""
    emitter, operand = block.emitter, item.operand
    plain = plain_load(block.kernel, operand)
    check(plain is not None, "an asynchronous copy needs a plain load")
    slot, index, conditions = plain  # type: ignore[misc]
    values = operand.values(step, row, chunk * operand.lanes)
    tests = [(substitute(i, values), lo, hi) for i, lo, hi in conditions]
    mask = emitter.conditions(tests)
    mask = emitter.const(True, bool_) if mask is None else mask
    target = stage_place(block, item, step, stages, row, chunk)
    source = emitter.index(substitute(index, values))
    args = (item.shared, target, emitter.slots[slot], source, mask)
    function = "copy_async_element" if operand.lanes == 1 else "copy_async"
    emitter.add("mma", None, args, tensor_core.primitive(function))


def fetch_registers(
    block: Block, item: Copier, step: Axis, turn: Index, row: Index, chunk: Index
) -> None:
    """Compute one chunk of an operand into staging registers."""
    emitter, operand = block.emitter, item.operand
    lane = Axis("lane", operand.lanes)
    values = operand.values(step, row, chunk * operand.lanes + axis_index(lane))
    expr = rewrite(operand.expr, values)
    indices = [node.arg[1] for node in walk(expr) if node.op == "load"]
    units = [index for index in indices if is_unit(index, lane)]
    if all(is_multiple(index, lane, operand.lanes) for index in units):
        with emitter.scope({lane: emitter.integer(0)}, (lane, operand.lanes)):
            value = emitter.splat(emitter.value(expr), operand.lanes)
    else:
        lanes = []
        for number in range(operand.lanes):
            with emitter.scope({lane: emitter.integer(number)}):
                lanes.append(emitter.value(expr))
        value = emitter.add("pack", emitter.dtype(lanes[0]), lanes, lanes=operand.lanes)
    value = emitter.cast(value, operand.expr.dtype)
    emitter.put(item.staging or 0, emitter.index(turn), value)


def put(block: Block, copiers: list[Copier], step: Axis, stages: int) -> None:
    """Store staged chunks into shared memory."""
    emitter = block.emitter
    for item in copiers:
        if item.staging is None:
            continue
        with ExitStack() as stack:
            turn, row, chunk = chunks(block, stack, item.operand)
            args = (item.staging, emitter.index(turn))
            dtype, lanes = item.operand.expr.dtype, item.operand.lanes
            value = emitter.add("get", dtype, args, lanes=lanes)
            place = stage_place(block, item, step, stages, row, chunk)
            store_chunk(block, item, place, value, dtype)


def store_chunk(block: Block, item: Copier, place: int, value: int, dtype: DType) -> None:
    """Store one chunk: as a vector, or down a column where the tile is stored transposed."""
    emitter, operand = block.emitter, item.operand
    if operand.spread == 1:
        emitter.add("store", dtype, (item.shared, place, value), lanes=operand.lanes)
        return
    for lane in range(operand.lanes):
        at = emitter.arithmetic("add", place, emitter.integer(lane * operand.spread))
        emitter.add("store", dtype, (item.shared, at, lane_of(emitter, value, lane)))


def stage_place(
    block: Block, item: Copier, step: Axis, stages: int, row: Index, chunk: Index
) -> int:
    """Position of a chunk in the stage of tile number `step`."""
    emitter, operand = block.emitter, item.operand
    start = emitter.index(axis_index(step) % stages * operand.size)
    return emitter.arithmetic("add", start, operand.place(emitter, row, chunk))


def mma_multiply(block: Block, step: MainLoop, tiles: Axis, copiers: list[Copier]) -> None:
    """Write acc += a @ b of one stage on the tensor cores."""
    emitter, schedule = block.emitter, step.schedule
    args = [block.arrays[step.acc]]
    for item in copiers:
        start = emitter.index(axis_index(tiles) % schedule.stages * item.operand.size)
        args += [item.shared, start]
    if isinstance(schedule, tensor_core.WgmmaSchedule):
        called = tensor_core.multiply_warpgroup(schedule, step.a.dtype)
    elif isinstance(schedule, Tf32Schedule):
        called = multiply_tf32(schedule)
    else:
        called = tensor_core.multiply_tiles(schedule, step.a.dtype)
    emitter.add("mma", None, args, called)


def simt_multiply(block: Block, step: MainLoop, tiles: Axis, copiers: list[Copier]) -> None:
    """Write acc += a @ b of one stage: an outer product of registers for every k."""
    emitter, schedule = block.emitter, step.schedule
    layout, dtype = schedule.layout, step.a.dtype
    sides = [0, *(1 for _ in step.products)]
    left, *right = [emitter.add("array", dtype, arg=schedule.per_thread(d)) for d in sides]
    depth = Axis("depth", schedule.block[2])
    with emitter.axis_loop(depth, True):
        for d, item, part in zip(sides, copiers, (left, *right), strict=True):
            load_part(block, step, tiles, item, depth, d, part)
        for (name, _), part in zip(step.products, right, strict=True):
            add_products(block, layout, block.arrays[name], (left, part))


def add_products(block: Block, layout: Blocked, acc: int, parts: tuple[int, int]) -> None:
    """Write acc += a @ b of one k, whose factors are in registers."""
    emitter, v = block.emitter, layout.vector
    axes = [Axis("ij"[d], layout.steps[d] * v[d]) for d in (0, 1)]
    with ExitStack() as stack:
        for axis in axes:
            stack.enter_context(emitter.axis_loop(axis, True))
        i, j = map(axis_index, axes)
        where = (i // v[0] * layout.steps[1] + j // v[1]) * (v[0] * v[1])
        at = emitter.index(where + i % v[0] * v[1] + j % v[1])
        a = emitter.get(parts[0], emitter.index(i))
        b = emitter.get(parts[1], emitter.index(j))
        old = emitter.get(acc, at)
        new = emitter.add("fma", emitter.dtype(acc), (a, b, old))
        emitter.put(acc, at, new)


def load_part(
    block: Block, step: MainLoop, tiles: Axis, item: Copier, depth: Axis, d: int, part: int
) -> None:
    """Load this thread's rows (or columns) of one k from shared memory into registers."""
    emitter, schedule = block.emitter, step.schedule
    layout, dtype = schedule.layout, step.a.dtype
    threads, lanes = layout.threads[d], layout.vector[d]
    thread = axis_index(block.thread)
    mine = thread // layout.threads[1] if d == 0 else thread % layout.threads[1]
    start = axis_index(tiles) % schedule.stages * item.operand.size
    row = start + axis_index(depth) * schedule.pitch(layout.shape[d])
    for number in range(layout.steps[d]):
        place = emitter.index(row + (mine + number * threads) * lanes)
        value = emitter.add("load", dtype, (item.shared, place), lanes=lanes)
        for lane in range(lanes):
            at = emitter.integer(number * lanes + lane)
            emitter.put(part, at, lane_of(emitter, value, lane))


Multiplier = Callable[[Block, MainLoop, Axis, list[Copier]], None]
MULTIPLIERS: dict[type, Multiplier] = {
    tensor_core.MmaSchedule: mma_multiply,
    tensor_core.WgmmaSchedule: mma_multiply,
    tensor_core.SimtSchedule: simt_multiply,
    Float64Schedule: mma_multiply,
    Tf32Schedule: mma_multiply,
}


GROUP = 4  # of the depth
Chunk = tuple[tuple[Index, Index], range]  # a vector of an operand: its place, and registers


@dataclass(frozen=True, slots=True)
class Patch:
    """What a thread multiplies: its rows, and the first of `lanes` columns next to one another."""

    acc: int
    dtype: DType
    down: list[Index]
    across: list[Index]
    lanes: int

    @property
    def columns(self) -> int:
        """Count the columns."""
        return len(self.across) * self.lanes


def simple_dot(block: Block, step: Dot) -> None:
    """Write acc += a @ b, where `acc` is in registers and `a` and `b` are shared tiles."""
    patch = patch_of(block, step)
    emitter = block.emitter
    if step.is_first:
        clear(block, patch)
    row_count = len(patch.down) * GROUP
    column_count = patch.columns * GROUP
    a = emitter.add("array", patch.dtype, arg=row_count)
    b = emitter.add("array", patch.dtype, arg=column_count)
    group = Axis("group", step.depth // GROUP)
    with emitter.axis_loop(group):
        first = axis_index(group) * GROUP
        fill(block, step.a, along(patch.down, first), a)
        if step.b_is_nk:
            lanes = range(patch.lanes)
            every = [place + lane for place in patch.across for lane in lanes]
            fill(block, step.b, along(every, first), b)
        else:
            fill(block, step.b, across(patch, first), b)
        multiply(block, patch, a, b)


def patch_of(block: Block, step: Dot) -> Patch:
    """Find the patch of a thread."""
    acc = block.tiles[step.acc]
    layout = acc.layout
    if not isinstance(layout, Blocked) or step.unit != "fma" or step.a_is_km:
        internal("a product outside of a pipeline is one of CUDA cores", step)
    is_whole = layout.vector[0] == 1 and step.depth % GROUP == 0
    check(is_whole, "rows are read in groups of their depth", step)
    rows, columns = layout.threads
    lanes = layout.vector[1]
    thread = axis_index(block.thread)
    down = [thread // columns + n * rows for n in range(layout.steps[0])]
    start = thread % columns * lanes
    across = [start + n * columns * lanes for n in range(layout.steps[1])]
    dtype = compute_dtype(acc.dtype)
    return Patch(block.arrays[step.acc], dtype, down, across, lanes)


def clear(block: Block, patch: Patch) -> None:
    """Start the sums."""
    emitter = block.emitter
    register = Axis("register", len(patch.down) * patch.columns)
    with emitter.axis_loop(register, True):
        at = emitter.axis_value(register)
        zero = emitter.const(0.0, patch.dtype)
        emitter.put(patch.acc, at, zero)


def multiply(block: Block, patch: Patch, a: int, b: int) -> None:
    """Multiply and add every pair of factors."""
    emitter, dtype = block.emitter, patch.dtype
    inner = Axis("inner", GROUP)
    row = Axis("row", len(patch.down))
    column = Axis("column", patch.columns)
    with ExitStack() as stack:
        for axis in (inner, row, column):
            stack.enter_context(emitter.axis_loop(axis, True))
        left = emitter.index(axis_index(row) * GROUP + axis_index(inner))
        right = emitter.index(axis_index(column) * GROUP + axis_index(inner))
        at = emitter.index(axis_index(row) * patch.columns + axis_index(column))
        x = emitter.get(a, left)
        y = emitter.get(b, right)
        new = emitter.add("fma", dtype, (x, y, emitter.get(patch.acc, at)))
        emitter.put(patch.acc, at, new)


def fill(block: Block, name: str, chunks: Iterable[Chunk], side: int) -> None:
    """Load vectors of an operand: where each is in its tile, and the registers of its lanes."""
    emitter = block.emitter
    for where, registers in chunks:
        place = emitter.index(block.place(block.tiles[name], where))
        value = emitter.load(block.places[name], place, lanes=len(registers))
        for lane, register in enumerate(registers):
            emitter.put(side, emitter.integer(register), lane_of(emitter, value, lane))


def along(places: Sequence[Index], first: Index) -> Iterator[Chunk]:
    """List a group of the depth at each place of an operand that runs along it."""
    for number, place in enumerate(places):
        yield (place, first), range(number * GROUP, (number + 1) * GROUP)


def across(patch: Patch, first: Index) -> Iterator[Chunk]:
    """List vectors of columns at each position of a group of the depth."""
    size = patch.lanes * GROUP
    for inner in range(GROUP):
        for number, place in enumerate(patch.across):
            begin = number * size + inner
            yield (first + inner, place), range(begin, begin + size, GROUP)
