"""Main loops on Hopper that work on the results of their products, such as attention's.

A product is waited for where its result is read. In a rotated pipeline the products at the end of
a position run beside those that begin the next one, under the work on elements of that:

    scores 0, work 0
    for every other position n: scores n and values n - 1 begin, work n
    values of the last

What only values read has stages of its own, which are free one position later.

A lone product whose results have two places (`Tile.stages`) runs under the work on those before.

Rings of stages on Hopper: barriers, and where a role is in them.

Ring    stages that are filled by one role and read by another
Place   the stage that a role is at, and the parity of its phase
"""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import takewhile

from picograd.codegen.block_cuda import Block
from picograd.codegen.boxes import CopyBox, Persistent, Pipeline
from picograd.codegen.deal_cuda import add, dot, points
from picograd.codegen.dot import Dot
from picograd.codegen.tile import Accumulate, Assign, Step, Store, Tile, When
from picograd.codegen.unseen import tiles_read
from picograd.dtype import bool_, uint64
from picograd.errors import check, internal
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, axis_index

GROUP = 128  # threads of a warpgroup
WARP, WARPS = 32, 4  # threads of a warp, warps of a warpgroup
Write = Callable[[Block, Sequence[Step]], None]


@dataclass(frozen=True, slots=True)
class Ring:
    """Stages that the first warpgroup fills, and the barriers that guard them.

    Boxes are copied, `values` are computed by a warp of its own.
    """

    boxes: tuple[CopyBox, ...]
    values: tuple[Assign, ...]
    stages: int
    bytes: int  # of the boxes of one stage
    full: int
    empty: int
    together: int = 1  # blocks that bring boxes to one another
    rank: int = -1  # the number of this one among them
    is_multiplied: bool = False  # by threads, which read boxes
    is_read: bool = False  # by threads, under work on elements

    @property
    def apart(self) -> bool:
        """Tell whether warps read stages, and not the tensor cores for all of a warpgroup."""
        return self.is_worked_on or self.is_multiplied

    @property
    def is_worked_on(self) -> bool:
        """Tell whether work on elements reads stages."""
        return bool(self.values) or self.is_read


@dataclass(frozen=True, slots=True)
class Place:
    """Variables of a role: the stage it is at, and the parity of its phase."""

    stage: int
    parity: int


def pointer(block: Block, count: int) -> int:
    """Reserve barriers."""
    return block.emitter.add("shared", uint64, arg=block.reserve(8 * count))


def make_ring(
    block: Block,
    steps: Sequence[Step],
    at_once: Container[str] = (),
    worked_on: Container[str] = (),
) -> Ring:
    """Reserve the barriers of what some steps fill; without steps there is no ring.

    Tiles that threads read, or multiply `at_once`, warps read apart.
    """
    boxes = tuple(each for each in steps if isinstance(each, CopyBox))
    values = tuple(each for each in steps if isinstance(each, Assign))
    check(len(boxes) + len(values) == len(steps), "a ring is filled with boxes and values", steps)
    tiles = [block.tiles[each.tile] for each in boxes]
    stages = tiles[0].stages if tiles else 0
    full, empty = (pointer(block, stages) if stages else -1 for _ in range(2))
    size = sum(bytes_of(*each) for each in zip(boxes, tiles, strict=True))
    together = max((each.together for each in boxes), default=1)
    is_multiplied = any(each.tile in at_once for each in boxes)
    ring = Ring(boxes, values, stages, size, full, empty, together, is_multiplied=is_multiplied)
    is_read = any(each.tile in worked_on for each in boxes)
    return replace(ring, is_read=is_read)


def fillers(ring: Ring) -> int:
    """Count who says that a stage is full: who copies boxes, and who computes values."""
    return 2 if ring.values else 1


def bytes_of(step: CopyBox, tile: Tile) -> int:
    """Count what boxes bring to a stage."""
    return product(step.tensor.box) * step.slab.size * tile.dtype.itemsize


