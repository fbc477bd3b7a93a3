"""Attention on Hopper: keys and values arrive in boxes, scores stay in the registers of their rows.

    for each tile of rows: hold the rows, or pack them as left operands
      pipeline over blocks of the stream that a mask shows:
        scores = rows @ streamed^T                  wgmma, the left operand in registers
        peak, sums, weights                         elements of the fragment, four lanes a row
        result = result * factor + weights @ values wgmma, the weights in registers
      store result / total

One warpgroup copies; each of the others has 64 rows, and while one works on its elements another
multiplies. Of long rows, weights are multiplied by values under the work on the next block. A
fragment of scores lies in registers as the left operand of the next product wants it
(`WgmmaOperand`), so that nothing moves between the two. The longest tiles of a mask come first.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from picograd.codegen.added_scores import with_added_scores
from picograd.codegen.layout import WgmmaOperand
from picograd.codegen.operands import bind_roles, expr_axes, guarded, narrow, role, size_of
from picograd.codegen.stream_masks import (
    emptied,
    refs_of,
    scaled,
    seen_places,
    settled,
    shown_of,
    unmasked,
    unrounded,
    unrounded_sum,
    unscaled,
    with_few_operations,
)
from picograd.codegen.streams import (
    Score,
    Stream,
    analyse,
    has_boxes,
    is_ref,
    is_tile,
    narrow_streams,
    read,
    replaced,
    subtracted,
    unconverted,
)
from picograd.codegen.templates import (
    attention_ahead,
    attention_gradient_cuda,
    attention_plain,
    attention_tf32,
)
from picograd.codegen.templates.attention_frame import (
    GRAIN,
    MEMORY,
    ROWS,
    SHARING,
    SPAN,
    WARPGROUP,
    Frame,
    Schedule,
    or_lowest,
    side_by_side,
)
from picograd.codegen.templates.attention_splits import REGISTERS, finish, shared_out, split_count
from picograd.codegen.templates.attention_vectors import Vectors, boxes_of, is_spread
from picograd.codegen.tile import Accumulate, Assign, Dot, Step, TileKernel, TilePart
from picograd.errors import internal
from picograd.graph.ops import OPS
from picograd.helpers import round_up
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Compute, Condition, Expr, Kernel, binary, cast, const, walk
from picograd.schedule.monoid import COMBINE
from picograd.schedule.score_masks import hiding
from picograd.target import Target

PLAIN_ROWS, PLAIN_PLACES = (8, 16, 32, 64), (64, 32, 16)  # of a block on CUDA cores
SPARE = 1024  # bytes of shared memory that steps exchange values in
LONG, LONGER = 1024, 4096  # places of a stream
PLACES = 128, 96, 64  # of a block of the stream
FEW_BLOCKS = 4  # of a split
MOST_LIVE = 200  # registers of a thread for fragments


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write an attention kernel: parts that stream, and what is found ahead of them."""
    *before, part = kernel.parts
    stream = with_added_scores(analyse(kernel, with_few_operations(part)))
    stream = with_sharers_beside(with_long_rows(stream))
    built = [build_stream(each, target) for each in narrow_streams(stream)]
    threads = built[0][1]
    ahead = tuple([attention_ahead.build(kernel, each, target, threads) for each in before])
    parts = tuple([replace(each, ahead=ahead) for each, _ in built])
    return TileKernel(kernel, parts, threads)


def build_stream(stream: Stream, target: Target) -> tuple[TilePart, int]:
    """Write a part that streams, and count its threads: the first that has memory for two stages.

    Narrower blocks with a bias in boxes are faster than wide ones without.
    """
    is_float32 = attention_tf32.is_float32(stream)
    if is_float32:
        options = attention_tf32.schedules(stream, target)
    elif stream.peak is None:
        options = attention_gradient_cuda.schedules(stream)
    else:
        options = schedules(stream, target)
    found = None
    for option in options:
        schedule = option if is_float32 else shared_out(stream, option, target)
        frame = Frame(stream, schedule, target)
        found = program_of(frame), WARPGROUP * (1 + schedule.groups)
        is_crowded = frame.is_crowded and schedule.size > SPAN
        if frame.stages >= 2 and not is_crowded:
            return found
    return build_plain(stream, target) if is_float32 or found is None else found


