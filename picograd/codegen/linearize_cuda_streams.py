"""Main loops on Hopper that work on the results of their products, such as attention's.

A product is waited for where its result is read. In a rotated pipeline the products at the end of
a position run beside those that begin the next one, under the work on elements of that:

    scores 0, work 0
    for every other position n: scores n and values n - 1 begin, work n
    values of the last

What only values read has stages of its own, which are free one position later.

A lone product whose results have two places (`Tile.stages`) runs under the work on those before.
"""

from collections.abc import Sequence
from itertools import takewhile

from picograd.codegen.block_cuda import Block
from picograd.codegen.deal_cuda import points
from picograd.codegen.linearize_cuda_rings import (
    Consumer,
    Place,
    Ring,
    Write,
    advance,
    arrived,
    ends_of,
    release,
    stages_of,
    variable,
)
from picograd.codegen.products_cuda import add, dot
from picograd.codegen.tile import Accumulate, Assign, Dot, Step, Store, When
from picograd.codegen.tile_pipeline import CopyBox, Persistent, Pipeline
from picograd.codegen.unseen import tiles_read
from picograd.dtype import bool_
from picograd.errors import check, internal
from picograd.schedule.index import Axis

TURN = 4  # positions of a turn of the loop where products alternate


def run_streams(block: Block, step: Persistent, consumer: Consumer, team: int) -> None:
    """Write what the one team does where work on elements stands between products."""
    ring, held, write = consumer.ring, consumer.held, consumer.write
    zero = block.emitter.integer(0)
    kept = (ring, held, consumer.late) if consumer.late.stages else (ring, held)
    place, other, *late = (Place(variable(block, zero), variable(block, zero)) for _ in kept)
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
            elif not isinstance(each, CopyBox):
                write(block, (each,))


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
        count = layout.register_count
        other = block.emitter.add("array", tile.dtype, arg=count)
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
            emitter.bind(self.pipeline.axis, first)
            self.position([])
        second = emitter.arithmetic("add", first, emitter.integer(1))
        with emitter.loop(second, stop, 1, None) as variable:
            emitter.bind(self.pipeline.axis, variable)
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
