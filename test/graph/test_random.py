"""Threefry against the vectors its authors published, and its counters."""

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.graph import build
from picograd.graph.random import philox, random_bits, random_halves, signed, threefry

# Random123, tests/kat_vectors: threefry2x32, 20 rounds: counter, key, result
KNOWN = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize("counter, key, expected", KNOWN)
def test_known_answers(
    counter: tuple[int, int], key: tuple[int, int], expected: tuple[int, int]
) -> None:
    low, high = (np.array([word], np.uint32) for word in counter)
    with np.errstate(over="ignore"):
        words = threefry(key, low, high)
    assert tuple(int(word[0]) for word in words) == expected


def test_an_offset_moves_along_one_stream() -> None:
    whole = random_bits(np.array(7), np.array(0), (10,))
    part = random_bits(np.array(7), np.array(4), (2, 3))
    np.testing.assert_array_equal(part.reshape(-1), whole[4:])


def test_node() -> None:
    node = build.random_bits(leaf(np.array(1 << 32)), 3, (4,))
    low, high = np.arange(4, dtype=np.uint32), np.ones(4, np.uint32)
    with np.errstate(over="ignore"):
        first, second = threefry((3, 0), low, high)
    np.testing.assert_array_equal(value(node), first)
    other = build.random_bits(leaf(np.array(1 << 32)), 3, (4,), is_second=True)
    np.testing.assert_array_equal(value(other), second)


@pytest.mark.parametrize("seed", [2**63, 2**64 - 1])
def test_a_large_seed_is_the_int64_of_its_bits(seed: int) -> None:
    node = build.random_bits(leaf(np.array(0)), seed, (4,))
    low, high = np.arange(4, dtype=np.uint32), np.zeros(4, np.uint32)
    assert signed(seed) < 0 and signed(seed) % (1 << 64) == seed
    with np.errstate(over="ignore"):
        wanted, _ = threefry((seed & 0xFFFFFFFF, seed >> 32), low, high)
    np.testing.assert_array_equal(value(node), wanted)


def test_bits_are_uniform() -> None:
    bits = random_bits(np.array(0), np.array(0), (100_000,))
    assert abs(bits.astype(np.float64).mean() / 2**32 - 0.5) < 0.005


# Random123, tests/kat_vectors: philox4x32, 10 rounds: counter, key, result
PHILOX = [
    ((0,) * 4, (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize("counter, key, expected", PHILOX)
def test_known_answers_of_philox(
    counter: tuple[int, ...], key: tuple[int, int], expected: tuple[int, ...]
) -> None:
    words = philox(key, tuple(np.array([word], np.uint32) for word in counter))
    assert tuple(int(word[0]) for word in words) == expected


def test_halves_are_those_of_the_words_of_blocks() -> None:
    """Draw n: a counter for 32, a block for those that differ in n % 2 and n // 8 % 4."""
    seed, first = (9 << 32) + 3, (5 << 32) + 7
    found = random_halves(np.array(seed), np.array(first), (3, 40)).ravel()
    for number in range(120):
        counter = first + number // 32
        words = counter & 0xFFFFFFFF, counter >> 32, number // 2 % 4, 0
        block = philox((3, 9), tuple(np.array([word], np.uint32) for word in words))
        assert found[number] == block[number // 8 % 4][0] >> 16 * (number % 2) & 0xFFFF


def test_halves_by_their_numbers_are_those_of_a_stream() -> None:
    whole = random_halves(np.array(7), np.array(4), (100,))
    numbers = 4 * 32 + np.array([[3, 99], [64, 0]])
    part = random_halves(np.array(7), numbers, (2, 2))
    np.testing.assert_array_equal(part, whole[numbers - 128])


def test_halves_are_uniform_and_neighbours_independent() -> None:
    bits = random_halves(np.array(0), np.array(0), (1 << 17,)).astype(np.float64) / 65536 - 0.5
    assert abs(bits.mean()) < 0.003 and abs(bits.var() * 12 - 1) < 0.01
    for away in (1, 2, 7, 8, 9, 16, 24, 32):
        assert abs((bits[away:] * bits[:-away]).mean() * 12) < 0.012
