"""The generators as scalar expressions equal the graph's own."""

import numpy as np
import pytest
from plan_support import check_plan, leaf

from picograd.buffer import RuntimeScalar
from picograd.dtype import int64, uint32, uint64
from picograd.graph import build
from picograd.graph.node import Node
from picograd.schedule.draws import (
    drawn,
    half_drawn,
    half_written_out,
    rotate,
    threefry,
    word,
    written_out,
)
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, const, walk


@pytest.mark.parametrize("seed", [0, 1, 2**40 + 7])
def test_bits_equal_the_graph_interpreter(seed: int) -> None:
    offset = build.scalar(RuntimeScalar(12345), "cpu", int64)
    words = [build.random_bits(offset, seed, (3, 5), is_second) for is_second in (False, True)]
    check_plan(words, 1, 0)


@pytest.mark.parametrize("seed", [0, 2**40 + 7])
def test_halves_equal_the_graph_interpreter(seed: int) -> None:
    first, key = (build.scalar(RuntimeScalar(n), "cpu", int64) for n in (12345, seed))
    check_plan([build.random_halves(first, key, (3, 50))], 1, 0)


def test_halves_of_their_own_numbers_equal_the_graph_interpreter() -> None:
    numbers = leaf(3, 50, dtype=int64, below=1000)
    key = build.scalar(RuntimeScalar(5), "cpu", int64)
    bits = Node("random_bits", (numbers, key), 16, (3, 50), uint32, "cpu")
    check_plan([bits], 1, 0)


def test_eight_places_share_a_block() -> None:
    """What differs is the word and the half that they take of it."""
    axis = Axis("i", 8)
    first = axis_index(axis) * 64
    products: dict[int, set[Expr]] = {}
    for place in range(64):
        bits = half_written_out(half_drawn(const(3, int64), const(0, uint64), first + place))
        made = frozenset(expr for expr in walk(bits) if expr.op == "mul")
        products.setdefault(place // 32 * 4 + place // 2 % 4, set()).update(made)
    counts = [len(found) for found in products.values()]
    assert len(counts) == 8 and max(counts) == 20, "two in each of ten rounds, of all eight places"


def test_twenty_rounds_and_shared_subexpressions() -> None:
    axis = Axis("i", 8)
    bits = written_out(drawn(const(3, int64), const(0, uint64), axis_index(axis)))
    assert bits.dtype.name == "uint32"
    xors = [expr for expr in walk(bits) if expr.op == "bitwise_xor"]
    assert len(xors) == 19 + 2, "19: the last round's second word is not needed; 2: the third key"
    assert len(list(walk(bits))) < 220


def test_pieces() -> None:
    assert word(-1).arg == 0xFFFFFFFF
    assert rotate(word(1), 13).op == "bitwise_or"
    keys = [(word(n), word(0)) for n in (0, 1)]
    assert threefry(keys[0], word(1), word(2)) != threefry(keys[1], word(1), word(2))
    assert np.uint32 == rotate(word(1), 13).dtype.numpy