def leave_unfilled(block: Block, ring: Ring) -> None:
    """Say which rows of stages no box fills."""
    for each in ring.boxes:
        tile = block.tiles[each.tile]
        itemsize = tile.dtype.itemsize
        count = product(tile.shape)
        nbytes = 0
        for other in ring.boxes:
            if other.tile == each.tile:
                nbytes += bytes_of(other, tile)
        filled = nbytes // itemsize
        for stage in range(ring.stages if filled < count else 0):
            place = block.emitter.integer(stage * count + filled)
            left = (count - filled) * itemsize
            where = block.places[each.tile], place
            add(block, "unfilled", where, left)


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
    return emitter.get(variable, emitter.integer(0))


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


def ends_of(block: Block, pipeline: Pipeline) -> tuple[int, int]:
    """Find the first stage of a point, and what it stops before."""
    emitter = block.emitter
    first, stop = emitter.integer(0), emitter.integer(pipeline.axis.size)
    if pipeline.first is not None:
        least = emitter.index(pipeline.first)
        first = emitter.raw("maximum", emitter.index_dtype, first, least)
    if pipeline.stop is not None:
        stop = emitter.raw("minimum", emitter.index_dtype, stop, emitter.index(pipeline.stop))
    return first, stop


@contextmanager
def stages_of(
    block: Block, pipeline: Pipeline, is_rest: bool = False, is_copying: bool = False
) -> Iterator[None]:
    """Open the loop over the stages of a point: those from its first, or behind it, to its last.

    What masks hide between these is left out, but for the first. What is known of the next one is
    read before the work on this one, under which it comes, but behind copies, which wait for
    nothing.
    """
    emitter = block.emitter
    first, stop = ends_of(block, pipeline)
    start = emitter.arithmetic("add", first, emitter.integer(1)) if is_rest else first
    known = [variable(block, each) for each in known_at(block, pipeline, start)]
    with emitter.loop(start, stop, 1, None) as position:
        for (axis, _), each in zip(pipeline.known, known, strict=True):
            emitter.bind(axis, read(block, each))
        if not is_copying:
            read_next(block, pipeline, known, position)
        emitter.bind(pipeline.axis, position)
        with ExitStack() as stack:
            if pipeline.seen is not None:
                seen = emitter.index(pipeline.seen)
                is_seen = emitter.raw("less_equal", bool_, emitter.integer(0), seen)
                if not is_rest:
                    is_first = emitter.raw("equal", bool_, position, first)
                    is_seen = emitter.raw("logical_or", bool_, is_seen, is_first)
                stack.enter_context(emitter.when(is_seen))
            yield
        if is_copying:
            read_next(block, pipeline, known, position)


def read_next(block: Block, pipeline: Pipeline, known: Sequence[int], position: int) -> None:
    """Read what is known of the position behind one."""
    if not known:
        return
    emitter = block.emitter
    following = emitter.arithmetic("add", position, emitter.integer(1))
    for each, value in zip(known, known_at(block, pipeline, following), strict=True):
        assign(block, each, value)


def known_at(block: Block, pipeline: Pipeline, position: int) -> list[int]:
    """Find what is known of a position, or of the last one behind the end."""
    emitter = block.emitter
    if not pipeline.known:
        return []
    last = emitter.integer(pipeline.axis.size - 1)
    here = emitter.raw("minimum", emitter.index_dtype, position, last)
    with emitter.scope({pipeline.axis: here}):  # nothing found here is that of another position
        return [emitter.index(index) for _, index in pipeline.known]


@dataclass(frozen=True, slots=True)
class Consumer:
    """What the teams read: stages of a pipeline, what is held for a point, and whose turn it is.

    `late` are the stages that only the last products of a rotated pipeline read, `kept` those that
    are filled once, for every point. Work `behind` the pipeline reads boxes of its own.
    """

    ring: Ring
    late: Ring
    held: Ring
    kept: Ring
    behind: Ring
    turn: int
    write: Write


def empty_place(block: Block) -> Place:
    """Begin at the first stage, which nobody has to empty before."""
    return Place(
        variable(block, block.emitter.integer(0)), variable(block, block.emitter.integer(1))
    )


