"""Iterators and generators: whether one moved is seen without moving it."""

import itertools
import random

import numpy as np
import pytest

from picograd.tensor.transforms.jit_progress import is_moving, progress_of


def halves():
    rate = 1.0
    while True:
        yield rate
        rate /= 2


MAKERS = {
    "list": lambda: iter([1, 2, 3, 4, 5, 6]),
    "range": lambda: iter(range(6)),
    "dict": lambda: iter({1: 2, 3: 4, 5: 6, 7: 8}),
    "generator": halves,
    "count": lambda: itertools.count(0.5, 0.25),
    "cycle": lambda: itertools.cycle([1, 2]),
    "zip": lambda: zip([1, 2, 3, 4], halves()),
    "map": lambda: map(str, [1, 2, 3, 4]),
    "enumerate": lambda: enumerate("abcd"),
    "chain": lambda: itertools.chain([1], [2], halves()),
    "islice": lambda: itertools.islice(itertools.count(), 8),
}


@pytest.mark.parametrize("name", MAKERS)
def test_iterators(name):
    iterator, other = MAKERS[name](), MAKERS[name]()
    assert is_moving(iterator)
    for _ in range(4):
        before = progress_of(iterator)
        assert progress_of(iterator) == before
        assert next(iterator) == next(other)
        assert progress_of(iterator) != before


def test_random_numbers():
    for generator in (random.Random(1), np.random.default_rng(1), np.random.RandomState(1)):
        before = progress_of(generator)
        assert is_moving(generator) and progress_of(generator) == before
        (generator.normal if hasattr(generator, "normal") else generator.gauss)(0, 1)
        assert progress_of(generator) != before


def test_what_does_not_move():
    assert not any(map(is_moving, (1, "text", [1], (2,), {3: 4}, range(3), open)))
