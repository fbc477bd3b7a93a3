"""Threefry2x32, the counter-based random generator, in NumPy.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
The 64-bit counter of element i is offset + i; its low word is the first input of the block, its
high word the second; the key words are the low and high word of the seed. An element is the first
output word after 20 rounds.
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


def rotate_left(x: Array, count: int) -> Array:
    """Rotate 32-bit words."""
    return (x << np.uint32(count)) | (x >> np.uint32(32 - count))


def threefry(key: tuple[int, int], low: Array, high: Array) -> Array:
    """First output word of threefry2x32-20 for uint32 counters."""
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
    return a


def signed(seed: int) -> int:
    """Write a seed below 2 ** 64 as the int64 of the same bits, which is how kernels get it."""
    return seed - (1 << 64) if seed >> 63 else seed


def random_bits(seed: Array, offset: Array, shape: tuple[int, ...]) -> Array:
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
        bits = threefry(key, low.astype(np.uint32), high.astype(np.uint32))
    return bits.reshape(shape)
