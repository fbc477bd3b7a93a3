"""Pieces that may begin elsewhere each time, and how they are told."""

import numpy as np
import pytest

from picograd import Tensor
from picograd.tensor.core.pieces import (
    IS,
    MADE,
    MANY,
    Told,
    facts_of,
    may_be_placed,
    may_cut,
    piece,
    shown_by,
)

READ = Tensor._read_items


@pytest.mark.parametrize(
    "told, wanted",
    [
        ((IS, 1), True), ((IS, (0, 1)), True), ((IS, (None, Ellipsis)), False),
        ((MANY, (slice, [(IS, None)] * 3)), False),
        ((MANY, (tuple, [(MANY, (slice, [(IS, 2), (IS, None)]))])), True),
        ((IS, True), False), ((MADE, 0), False),
    ],
)  # fmt: skip
def test_indices_that_may_begin_elsewhere(told: Told, wanted: bool) -> None:
    assert may_be_placed([told]) is wanted


def test_pieces_of_memory_are_cut() -> None:
    x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4)).realize()
    assert may_cut(READ, (x, 1)) and may_cut(READ, (x, (slice(1, 3), None)))
    assert not may_cut(READ, (x, (slice(None), None))) and not may_cut(READ, (x, [1]))
    assert not may_cut(len, (x, 1)) and not may_cut(READ, (x,)) and not may_cut(READ, (1, 1))
    assert not may_cut(READ, (x * 2.0, 1))
    assert piece(READ, (x, 1)).tolist() == [4.0, 5.0, 6.0, 7.0]


def test_pieces_are_told_but_for_where_they_begin() -> None:
    x = Tensor(np.arange(12, dtype=np.float32)).realize()
    facts = [facts_of(each) for each in (x[1:4], x[5:8], x[5:9], x[1:7:2])]
    assert facts[0] == facts[1] and facts[2] != facts[1] != facts[3]
    assert shown_by(x._node) == ((), x._node)
    assert facts_of(x + 1.0) is None