def arrived(block: Block, ring: Ring, place: Place) -> int:
    """Wait for a stage, and find its number."""
    stage, parity = read(block, place.stage), read(block, place.parity)
    add(block, "barrier_wait", (ring.full, stage, parity))
    enter_stage(block, ring, stage)
    return stage


def enter_stage(block: Block, ring: Ring, stage: int) -> None:
    """Let the tiles of a ring be those of a stage."""
    axis = Axis("stage", ring.stages)
    block.emitter.bind(axis, stage)
    names = [each.tile for each in ring.boxes] + [each.tile for each in ring.values]
    block.stages.update(dict.fromkeys(names, axis))


def release(block: Block, ring: Ring, stage: int) -> None:
    """Say that this warpgroup has read a stage; every warp does where warps read it apart.

    What threads read of a box, the copy engine must not overtake with the next one.
    """
    emitter = block.emitter
    size = WARP if ring.apart else GROUP
    if ring.is_multiplied or ring.is_read:
        add(block, "async_fence")
    if ring.apart:
        add(block, "warp_barrier")
    with emitter.when(emitter.conditions([(axis_index(block.thread) % size, 0, 0)])):
        if ring.together > 1:
            add(block, "barrier_arrive_all", (ring.empty, stage), ring.together)
        else:
            add(block, "barrier_arrive", (ring.empty, stage))


TURN = 4  # positions of a turn of the loop where products alternate


def run_streams(block: Block, step: Persistent, consumer: Consumer, team: int) -> None:
    """Write what the one team does where work on elements stands between products."""
    ring, held, write = consumer.ring, consumer.held, consumer.write
    zero = block.emitter.integer(0)
    kept = (ring, held, consumer.late) if consumer.late.stages else (ring, held)
    place, other, *late = (Place(variable(block, zero), variable(block, zero)) for _ in kept)
    behind, last = consumer.behind, other
    if behind.stages:
        last = Place(variable(block, zero), variable(block, zero))
    with points(block, step, team):
        for each in step.body:
            if isinstance(each, Pipeline):
                stage = arrived(block, held, other) if held.stages else -1
                places = place, *late
                rotated = Rotated(block, each, consumer, places) if each.is_rotated else None
                if rotated is not None:
                    rotated.run()
                elif has_two_places(block, each):
                    Alternating(block, each, consumer, place).run()
                else:
                    stream_stages(block, each, ring, place, write)
                if held.stages:
                    release(block, held, stage)
                    advance(block, held, other, stage)
                if rotated is not None:
                    rotated.end()
                stage = arrived(block, behind, last) if behind.stages else -1
            elif not isinstance(each, CopyBox):
                write(block, (each,))
        if behind.stages:
            release(block, behind, stage)
            advance(block, behind, last, stage)


def last_products(pipeline: Pipeline) -> list[Dot]:
    """List the products at the end of a position."""
    found = takewhile(lambda each: isinstance(each, Dot), reversed(pipeline.consume))
    return list(reversed(list(found)))


def late_boxes(pipeline: Pipeline) -> list[CopyBox]:
    """List the boxes of a rotated pipeline that only its last products read."""
    if not pipeline.is_rotated:
        return []
    last = last_products(pipeline)
    first = [each for each in pipeline.consume if isinstance(each, Dot) and each not in last]
    early = {name for each in first for name in (each.a, each.b)}
    late = {each.b for each in last}
    is_split = bool(late) and early.isdisjoint(late)
    check(is_split, "a rotated pipeline ends with products that share no stages", pipeline)
    boxes = [each for each in pipeline.produce if isinstance(each, CopyBox)]
    return [each for each in boxes if each.tile in late]


