"""Random draws as scalar expressions: the counter generators of `picograd/graph/random.py`.

    random_bits(seed, counter)            a word of threefry2x32, of 20 rounds
    random_bits(seed, counter, 1)         the other one: a kernel of both computes a block once
    random_bits(seed, first)[place]       16 bits of a block of philox4x32-10, which serves 8 places

Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011). The key is the seed's halves.
While axes are chosen a draw is one expression, `DRAWN`: written out it is 200, which all passes
walk. One of 16 bits stays so until a program is made, which knows the places of all lanes: those of
one block are then alike but for the half and the word that they take, and it is computed once.
"""

from collections.abc import Sequence

from picograd.dtype import bool_, uint32, uint64
from picograd.graph.random import HALVES, MULTIPLIERS, PHILOX_ROUNDS, WEYL
from picograd.schedule.index import Index
from picograd.schedule.loop import DRAWN, Expr, binary, cast, const, rewrite

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
Words = tuple[Expr, Expr]


def word(value: int) -> Expr:
    """A 32-bit constant."""
    return const(value & 0xFFFFFFFF, uint32)


def rotate(a: Expr, count: int) -> Expr:
    """Rotate the bits of a word to the left."""
    left = binary("shift_left", a, word(count))
    return binary("bitwise_or", left, binary("shift_right", a, word(32 - count)))


def halves(value: Expr) -> tuple[Expr, Expr]:
    """Split 64 bits into their low and their high word."""
    low = binary("bitwise_and", value, const(0xFFFFFFFF, uint64))
    high = binary("shift_right", value, const(32, uint64))
    return cast(low, uint32), cast(high, uint32)


def drawn(seed: Expr, offset: Expr, position: Index, is_second: bool = False) -> Expr:
    """Build a word of threefry2x32 at counter offset + position, as one expression."""
    counter = binary("add", cast(offset, uint64), Expr("index", (), position, uint64))
    which = (word(1),) if is_second else ()
    return Expr(DRAWN, (cast(seed, uint64), counter, *which), None, uint32)


def is_word_drawn(expr: Expr) -> bool:
    """Tell whether an expression draws 32 bits: those are written out before kernels are."""
    return expr.op == DRAWN and expr.arg is None


def is_half_drawn(expr: Expr) -> bool:
    """Tell whether an expression draws 16 bits at a place."""
    return expr.op == DRAWN and expr.arg is not None


def written_out(root: Expr) -> Expr:
    """Write out what is drawn."""
    return rewrite(root, {}, rounds_of)


def rounds_of(expr: Expr) -> Expr | None:
    """Write out the generator if an expression is drawn."""
    if not is_word_drawn(expr):
        return None
    seed, counter, *which = expr.args
    return threefry(halves(seed), *halves(counter))[len(which)]


def threefry(key: Words, x: Expr, y: Expr) -> Words:
    """Encrypt the counter (x, y) with the key."""
    mixed = binary("bitwise_xor", *key)
    keys = (*key, binary("bitwise_xor", mixed, word(PARITY)))
    x, y = (binary("add", x, keys[0]), binary("add", y, keys[1]))
    for turn in range(5):
        for count in ROTATIONS[turn % 2]:
            x = binary("add", x, y)
            y = binary("bitwise_xor", rotate(y, count), x)
        x = binary("add", x, keys[(turn + 1) % 3])
        injected = binary("add", keys[(turn + 2) % 3], word(turn + 1))
        y = binary("add", y, injected)
    return x, y


def half_drawn(seed: Expr, first: Expr, place: Index) -> Expr:
    """Build 16 bits at a place, of a draw whose counters begin at `first`, as one expression."""
    return Expr(DRAWN, (cast(seed, uint64), cast(first, uint64)), place, uint32)


def half_written_out(drawn: Expr) -> Expr:
    """Write out 16 bits: one block serves eight places, which differ in their word and half."""
    seed, first = drawn.args
    place: Index = drawn.arg
    counter = binary("add", first, Expr("index", (), place // HALVES, uint64))
    quarter, upper, odd, half = (
        Expr("index", (), place // step % size, uint32)
        for step, size in ((2, 4), (16, 2), (8, 2), (1, 2))
    )
    return half_of(seed, counter, quarter, (upper, odd, half))


def half_numbered(seed: Expr, number: Expr) -> Expr:
    """Write out 16 bits of a draw by its number, which is a value."""
    wide = cast(number, uint64)
    counter = binary("shift_right", wide, const(5, uint64))
    place = cast(wide, uint32)
    quarter, upper, odd, half = (
        binary("bitwise_and", binary("shift_right", place, word(by)), word(mask))
        for by, mask in ((1, 3), (4, 1), (3, 1), (0, 1))
    )
    return half_of(cast(seed, uint64), counter, quarter, (upper, odd, half))


def half_of(seed: Expr, counter: Expr, quarter: Expr, places: Sequence[Expr]) -> Expr:
    """Choose a word of a block, by two bits, and its half."""
    words = philox(halves(seed), (*halves(counter), quarter, word(0)))
    upper, odd, half = places
    low, high = (either(odd, words[at + 1], words[at]) for at in (0, 2))
    chosen = either(upper, high, low)
    upper_half = binary("shift_right", chosen, word(16))
    return either(half, upper_half, binary("bitwise_and", chosen, word(0xFFFF)))


def either(bit: Expr, one: Expr, other: Expr) -> Expr:
    """Choose by a bit."""
    if bit.op == "index" and bit.arg.lo == bit.arg.hi:
        return one if bit.arg.lo else other
    test = Expr("not_equal", (bit, word(0)), None, bool_)
    return Expr("where", (test, one, other), None, one.dtype)


def philox(key: Words, counter: Sequence[Expr]) -> list[Expr]:
    """Encrypt the counter with the key; all words of the result."""
    a, b, c, d = counter
    for turn in range(PHILOX_ROUNDS):
        first, second = (
            binary("add", each, word(turn * step)) for each, step in zip(key, WEYL, strict=True)
        )
        even, odd = (
            binary("mul", cast(each, uint64), const(by, uint64))
            for each, by in zip((a, c), MULTIPLIERS, strict=True)
        )
        a, b, c, d = (
            binary("bitwise_xor", binary("bitwise_xor", high_word(odd), b), first),
            cast(odd, uint32),
            binary("bitwise_xor", binary("bitwise_xor", high_word(even), d), second),
            cast(even, uint32),
        )
    return [a, b, c, d]


def high_word(value: Expr) -> Expr:
    """Take the upper half of 64 bits."""
    return cast(binary("shift_right", value, const(32, uint64)), uint32)
