"""Reductions over the threads of a CUDA block: within a thread, a warp, then the block.

The order is fixed by the layout, so the same inputs give the same bits. Threads that share an
element of the result are consecutive: the reduced dims are the last, the fastest, of the layout.
"""

from contextlib import ExitStack

from picograd.codegen.block_cuda import Block, inside, lane_of, loops
from picograd.codegen.emit import Emitter, compute_dtype
from picograd.codegen.layout import Blocked
from picograd.codegen.tile import Accumulate, Tile
from picograd.codegen.walk_cuda import Walk
from picograd.errors import check, internal
from picograd.helpers import product
from picograd.schedule.index import axis_index, constant, substitute
from picograd.schedule.loop import rewrite
from picograd.schedule.monoid import COMBINE, identity

WARP = 32


def combine(emitter: Emitter, monoid: str, a: int, b: int) -> int:
    """Combine two values of a monoid."""
    return emitter.apply(COMBINE[monoid], a, b)


def accumulate(block: Block, step: Accumulate) -> None:
    """Write an Accumulate: for every element of the result, reduce and hand the result round."""
    tile, emitter = block.tiles[step.tile], block.emitter
    layout = step.layout
    if not isinstance(layout, Blocked):
        internal("Accumulate needs a Blocked layout over (*dims, *over)", step)
    count = len(step.dims)
    found, values = block.walked(layout, (*step.dims, *step.over), [step.expr])
    dtype = compute_dtype(tile.dtype)
    start = emitter.const(identity(step.monoid, dtype), dtype)
    lanes = found.vector[1] if found.vector and found.vector_dim < count else 1
    with ExitStack() as stack:
        outer = found.loops_of(0, count)
        for axis in outer:
            stack.enter_context(emitter.axis_loop(axis, True))
        partial = emitter.add("array", dtype, arg=lanes)
        for lane in range(lanes):
            emitter.add("set", None, (partial, emitter.integer(lane), start))
        with ExitStack() as inner:
            has_registers = reads_registers(block, step)
            loops(
                block,
                inner,
                found.loops_of(count, len(layout.shape)),
                has_registers,
            )
            mask = emitter.conditions(found.conditions)
            inside(block, inner, found, mask)
            value = emitter.cast(emitter.value(rewrite(step.expr, values)), dtype)
            if mask is not None:
                value = emitter.apply("where", mask, value, start, dtype=dtype)
            add_lanes(block, step.monoid, found, partial, lanes, value)
        for lane in range(lanes):
            value = emitter.add("get", dtype, (partial, emitter.integer(lane)))
            value = across_threads(block, layout, count, step.monoid, value)
            finish(block, step, found, tile, lane, value)


def reads_registers(block: Block, step: Accumulate) -> bool:
    """Tell whether the expression reads registers along the reduced dims."""
    return any(
        tile.space == "register" and len(tile.shape) > len(step.dims)
        for tile in block.tiles.values()
    )


def add_lanes(
    block: Block, monoid: str, found: Walk, partial: int, lanes: int, value: int
) -> None:
    """Add the lanes of a value to the partial results: to one each, or all to the same."""
    emitter = block.emitter
    dtype = emitter.dtype(partial)
    total = found.vector[1] if found.vector else 1
    for lane in range(total):
        at = emitter.integer(lane if lanes > 1 else 0)
        old = emitter.add("get", dtype, (partial, at))
        new = combine(emitter, monoid, old, lane_of(emitter, value, lane))
        emitter.add("set", None, (partial, at, new))


def across_threads(
    block: Block, layout: Blocked, count: int, monoid: str, value: int
) -> int:
    """Combine a value over the threads that share an element; all of them get the result."""
    emitter = block.emitter
    shared = product(layout.threads[count:])
    replicas = block.threads // layout.thread_count
    if shared == 1:
        return value
    check(
        shared & (shared - 1) == 0,
        f"{shared} threads share an element: not a power of two",
    )
    mask = replicas
    while mask < min(shared * replicas, WARP):
        other = emitter.add("shuffle_xor", emitter.dtype(value), (value,), mask)
        value = combine(emitter, monoid, value, other)
        mask *= 2
    if shared * replicas <= WARP:
        return value
    check(
        replicas <= WARP and shared * replicas % WARP == 0,
        "a reduction ends inside a warp",
    )
    return across_warps(block, shared * replicas // WARP, monoid, value)


def across_warps(block: Block, warps: int, monoid: str, value: int) -> int:
    """Combine a value, equal in all lanes of a warp, over groups of `warps` warps."""
    emitter = block.emitter
    dtype, thread = emitter.dtype(value), axis_index(block.thread)
    offset = block.scratch_for(block.threads // WARP * dtype.itemsize)
    place = emitter.add("shared", dtype, arg=offset)
    emitter.add("barrier", None)
    is_first_lane = emitter.conditions([(thread % WARP, 0, 0)])
    emitter.store(place, emitter.index(thread // WARP), value, is_first_lane)
    emitter.add("barrier", None)
    first = thread // (WARP * warps) * warps
    total = emitter.load(place, emitter.index(first))
    for number in range(1, warps):
        other = emitter.load(place, emitter.index(first + number))
        total = combine(emitter, monoid, total, other)
    return total


def finish(
    block: Block, step: Accumulate, found: Walk, tile: Tile, lane: int, value: int
) -> None:
    """Put a finished element into the result tile, joined to what it held unless this is first."""
    emitter = block.emitter
    where = found.register(len(step.dims))
    if found.vector:
        where = substitute(where, {found.vector[0]: constant(lane)})
    array, at = block.arrays[tile.name], emitter.index(where)
    if not step.is_first:
        old = emitter.add("get", emitter.dtype(array), (array, at))
        value = combine(emitter, step.monoid, old, value)
    emitter.add("set", None, (array, at, value))
