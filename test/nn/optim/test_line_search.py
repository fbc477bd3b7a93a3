"""The line search on functions of one variable."""

import numpy as np
import pytest

from picograd.nn.optim.lbfgs import C1, C2, Point, interpolate, search, trial


def point_of(function, slope, length):
    return Point(length, function(length), np.asarray([slope(length)]), slope(length))


@pytest.mark.parametrize(
    "function, slope, first",
    [
        (lambda x: (x - 3.0) ** 2, lambda x: 2.0 * (x - 3.0), 0.1),  # has to grow
        (lambda x: (x - 3.0) ** 2, lambda x: 2.0 * (x - 3.0), 50.0),  # has to shrink
        (lambda x: -x / (x * x + 2.0), lambda x: (x * x - 2.0) / (x * x + 2.0) ** 2, 9.0),
        (lambda x: np.cos(x) - 0.3 * x, lambda x: -np.sin(x) - 0.3, 20.0),
    ],
)
def test_the_wolfe_conditions_hold(function, slope, first):
    calls = []

    def evaluate(length):
        calls.append(length)
        return point_of(function, slope, length)

    start = point_of(function, slope, 0.0)
    found, count = search(evaluate, start, first, 1.0, 1e-9, 25)
    assert count == len(calls) and found.length in calls
    assert found.loss <= start.loss + C1 * found.length * start.slope
    assert abs(found.slope) <= C2 * abs(start.slope)


def test_points_near_an_end_move_inside():
    """The first time they may stay, the second time they keep a tenth of the interval away."""
    low = Point(0.0, 0.0, np.zeros(1), -0.01)
    high = Point(1.0, 1.0, np.zeros(1), 2.0)
    length, is_stalled = trial(low, high, False)
    assert 0.0 < length < 0.1 and is_stalled
    assert trial(low, high, True) == (0.1, False)
    assert trial(high, low, True) == (0.1, False)


def test_few_tries_give_the_best_so_far():
    function, slope = (lambda x: (x - 3.0) ** 2), (lambda x: 2.0 * (x - 3.0))
    start = point_of(function, slope, 0.0)
    found, count = search(lambda x: point_of(function, slope, x), start, 1e-3, 1.0, 1e-9, 1)
    assert count == 2 and 0.0 < found.length < 0.1


def test_interpolation_finds_the_minimum_of_a_cubic():
    function, slope = (lambda x: x**3 - 3.0 * x), (lambda x: 3.0 * x * x - 3.0)
    ends = [point_of(function, slope, length) for length in (0.0, 2.5)]
    assert interpolate(*ends) == pytest.approx(1.0) == interpolate(*reversed(ends))
    assert interpolate(*ends, (1.5, 2.0)) == 1.5
