"""Line search by the strong Wolfe conditions (Nocedal and Wright, 2006, algorithms 3.5 and 3.6).

A step is long enough when the loss has fallen by C1 of what the first slope promises and the slope
has become C2 times as flat. First steps grow until they enclose such a point, then the interval
shrinks around it; trial points come from the cubic through both ends.
"""

import math
from collections.abc import Callable

import numpy as np

from picograd.late_methods import dataclass

C1, C2 = 1e-4, 0.9
# A trial point keeps this share of the interval away from its ends when progress stalls.
MARGIN = 0.1


@dataclass(slots=True)
class Point:
    """A step along the direction: its length, the loss there, the gradient, and the slope."""

    length: float
    loss: float
    gradient: "np.ndarray[tuple[int], np.dtype[np.float64]]"
    slope: float


Evaluate = Callable[[float], Point]


def search(
    evaluate: Evaluate, start: Point, length: float, size: float, tolerance: float, most: int
) -> tuple[Point, int]:
    """Find a point by the strong Wolfe conditions; also count the evaluations.

    `size` is the largest element of the direction: an interval that moves no parameter by more
    than `tolerance` is small enough. At most about `most` points are tried.
    """
    before, point = start, evaluate(length)
    for tried in range(most):
        is_rising = tried > 1 and point.loss >= before.loss
        if is_too_high(point, start) or is_rising:
            return zoom(evaluate, start, (before, point), size, tolerance, (tried, most))
        if abs(point.slope) <= -C2 * start.slope:
            return point, tried + 1
        if point.slope >= 0.0:
            return zoom(evaluate, start, (before, point), size, tolerance, (tried, most))
        gap = point.length - before.length
        bounds = point.length + 0.01 * gap, point.length * 10.0
        before, point = point, evaluate(interpolate(before, point, bounds))
    return (start if start.loss <= point.loss else point), most + 1


def zoom(
    evaluate: Evaluate,
    start: Point,
    ends: tuple[Point, Point],
    size: float,
    tolerance: float,
    tries: tuple[int, int],
) -> tuple[Point, int]:
    """Shrink an interval that encloses a good point; its better end is the answer."""
    low, high = sorted(ends, key=lambda point: point.loss)
    tried, most = tries
    is_stalled = False
    while tried < most and abs(high.length - low.length) * size >= tolerance:
        length, is_stalled = trial(low, high, is_stalled)
        point = evaluate(length)
        tried += 1
        if is_too_high(point, start) or point.loss >= low.loss:
            low, high = sorted((low, point), key=lambda each: each.loss)
            continue
        if abs(point.slope) <= -C2 * start.slope:
            return point, tried + 1
        if point.slope * (high.length - low.length) >= 0.0:
            high = low
        low = point
    return low, tried + 1


def is_too_high(point: Point, start: Point) -> bool:
    """Tell whether the loss fell by less than C1 of what the first slope promises."""
    return point.loss > start.loss + C1 * point.length * start.slope


def trial(low: Point, high: Point, is_stalled: bool) -> tuple[float, bool]:
    """Choose the next length inside an interval, and tell whether it came close to an end."""
    length = interpolate(low, high)
    left, right = sorted((low.length, high.length))
    margin = MARGIN * (right - left)
    if min(right - length, length - left) >= margin:
        return length, False
    if not is_stalled and left < length < right:
        return length, True
    is_right = abs(length - right) < abs(length - left)
    return (right - margin if is_right else left + margin), False


def interpolate(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Find the minimum of the cubic through two points, cut to bounds (Nocedal and Wright, 3.59).

    Where the cubic has none: the middle.
    """
    first, last = sorted((a, b), key=lambda point: point.length)
    least, most = bounds or (first.length, last.length)
    gap = last.length - first.length
    mean = first.slope + last.slope - 3.0 * (last.loss - first.loss) / gap if gap else 0.0
    square = mean * mean - first.slope * last.slope
    if not square >= 0.0:
        return (least + most) / 2.0
    root = math.sqrt(square)
    bottom = last.slope - first.slope + 2.0 * root
    if bottom == 0.0:
        return most
    return min(max(last.length - gap * (last.slope + root - mean) / bottom, least), most)
