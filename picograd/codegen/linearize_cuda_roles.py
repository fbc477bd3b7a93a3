"""Persistent and Pipeline on Hopper: who produces, who consumes, and the barriers between them.

    threads 0..127      one thread of the first warp copies boxes, for all points, as far ahead as
                        the ring has free stages
    threads 128..       teams of warpgroups take points in turn: they multiply stages as they
                        arrive, and store while the next team multiplies

A Store in boxes: a warp gathers 16 rows and 128 bytes of columns at a time in a slot of its own,
swizzled so that its eight rows of four lanes hit different banks; one lane hands the slot over.

Barriers: `full[stage]` ends a phase when all bytes of a stage arrived, `empty[stage]` when every
warpgroup of the team has read it, `turn[team]` when the team before has begun its last product: a
team must not wait for stages of points that are not its next one, as a wait tells two phases apart.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from picograd.codegen.block_cuda import Block, before_widening, inside, lane_of
from picograd.codegen.layout import Swizzled, WgmmaAccumulator
from picograd.codegen.program_async import K_BYTES, Role, Wgmma
from picograd.codegen.tile import Assign, Dot, Step, Store, Tile
from picograd.codegen.tile_pipeline import CopyBox, Persistent, Pipeline
from picograd.dtype import bool_, uint64
from picograd.errors import check, internal
from picograd.helpers import product
from picograd.schedule.index import Axis, Index, axis_index, constant, substitute, unflatten
from picograd.schedule.loop import rewrite

GROUP = 128  # threads of a warpgroup
ROW = 128  # bytes of a row of a slab
ROWS = 16  # of a warp in a fragment
PACKED = 4  # registers of a left operand that one `wgmma` multiplies
CHUNK_BYTES = 16  # that the swizzle permutes
Write = Callable[[Block, Sequence[Step]], None]


@dataclass(frozen=True, slots=True)
class Ring:
    """The stages of a pipeline and the barriers that guard them."""

    pipeline: Pipeline
    stages: int
    bytes: int  # of one stage
    groups: int  # warpgroups that read a stage
    full: int
    empty: int
    turn: int


@dataclass(frozen=True, slots=True)
class Place:
    """Variables of a role: the stage it is at, and the parity of its phase."""

    stage: int
    parity: int


def persistent(block: Block, step: Persistent, write: Write) -> None:
    """Write a persistent loop: barriers, then both roles; `write` writes ordinary steps."""
    emitter = block.emitter
    ring = make_ring(block, step)
    is_first = emitter.conditions([(axis_index(block.thread), 0, 0)])
    with emitter.when(is_first):
        for number in range(ring.stages):
            add(block, "barrier_init", (ring.full, emitter.integer(number)), 1)
            add(block, "barrier_init", (ring.empty, emitter.integer(number)), ring.groups)
        for number in range(step.teams.count):
            add(block, "barrier_init", (ring.turn, emitter.integer(number)), 1)
        add(block, "barrier_publish")
    add(block, "barrier")
    produce(block, step, ring)
    consume(block, step, ring, write)


def add(block: Block, op: str, args: Sequence[int] = (), arg: object = None) -> None:
    """Append an instruction without a value."""
    block.emitter.add(op, None, args, arg)


def make_ring(block: Block, step: Persistent) -> Ring:
    """Reserve the barriers of the pipeline of a persistent loop."""
    (pipeline,) = (each for each in step.body if isinstance(each, Pipeline))
    tiles = [block.tiles[each.tile] for each in pipeline.produce if isinstance(each, CopyBox)]
    stages = tiles[0].stages
    counts = stages, stages, step.teams.count
    pointers = [
        block.emitter.add("shared", uint64, arg=block.reserve(8 * count)) for count in counts
    ]
    stage = sum(product(tile.shape) * tile.dtype.itemsize for tile in tiles)
    return Ring(pipeline, stages, stage, step.teams.threads // GROUP, *pointers)


@contextmanager
def role(block: Block, which: Role) -> Iterator[None]:
    """Open the scope of a role."""
    add(block, "role", (), which)
    with block.emitter.scope():
        yield
    add(block, "end")


@contextmanager
def points(block: Block, step: Persistent, team: int) -> Iterator[None]:
    """Open the loop of a team over its points."""
    emitter = block.emitter
    shape = tuple(axis.size for axis in step.points)
    flat, blocks = Axis("point", product(shape)), step.block.size
    skipped = emitter.arithmetic("mul", team, emitter.integer(blocks))
    first = emitter.arithmetic("add", emitter.axis_value(step.block), skipped)
    stride = blocks * step.teams.count
    with emitter.loop(first, emitter.integer(flat.size), stride, None) as variable:
        emitter.bind(flat, variable)
        for axis, index in zip(step.points, unflatten(axis_index(flat), shape), strict=True):
            emitter.bind(axis, emitter.index(index))
        yield


def variable(block: Block, value: int) -> int:
    """Make a variable that starts with a value."""
    emitter = block.emitter
    found = emitter.add("array", emitter.index_dtype, arg=1)
    assign(block, found, value)
    return found


def assign(block: Block, variable: int, value: int) -> None:
    """Set a variable."""
    add(block, "set", (variable, block.emitter.integer(0), value))


def read(block: Block, variable: int) -> int:
    """Read a variable."""
    emitter = block.emitter
    return emitter.add("get", emitter.index_dtype, (variable, emitter.integer(0)))


def flip(block: Block, parity: int) -> None:
    """Change the parity in a variable."""
    emitter = block.emitter
    one = emitter.integer(1)
    assign(block, parity, emitter.raw("bitwise_xor", emitter.index_dtype, read(block, parity), one))


def advance(block: Block, ring: Ring, place: Place, stage: int) -> None:
    """Go on to the next stage; behind the last one the phase changes."""
    emitter = block.emitter
    following = emitter.arithmetic("add", stage, emitter.integer(1))
    is_last = emitter.raw("equal", bool_, following, emitter.integer(ring.stages))
    assign(block, place.stage, following)
    with emitter.when(is_last):
        assign(block, place.stage, emitter.integer(0))
        flip(block, place.parity)


@contextmanager
def stages_of(block: Block, pipeline: Pipeline) -> Iterator[None]:
    """Open the loop over the stages of a point: all, or those from its first to its last."""
    emitter = block.emitter
    first, stop = emitter.integer(0), emitter.integer(pipeline.axis.size)
    if pipeline.first is not None:
        least = emitter.index(pipeline.first)
        first = emitter.raw("maximum", emitter.index_dtype, first, least)
    if pipeline.stop is not None:
        most = emitter.index(pipeline.stop)
        stop = emitter.raw("minimum", emitter.index_dtype, stop, most)
    with emitter.loop(first, stop, 1, None) as variable:
        emitter.bind(pipeline.axis, variable)
        yield


def produce(block: Block, step: Persistent, ring: Ring) -> None:
    """Write the role that fills stages."""
    emitter, index_dtype = block.emitter, block.emitter.index_dtype
    pipeline = ring.pipeline
    with role(block, Role(0, GROUP, 1, step.teams.registers[0])):
        warp = emitter.index(axis_index(block.thread) // 32)
        warp = emitter.add("uniform", index_dtype, (warp,))
        is_first = emitter.raw("equal", bool_, warp, emitter.integer(0))
        is_one = emitter.both(is_first, emitter.add("elect", bool_))
        with emitter.when(is_one):
            zero = emitter.integer(0)
            place = Place(variable(block, zero), variable(block, emitter.integer(1)))
            every = replace(step, teams=replace(step.teams, count=1))
            with points(block, every, zero), stages_of(block, pipeline):
                stage, parity = read(block, place.stage), read(block, place.parity)
                add(block, "barrier_wait", (ring.empty, stage, parity))
                add(block, "barrier_expect", (ring.full, stage), ring.bytes)
                for each in pipeline.produce:
                    check(isinstance(each, CopyBox), "a pipeline is filled with boxes", step)
                    copy_slabs(block, ring, each, stage)  # type: ignore[arg-type]
                advance(block, ring, place, stage)


def copy_slabs(block: Block, ring: Ring, step: CopyBox, stage: int) -> None:
    """Copy a box into a stage, slab by slab."""
    emitter, layout = block.emitter, swizzled(block, step.tile)
    tensor = emitter.add("tensor", None, arg=block.tensor(step.tensor))
    start = emitter.arithmetic("mul", stage, emitter.integer(layout.size))
    for slab in range(layout.slabs):
        offset = emitter.integer(slab * layout.shape[0] * layout.span)
        place = emitter.arithmetic("add", start, offset)
        number = {step.slab: constant(slab)}
        at = [emitter.index(substitute(i, number)) for i in (*step.at, *step.offsets)]
        args = (tensor, block.places[step.tile], place, ring.full, stage, *at)
        add(block, "copy_box", args, len(step.offsets) or None)


def swizzled(block: Block, name: str) -> Swizzled:
    """Find the layout of a stage."""
    swizzle = block.tiles[name].swizzle
    if swizzle is None:
        internal(f"{name} is not swizzled")
    return swizzle


def consume(block: Block, step: Persistent, ring: Ring, write: Write) -> None:
    """Write the role of the teams."""
    emitter, teams = block.emitter, step.teams
    outer = block.thread, block.threads
    count = teams.threads * teams.count
    with role(block, Role(GROUP, teams.threads, teams.count, teams.registers[1], True)):
        number = emitter.index(axis_index(block.thread) + -GROUP)
        within, block.crew = Axis("worker", count), Axis("warp", count // 32)
        emitter.bind(within, number)
        warp = emitter.index(axis_index(within) // 32)
        emitter.bind(block.crew, emitter.add("uniform", emitter.index_dtype, (warp,)))
        team = emitter.index(axis_index(block.crew) // (teams.threads // 32))
        block.thread, block.threads = Axis("thread", teams.threads), teams.threads
        emitter.bind(block.thread, emitter.index(axis_index(within) % teams.threads))
        run_points(block, step, ring, team, write)
        finish_boxes(block, step)
    block.thread, block.threads = outer


def run_points(block: Block, step: Persistent, ring: Ring, team: int, write: Write) -> None:
    """Write what a team does at each of its points."""
    emitter, teams = block.emitter, step.teams
    if teams.count == 1 and not is_plain(ring.pipeline):
        run_streams(block, step, ring, team, write)
        return
    depth = ring.pipeline.axis.size
    done = variable(block, emitter.arithmetic("mul", team, emitter.integer(depth)))
    is_leader = emitter.raw("equal", bool_, team, emitter.integer(0))
    turn = variable(block, emitter.cast(is_leader, emitter.index_dtype))
    with points(block, step, team):
        count = Axis("stages", (1 << 31) - 1)
        emitter.bind(count, read(block, done))
        stage = emitter.index(axis_index(count) % ring.stages)
        parity = emitter.index(axis_index(count) // ring.stages % 2)
        place = Place(variable(block, stage), variable(block, parity))
        more = emitter.integer(depth * teams.count)
        assign(block, done, emitter.arithmetic("add", read(block, done), more))
        for each in step.body:
            if not isinstance(each, Pipeline):
                write(block, (each,))
                continue
            if teams.count > 1:
                add(block, "barrier_wait", (ring.turn, team, read(block, turn)))
                flip(block, turn)
            multiply_stages(block, ring, place, lambda: pass_turn(block, ring, team, teams.count))


def is_plain(pipeline: Pipeline) -> bool:
    """Tell whether a pipeline multiplies stages and does nothing else, as often at every point."""
    is_whole = pipeline.first is None and pipeline.stop is None
    return is_whole and all(isinstance(each, Dot) for each in pipeline.consume)


def run_streams(block: Block, step: Persistent, ring: Ring, team: int, write: Write) -> None:
    """Write what the one team does where work on elements stands between products."""
    emitter = block.emitter
    zero = emitter.integer(0)
    place = Place(variable(block, zero), variable(block, zero))
    with points(block, step, team):
        for each in step.body:
            if isinstance(each, Pipeline):
                stream_stages(block, ring, place, write)
            else:
                write(block, (each,))


def stream_stages(block: Block, ring: Ring, place: Place, write: Write) -> None:
    """Write a main loop whose products are waited for: their results are worked on at once."""
    pipeline = ring.pipeline
    made = {each.tile for each in pipeline.consume if isinstance(each, Assign)}
    with stages_of(block, pipeline):
        stage, parity = read(block, place.stage), read(block, place.parity)
        add(block, "barrier_wait", (ring.full, stage, parity))
        between: list[Step] = []
        for each in pipeline.consume:
            if not isinstance(each, Dot):
                between.append(each)
                continue
            write(block, between)
            between = []
            add(block, "wgmma_fence")
            dot(block, each, stage)
            add(block, "wgmma_commit")
            add(block, "wgmma_wait", (block.arrays[each.acc],), 0)
            if each.a in block.packed and each.a not in made:
                add(block, "wgmma_keep", (block.packed[each.a], stage))
        release(block, ring, stage)
        write(block, between)
        advance(block, ring, place, stage)


def pass_turn(block: Block, ring: Ring, team: int, count: int) -> None:
    """Let the next team begin."""
    if count == 1:
        return
    emitter = block.emitter
    following = emitter.arithmetic("add", team, emitter.integer(1))
    following = emitter.arithmetic("remainder", following, emitter.integer(count))
    with emitter.when(emitter.conditions([(axis_index(block.thread), 0, 0)])):
        add(block, "barrier_arrive", (ring.turn, following))


def multiply_stages(block: Block, ring: Ring, place: Place, begun: Callable[[], None]) -> None:
    """Write the main loop: one group of products stays under way; then all have `begun`."""
    emitter, pipeline = block.emitter, ring.pipeline
    before = variable(block, emitter.integer(0))
    accumulators = {}
    with emitter.axis_loop(pipeline.axis, None):
        stage, parity = read(block, place.stage), read(block, place.parity)
        add(block, "barrier_wait", (ring.full, stage, parity))
        add(block, "wgmma_fence")
        for each in pipeline.consume:
            check(isinstance(each, Dot), "a pipeline multiplies", each)
            accumulators[each.acc] = block.arrays[each.acc]  # type: ignore[union-attr]
            dot(block, each, stage)  # type: ignore[arg-type]
        add(block, "wgmma_commit")
        for acc in accumulators.values():
            add(block, "wgmma_wait", (acc,), 1)
        with emitter.when(emitter.conditions([(axis_index(pipeline.axis), 1, pipeline.axis.size)])):
            release(block, ring, read(block, before))
        assign(block, before, stage)
        advance(block, ring, place, stage)
    begun()
    for acc in accumulators.values():
        add(block, "wgmma_wait", (acc,), 0)
    release(block, ring, read(block, before))


def release(block: Block, ring: Ring, stage: int) -> None:
    """Say that this warpgroup has read a stage."""
    emitter = block.emitter
    with emitter.when(emitter.conditions([(axis_index(block.thread) % GROUP, 0, 0)])):
        add(block, "barrier_arrive", (ring.empty, stage))


def dot(block: Block, step: Dot, stage: int) -> None:
    """Write acc += a @ b over one stage, on this warpgroup's rows."""
    check(step.unit == "wgmma", "a pipeline multiplies on the tensor cores", step)
    acc = block.tiles[step.acc].layout
    if not isinstance(acc, WgmmaAccumulator):
        internal("wgmma wants its own accumulator", step)
    if step.a in block.packed:
        dot_packed(block, step, stage, acc)
        return
    a, b = swizzled(block, step.a), swizzled(block, step.b)
    # A warpgroup's rows: rows of a slab, or slabs of their own.
    high = 64 * acc.stacked
    mine = high // a.span * a.shape[0] * a.span if step.a_is_km else high * a.span
    start = axis_index(block.crew) // 4 % acc.groups * mine
    found = [
        describe(block, step.a, stage, start, step.a_is_km),
        describe(block, step.b, stage, constant(0), not step.b_is_nk),
    ]
    dtype = block.tiles[step.a].dtype
    for k in range(step.depth * dtype.itemsize // K_BYTES):
        for fragment in range(acc.stacked):
            a_offset = (
                across(a, k, fragment, dtype.itemsize) if step.a_is_km else along(k, fragment)
            )
            b_offset = along(k, 0) if step.b_is_nk else across(b, k, 0, dtype.itemsize)
            spec = Wgmma(
                acc.n,
                dtype,
                acc.register_count,
                fragment * acc.n // 2,
                a_offset,
                b_offset,
                not step.a_is_km,
                step.b_is_nk,
            )
            add(block, "wgmma", (block.arrays[step.acc], *found), spec)


def dot_packed(block: Block, step: Dot, stage: int, acc: WgmmaAccumulator) -> None:
    """Write acc += a @ b with the rows of `a` in registers."""
    check(acc.stacked == 1, "a left operand in registers is one fragment high", step)
    b = swizzled(block, step.b)
    dtype = block.tiles[step.a].dtype
    found = describe(block, step.b, stage, constant(0), not step.b_is_nk)
    args = block.arrays[step.acc], block.packed[step.a], found
    plain = Wgmma(acc.n, dtype, acc.register_count, 0, 0, 0, True, step.b_is_nk, True)
    for k in range(step.depth * dtype.itemsize // K_BYTES):
        slab, inner = divmod(k, ROW // K_BYTES)  # of operands that run along K
        place = slab * b.shape[0] * ROW + inner * K_BYTES
        place = place if step.b_is_nk else across(b, k, 0, dtype.itemsize)
        is_first = step.is_first and k == 0
        spec = replace(plain, a_offset=PACKED * k, b_offset=place, is_first=is_first)
        add(block, "wgmma", args, spec)


def describe(block: Block, name: str, stage: int, start: Index, is_across: bool) -> int:
    """Write the descriptor of an operand that begins so many elements into a stage."""
    emitter, layout = block.emitter, swizzled(block, name)
    place = emitter.arithmetic("mul", stage, emitter.integer(layout.size))
    place = emitter.arithmetic("add", place, emitter.index(start))
    leading = layout.shape[0] * ROW if is_across else 16
    return emitter.add("descriptor", uint64, (block.places[name], place), leading)


def along(k: int, fragment: int) -> int:
    """Count the bytes to step `k` of 64 rows that run along K."""
    return k * K_BYTES + fragment * 64 * ROW


def across(layout: Swizzled, k: int, fragment: int, itemsize: int) -> int:
    """Count the bytes to step `k` of 64 columns, each slab of which holds all of K."""
    return k * K_BYTES // itemsize * ROW + fragment * 64 // layout.span * layout.shape[0] * ROW


def finish_boxes(block: Block, step: Persistent) -> None:
    """Wait until the copy engine has read the last boxes: then shared memory may go."""
    if any(isinstance(each, Store) and each.box for each in step.body):
        with block.emitter.when(first_lane(block)):
            add(block, "store_box_wait", (), 0)


def first_lane(block: Block) -> int | None:
    """Mask of the first thread of every warp."""
    return block.emitter.conditions([(axis_index(block.thread) % 32, 0, 0)])


# -- stores in boxes -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """What a warp stores at once: columns of one fragment, through a slot that begins at `slot`."""

    tile: Tile
    slot: int
    fragment: int
    number: int  # of the 128 bytes of columns

    @property
    def columns(self) -> int:
        """Columns of a part."""
        return self.tile.shape[-1]


def store_boxes(block: Block, step: Store) -> None:
    """Write a Store of a whole fragment in boxes."""
    layout, box = step.layout, step.box
    if not isinstance(layout, WgmmaAccumulator) or box is None:
        internal("only fragments leave in boxes", step)
    tile = block.tiles[box.tile]
    slices, tensor = layout.n // tile.shape[-1], block.tensor(box.tensor)
    name = block.emitter.add("tensor", None, arg=tensor)
    # A slot is free again when `stages` later ones have been handed over, in this step or the next.
    check(layout.stacked * slices % tile.stages == 0, "slots go round in every step", step)
    for turn in range(layout.stacked * slices):
        fragment, number = divmod(turn, slices)
        part = Part(tile, slot_place(block, tile, turn % tile.stages), fragment, number)
        with block.emitter.when(first_lane(block)):
            add(block, "store_box_wait", (), tile.stages - 1)
        add(block, "warp_barrier")
        gather(block, step, layout, part)
        add(block, "async_fence")
        add(block, "warp_barrier")
        places = [block.emitter.index(index) for index in corner(block, step, layout, part)]
        with block.emitter.when(first_lane(block)):
            add(block, "store_box", (name, block.places[tile.name], part.slot, *places))


def slot_place(block: Block, tile: Tile, slot: int) -> int:
    """Find where a slot of this warp begins."""
    size = tile.shape[-2] * tile.shape[-1]
    return block.emitter.index((axis_index(block.crew) * tile.stages + slot) * size)


def corner(block: Block, step: Store, layout: WgmmaAccumulator, part: Part) -> list[Index]:
    """Find where a part of this warp lies in the array."""
    warp = axis_index(block.crew) % (4 * layout.groups)
    row = (warp // 4 * layout.stacked + part.fragment) * 64 + warp % 4 * ROWS
    near, far, *batch = step.box.at  # type: ignore[union-attr]
    return [near + part.number * part.columns, far + row, *batch]


def gather(block: Block, step: Store, layout: WgmmaAccumulator, part: Part) -> None:
    """Compute one part of a fragment and leave it in a slot."""
    emitter = block.emitter
    found, values = block.walked(layout, step.dims, [step.expr], [step.index], step.conditions)
    named = {axis.name: axis for axis, _ in found.loops}
    piece = Axis("piece", part.columns // 8)
    first = {found.vector[0]: constant(0)} if found.vector else {}
    tests = [(substitute(substitute(i, values), first), lo, hi) for i, lo, hi in step.conditions]
    with ExitStack() as stack:
        stack.enter_context(emitter.axis_loop(piece, True))
        across = axis_index(piece) + part.number * piece.size
        emitter.bind(named["across"], emitter.index(across))
        if "stack" in named:
            emitter.bind(named["stack"], emitter.integer(part.fragment))
        for name in ("half", "pair"):
            if name in named:
                stack.enter_context(emitter.axis_loop(named[name], True))
        inside(block, stack, found, emitter.conditions([*found.conditions, *tests]))
        value = emitter.value(rewrite(step.expr, values))
        leave(block, part, value, piece, named)


def leave(block: Block, part: Part, value: int, piece: Axis, named: dict[str, Axis]) -> None:
    """Put two neighbours, or one, at their place in a slot."""
    emitter, dtype = block.emitter, part.tile.dtype
    lane, half = axis_index(block.thread) % 32, axis_index(named["half"])
    chunk, row = CHUNK_BYTES // dtype.itemsize, lane // 4
    column = axis_index(piece) * 8 + lane % 4 * 2
    number = emitter.index(column // chunk)
    permuted = emitter.raw("bitwise_xor", emitter.index_dtype, number, emitter.index(row))
    place = emitter.arithmetic("mul", permuted, emitter.integer(chunk))
    rest = (row + half * 8) * part.columns + column % chunk
    lanes = 2
    if "pair" in named:
        rest, lanes = rest + axis_index(named["pair"]), 1
    place = emitter.arithmetic("add", place, emitter.index(rest))
    place = emitter.arithmetic("add", part.slot, place)
    value = emitter.cast(before_widening(emitter, value, dtype), dtype)
    value = emitter.splat(value, 2) if lanes == 2 else lane_of(emitter, value, 0)
    args = (block.places[part.tile.name], place, value)
    emitter.add("store", dtype, args, lanes=lanes)
