"""Temporaries that live at the same time do not overlap, and take little more than what lives."""

import random
import time
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from picograd.schedule.memory import (
    ALIGNMENT,
    PAGE,
    Lifetime,
    Placement,
    Spans,
    bytes_alive,
    lowest_gap,
    orders,
    place_by_time,
    place_in_order,
    place_temporaries,
)


def by_time(lives: list[Lifetime]) -> Placement:
    return place_by_time(*parts(lives))


def in_order(number: int, lives: list[Lifetime]) -> Placement:
    known = parts(lives)
    return place_in_order(*known, [*orders(*known)][number])


def parts(lives: list[Lifetime]) -> tuple[list[int], list[int], list[int]]:
    sizes = [max(-(-x.nbytes // ALIGNMENT), 1) * ALIGNMENT for x in lives]
    return sizes, [x.first for x in lives], [x.last for x in lives]


@st.composite
def lifetimes(draw: st.DrawFn) -> list[Lifetime]:
    found = []
    for _ in range(draw(st.integers(0, 20))):
        first = draw(st.integers(0, 15))
        found.append(Lifetime(draw(st.integers(0, 2000)), first, draw(st.integers(first, 18))))
    return found


def check_apart(lives: list[Lifetime], placed: Placement) -> None:
    offsets, total = placed
    for n, (a, start) in enumerate(zip(lives, offsets, strict=True)):
        assert start % ALIGNMENT == 0 and start >= 0
        assert start + a.nbytes <= total
        for b, other in zip(lives[:n], offsets, strict=False):
            is_apart = a.last < b.first or b.last < a.first
            assert is_apart or start + a.nbytes <= other or other + b.nbytes <= start


ONE_BY_ONE = [partial(in_order, number) for number in range(3)]


@pytest.mark.parametrize("place", [place_temporaries, by_time, *ONE_BY_ONE])
def test_no_two_living_temporaries_overlap(place: Callable[..., Placement]) -> None:
    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(lifetimes())
    def look(lives: list[Lifetime]) -> None:
        check_apart(lives, place(lives))

    look()


def test_memory_is_reused() -> None:
    chain = [Lifetime(1000, n, n + 1) for n in range(50)]
    offsets, total = place_temporaries(chain)
    assert total == 2 * 1024
    assert len(set(offsets)) == 2


def spans(*pairs: tuple[int, int]) -> Spans:
    found = Spans()
    for pair in pairs:
        found.add(*pair)
    return found


def test_the_lowest_gap_is_found() -> None:
    known = [spans((0, 256), (1024, 1280)), spans((512, 768))]
    assert lowest_gap(known, 256) == 256
    assert lowest_gap(known, 512) == 1280
    assert lowest_gap([], 10) == 0


def test_stretches_that_touch_are_one() -> None:
    found = spans((0, 256), (512, 768))
    assert found.add(256, 512)
    assert (found.starts, found.stops) == ([0], [768])
    assert not found.add(100, 768)


def activations(count: int) -> list[Lifetime]:
    """Those of a network that narrows, kept for the gradient, and scratch of each layer."""
    sizes = [(64 << 10) // (n // 8 + 1) for n in range(count)]
    kept = [Lifetime(size, n, 2 * count - n) for n, size in enumerate(sizes)]
    return kept + [Lifetime(size, 2 * count - n, 2 * count - n + 1) for n, size in enumerate(sizes)]


def mixed(count: int) -> list[Lifetime]:
    draw = random.Random(0)
    found = []
    for _ in range(count):
        first, length = draw.randrange(count), int(2 ** draw.uniform(0, 8))
        found.append(Lifetime(int(1000 * 2 ** draw.uniform(0, 8)), first, first + length))
    return found


PLANS = {
    "chain": lambda n: [Lifetime(1000, k, k + 1) for k in range(n)],
    "activations": activations,
    "all": lambda n: [Lifetime(k % 97 * 1000, k, 2 * n) for k in range(n)],
    "nested": lambda n: [Lifetime(k % 97 * 100, k, 2 * n - k) for k in range(n)],
    "mixed": mixed,
}


@pytest.mark.parametrize("name", PLANS)
def test_an_arena_is_little_larger_than_what_lives_at_one_step(name: str) -> None:
    lives = PLANS[name](500)
    assert place_temporaries(lives)[1] <= 1.05 * max(bytes_alive(*parts(lives)))


@pytest.mark.parametrize("name", ["chain", "all", "nested", "mixed"])
def test_time_grows_with_the_temporaries(name: str) -> None:
    few, many = PLANS[name](500), PLANS[name](5000)  # of fewer, one order may be small enough
    assert seconds(many) < 30 * max(seconds(few), 1e-3)  # ten times as many


def seconds(lives: list[Lifetime]) -> float:
    times = []
    for _ in range(4):
        start = time.thread_time()
        place_temporaries(lives)
        times.append(time.thread_time() - start)
    return min(times)


@pytest.mark.parametrize(
    ("number", "rows"),
    [
        (1, [(1, 0, 0), (3, 0, 5), (2, 0, 8), (4, 7, 8), (2, 4, 4)]),
        (2, [(3, 1, 9), (3, 3, 4), (2, 0, 4), (4, 7, 9), (4, 4, 7)]),
    ],
)
def test_temporaries_of_the_fullest_step_may_come_first(
    number: int, rows: list[tuple[int, int, int]]
) -> None:
    lives = [Lifetime(size << 20, first, last) for size, first, last in rows]
    least = max(bytes_alive(*parts(lives)))
    tried = [by_time(lives), *(in_order(other, lives) for other in range(3) if other != number)]
    assert min(top for _, top in tried) > least
    assert in_order(number, lives)[1] == least
    assert place_temporaries(lives)[1] <= least * 1.01


def test_long_temporaries_do_not_begin_whole_pages_apart() -> None:
    offsets, top = place_temporaries([Lifetime(1 << 20, 0, 3)] * 4)
    assert len({offset % PAGE for offset in offsets}) == 4 and top <= 4.01 * (1 << 20)
    offsets, top = place_temporaries([Lifetime(1 << 14, 0, 3)] * 4)
    assert top == 4 << 14  # short ones would take much more
