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

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from picograd.codegen.added_scores import with_added_scores
from picograd.codegen.dot import Dot
from picograd.codegen.layout import WgmmaOperand
from picograd.codegen.operands import bind_roles, expr_axes, guarded, narrow, role, size_of
from picograd.codegen.stream_masks import (
    emptied,
    scaled,
    seen_places,
    shown_of,
    with_few_operations,
)
from picograd.codegen.streams import Score, Stream, analyse, has_boxes, narrow_streams
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
    side_by_side,
)
from picograd.codegen.templates.attention_leave import Leaving
from picograd.codegen.templates.attention_online import Softmax, apart
from picograd.codegen.templates.attention_splits import REGISTERS, finish, shared_out, split_count
from picograd.codegen.templates.attention_vectors import Vectors, boxes_of, is_spread
from picograd.codegen.tile import Assign, Step, TileKernel, TilePart
from picograd.helpers import ceil_div, round_up
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, Kernel, walk
from picograd.schedule.pages import axes_in, tables_in
from picograd.target import Target

PLAIN_ROWS, PLAIN_PLACES = (8, 16, 32, 64), (64, 32, 16)  # of a block on CUDA cores
SPARE = 1024  # bytes of shared memory that steps exchange values in
LONG, LONGER = 1024, 4096  # places of a stream
PLACES = 128, 96, 64, 32  # of a block of the stream, the last of several softmaxes
MOST_FEW = 256  # places of a split for which small blocks are faster (docs/records/0012-attention)
MOST_LIVE = 200  # registers of a thread for fragments


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write an attention kernel: parts that stream, and what is found ahead of them."""
    *before, part = kernel.parts
    stream = with_added_scores(analyse(kernel, with_few_operations(part)))
    stream = with_sharers_beside(with_long_rows(with_pages_first(stream)))
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


def with_pages_first(stream: Stream) -> Stream:
    """Let the places of a page be beside one another, and pages what is streamed over."""
    operands = [each.streamed for each in stream.scores]
    operands += [each.value for each in stream.products]
    found: set[Axis] = set()
    for operand in map(narrow, operands):
        if operand.op == "load":
            found.update(*(axes_in(atom) for atom, _ in tables_in(operand.arg[1])))
    pages = [axis for axis in stream.over if axis in found]
    places = [axis for axis in stream.over if axis not in found]
    return replace(stream, over=(*pages, *places))


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
    and works for less at the end, where blocks of narrow heads, or of few places, are small.
    """
    width = max(stream.depths + stream.widths)
    if size_of(stream.rows) <= ROWS:
        size = places_of(stream, 1) if width > SPAN else SPAN
        schedule = Schedule(1, size, (0, 0))
        if size == PLACES[0] and has_few_places(stream, schedule, target):
            yield replace(schedule, size=SPAN, blocks=2)
        yield schedule
        return
    is_held = all(narrow(score.row).op == "load" for score in stream.scores)
    if is_held:
        yield from side_by_side(stream, partial(live_registers, stream))
    least = LONGER if emptied(stream) else LONG
    is_long = width <= SPAN and seen_places(stream) >= least and not stream.shown
    if is_held and is_long and any(not is_spread(each, stream) for each in read_beside(stream)):
        yield Schedule(1, PLACES[0], SHARING[2], blocks=2)
    is_lone = len(stream.peaks) == 1
    groups = 3 if is_held and is_long and is_lone and width > SPAN // 2 else 2
    yield Schedule(groups, places_of(stream, groups), REGISTERS[groups])


def has_few_places(stream: Stream, schedule: Schedule, target: Target) -> bool:
    """Tell whether blocks that share a stream have a few places each, which are soon there."""
    splits = split_count(stream, schedule, target)
    return splits > 1 and ceil_div(size_of(stream.over), splits) <= MOST_FEW


def read_beside(stream: Stream) -> list[Expr]:
    """List what in memory edits scores, beside masks."""
    shown = [shown_of(stream.computes[number].body) for number in stream.peaks]
    return [part for each in shown for part in walk(each) if part.op == "load"]


