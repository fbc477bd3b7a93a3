"""Errors of the functions in units in the last place stay under the bars of bench/accuracy.py."""

import sys
from pathlib import Path

import numpy as np
import pytest

from picograd import Tensor

pytest.importorskip("mpmath")
sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import accuracy

BY_NAME = {function.name: function for function in accuracy.FUNCTIONS}
POINTS = {"elementary": 80, "special": 16}


@pytest.mark.parametrize("name", BY_NAME)
def test_errors_stay_under_the_bar(name: str) -> None:
    function = BY_NAME[name]
    for dtype in accuracy.BITS:
        worst, where = accuracy.measure(function, dtype, POINTS[function.kind], seed=1)
        assert worst <= accuracy.BARS[function.kind], (dtype, worst, where)


@pytest.mark.parametrize("shape, axis", [((3_000_000,), 0), ((2, 300_000), 1), ((100_000, 3), 0)])
def test_long_running_sums_round_once(shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(0).random(shape, np.float32)
    exact = x.cumsum(axis, np.float64)
    found = Tensor(x).cumsum(axis).numpy()
    assert np.max(np.abs(found - exact) / exact) < 2.0**-23
