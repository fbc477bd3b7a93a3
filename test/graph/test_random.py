"""Threefry against the vectors its authors published, and its counters."""

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.graph import build
from picograd.graph.random import random_bits, signed, threefry

# Random123, tests/kat_vectors: threefry2x32, 20 rounds: counter, key, first word of the result
KNOWN = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), 0x6B200159),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), 0x1CB996FC),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), 0xC4923A9C),
]


@pytest.mark.parametrize("counter, key, expected", KNOWN)
def test_known_answers(counter: tuple[int, int], key: tuple[int, int], expected: int) -> None:
    low, high = (np.array([word], np.uint32) for word in counter)
    with np.errstate(over="ignore"):
        assert threefry(key, low, high)[0] == expected


def test_an_offset_moves_along_one_stream() -> None:
    whole = random_bits(np.array(7), np.array(0), (10,))
    part = random_bits(np.array(7), np.array(4), (2, 3))
    np.testing.assert_array_equal(part.reshape(-1), whole[4:])


def test_node() -> None:
    node = build.random_bits(leaf(np.array(1 << 32)), 3, (4,))
    low, high = np.arange(4, dtype=np.uint32), np.ones(4, np.uint32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(value(node), threefry((3, 0), low, high))


@pytest.mark.parametrize("seed", [2**63, 2**64 - 1])
def test_a_large_seed_is_the_int64_of_its_bits(seed: int) -> None:
    node = build.random_bits(leaf(np.array(0)), seed, (4,))
    low, high = np.arange(4, dtype=np.uint32), np.zeros(4, np.uint32)
    assert signed(seed) < 0 and signed(seed) % (1 << 64) == seed
    with np.errstate(over="ignore"):
        wanted = threefry((seed & 0xFFFFFFFF, seed >> 32), low, high)
    np.testing.assert_array_equal(value(node), wanted)


def test_bits_are_uniform() -> None:
    bits = random_bits(np.array(0), np.array(0), (100_000,))
    assert abs(bits.astype(np.float64).mean() / 2**32 - 0.5) < 0.005
