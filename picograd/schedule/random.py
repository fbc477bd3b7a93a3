"""random: the threefry2x32 counter generator, written out as scalar expressions.

Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011): 20 rounds, a key injection
after every 4. The key is the seed's two halves, the counter (offset + position of the element).
While axes are chosen it is one expression, `DRAWN`: written out it is 200, which all passes walk.
"""

from picograd.dtype import DType, uint32, uint64
from picograd.schedule.index import Index
from picograd.schedule.loop import Expr, const, rewrite

DRAWN = "random_bits"  # args = seed, counter
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def binary(op: str, a: Expr, b: Expr) -> Expr:
    """Apply a binary operation."""
    return Expr(op, (a, b), None, a.dtype)


def cast(a: Expr, dtype: DType) -> Expr:
    """Convert to another dtype."""
    return a if a.dtype is dtype else Expr("cast", (a,), None, dtype)


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


def drawn(seed: Expr, offset: Expr, position: Index) -> Expr:
    """Build the first word of threefry2x32 at counter offset + position, as one expression."""
    counter = binary("add", cast(offset, uint64), Expr("index", (), position, uint64))
    return Expr(DRAWN, (cast(seed, uint64), counter), None, uint32)


def written_out(root: Expr) -> Expr:
    """Write out what is drawn."""
    return rewrite(root, {}, rounds_of)


def rounds_of(expr: Expr) -> Expr | None:
    """Write out the generator if an expression is drawn."""
    if expr.op != DRAWN:
        return None
    seed, counter = expr.args
    return threefry(halves(seed), *halves(counter))


def threefry(key: tuple[Expr, Expr], x: Expr, y: Expr) -> Expr:
    """Encrypt the counter (x, y) with the key; the first word of the result."""
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
    return x
