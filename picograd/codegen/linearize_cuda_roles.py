"""Persistent and Pipeline on Hopper: who produces, who consumes, and the barriers between them.

    threads 0..127      one thread of the first warp copies boxes, for all points, as far ahead as
                        the ring has free stages
    threads 128..       teams of warpgroups take points in turn: they multiply stages as they
                        arrive, and store while the next team multiplies

Barriers: `full[stage]` ends a phase when all bytes of a stage arrived, `empty[stage]` when every
warpgroup of the team has read it, `turn[team]` when the team before has begun its last product: a
team must not wait for stages of points that are not its next one, as a wait tells two phases apart.

Parts that the blocks of a CUDA kernel run together before their own, each point once.

    for each number that no block has had: run the point of that number
    wait until all points are done

Whoever waits has nothing claimed, and what is claimed is being run: no block has to be on the
multiprocessors beside another.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from picograd.codegen.block_cuda import Block
from picograd.codegen.boxes import BoxStore, CopyBox, Persistent, Pipeline
from picograd.codegen.deal_cuda import add, bind_point, dot, points, steps_before, swizzled
from picograd.codegen.dot import Dot
from picograd.codegen.linearize_cuda_streams import (
    GROUP,
    WARP,
    WARPS,
    Consumer,
    Place,
    Ring,
    Write,
    advance,
    arrived,
    assign,
    empty_place,
    enter_stage,
    fillers,
    flip,
    is_under_way,
    late_boxes,
    leave_unfilled,
    make_ring,
    pointer,
    read,
    release,
    run_streams,
    stages_of,
    tiles_worked_on,
    variable,
)
from picograd.codegen.program import Role
from picograd.codegen.tile import Step, Store, TilePart
from picograd.dtype import bool_, int32
from picograd.errors import check
from picograd.schedule.index import Axis, axis_index, constant, substitute


def persistent(block: Block, step: Persistent, write: Write) -> None:
    """Write a persistent loop: barriers, then both roles; `write` writes ordinary steps."""
    emitter = block.emitter
    pipeline = pipeline_of(step)
    groups = step.teams.threads // GROUP
    late_ones = late_boxes(pipeline)
    products = [each for each in pipeline.consume if isinstance(each, Dot)]
    at_once = {each.b for each in products if not is_under_way(each)}
    kept_ones = [each for each in pipeline.produce if isinstance(each, CopyBox) and each.is_kept]
    others = [each for each in pipeline.produce if each not in (*late_ones, *kept_ones)]
    every = others, late_ones, kept_ones
    work = [each for each in pipeline.consume if not isinstance(each, Dot)]
    worked_on = tiles_worked_on(work)
    ring, late, kept = (make_ring(block, each, at_once, worked_on) for each in every)
    held, behind = rings_around(block, step)
    rings = ring, late, held, kept, behind
    turn = pointer(block, step.teams.count)
    is_first = emitter.conditions([(axis_index(block.thread), 0, 0)])
    with emitter.when(is_first):
        for box in (box for each in (held, kept, ring, late, behind) for box in each.boxes):
            add(block, "prefetch_map", (tensor_of(block, box),))
        for each in rings:
            readers = (groups * WARPS if each.apart else groups) * each.together
            for number in range(each.stages):
                add(block, "barrier_init", (each.full, emitter.integer(number)), fillers(each))
                add(block, "barrier_init", (each.empty, emitter.integer(number)), readers)
        passing = groups * WARPS if is_ranged(step, pipeline) else 1
        for number in range(step.teams.count):
            add(block, "barrier_init", (turn, emitter.integer(number)), passing)
        add(block, "barrier_publish")
    for each in rings:
        leave_unfilled(block, each)
    add(block, "barrier")
    if ring.together > 1:  # others copy to this block as soon as its barriers are there
        add(block, "cluster_barrier", (), ring.together)
        ring = replace(ring, rank=emitter.index(axis_index(step.block) % ring.together))
    consumer = Consumer(ring, late, held, kept, behind, turn, write)
    produce(block, step, consumer)
    consume(block, step, consumer)
    if ring.together > 1:  # nobody's memory goes before all have copied and arrived there
        add(block, "cluster_barrier", (), ring.together)


def pipeline_of(step: Persistent) -> Pipeline:
    """Find the pipeline of a persistent loop."""
    (pipeline,) = (each for each in step.body if isinstance(each, Pipeline))
    return pipeline


def rings_around(block: Block, step: Persistent) -> tuple[Ring, Ring]:
    """Make the rings of a point: of what its pipeline holds, and of what work behind it reads."""
    body = step.body
    place = body.index(pipeline_of(step))
    held = [each for each in body[:place] if isinstance(each, CopyBox)]
    behind = [each for each in body[place:] if isinstance(each, CopyBox)]
    worked_on = [each.tile for each in behind]
    first = make_ring(block, held)
    return first, make_ring(block, behind, (), worked_on)


@contextmanager
def role(block: Block, which: Role) -> Iterator[None]:
    """Open the scope of a role."""
    add(block, "role", (), which)
    with block.emitter.scope():
        yield
    add(block, "end")


def produce(block: Block, step: Persistent, consumer: Consumer) -> None:
    """Write the role that fills stages: one thread copies boxes, a second warp computes values."""
    emitter, index_dtype = block.emitter, block.emitter.index_dtype
    ring, write = consumer.ring, consumer.write
    with role(block, Role(0, GROUP, 1, step.teams.registers[0])):
        if ring.values:
            with role(block, Role(0, WARP)), emitter.when(emitter.add("elect", bool_)):
                fill_boxes(block, step, consumer)
            with role(block, Role(WARP, WARP, follows=True)):
                fill_values(block, step, ring, write)
            return
        warp = emitter.index(axis_index(block.thread) // 32)
        warp = emitter.add("uniform", index_dtype, (warp,))
        is_first = emitter.raw("equal", bool_, warp, emitter.integer(0))
        is_one = emitter.both(is_first, emitter.add("elect", bool_))
        with emitter.when(is_one):
            fill_boxes(block, step, consumer)


def every_point(step: Persistent) -> Persistent:
    """Make the persistent loop of one for whom all teams are one."""
    return replace(step, teams=replace(step.teams, count=1))


def fill_boxes(block: Block, step: Persistent, consumer: Consumer) -> None:
    """Write what copies boxes: those that stay, then those of a point, and those of its stages."""
    held, *rings = consumer.held, consumer.ring, consumer.late
    zero = block.emitter.integer(0)
    if consumer.kept.stages:
        with stages_of(block, pipeline_of(step)):
            stage = block.emitter.index(axis_index(pipeline_of(step).axis))
            fill(block, consumer.kept, stage)
    behind = consumer.behind
    other, last = (empty_place(block) if each.stages else None for each in (held, behind))
    filled = [(ring, empty_place(block)) for ring in rings if ring.stages]
    with points(block, every_point(step), zero):
        if other is not None:
            fill_stage(block, held, other)
        with stages_of(block, pipeline_of(step), is_copying=True):
            for ring, place in filled:
                fill_stage(block, ring, place)
        if last is not None:  # work on the point before is done by now
            fill_stage(block, behind, last)


def fill_stage(block: Block, ring: Ring, place: Place) -> None:
    """Copy the boxes of one stage when it is empty."""
    stage, parity = read(block, place.stage), read(block, place.parity)
    add(block, "barrier_wait", (ring.empty, stage, parity))
    fill(block, ring, stage)
    advance(block, ring, place, stage)


def fill(block: Block, ring: Ring, stage: int) -> None:
    """Copy the boxes of one stage."""
    add(block, "barrier_expect", (ring.full, stage), ring.bytes)
    for each in ring.boxes:
        copy_slabs(block, ring, each, stage)


def fill_values(block: Block, step: Persistent, ring: Ring, write: Write) -> None:
    """Write what computes the values of stages: one warp does."""
    emitter, outer = block.emitter, (block.thread, block.threads)
    lane = emitter.index(axis_index(block.thread) % WARP)
    block.thread, block.threads = Axis("lane", WARP), WARP
    emitter.bind(block.thread, lane)
    place = empty_place(block)
    with points(block, every_point(step), emitter.integer(0)), stages_of(block, pipeline_of(step)):
        stage, parity = read(block, place.stage), read(block, place.parity)
        add(block, "barrier_wait", (ring.empty, stage, parity))
        enter_stage(block, ring, stage)
        write(block, ring.values)
        add(block, "warp_barrier")
        with emitter.when(emitter.conditions([(axis_index(block.thread), 0, 0)])):
            add(block, "barrier_arrive", (ring.full, stage))
        advance(block, ring, place, stage)
    block.thread, block.threads = outer


def tensor_of(block: Block, step: CopyBox) -> int:
    """Name the tensor map of a box: of what one block of a cluster brings."""
    span, rows, *rest = step.tensor.box
    part = replace(step.tensor, box=(span, rows // step.together, *rest))
    return block.emitter.add("tensor", None, arg=block.tensor(part))


def copy_slabs(block: Block, ring: Ring, step: CopyBox, stage: int) -> None:
    """Copy a box into a stage, slab by slab."""
    emitter, layout = block.emitter, swizzled(block, step.tile)
    span, rows, *_ = step.tensor.box
    rows //= step.together
    tensor = tensor_of(block, step)
    start = emitter.arithmetic("mul", stage, emitter.integer(layout.size))
    for slab in range(step.slab.size):
        offset = emitter.integer(step.start + slab * layout.shape[0] * layout.span)
        place = emitter.arithmetic("add", start, offset)
        number = {step.slab: constant(slab)}
        at = [emitter.index(substitute(i, number)) for i in (*step.at, *step.offsets)]
        where = (tensor, block.places[step.tile], place, ring.full, stage)
        if step.together > 1:
            spread = step.together, rows, span
            add(block, "copy_box_all", (*where, ring.rank, *at), spread)
        else:
            add(block, "copy_box", (*where, *at), len(step.offsets) or None)


def consume(block: Block, step: Persistent, consumer: Consumer) -> None:
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
        block.team = teams.threads if teams.count == 1 else 0
        run_points(block, step, consumer, team)
        finish_boxes(block, step)
    (block.thread, block.threads), block.team = outer, 0


def run_points(block: Block, step: Persistent, consumer: Consumer, team: int) -> None:
    """Write what a team does at each of its points."""
    emitter, teams = block.emitter, step.teams
    ring, pipeline = consumer.ring, pipeline_of(step)
    if is_ranged(step, pipeline):
        run_ranges(block, step, consumer, team)
        return
    if teams.count == 1 and not is_plain(step, pipeline):
        run_streams(block, step, consumer, team)
        return
    depth = pipeline.axis.size
    done = variable(block, emitter.arithmetic("mul", team, emitter.integer(depth)))
    is_leader = emitter.raw("equal", bool_, team, emitter.integer(0))
    turn = variable(block, emitter.cast(is_leader, emitter.index_dtype))
    with points(block, step, team):
        count = Axis("stages", (1 << 31) - 1)
        if step.shares is None:
            emitter.bind(count, read(block, done))
        else:
            emitter.bind(count, steps_before(block, step, step.shares))
        place = place_at(block, ring, count)
        more = emitter.integer(depth * teams.count)
        assign(block, done, emitter.arithmetic("add", read(block, done), more))
        run_point(block, step, consumer, (team, turn), place)


def place_at(block: Block, ring: Ring, count: Axis) -> Place:
    """Find the stage after so many."""
    stage = block.emitter.index(axis_index(count) % ring.stages)
    parity = block.emitter.index(axis_index(count) // ring.stages % 2)
    return Place(variable(block, stage), variable(block, parity))


def run_point(
    block: Block, step: Persistent, consumer: Consumer, turns: tuple[int, int], place: Place
) -> None:
    """Write what a team does at one point; `turns` are its number and the parity of its turn."""
    (team, turn), teams = turns, step.teams
    for each in step.body:
        if not isinstance(each, Pipeline):
            consumer.write(block, (each,))
            continue
        if teams.count > 1:
            add(block, "barrier_wait", (consumer.turn, team, read(block, turn)))
            flip(block, turn)
        is_ever = not is_ranged(step, each)
        passing = teams.threads if is_ever else WARP
        begun = partial(pass_turn, block, consumer.turn, team, teams.count, passing)
        multiply_stages(block, consumer, each, place, begun, is_ever)


def is_ranged(step: Persistent, pipeline: Pipeline) -> bool:
    """Tell whether points have some of the steps each, and a pipeline does nothing but multiply."""
    has_range = pipeline.first is not None and pipeline.stop is not None
    is_product = all(isinstance(each, Dot) for each in pipeline.consume)
    return has_range and is_product and step.shares is None


def run_ranges(block: Block, step: Persistent, consumer: Consumer, team: int) -> None:
    """Write what a team does where points have different steps: it counts those of all points."""
    emitter, pipeline = block.emitter, pipeline_of(step)
    dtype, zero = emitter.index_dtype, emitter.integer(0)
    is_leader = emitter.raw("equal", bool_, team, zero)
    turn = variable(block, emitter.cast(is_leader, dtype))
    done, number = variable(block, zero), variable(block, zero)
    with points(block, every_point(step), zero):
        count = Axis("stages", (1 << 31) - 1)
        emitter.bind(count, read(block, done))
        with emitter.when(emitter.raw("equal", bool_, read(block, number), team)):
            run_point(block, step, consumer, (team, turn), place_at(block, consumer.ring, count))
        steps = emitter.index(pipeline.stop - pipeline.first)  # type: ignore[operator]
        assign(block, done, emitter.arithmetic("add", read(block, done), steps))
        following = emitter.arithmetic("add", read(block, number), emitter.integer(1))
        last = emitter.integer(step.teams.count)
        assign(block, number, emitter.arithmetic("remainder", following, last))


def is_plain(step: Persistent, pipeline: Pipeline) -> bool:
    """Tell whether a pipeline multiplies stages and does nothing else, as often as is known."""
    is_whole = pipeline.first is None and pipeline.stop is None
    is_known = is_whole or step.shares is not None
    return is_known and all(isinstance(each, Dot) for each in pipeline.consume)


def pass_turn(block: Block, turn: int, team: int, count: int, passing: int) -> None:
    """Let the next team begin: of so many threads the first one says so.

    Products keep the warps of a team together. At a point without any each warp passes the turn:
    else it came round before the last warp had seen it, and a wait tells two phases apart.
    """
    if count == 1:
        return
    emitter = block.emitter
    following = emitter.arithmetic("add", team, emitter.integer(1))
    following = emitter.arithmetic("remainder", following, emitter.integer(count))
    first = axis_index(block.thread) % passing
    with emitter.when(emitter.conditions([(first, 0, 0)])):
        add(block, "barrier_arrive", (turn, following))


def multiply_stages(
    block: Block,
    consumer: Consumer,
    pipeline: Pipeline,
    place: Place,
    begun: Callable[[], None],
    is_ever: bool,
) -> None:
    """Write the main loop, one group under way, and `begun`; `is_ever`: each point has a stage."""
    emitter, ring, kept = block.emitter, consumer.ring, consumer.kept
    before = variable(block, emitter.integer(0))
    accumulators = {}
    first = pipeline.first or constant(0)
    with stages_of(block, pipeline):
        stage = arrived(block, ring, place)
        if kept.stages:
            number = emitter.index(axis_index(pipeline.axis))
            add(block, "barrier_wait", (kept.full, number, emitter.integer(0)))
            enter_stage(block, kept, number)
        add(block, "wgmma_fence")
        for each in pipeline.consume:
            check(isinstance(each, Dot), "a pipeline multiplies", each)
            accumulators[each.acc] = block.arrays[each.acc]  # type: ignore[union-attr]
            dot(block, each)  # type: ignore[arg-type]
        add(block, "wgmma_commit")
        add(block, "wgmma_wait", (), 1)
        later = axis_index(pipeline.axis) - first
        with emitter.when(emitter.conditions([(later, 1, pipeline.axis.size)])):
            release(block, ring, read(block, before))
        assign(block, before, stage)
        advance(block, ring, place, stage)
    begun()
    add(block, "wgmma_wait", tuple(accumulators.values()), 0)
    if is_ever:
        release(block, ring, read(block, before))
        return
    steps = (pipeline.stop or constant(pipeline.axis.size)) - first
    with emitter.when(emitter.conditions([(steps, 1, pipeline.axis.size)])):
        release(block, ring, read(block, before))


def finish_boxes(block: Block, step: Persistent) -> None:
    """Wait until the copy engine has read the last boxes: then shared memory may go."""
    if any(isinstance(each.box, BoxStore) for each in stores_in(step.body)):
        with block.emitter.when(first_lane(block)):
            add(block, "store_box_wait", (), 0)


def stores_in(steps: Iterable[Step]) -> Iterator[Store]:
    """List the stores of steps, and of those inside them."""
    for step in steps:
        if isinstance(step, Store):
            yield step
        inside = getattr(step, "body", getattr(step, "consume", ()))
        yield from stores_in(inside)


def first_lane(block: Block) -> int | None:
    """Mask of the first thread of every warp."""
    return block.emitter.conditions([(axis_index(block.thread) % 32, 0, 0)])


CELLS = 12, True  # a workspace: bytes, and that they are zero before and after


def ahead(block: Block, part: TilePart, number: int, blocks: int, write: Write) -> None:
    """Write a part ahead of that of a block; its cells are the workspace of a number."""
    emitter = block.emitter
    check(not part.workspaces, "a part ahead has no workspaces", part)
    cells = emitter.add("workspace", int32, arg=number)
    shared = emitter.add("shared", int32, arg=block.reserve(4))
    claimed = emitter.add("claims", emitter.index_dtype, (cells, shared), part.blocks)
    with emitter.scope():
        place = Axis("claimed", part.blocks)
        emitter.bind(place, claimed)
        bind_point(block, part.grid, axis_index(place))
        with threads_of_two(block):
            block.declare(part.tiles)
            write(block, part.steps)
    emitter.add("end", None)
    emitter.add("claims_wait", None, (cells,), (part.blocks, blocks))


def power_below(threads: int) -> int:
    """Find how many threads of a block run a part ahead: a power of two."""
    return 1 << threads.bit_length() - 1


@contextmanager
def threads_of_two(block: Block) -> Iterator[None]:
    """Let so many threads of a block run steps."""
    outer = block.thread, block.threads
    count = power_below(block.threads)
    if count == block.threads:
        yield
        return
    with role(block, Role(0, count)):
        own = Axis("worker", count)
        block.emitter.bind(own, block.emitter.index(axis_index(block.thread)))
        block.thread, block.threads, block.team = own, count, count
        yield
    (block.thread, block.threads), block.team = outer, 0
