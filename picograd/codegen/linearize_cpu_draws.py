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
from contextlib import contextmanager

from picograd.codegen.emit import Emitter, is_unit
from picograd.dtype import uint16, uint32, uint64
from picograd.graph.random import HALF_BITS, HALVES
from picograd.helpers import ceil_div
from picograd.late_methods import dataclass
from picograd.schedule.draws import binary, halves, is_half_drawn, philox, word
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, substitute
from picograd.schedule.loop import Expr, dynamics_of, walk

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
    bound = {*axes}.union(*(scope.axes for scope in emitter.scopes))
    draws = dict.fromkeys(part for expr in exprs for part in walk(expr) if is_half_drawn(part))
    found = []
    for draw in draws:
        place: Index = draw.arg
        if axes_of(place) <= bound and not any(True for _ in dynamics_of(place)):
            found += beside(emitter, draw, axes) or around(emitter, draw, axes)
    return found


def is_even(place: Index) -> bool:
    """Tell whether a place is always the first of a counter."""
    return all(step % HALVES == 0 for step in (place.const, *(step for _, step in place.terms)))


def beside(emitter: Emitter, draw: Expr, axes: Sequence[Axis]) -> list[Ahead]:
    """Draw ahead of the innermost loop."""
    axis = axes[-1] if axes else Axis("none", 1)
    if axis.size < HALVES or not is_unit(draw.arg, axis):
        return []
    rest = substitute(draw.arg, {axis: constant(0)})
    most = min(PIECE, axis.size) + (0 if is_even(rest) else HALVES - 1)
    chunks = ceil_div(most, HALVES)
    bits = emitter.add("array", uint16, arg=chunks * HALVES)
    words = emitter.add("array", uint32, arg=chunks * QUARTERS * WORDS)
    each = Ahead(draw, rest, Axis("lag", HALVES), chunks, bits, words)
    emitter.drawn[draw] = bits, axis_index(axis) + axis_index(each.lag)
    return [each]


def around(emitter: Emitter, draw: Expr, axes: Sequence[Axis]) -> list[Ahead]:
    """Draw ahead of the innermost loop and the one around it."""
    if len(axes) < 2 or axes[-1].size < VECTOR or not is_unit(draw.arg, axes[-2]):
        return []
    axis, across = axes[-2:]
    rest = substitute(draw.arg, {axis: constant(0)})
    chunks = ceil_div(axis.size, HALVES)
    size = chunks * HALVES * across.size
    if not is_even(rest) or size > MOST or axis.size < NEAR:
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
    size = emitter.integer(HALVES)
    place = emitter.arithmetic("add", emitter.index(each.rest), first)
    counter = emitter.arithmetic("quotient", place, size)
    skipped = emitter.arithmetic("mul", counter, size)
    begin = emitter.arithmetic(
        "mul", emitter.integer(-1), emitter.arithmetic("add", skipped, first)
    )
    emitter.bind(each.lag, emitter.arithmetic("add", place, begin))
    origin, block = Axis("origin", 1 << 62), Axis("block", each.chunks * QUARTERS)
    emitter.bind(origin, counter)
    fill_words(emitter, each, origin, block)
    order_halves(emitter, each)


def fill_words(emitter: Emitter, each: Ahead, origin: Axis, block: Axis) -> None:
    """Compute the blocks of a piece: each word of all of them lies together."""
    seed, start = each.draw.args
    here = axis_index(block)
    place = Expr("index", (), axis_index(origin) + here // QUARTERS, uint64)
    quarter = Expr("index", (), here % QUARTERS, uint32)
    counter = binary("add", start, place)
    words = philox(halves(seed), (*halves(counter), quarter, word(0)))
    with emitter.axis_loop(block):
        for number, expr in enumerate(words):
            at = emitter.index(here + number * block.size)
            emitter.put(each.words, at, emitter.value(expr))


def draw_around(emitter: Emitter, found: Sequence[Ahead]) -> None:
    """Draw ahead of two loops: in vectors over the inner one."""
    for each in found:
        if each.across is None:
            continue
        seed, start = each.draw.args
        chunk, quarter = Axis("chunk", each.chunks), Axis("quarter", QUARTERS)
        origin = each.rest // HALVES + axis_index(chunk)
        counter = binary("add", start, Expr("index", (), origin, uint64))
        near = Expr("index", (), axis_index(quarter), uint32)
        words = philox(halves(seed), (*halves(counter), near, word(0)))
        with emitter.axis_loop(chunk), emitter.axis_loop(quarter), emitter.axis_loop(each.across):
            for place in range(WORDS * 2):
                number, half = divmod(place, 2)
                found_word = emitter.value(words[number])
                column = axis_index(quarter) * 2 + number * NEAR + half
                at = (axis_index(chunk) * HALVES + column) * each.across.size
                put_half(emitter, each.bits, at + axis_index(each.across), found_word, half)


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
            at = place // NEAR * count + place % NEAR // 2
            found = emitter.get(each.words, emitter.index(axis_index(chunk) * QUARTERS + at))
            to = axis_index(chunk) * HALVES + place
            put_half(emitter, each.bits, to, found, place % 2)
