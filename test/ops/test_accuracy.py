"""Errors of the functions in units in the last place stay under the bars of bench/accuracy.py."""

import sys
from pathlib import Path

import pytest

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
