"""The counter-based random generators in NumPy: threefry2x32, and philox4x32 of dropout.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
The 64-bit counter of element i is offset + i; its low word is the first input of the block, its
high word the second; the key words are the low and high word of the seed. An element is the first
output word after 20 rounds, or the second one (`SECOND_WORD`), where a draw takes 64 bits.

Dropout draws `HALVES` numbers of 16 bits for each of its counters. Draw n is one of counter
n // 32: philox4x32 has that counter as its first two words and n // 2 % 4 as its third; of its four
words draw n has that of n // 8 % 4, and of it the half of n % 2. So a block serves eight draws that
one thread of a GPU has in a fragment of a matrix (docs/design/0032-dropout-bits.md).
"""

from typing import Any

import numpy as np

from picograd.helpers import product

Array = Any
PARITY = 0x1BD11BDA
ROTATIONS = (
    (17, 29, 16, 24),  # groups 2 and 4
    (13, 15, 26, 6),  # groups 1, 3 and 5
)
MASK = 0xFFFFFFFF
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
# What the key words grow by each round: the golden ratio, sqrt(3) - 1.
WEYL = 0x9E3779B9, 0xBB67AE85
PHILOX_ROUNDS = 10
HALF_BITS, HALVES = 16, 32  # of a draw of dropout; such draws for each counter
SECOND_WORD = 32  # the bit of a block of threefry where it begins


def rotate_left(x: Array, count: int) -> Array:
    """Rotate 32-bit words."""
    return (x << np.uint32(count)) | (x >> np.uint32(32 - count))


def threefry(key: tuple[int, int], low: Array, high: Array) -> tuple[Array, Array]:
    """The output words of threefry2x32-20 for uint32 counters."""
    parity = key[0] ^ key[1] ^ PARITY
    keys = [np.uint32(word) for word in (*key, parity)]
    a = low + keys[0]
    b = high + keys[1]
    for group in range(1, 6):
        for count in ROTATIONS[group % 2]:
            a = a + b
            b = rotate_left(b, count) ^ a
        a = a + keys[group % 3]
        b = b + keys[(group + 1) % 3]
        b = b + np.uint32(group)
    return a, b


def philox(key: tuple[int, int], counter: tuple[Array, Array, Array, Array]) -> list[Array]:
    """The four words of philox4x32-10 for uint32 counters."""
    a, b, c, d = counter
    first, second = key
    for _ in range(PHILOX_ROUNDS):
        even = wide_product(a, MULTIPLIERS[0])
        odd = wide_product(c, MULTIPLIERS[1])
        a = high_word(odd) ^ b ^ np.uint32(first)
        b = low_word(odd)
        c = high_word(even) ^ d ^ np.uint32(second)
        d = low_word(even)
        first = (first + WEYL[0]) & MASK
        second = (second + WEYL[1]) & MASK
    return [a, b, c, d]


def wide_product(x: Array, factor: int) -> Array:
    """All 64 bits of a product of words."""
    return x.astype(np.uint64) * np.uint64(factor)


def low_word(x: Array) -> Array:
    """The lower half of 64 bits."""
    return x.astype(np.uint32)


def high_word(x: Array) -> Array:
    """The upper half of 64 bits."""
    return low_word(x >> np.uint64(32))


def halves(seed: Array, number: Array) -> Array:
    """Draw the 16 bits of draws by their numbers (uint64), as uint32."""
    whole = int(seed)
    key = whole & MASK, whole >> 32 & MASK
    counter = number // np.uint64(HALVES)
    place = low_word(number % np.uint64(HALVES))
    quarter = place // 2 % 4
    zero = np.zeros_like(quarter)
    words = philox(key, (low_word(counter), high_word(counter), quarter, zero))
    word = np.choose(place // 8, words)
    shift = place % 2 * HALF_BITS
    return word >> shift & np.uint32(0xFFFF)


def random_halves(seed: Array, first: Array, shape: tuple[int, ...]) -> Array:
    """Draw the numbers of 16 bits of a node; `first` of its shape has those of the draws."""
    start = np.asarray(first).astype(np.uint64)
    number = start.ravel()
    if not start.shape:
        number = start * np.uint64(HALVES) + np.arange(product(shape), dtype=np.uint64)
    return halves(seed, number).reshape(shape)


def signed(seed: int) -> int:
    """Write a seed below 2 ** 64 as the int64 of the same bits, which is how kernels get it."""
    return seed - (1 << 64) if seed >> 63 else seed


def random_bits(
    seed: Array, offset: Array, shape: tuple[int, ...], is_second: bool = False
) -> Array:
    """Draw the bits of a `random_bits` node; an offset of its shape has the counters themselves."""
    start = np.asarray(offset).astype(np.uint64)
    whole = int(seed)
    key = (whole & MASK, whole >> 32 & MASK)
    with np.errstate(over="ignore"):
        counters = np.broadcast_to(start.ravel(), product(shape))
        if not start.shape:
            counters = counters + np.arange(product(shape), dtype=np.uint64)
        low = counters & np.uint64(MASK)
        high = counters >> np.uint64(32)
        words = threefry(key, low.astype(np.uint32), high.astype(np.uint32))
    return words[is_second].reshape(shape)
