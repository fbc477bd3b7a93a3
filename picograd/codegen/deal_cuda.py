"""Loops over the points that a block of a persistent loop runs, by how they are dealt.

Products of a warpgroup on Hopper: `wgmma` over the stages that tiles are at.

Operands in shared memory are described by 64-bit numbers: where they begin, and how far apart their
slabs are. A left operand may be in registers, packed: float32 is then multiplied by `mma.sync`, as
`wgmma` reads TF32 along K alone, in an order in which no accumulator has it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from picograd.codegen.block_cuda import Block
from picograd.codegen.boxes import Persistent, Shares
from picograd.codegen.dot import Dot
from picograd.codegen.layout import Swizzled, WgmmaAccumulator
from picograd.codegen.program import K_BYTES, Mma, Wgmma
from picograd.dtype import bool_, uint64
from picograd.errors import check, internal
from picograd.helpers import ceil_div, product
from picograd.schedule.index import Axis, Index, axis_index, constant, flatten, unflatten


@contextmanager
def points(block: Block, step: Persistent, team: int) -> Iterator[None]:
    """Open the loop of a team over its points."""
    if step.is_dealt:
        loop = dealt_points(block, step)
    elif step.shares is not None:
        loop = shared_points(block, step, step.shares, team)
    else:
        loop = whole_points(block, step, team)
    with loop:
        yield


def bind_point(block: Block, axes: tuple[Axis, ...], place: Index) -> None:
    """Bind the axes of a point by its position."""
    indices = unflatten(place, tuple(axis.size for axis in axes))
    for axis, index in zip(axes, indices, strict=True):
        block.emitter.bind(axis, block.emitter.index(index))


@contextmanager
def whole_points(block: Block, step: Persistent, team: int) -> Iterator[None]:
    """Open the loop over points that are dealt in turn."""
    emitter, blocks = block.emitter, step.block.size
    count = product(axis.size for axis in step.points)
    flat = Axis("point", count)
    width = emitter.integer(blocks)
    skipped = emitter.arithmetic("mul", team, width)
    own = emitter.axis_value(step.block)
    first = emitter.arithmetic("add", own, skipped)
    stop = emitter.integer(flat.size)
    stride = blocks * step.teams.count
    with emitter.loop(first, stop, stride, None) as variable:
        emitter.bind(flat, variable)
        bind_point(block, step.points, axis_index(flat))
        yield


@contextmanager
def dealt_points(block: Block, step: Persistent) -> Iterator[None]:
    """Open the loop over points that are dealt in rounds, forth and back."""
    emitter, blocks, rounds = block.emitter, step.block.size, step.rounds
    groups, *inner = step.points
    count = product(axis.size for axis in inner)
    turn = Axis("turn", groups.size * rounds)
    place = Axis("point", rounds * blocks)
    with emitter.axis_loop(turn, None):
        number = axis_index(turn)
        turned = (axis_index(step.block) + number // 2 * step.shift) % blocks
        own = emitter.index(turned)
        back = emitter.index(turned * -1 + (blocks - 1))
        parity = emitter.index(number % 2)
        one = emitter.integer(1)
        is_back = emitter.raw("equal", bool_, parity, one)
        position = emitter.raw("where", emitter.index_dtype, is_back, back, own)
        first = emitter.index(number % rounds * blocks)
        value = emitter.arithmetic("add", first, position)
        emitter.bind(place, value)
        inside = axis_index(place), 0, count - 1
        is_there = emitter.conditions([inside])
        with emitter.when(is_there):
            group = emitter.index(number // rounds)
            emitter.bind(groups, group)
            bind_point(block, tuple(inner), axis_index(place))
            yield


def stretch(block: Block, step: Persistent, shares: Shares) -> tuple[Index, Index]:
    """Bind the first of the steps of all points that a block has, and where they stop."""
    emitter, blocks = block.emitter, step.block.size
    own = axis_index(step.block)
    count = product(axis.size for axis in step.points)
    steps = count * shares.depth
    bounds = Axis("low", steps + 1), Axis("high", steps + 1)
    for axis, place in zip(bounds, (own, own + 1), strict=True):
        value = emitter.index(place * steps // blocks)
        emitter.bind(axis, value)
    low, high = map(axis_index, bounds)
    return low, high


@contextmanager
def shared_points(block: Block, step: Persistent, shares: Shares, team: int) -> Iterator[None]:
    """Open the loop of a team over the points that a block has steps of, the last one first."""
    emitter, depth = block.emitter, shares.depth
    dtype = emitter.index_dtype
    low, high = stretch(block, step, shares)
    last = (high - 1) // depth
    count = product(axis.size for axis in step.points)
    turn = Axis("turn", ceil_div(count, step.block.size) + 1)
    flat = Axis("point", count)
    turns = emitter.index(last - low // depth + 1)
    with emitter.loop(team, turns, step.teams.count, None) as variable:
        emitter.bind(turn, variable)
        point = emitter.index(last - axis_index(turn))
        emitter.bind(flat, point)
        start = axis_index(flat) * depth
        begin = emitter.index(low - start)
        end = emitter.index(high - start)
        least, most = emitter.integer(0), emitter.integer(depth)
        first = emitter.raw("maximum", dtype, begin, least)
        stop = emitter.raw("minimum", dtype, end, most)
        emitter.bind(shares.first, first)
        emitter.bind(shares.stop, stop)
        bind_point(block, step.points, axis_index(flat))
        yield


def steps_before(block: Block, step: Persistent, shares: Shares) -> int:
    """Count the steps of later points, which a block runs before those of the present one."""
    emitter = block.emitter
    shape = tuple(axis.size for axis in step.points)
    _, high = stretch(block, step, shares)
    places = [axis_index(axis) for axis in step.points]
    point = flatten(places, shape)
    after = emitter.index(high - (point + 1) * shares.depth)
    least = emitter.integer(0)
    return emitter.raw("maximum", emitter.index_dtype, after, least)


ROW = 128  # bytes of a row of a slab
PACKED = 4  # registers of a left operand that one `wgmma` multiplies


def add(block: Block, op: str, args: Sequence[int] = (), arg: object = None) -> None:
    """Append an instruction without a value."""
    block.emitter.add(op, None, args, arg)


def swizzled(block: Block, name: str) -> Swizzled:
    """Find the layout of a stage."""
    swizzle = block.tiles[name].swizzle
    if swizzle is None:
        internal(f"{name} is not swizzled")
    return swizzle


def dot(block: Block, step: Dot) -> None:
    """Write acc += a @ b over stages that are there, on this warpgroup's rows."""
    check(step.unit in ("wgmma", "mma"), "a pipeline multiplies on the tensor cores", step)
    acc = block.tiles[step.acc].layout
    if not isinstance(acc, WgmmaAccumulator):
        internal("wgmma wants its own accumulator", step)
    if step.unit == "mma":
        dot_at_once(block, step, acc)
        return
    if step.a in block.packed:
        dot_packed(block, step, acc)
        return
    a, b = swizzled(block, step.a), swizzled(block, step.b)
    # A warpgroup's rows: rows of a slab, or slabs of their own.
    high = 64 * acc.stacked
    mine = high // a.span * a.shape[0] * a.span if step.a_is_km else high * a.span
    start = axis_index(block.crew) // 4 % acc.groups * mine
    found = [
        describe(block, step.a, start, step.a_is_km),
        describe(block, step.b, constant(0), not step.b_is_nk),
    ]
    dtypes = block.tiles[step.a].dtype, block.tiles[step.b].dtype
    dtype = dtypes[0]
    for k in range(step.depth * dtype.itemsize // K_BYTES):
        for fragment in range(acc.stacked):
            a_offset = (
                across(a, k, fragment, dtype.itemsize) if step.a_is_km else along(a, k, fragment)
            )
            b_offset = along(b, k, 0) if step.b_is_nk else across(b, k, 0, dtype.itemsize)
            spec = Wgmma(
                acc.n,
                dtypes,
                acc.register_count,
                fragment * acc.n // 2,
                a_offset,
                b_offset,
                not step.a_is_km,
                step.b_is_nk,
                is_first=step.is_first and k == 0,
            )
            add(block, "wgmma", (block.arrays[step.acc], *found), spec)


def dot_packed(block: Block, step: Dot, acc: WgmmaAccumulator) -> None:
    """Write acc += a @ b with the rows of `a` in registers."""
    check(acc.stacked == 1, "a left operand in registers is one fragment high", step)
    b = swizzled(block, step.b)
    b_is_nk = step.b_is_nk
    dtype = block.tiles[step.a].dtype
    itemsize = dtype.itemsize
    sums, rows = block.arrays[step.acc], block.packed[step.a]
    columns = describe(block, step.b, constant(0), not b_is_nk)
    args = sums, rows, columns
    plain = Wgmma(acc.n, (dtype, dtype), acc.register_count, 0, 0, 0, True, b_is_nk, True)
    steps = step.depth * itemsize // K_BYTES
    for k in range(steps):
        place = along(b, k, 0) if b_is_nk else across(b, k, 0, itemsize)
        is_first = step.is_first and k == 0
        spec = replace(plain, a_offset=PACKED * k, b_offset=place, is_first=is_first)
        add(block, "wgmma", args, spec)


def dot_at_once(block: Block, step: Dot, acc: WgmmaAccumulator) -> None:
    """Write acc += a @ b of float32, with the rows of `a` in registers."""
    check(acc.stacked == 1, "a left operand in registers is one fragment high", step)
    emitter = block.emitter
    layout = swizzled(block, step.b)
    rows, _ = layout.shape
    stage = emitter.axis_value(block.stages[step.b])
    size = emitter.integer(layout.size)
    place = emitter.arithmetic("mul", stage, size)
    sums = block.arrays[step.acc]
    left = block.packed[step.a]
    right = block.places[step.b]
    spec = Mma(acc.n, step.depth, rows, step.b_is_nk, step.is_first)
    args = sums, left, right, place
    add(block, "mma_packed", args, spec)


def describe(block: Block, name: str, start: Index, is_across: bool) -> int:
    """Write the descriptor of an operand that begins so many elements into its stage."""
    emitter = block.emitter
    layout = swizzled(block, name)
    stage = emitter.axis_value(block.stages[name])
    size = emitter.integer(layout.size)
    stage_start = emitter.arithmetic("mul", stage, size)
    offset = emitter.index(start)
    place = emitter.arithmetic("add", stage_start, offset)
    leading = slab_bytes(layout) if is_across else 16
    args = block.places[name], place
    return emitter.add("descriptor", uint64, args, leading)


def slab_bytes(layout: Swizzled) -> int:
    """Count the bytes of a slab."""
    return layout.shape[0] * ROW


def along(layout: Swizzled, k: int, fragment: int) -> int:
    """Count the bytes to step `k` of 64 rows that run along K; each slab holds all rows."""
    slab, inner = divmod(k, ROW // K_BYTES)
    fragment_start = fragment * 64 * ROW
    return slab * slab_bytes(layout) + inner * K_BYTES + fragment_start


def across(layout: Swizzled, k: int, fragment: int, itemsize: int) -> int:
    """Count the bytes to step `k` of 64 columns, each slab of which holds all of K."""
    row = k * K_BYTES // itemsize
    slab = fragment * 64 // layout.span
    return row * ROW + slab * slab_bytes(layout)