def build_plain(stream: Stream, target: Target) -> tuple[TilePart, int]:
    """Write a part for CUDA cores, of as many places at once as shared memory holds."""
    count = size_of(stream.rows)
    rows = next(rows for rows in PLAIN_ROWS if rows >= count or rows == ROWS)
    for size in PLAIN_PLACES:
        schedule = Schedule(1, size, (0, 0), rows=rows, is_plain=True)
        if stream.peak is not None and count <= ROWS:
            schedule = replace(schedule, splits=split_count(stream, schedule, target))
        part = attention_plain.plain(program_of(Frame(stream, schedule, target)))
        if attention_plain.shared_bytes(part) <= target.shared_bytes - SPARE:
            break
    return part, attention_plain.COUNT


def program_of(frame: Frame) -> TilePart:
    """Write the program of a block."""
    if frame.stream.peak is None:
        return attention_gradient_cuda.Writer(frame).part()
    return Writer(frame).part()


def with_long_rows(stream: Stream) -> Stream:
    """Let rows be those of one axis where they fill tiles: masks then hide whole blocks of them.

    Heads that share keys are rows of one tile where they are few, and a batch where they are long.
    """
    if size_of(stream.rows) <= ROWS and are_one_dimension(stream):
        return stream
    longest = max(reversed(stream.rows), key=lambda axis: axis.size)  # wherever it is in memory
    others = [axis for axis in stream.rows if axis is not longest]
    return replace(stream, batch=(*stream.batch, *others), rows=(longest,))


def with_sharers_beside(stream: Stream) -> Stream:
    """Let those of a batch that share a bias of every place be worked on beside one another.

    What is read of it is in the cache for all but the first of them.
    """
    parts = [part for compute in stream.computes for part in walk(compute.body)]
    loads = [expr_axes(part) for part in parts if part.op == "load"]
    moving = {*stream.rows, *stream.over}
    biases = [axes for axes in loads if moving <= axes]
    own = [axis for axis in stream.batch if all(axis in axes for axes in biases)]
    shared = [axis for axis in stream.batch if axis not in own]
    return replace(stream, batch=(*own, *shared))


def are_one_dimension(stream: Stream) -> bool:
    """Tell whether rows may be those of several axes: a forward pass packs what boxes cannot."""
    if stream.peak is not None or len(stream.rows) < 2:
        return True
    return all(has_boxes(stream, score.row, score.depth) for score in stream.scores)


def schedules(stream: Stream, target: Target) -> Iterator[Schedule]:
    """List how blocks may work: small ones, else of so many warpgroups.

    Three gain a tenth of long streams of heads up to 64, nothing of those up to 32. Tiles of rows
    are then few and high, which costs more where a mask hides much of a high tile
    (docs/records/0012-attention). What is read for rows beside scores, as a slope, has no room in
    their registers. Few rows are one tile, of one warpgroup, which waits for less before it begins,
    and works for less at the end, where blocks of narrow heads are small.
    """
    depths = [size_of(score.depth) for score in stream.scores]
    widths = [size_of(each.columns) for each in stream.products]
    width = max(depths + widths)
    if size_of(stream.rows) <= ROWS:
        size = places_of(stream, 1) if width > SPAN else SPAN
        yield Schedule(1, size, (0, 0))
        return
    is_held = all(narrow(score.row).op == "load" for score in stream.scores)
    if is_held:
        yield from side_by_side(stream, partial(live_registers, stream))
    least = LONGER if emptied(stream) else LONG
    is_long = width <= SPAN and seen_places(stream) >= least and not stream.shown
    if is_held and is_long and any(not is_spread(each, stream) for each in read_beside(stream)):
        yield Schedule(1, PLACES[0], SHARING[2], blocks=2)
    groups = 3 if is_held and is_long and width > SPAN // 2 else 2
    yield Schedule(groups, places_of(stream, groups), REGISTERS[groups])