def live_registers(stream: Stream, size: int) -> int:
    """Count the registers of a thread for fragments, where a block has so many places.

    It holds half a value for each column of the result and of the scores, and a quarter for each
    place of the weights, which are packed.
    """
    widths = [round_up(size_of(each.columns), GRAIN) for each in stream.products]
    return sum(widths) // 2 + len(stream.peaks) * size * 3 // 4


def places_of(stream: Stream, groups: int) -> int:
    """Choose how many places a block has: as registers and two stages of memory allow."""
    depth, width = (
        sum(round_up(size_of(axes), SPAN) for axes in every)
        for every in (
            [score.depth for score in stream.scores],
            [each.columns for each in stream.products],
        )
    )
    bodies = [stream.computes[number].body for number in stream.peaks]
    spread = [x.dtype for body in bodies for x in walk(body) if is_spread(x, stream)]
    for size in PLACES[:-1]:
        beside = sum(boxes_of(each, ROWS * groups, size).size * each.itemsize for each in spread)
        memory = 2 * (ROWS * groups * depth + 2 * size * (depth + width) + beside)
        if live_registers(stream, size) <= MOST_LIVE and memory <= MEMORY:
            return size
    return PLACES[-1 if len(stream.peaks) > 1 else -2]


class Writer:
    """This class writes the part; see the module docstring."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.stream = frame, frame.stream
        self.row = frame.row
        self.vectors = Vectors(frame)
        self.softmaxes = [Softmax(frame, each, self.vectors) for each in apart(frame.stream)]
        first = self.softmaxes[0]
        if frame.stream.least is not None:  # a peak is multiplied by the scale at the end
            least = scaled(frame.stream.least, 1 / first.scale)
            frame.stream = self.stream = replace(frame.stream, least=least)

    # -- the block --------------------------------------------------------------------------------

    def part(self) -> TilePart:
        """Write the program of a block."""
        frame = self.frame
        begun = [*frame.begin(), *self.pack_rows()]
        steps = self.consume()
        begun += self.vectors.hold_rows()
        values = self.vectors.fill_places()
        factors = {}
        for each in self.softmaxes:
            frame.factors[each.peak_number] = each.scale
            factors[each.peak_number] = each.factor
        leaving = Leaving(frame)
        leaving.bring()
        pipeline = frame.pipeline(values, steps, self.is_rotated())
        return frame.part(begun, pipeline, finish(leaving, factors))

    def is_rotated(self) -> bool:
        """Tell whether values are multiplied under the work on the next block.

        Scores are worked on before the values are there, then. Not so where keys are values, too:
        their stages would be free only later. What is multiplied at once has nothing beside it.
        """
        frame, stream = self.frame, self.stream
        keys = {frame.streamed(each.streamed, each.depth) for each in stream.scores}
        values = {frame.streamed(each.value, each.columns) for each in stream.products}
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
        rows = self.rows[score.number]
        streamed = frame.streamed(score.streamed, score.depth)
        is_held = frame.tiles[rows].space == "shared"
        unit = "wgmma" if is_held else frame.unit
        depth = frame.depth(score.depth)
        is_first = score.added is None
        number = score.number if is_first else score.added
        name = f"score{number}"
        return Dot(name, rows, streamed, depth, unit, b_is_nk=True, is_first=is_first)

    def consume(self) -> list[Step]:
        """Write what is done of a block of the stream."""
        frame = self.frame
        dots = [self.multiply(score) for score in self.stream.scores]
        for each in self.stream.products:
            frame.streamed(each.value, each.columns)
        weights: dict[int, str] = {}
        drawn = self.vectors.keep_drawn(each.weight for each in self.stream.products)
        steps: list[Step] = [*dots, *drawn]
        for softmax in self.softmaxes:
            steps += softmax.work(weights)
        for product in self.stream.products:
            value = frame.streamed(product.value, product.columns)
            weight = weights[product.number]
            result = f"value{product.number}"
            steps.append(Dot(result, weight, value, frame.size, frame.unit))
        return steps
