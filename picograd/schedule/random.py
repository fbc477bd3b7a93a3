"""random: the threefry2x32 counter generator, written out as scalar expressions.

Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011): 20 rounds, a key injection
after every 4. The key is the seed's two halves, the counter (offset + position of the element).
"""

from picograd.dtype import DType, uint32, uint64
from picograd.schedule.index import Index
from picograd.schedule.loop import Expr, const

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
    return binary(
        "bitwise_or", left, binary("shift_right", a, word(32 - count))
    )


def random_bits(seed: int, offset: Expr, position: Index) -> Expr:
    """Build the first word of threefry2x32 at counter offset + position."""
    counter = binary(
        "add",
        cast(offset, uint64),
        Expr("index", (), position, uint64),
    )
    low = cast(
        binary("bitwise_and", counter, const(0xFFFFFFFF, uint64)),
        uint32,
    )
    high = cast(
        binary("shift_right", counter, const(32, uint64)), uint32
    )
    return threefry(seed, low, high)


def threefry(seed: int, x: Expr, y: Expr) -> Expr:
    """Encrypt the counter (x, y) with the seed; the first word of the result."""
    low, high = seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF
    keys = (low, high, low ^ high ^ PARITY)
    x, y = (
        binary("add", x, word(keys[0])),
        binary("add", y, word(keys[1])),
    )
    for turn in range(5):
        for count in ROTATIONS[turn % 2]:
            x = binary("add", x, y)
            y = binary("bitwise_xor", rotate(y, count), x)
        x = binary("add", x, word(keys[(turn + 1) % 3]))
        y = binary("add", y, word(keys[(turn + 2) % 3] + turn + 1))
    return x