def peak_of(stream: Stream) -> Compute:
    """Find the maximum of a row."""
    if stream.peak is None:
        internal("scores are edited before the maximum of their row", stream)
    return stream.computes[stream.peak]


def read_beside(stream: Stream) -> list[Expr]:
    """List what in memory edits scores, beside masks."""
    shown = shown_of(peak_of(stream).body)
    return [part for part in walk(shown) if part.op == "load"]


def live_registers(stream: Stream, size: int) -> int:
    """Count the registers of a thread for fragments, where a block has so many places.

    It holds half a value for each column of the result and of the scores, and a quarter for each
    place of the weights, which are packed.
    """
    widths = [round_up(size_of(each.columns), GRAIN) for each in stream.products]
    return sum(widths) // 2 + size * 3 // 4


def places_of(stream: Stream, groups: int) -> int:
    """Choose how many places a block has: as registers and two stages of memory allow."""
    depth, width = (
        sum(round_up(size_of(axes), SPAN) for axes in every)
        for every in (
            [score.depth for score in stream.scores],
            [each.columns for each in stream.products],
        )
    )
    spread = [x.dtype for x in walk(peak_of(stream).body) if is_spread(x, stream)]
    for size in PLACES:
        beside = sum(boxes_of(each, ROWS * groups, size).size * each.itemsize for each in spread)
        memory = 2 * (ROWS * groups * depth + 2 * size * (depth + width) + beside)
        if live_registers(stream, size) <= MOST_LIVE and memory <= MEMORY:
            return size
    return PLACES[-1]


