"""Temporaries that live at the same time do not overlap."""

import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from picograd.schedule.memory import ALIGNMENT, Lifetime, lowest_gap, place_temporaries


@st.composite
def lifetimes(draw: st.DrawFn) -> list[Lifetime]:
    found = []
    for _ in range(draw(st.integers(0, 20))):
        first = draw(st.integers(0, 15))
        found.append(Lifetime(draw(st.integers(0, 2000)), first, draw(st.integers(first, 18))))
    return found


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(lifetimes())
def test_no_two_living_temporaries_overlap(lives: list[Lifetime]) -> None:
    offsets, total = place_temporaries(lives)
    for n, (a, start) in enumerate(zip(lives, offsets, strict=True)):
        assert start % ALIGNMENT == 0
        assert start + a.nbytes <= total
        for b, other in zip(lives[:n], offsets, strict=False):
            is_apart = a.last < b.first or b.last < a.first
            assert is_apart or start + a.nbytes <= other or other + b.nbytes <= start


def test_memory_is_reused() -> None:
    chain = [Lifetime(1000, n, n + 1) for n in range(50)]
    offsets, total = place_temporaries(chain)
    assert total == 2 * 1024
    assert len(set(offsets)) == 2


def test_the_lowest_gap_is_found() -> None:
    spans = np.array([[0, 512], [256, 1024]])
    assert lowest_gap(spans, 256) == 256
    assert lowest_gap(spans, 512) == 1024
    assert lowest_gap(np.zeros((2, 0), np.int64), 10) == 0


def test_long_lifetimes_are_placed_quickly() -> None:
    start = time.process_time()
    place_temporaries([Lifetime(n % 97 * 100, n, 4000 - n) for n in range(2000)])
    assert time.process_time() - start < 1