def stream_stages(block: Block, pipeline: Pipeline, ring: Ring, place: Place, write: Write) -> None:
    """Write a main loop that works on the results of its products: it waits when one is needed."""
    others = [step for step in pipeline.consume if not isinstance(step, Dot)]
    products = len(pipeline.consume) - len(others)
    made = set().union(*map(touched, others))
    with stages_of(block, pipeline):
        stage = arrived(block, ring, place)
        waiting: list[Dot] = []
        left, is_released = products, False
        for each in pipeline.consume:
            if isinstance(each, Dot):
                left -= 1
                if not is_under_way(each):
                    finish(block, waiting, len(waiting), stage, made)
                multiply(block, each)
                waiting += [each] if is_under_way(each) else []
                continue
            names = touched(each)
            needed = [n for n, x in enumerate(waiting, 1) if x.acc in names or x.a in names]
            finish(block, waiting, max(needed, default=0), stage, made)
            if not (left or waiting or ring.is_worked_on or is_released):
                release(block, ring, stage)
                is_released = True
            write(block, (each,))
        finish(block, waiting, len(waiting), stage, made)
        if not is_released:
            release(block, ring, stage)
        advance(block, ring, place, stage)


def is_under_way(step: Dot) -> bool:
    """Tell whether a product runs beside what follows it."""
    return step.unit == "wgmma"


def multiply(block: Block, step: Dot) -> None:
    """Begin a product, a group of its own, or multiply at once."""
    if not is_under_way(step):
        dot(block, step)
        return
    add(block, "wgmma_fence")
    dot(block, step)
    add(block, "wgmma_commit")


def finish(block: Block, waiting: list[Dot], count: int, stage: int, made: set[str]) -> None:
    """Wait for the first of the products under way; left operands that stay are kept."""
    if not count:
        return
    done, waiting[:] = waiting[:count], waiting[count:]
    add(block, "wgmma_wait", [block.arrays[each.acc] for each in done], len(waiting))
    for each in done:
        if each.a in block.packed and each.a not in made:
            add(block, "wgmma_keep", (block.packed[each.a], stage))


def touched(step: Step) -> set[str]:
    """List the tiles that a step reads or writes."""
    if isinstance(step, When):
        return set().union(*map(touched, step.body))
    if not isinstance(step, Assign | Accumulate | Store):
        internal("work on elements is assignments, sums of rows, and what is stored of them", step)
    found = tiles_read(step.expr)
    return found if isinstance(step, Store) else {step.tile, *found}


def tiles_worked_on(steps: Sequence[Step]) -> set[str]:
    """List the tiles that work on elements reads, or writes."""
    plain = [each for each in steps if isinstance(each, When | Assign | Accumulate | Store)]
    return set().union(*map(touched, plain))


def has_two_places(block: Block, pipeline: Pipeline) -> bool:
    """Tell whether the results of the one product of a pipeline have two places."""
    first, *work = pipeline.consume
    is_lone = isinstance(first, Dot) and not any(isinstance(each, Dot) for each in work)
    return is_lone and block.tiles[first.acc].stages == 2


class Alternating:
    """This class writes a main loop whose products use two places in turn, under work on the other.

    A turn of the loop is some positions, and ends with none under way, or ptxas would wait for
    each.
    """

    def __init__(self, block: Block, pipeline: Pipeline, consumer: Consumer, place: Place) -> None:
        self.block, self.pipeline, self.consumer, self.place = block, pipeline, consumer, place
        self.product, *self.work = pipeline.consume
        tile = block.tiles[self.product.acc]
        layout = tile.layout
        is_known = pipeline.first is None and pipeline.stop is None
        if layout is None or not is_known:
            internal("two places are those of registers, for positions that are known", pipeline)
        other = block.emitter.add("array", tile.dtype, arg=layout.register_count)
        self.arrays = block.arrays[tile.name], other

    def run(self) -> None:
        """Write the loop, and the positions that fill no turn."""
        turns, rest = divmod(self.pipeline.axis.size, TURN)
        if turns:
            with self.block.emitter.axis_loop(Axis("turn", turns), None):
                self.positions(TURN)
        self.positions(rest)

    def positions(self, count: int) -> None:
        """Write so many positions: each product begins before the one before is worked on."""
        before = -1
        for number in range(count):
            place = number % 2
            stage = self.begin(place)
            if number:
                self.finish(1 - place, before, 1)
            before = stage
        if count:
            place = (count - 1) % 2
            self.finish(place, before, 0)

    def begin(self, number: int) -> int:
        """Begin a product in one of the places when its stage is there."""
        block, ring = self.block, self.consumer.ring
        stage = arrived(block, ring, self.place)
        block.arrays[self.product.acc] = self.arrays[number]
        add(block, "wgmma_fence")
        dot(block, self.product)
        add(block, "wgmma_commit")
        advance(block, ring, self.place, stage)
        return stage

    def finish(self, number: int, stage: int, under_way: int) -> None:
        """Wait for the product in a place and work on it."""
        block = self.block
        array = self.arrays[number]
        block.arrays[self.product.acc] = array
        add(block, "wgmma_wait", [array], under_way)
        release(block, self.consumer.ring, stage)
        self.consumer.write(block, self.work)