class Writer:
    """This class writes the part; see the module docstring."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.stream = frame, frame.stream
        self.row, self.place = frame.row, frame.place
        self.point = frame.point
        self.dims = frame.dims
        self.dtype = frame.dtype
        (score,) = self.stream.edited
        self.score = frame.add_scores(f"score{score.number}", frame.dtype)
        self.peak = peak_of(self.stream)
        self.inner, self.scale = unscaled(self.peak.body)
        if frame.stream.least is not None:  # a peak is multiplied by the scale at the end
            least = scaled(frame.stream.least, 1 / self.scale)
            frame.stream = self.stream = replace(frame.stream, least=least)
        self.vectors = Vectors(frame)

    # -- the block --------------------------------------------------------------------------------

    def part(self) -> TilePart:
        """Write the program of a block."""
        frame, stream = self.frame, self.stream
        begun = [*frame.begin(), *self.pack_rows()]
        steps = self.consume()
        begun += self.vectors.hold_rows()
        values = self.vectors.fill_places()
        if stream.peak is not None:
            frame.factors[stream.peak] = self.scale
        pipeline = frame.pipeline(values, steps, self.is_rotated())
        return frame.part(begun, pipeline, finish(frame, self.factor))

    def is_rotated(self) -> bool:
        """Tell whether values are multiplied under the work on the next block.

        Scores are worked on before the values are there, then. Not so where keys are values, too:
        their stages would be free only later. What is multiplied at once has nothing beside it.
        """
        frame, stream = self.frame, self.stream
        keys = {frame.streamed(each.streamed, each.depth) for each in stream.scores}
        values = [frame.streamed(each.value, each.columns) for each in stream.products]
        return frame.unit == "wgmma" and bool(values) and keys.isdisjoint(values)

    def pack_rows(self) -> list[Step]:
        """Hold the rows where boxes bring them; else round them to a left operand."""
        frame, steps = self.frame, []
        self.rows: dict[int, str] = {}
        for score in self.stream.scores:
            if frame.can_hold(score.row, score.depth):
                self.rows[score.number] = frame.hold(score.row, score.depth)
            else:
                steps.append(self.pack(score))
        return steps

    def pack(self, score: Score) -> Step:
        """Round the rows of a product to a left operand."""
        frame = self.frame
        depth = frame.depth(score.depth)
        column = Axis("depth", depth)
        layout = WgmmaOperand(frame.fragment(depth))
        shape = frame.height, depth
        name = "rows" if score.added is None else f"rows{score.number}"
        self.rows[score.number] = frame.add(name, shape, layout, frame.half)
        deep = role(score.depth, axis_index(column))
        value = bind_roles(score.row, frame.rows, deep)
        conditions = (*frame.rows.conditions, *deep.conditions)
        packed = guarded(value, conditions)
        return Assign(name, (self.row, column), packed)

    def multiply(self, score: Score) -> Dot:
        """Multiply rows by a block of what is streamed: scores, or what is added to them."""
        frame = self.frame
        rows, streamed = self.rows[score.number], frame.streamed(score.streamed, score.depth)
        unit = "wgmma" if frame.tiles[rows].space == "shared" else frame.unit
        depth, is_first = frame.depth(score.depth), score.added is None
        return Dot(self.score, rows, streamed, depth, unit, b_is_nk=True, is_first=is_first)

    def consume(self) -> list[Step]:
        """Write what is done of a block of the stream."""
        frame = self.frame
        dots = [self.multiply(score) for score in self.stream.scores]
        for each in self.stream.products:
            frame.streamed(each.value, each.columns)
        weights: dict[int, str] = {}
        drawn = self.vectors.keep_drawn(each.weight for each in self.stream.products)
        whole, edge = self.edit(True), self.edit(False)
        edited = frame.chosen(whole, edge, self.conditions)
        weighed = self.weigh(weights)
        steps: list[Step] = [*dots, *drawn, *edited, *weighed]
        for each in self.stream.products:
            value = frame.streamed(each.value, each.columns)
            weight = weights[each.number]
            result = f"value{each.number}"
            steps.append(Dot(result, weight, value, frame.size, frame.unit))
        return steps

    def edit(self, is_whole: bool) -> list[Step]:
        """Edit the scores of a block where they are, and hide those that are not seen."""
        frame = self.frame
        body = settled(self.inner) if is_whole else self.inner
        found = self.vectors.read(replaced(body, self.of_score))
        found = bind_roles(found, frame.rows, frame.over)
        if is_whole:
            found = unconverted(found)
            if is_tile(found):
                return []
            return [Assign(self.score, self.dims, found)]
        score = cast(or_lowest(found, self.conditions), self.dtype)
        return [Assign(self.score, self.dims, score)]

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Where edits are made: rows behind the end are nobody's, but nothing is read for them."""
        inner = self.vectors.read(self.inner)
        loads = [part for part in walk(inner) if part.op == "load"]
        is_reading = any(expr_axes(each).intersection(self.stream.rows) for each in loads)
        return self.frame.conditions if is_reading else self.frame.over.conditions

    # -- elements of a block ----------------------------------------------------------------------

    def of_score(self, expr: Expr) -> Expr | None:
        """Read a score."""
        (score,) = self.stream.edited
        if not is_ref(expr, score.number):
            return None
        return read(self.score, self.point, expr.dtype)

    def weigh(self, weights: dict[int, str]) -> list[Step]:
        """Write the peak, the sums and the weights of a block whose scores are edited."""
        frame, stream = self.frame, self.stream
        edited = self.peak.body
        score = read(self.score, self.point, self.dtype)
        known = {**self.vectors.drawn, edited: scaled(score, self.scale)}
        steps = self.find_peak(score)
        later = [stream.computes[number].body for number in stream.sums]
        later += [each.weight for each in stream.products]
        for place, number in enumerate(stream.sums, 1):
            compute = stream.computes[number]
            core = unrounded(compute.body)
            zero = {core: const(0.0, core.dtype)}
            is_last = not refs_of([replaced(each, zero.get) for each in later[place:]])
            name = self.score if is_last else frame.add_scores(f"element{number}", self.dtype)
            steps.append(Assign(name, self.dims, self.of_rows(self.element(core, known))))
            value = read(name, self.point, compute.dtype)
            known = {**(self.vectors.drawn if is_last else known), core: value}
            before = frame.sum_before(number)
            if stream.is_repaired(number):
                before = binary("mul", before, read("factor", self.point[:1], before.dtype))
            steps += frame.add_up(number, value, before)
        for each in stream.products:
            name = weights[each.number] = frame.add_weight(each)
            value = self.element(each.weight, known)
            value = unrounded_sum(value)  # it is rounded once, where it is packed
            steps.append(Assign(name, self.dims, self.of_rows(value)))
        return [*steps, *self.repair()]

    def of_rows(self, element: Expr) -> Expr:
        """Compute an element where there is a row, if a split has few blocks to wait for.

        Half of a tile has none where they are few. Where many blocks follow, they are slower with
        it (docs/records/0012-attention).
        """
        frame = self.frame
        is_short = frame.split.size > 1 and frame.block.size <= FEW_BLOCKS
        is_new = is_short and not is_tile(element)
        return guarded(element, frame.rows.conditions) if is_new else element

    def element(self, body: Expr, known: Mapping[Expr, Expr]) -> Expr:
        """Write a body at one place: weights of what is hidden are 0 as exponentials of -inf."""

        def find(expr: Expr) -> Expr | None:
            if expr in known:
                return known[expr]
            inner = expr.args[0] if len(expr.args) == 1 else expr
            is_less = len(inner.args) == 2 and is_ref(inner.args[1], self.stream.peak)
            if is_less and OPS[expr.op].is_exponential:
                score, _ = inner.args
                return self.exponential(known[score])
            return self.of_score(expr)

        hidden = hiding(self.peak.body)
        visible = unmasked(body, hidden)
        found = replaced(visible, find)
        return bind_roles(found, self.frame.rows, self.frame.over)

    def exponential(self, score: Expr) -> Expr:
        """Write exp(score - peak) as a power of 2: one multiply-add, one special function."""
        safe = read("safe", self.point[:1], score.dtype)
        less = binary("sub", self.exponent(score), safe)
        return Expr("quick_exp2", (less,), None, score.dtype)

    def factor(self, peak: Expr, greatest: Expr) -> Expr:
        """Write what sums are scaled by whose peak was lower than the greatest."""
        highest, own = (self.exponent(scaled(each, self.scale)) for each in (greatest, peak))
        less = binary("sub", own, subtracted(greatest, highest))
        return Expr("quick_exp2", (less,), None, peak.dtype)

    def exponent(self, score: Expr) -> Expr:
        """Multiply by the logarithm, base 2, of the base of the exponentials."""
        base = 2.0 if self.stream.exponential == "exp2" else math.e
        return scaled(score, math.log2(base))

    def find_peak(self, score: Expr) -> list[Step]:
        """Find the greatest score so far, and by what sums of lower ones are scaled."""
        dtype, rows = score.dtype, (self.row,)
        name, here = f"value{self.stream.peak}", self.point[:1]
        for each in ("greatest", "safe", "factor"):
            self.frame.add_rows(each, dtype)
        before = read(name, here, dtype)
        greatest = read("greatest", here, dtype)
        greater = binary(COMBINE["max"], before, greatest)
        highest = self.exponent(scaled(greatest, self.scale))
        factor = self.exponential(scaled(before, self.scale))
        layout = self.frame.scored
        return [
            Accumulate("greatest", rows, (self.place,), "max", score, layout=layout),
            Assign("greatest", rows, greater),
            Assign("safe", rows, subtracted(greatest, highest)),
            Assign("factor", rows, factor),
            Assign(name, rows, greatest),
        ]

    def repair(self) -> list[Step]:
        """Scale the products of weights whose peak changed."""
        steps: list[Step] = []
        for each in self.stream.products:
            if not self.stream.is_repaired(each.number):
                continue
            column = Axis("column", self.frame.width(each))
            name = f"value{each.number}"
            index = axis_index(self.row), axis_index(column)
            before = read(name, index, self.dtype)
            factor = read("factor", index[:1], self.dtype)
            steps.append(Assign(name, (self.row, column), binary("mul", before, factor)))
        return steps
