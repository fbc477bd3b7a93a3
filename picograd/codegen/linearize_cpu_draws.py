"""Random draws ahead of a loop on a CPU: a block of bits is computed once for its eight places.

    for i in size: y[i] = f(bits[place + i])

becomes, in pieces of `PIECE` elements,

    for block in the piece: words[0..3][block] = philox(...)      vectors of blocks
    for chunk in the piece: halves[...] = words, as places lie    16 bytes at a time
    for i in the piece: y[i] = f(halves[lag + i])                 vectors of elements

The loop may begin anywhere in the 32 places of a counter: `lag` says where. Where places lie
beside one another along the loop around the innermost, as keys around rows of attention, both are
drawn ahead of: the innermost is that of the vectors of blocks, too, if all begin at a counter.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from picograd.codegen.emit import Emitter
from picograd.codegen.lanes import is_unit
from picograd.dtype import uint16, uint32, uint64
from picograd.graph.random import HALF_BITS, HALVES
from picograd.helpers import ceil_div
from picograd.late_methods import dataclass
from picograd.schedule.draws import halves, is_half_drawn, philox, word
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, substitute
from picograd.schedule.loop import Expr, binary, dynamics_of, walk

PIECE = 512  # elements of which bits are at hand: 1 KiB, and as much for the words they come from
QUARTERS, WORDS = 4, 4  # blocks of a counter, and what each gives
VECTOR, MOST = 8, 1 << 13  # of a loop inside another: elements that are worth it, and of both
NEAR = HALVES // WORDS  # places beside one another that have the same word of their blocks


@dataclass(frozen=True, slots=True)
class Ahead:
    """Bits drawn ahead of a loop, of so many counters; `rest` is the place where it begins.

    `across` is the axis of the loop inside it, if there is one: it has no words, then.
    """

    draw: Expr
    rest: Index
    lag: Axis
    chunks: int
    bits: int
    words: int = 0
    across: Axis | None = None


def drawn_ahead(emitter: Emitter, exprs: Iterable[Expr], axes: Sequence[Axis]) -> list[Ahead]:
    """Find draws whose places lie beside one another along the last of the axes of a nest.

    The emitter reads them from here on where they will be.
    """
    emitter.drawn.clear()
    bound = set(axes)
    for scope in emitter.scopes:
        bound.update(scope.axes)
    draws: dict[Expr, None] = {}
    for expr in exprs:
        parts = filter(is_half_drawn, walk(expr))
        draws.update(dict.fromkeys(parts))
    found = []
    for draw in draws:
        place: Index = draw.arg
        is_read = any(True for _ in dynamics_of(place))
        if axes_of(place) <= bound and not is_read:
            found += beside(emitter, draw, axes) or around(emitter, draw, axes)
    return found


def is_even(place: Index) -> bool:
    """Tell whether a place is always the first of a counter."""
    steps = [step for _, step in place.terms]
    return all(step % HALVES == 0 for step in (place.const, *steps))


def beside(emitter: Emitter, draw: Expr, axes: Sequence[Axis]) -> list[Ahead]:
    """Draw ahead of the innermost loop."""
    if not axes or axes[-1].size < HALVES or not is_unit(draw.arg, axes[-1]):
        return []
    axis = axes[-1]
    rest = substitute(draw.arg, {axis: constant(0)})
    most = min(PIECE, axis.size)
    if not is_even(rest):
        most += HALVES - 1
    chunks = ceil_div(most, HALVES)
    count = chunks * HALVES
    bits = emitter.add("array", uint16, arg=count)
    words = emitter.add("array", uint32, arg=count // 2)
    lag = Axis("lag", HALVES)
    emitter.drawn[draw] = bits, axis_index(axis) + axis_index(lag)
    return [Ahead(draw, rest, lag, chunks, bits, words)]


def around(emitter: Emitter, draw: Expr, axes: Sequence[Axis]) -> list[Ahead]:
    """Draw ahead of the innermost loop and the one around it."""
    if len(axes) < 2 or not is_unit(draw.arg, axes[-2]):
        return []
    axis, across = axes[-2:]
    rest = substitute(draw.arg, {axis: constant(0)})
    chunks = ceil_div(axis.size, HALVES)
    size = chunks * HALVES * across.size
    is_short = axis.size < NEAR or across.size < VECTOR
    if is_short or size > MOST or not is_even(rest):
        return []
    bits = emitter.add("array", uint16, arg=size)
    emitter.drawn[draw] = bits, axis_index(axis) * across.size + axis_index(across)
    return [Ahead(draw, rest, Axis("lag", 1), chunks, bits, across=across)]


@contextmanager
def in_pieces(
    emitter: Emitter, found: Sequence[Ahead], start: int, stop: int
) -> Iterator[tuple[int, int]]:
    """Open a loop over pieces, draw ahead of each, and give the bounds of the loop over it."""
    found = [each for each in found if each.across is None]
    if not found:
        yield start, stop
        return
    with emitter.loop(start, stop, PIECE, None) as first:
        end = emitter.arithmetic("add", first, emitter.integer(PIECE))
        end = emitter.raw("minimum", emitter.index_dtype, end, stop)
        for each in found:
            draw_piece(emitter, each, first)
        yield first, end


def draw_piece(emitter: Emitter, each: Ahead, first: int) -> None:
    """Draw the bits of a piece that begins at `first`."""
    size, less = emitter.integer(HALVES), emitter.integer(-HALVES)
    rest = emitter.index(each.rest)
    place = emitter.arithmetic("add", rest, first)
    counter = emitter.arithmetic("quotient", place, size)
    skipped = emitter.arithmetic("mul", counter, less)
    lag = emitter.arithmetic("add", rest, skipped)
    emitter.bind(each.lag, lag)
    origin = Axis("origin", 1 << 62)
    block = Axis("block", each.chunks * QUARTERS)
    emitter.bind(origin, counter)
    fill_words(emitter, each, origin, block)
    order_halves(emitter, each)


def fill_words(emitter: Emitter, each: Ahead, origin: Axis, block: Axis) -> None:
    """Compute the blocks of a piece: each word of all of them lies together."""
    seed, start = each.draw.args
    here = axis_index(block)
    moved = axis_index(origin) + here // QUARTERS
    place = Expr("index", (), moved, uint64)
    quarter = Expr("index", (), here % QUARTERS, uint32)
    counter = binary("add", start, place)
    words = philox(halves(seed), (*halves(counter), quarter, word(0)))
    with emitter.axis_loop(block):
        for number, expr in enumerate(words):
            at = emitter.index(here + number * block.size)
            drawn = emitter.value(expr)
            emitter.put(each.words, at, drawn)


def draw_around(emitter: Emitter, found: Sequence[Ahead]) -> None:
    """Draw ahead of two loops: in vectors over the inner one."""
    for each in found:
        if each.across is None:
            continue
        seed, start = each.draw.args
        chunk, quarter = Axis("chunk", each.chunks), Axis("quarter", QUARTERS)
        origin = each.rest // HALVES + axis_index(chunk)
        moved = Expr("index", (), origin, uint64)
        counter = binary("add", start, moved)
        near = Expr("index", (), axis_index(quarter), uint32)
        words = philox(halves(seed), (*halves(counter), near, word(0)))
        row, lane = axis_index(chunk) * HALVES, axis_index(each.across)
        loops = map(emitter.axis_loop, (chunk, quarter, each.across))
        with ExitStack() as stack:
            for loop in loops:
                stack.enter_context(loop)
            for place in range(WORDS * 2):
                number, half = divmod(place, 2)
                drawn = emitter.value(words[number])
                column = axis_index(quarter) * 2 + number * NEAR + half
                at = (row + column) * each.across.size
                place_at = at + lane
                put_half(emitter, each.bits, place_at, drawn, half)


def put_half(emitter: Emitter, bits: int, at: Index, found: int, half: int) -> None:
    """Write the lower or the upper half of a word."""
    if half:
        found = emitter.apply("shift_right", found, emitter.const(HALF_BITS, uint32))
    emitter.put(bits, emitter.index(at), emitter.cast(found, uint16))


def order_halves(emitter: Emitter, each: Ahead) -> None:
    """Put the halves of words in the order of their places."""
    chunk, count = Axis("chunk", each.chunks), each.chunks * QUARTERS
    with emitter.axis_loop(chunk, None):
        for place in range(HALVES):
            near = place % NEAR // 2
            at = axis_index(chunk) * QUARTERS + near
            word_at = emitter.index(at + place // NEAR * count)
            found = emitter.get(each.words, word_at)
            first = axis_index(chunk) * HALVES
            to = first + place
            put_half(emitter, each.bits, to, found, place % 2)
