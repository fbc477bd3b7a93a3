"""Random draws ahead of a loop on a CPU: a block of bits is computed once for its eight places.

    for i in size: y[i] = f(bits[place + i])

becomes, in pieces of `PIECE` elements,

    for block in the piece: words[0..3][block] = philox(...)      vectors of blocks
    for chunk in the piece: halves[...] = words, as places lie    16 bytes at a time
    for i in the piece: y[i] = f(halves[lag + i])                 vectors of elements

The loop may begin anywhere in the 32 places of a counter: `lag` says where.
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
NEAR = HALVES // WORDS  # places beside one another that have the same word of their blocks


@dataclass(frozen=True, slots=True)
class Ahead:
    """Bits drawn ahead of a loop, of so many counters; `rest` is the place where it begins."""

    draw: Expr
    rest: Index
    lag: Axis
    chunks: int
    words: int
    bits: int


def drawn_ahead(emitter: Emitter, exprs: Iterable[Expr], axes: Sequence[Axis]) -> list[Ahead]:
    """Find draws whose places lie beside one another along the last of the axes of a nest.

    The emitter reads them from here on where they will be.
    """
    emitter.drawn.clear()
    if not axes or axes[-1].size < HALVES:
        return []
    axis = axes[-1]
    bound = {*axes}.union(*(scope.axes for scope in emitter.scopes))
    draws = dict.fromkeys(part for expr in exprs for part in walk(expr) if is_half_drawn(part))
    found = []
    for draw in draws:
        place: Index = draw.arg
        is_known = axes_of(place) <= bound and not any(True for _ in dynamics_of(place))
        if not is_known or not is_unit(place, axis):
            continue
        rest = substitute(place, {axis: constant(0)})
        is_even = all(step % HALVES == 0 for step in (rest.const, *(c for _, c in rest.terms)))
        most = min(PIECE, axis.size) + (0 if is_even else HALVES - 1)
        chunks = ceil_div(most, HALVES)
        words = emitter.add("array", uint32, arg=chunks * QUARTERS * WORDS)
        bits = emitter.add("array", uint16, arg=chunks * HALVES)
        each = Ahead(draw, rest, Axis("lag", HALVES), chunks, words, bits)
        emitter.drawn[draw] = bits, axis_index(axis) + axis_index(each.lag)
        found.append(each)
    return found


@contextmanager
def in_pieces(
    emitter: Emitter, found: Sequence[Ahead], start: int, stop: int
) -> Iterator[tuple[int, int]]:
    """Open a loop over pieces, draw ahead of each, and give the bounds of the loop over it."""
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
    begin = emitter.arithmetic("mul", emitter.integer(-1), emitter.arithmetic("add", skipped, first))
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


def order_halves(emitter: Emitter, each: Ahead) -> None:
    """Put the halves of words in the order of their places."""
    chunk, count = Axis("chunk", each.chunks), each.chunks * QUARTERS
    shift = emitter.const(HALF_BITS, uint32)
    with emitter.axis_loop(chunk, None):
        for place in range(HALVES):
            at = place // NEAR * count + place % NEAR // 2
            found = emitter.get(each.words, emitter.index(axis_index(chunk) * QUARTERS + at))
            half = emitter.apply("shift_right", found, shift) if place % 2 else found
            to = emitter.index(axis_index(chunk) * HALVES + place)
            emitter.put(each.bits, to, emitter.cast(half, uint16))