class Rotated:
    """This class writes a rotated main loop; see the module docstring."""

    def __init__(
        self, block: Block, pipeline: Pipeline, consumer: Consumer, places: tuple[Place, ...]
    ) -> None:
        self.block, self.pipeline, self.consumer = block, pipeline, consumer
        self.place, self.late = places
        self.last = last_products(pipeline)
        rest = pipeline.consume[: -len(self.last)]
        self.first = [each for each in rest if isinstance(each, Dot)]
        self.work = [each for each in rest if not isinstance(each, Dot)]
        self.made = set().union(*map(touched, self.work))
        is_split = list(rest) == [*self.first, *self.work] and bool(self.first)
        check(is_split, "a rotated pipeline is products, work on elements, products", pipeline)

    def run(self) -> None:
        """Write the loop, and what is before and behind it."""
        block, emitter = self.block, self.block.emitter
        first, stop = ends_of(block, self.pipeline)
        self.is_any = emitter.raw("less", bool_, first, stop)
        with emitter.when(self.is_any):
            for (axis, _), value in zip(
                self.pipeline.known, known_at(block, self.pipeline, first), strict=True
            ):
                emitter.bind(axis, value)
            emitter.bind(self.pipeline.axis, first)
            self.position([])
        with stages_of(block, self.pipeline, True):
            self.position(self.last)

    def end(self) -> None:
        """Write the last products, once what is held may go."""
        with self.block.emitter.when(self.is_any):
            stage = self.begin(self.last, self.consumer.late, self.late)
            self.finish(self.last, stage)

    def begin(self, dots: Sequence[Dot], ring: Ring, place: Place) -> int:
        """Begin products when their stage is there."""
        block = self.block
        stage = arrived(block, ring, place)
        add(block, "wgmma_fence")
        for each in dots:
            dot(block, each)
        add(block, "wgmma_commit")
        return stage

    def finish(self, dots: list[Dot], stage: int, under_way: int = 0) -> None:
        """Wait for products; what the last ones read is free then."""
        block, late = self.block, self.consumer.late
        add(block, "wgmma_wait", [block.arrays[each.acc] for each in dots], under_way)
        if dots == self.last:
            release(block, late, stage)
            advance(block, late, self.late, stage)
            return
        for each in dots:
            if each.a in block.packed and each.a not in self.made:
                add(block, "wgmma_keep", (block.packed[each.a], stage))

    def position(self, before: list[Dot]) -> None:
        """Write one position, under which the last products of the one `before` run."""
        block, ring = self.block, self.consumer.ring
        stage = self.begin(self.first, ring, self.place)
        late = self.begin(before, self.consumer.late, self.late) if before else -1
        self.finish(self.first, stage, len(before) and 1)
        if not ring.is_worked_on:
            release(block, ring, stage)
        waits = {name for each in before for name in (each.acc, each.a)}
        for each in self.work:
            if not waits.isdisjoint(touched(each)):
                self.finish(before, late)
                waits = set()
            self.consumer.write(block, (each,))
        if waits:
            self.finish(before, late)
        if ring.is_worked_on:
            release(block, ring, stage)
        advance(block, ring, self.place, stage)
