"""Threefry as scalar expressions equals the graph's own generator."""

import numpy as np
import pytest
from plan_support import check_plan

from picograd.buffer import RuntimeScalar
from picograd.dtype import int64, uint64
from picograd.graph import build
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import const, walk
from picograd.schedule.draws import drawn, rotate, threefry, word, written_out


@pytest.mark.parametrize("seed", [0, 1, 2**40 + 7])
def test_bits_equal_the_graph_interpreter(seed: int) -> None:
    offset = build.scalar(RuntimeScalar(12345), "cpu", int64)
    check_plan([build.random_bits(offset, seed, (3, 5))], 1, 0)


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
