"""Fourier transforms of few points, which a thread has in registers: steps of longer ones.

    out[..., j, k] = W^(j k) * sum over i of W_a^(i k) x[..., i, j]       a points, all k at once

A step of a = p q points is p points of each q-th, turned, and q points of those (host_call.py says
the same of whole transforms). Complex numbers are pairs of nodes. Parts of the result are computed
at points of their own, which share what they read, so that neighbours store side by side; what is
`stored` stays in registers, since one kernel computes all of it (schedule/folding.py).
"""

import math
import operator
from functools import reduce

from picograd.dtype import float32
from picograd.graph.node import Node, constant

Pair = tuple[Node, Node]
# (sin x - x) / x^3 and (cos x - 1 + x^2 / 2) / x^4 by x^2, |x| <= pi / 4; errors of sines and
# cosines in float32 are 5e-8 and 7e-8
SINE = (-0.166666641831398, 0.008332747966051102, -0.00019587890710681677)
COSINE = (0.0416666641831398, -0.001388830249197781, 2.454794230288826e-05)
FIRST = {2: 2, 3: 3, 4: 4, 5: 5, 6: 2, 7: 7, 8: 4}  # p, by p q


def summed(*pairs: Pair) -> Pair:
    """Add complex numbers."""
    return reduce(operator.add, [a for a, _ in pairs]), reduce(operator.add, [b for _, b in pairs])


def minus(a: Pair, b: Pair) -> Pair:
    """Subtract a complex number from another."""
    return a[0] - b[0], a[1] - b[1]


def scaled(a: Pair, factor: float) -> Pair:
    """Multiply a complex number by a real one."""
    return a[0] * factor, a[1] * factor


def rotated(a: Pair, number: int, size: int, sign: int) -> Pair:
    """Turn a complex number by some size-ths of a circle; quarters are exact."""
    quarters, rest = divmod(4 * number * sign % (4 * size), size)
    if not rest:
        re, im = a
        return [(re, im), (-im, re), (-re, -im), (im, -re)][quarters]
    angle = 2 * math.pi * sign * number / size
    return times(a, math.cos(angle), math.sin(angle))


def times(a: Pair, re: Node | float, im: Node | float) -> Pair:
    """Multiply complex numbers."""
    return a[0] * re - a[1] * im, a[0] * im + a[1] * re


def points(given: list[Pair], sign: int) -> list[Pair]:
    """Transform 2, 4 or an odd number of points."""
    size, first = len(given), given[0]
    if size == 2:
        return [summed(*given), minus(*given)]
    if size == 4:
        return in_two(given, 2, sign, False)
    half = range(1, size // 2 + 1)
    both = {j: summed(given[j], given[-j]) for j in half}
    apart = {j: minus(given[j], given[-j]) for j in half}
    found = [summed(first, *both.values())] * size
    for k in half:
        angles = {j: 2 * math.pi * (j * k % size) / size for j in half}
        even = summed(first, *(scaled(both[j], math.cos(angles[j])) for j in half))
        odd = summed(*(scaled(apart[j], sign * math.sin(angles[j])) for j in half))
        turned = -odd[1], odd[0]
        found[k], found[-k] = summed(even, turned), minus(even, turned)
    return found


def in_two(given: list[Pair], first: int, sign: int, is_kept: bool) -> list[Pair]:
    """Transform `first` points of each set, then those of one place in all sets."""
    size = len(given)
    count = size // first
    if count == 1:
        return points(given, sign)
    sets = [points(given[j::count], sign) for j in range(count)]
    sets = [
        [rotated(a, j * k, size, sign) for k, a in enumerate(each)] for j, each in enumerate(sets)
    ]
    if is_kept:
        sets = [[(a.stored(), b.stored()) for a, b in each] for each in sets]
    found = list(given)
    for k in range(first):
        found[k::first] = points([each[k] for each in sets], sign)
    return found


def cut(node: Node, axis: int, place: int) -> Node:
    """Take what lies at one place of an axis, which is dropped."""
    ranges = [(0, n, 1) for n in node.shape]
    ranges[axis] = place, place + 1, 1
    return node.slice(tuple(ranges)).reshape((*node.shape[:axis], *node.shape[axis + 1 :]))


def step(
    x: Node, turns: Node | None, sign: int, wanted: int, parts: int, scale: float = 1.0
) -> Node:
    """Transform an axis: (L, points, rest, after, given) to (L, rest, wanted, after, parts).

    `turns` are the rotations behind it: (rest, points, 2). Given and made are complex numbers of
    two parts, or real ones.
    """
    lead, size, rest, after, given = x.shape
    x = x if turns is None else x.after(turns, True)  # so that all of a step is in one kernel
    shape = (lead, rest, after, parts)
    halves = [cut(x, 4, part) for part in range(given)]
    halves += [constant(0.0, x.shape[:4], x.dtype, x.device)] * (2 - given)
    pairs = []
    for n in range(size):
        re, im = (cut(half, 1, n).reshape((*shape[:3], 1)).expand(shape) for half in halves)
        pairs.append((re, im))
    found = in_two(pairs, FIRST[size], sign, True)[:wanted]
    placed = []
    for k, pair in enumerate(found):
        if turns is not None and k:
            table = [cut(cut(turns, 1, k), 1, part) for part in (0, 1)]
            pair = times(pair, *[each.reshape((1, rest, 1, 1)).expand(shape) for each in table])
        is_real = pair[0].iota(3).binary("equal", 0)
        made = pair[0] if parts == 1 else is_real.where(*pair)
        made = made if scale == 1 else made * scale
        made = made.stored().reshape((lead, rest, 1, after, parts))
        placed.append(made.pad(((0, 0), (0, 0), (k, wanted - 1 - k), (0, 0), (0, 0)), 0.0))
    return reduce(Node.__add__, placed).stored()


def sine(angle: Node) -> Node:
    """Compute the sine of at most an eighth of a turn, without more digits or cases in float32."""
    if angle.dtype is not float32:
        return angle.unary("sin")
    square = angle * angle
    first, second, third = SINE
    return angle + angle * square * ((square * third + second) * square + first)


def cosine(angle: Node) -> Node:
    """Compute the cosine of at most an eighth of a turn."""
    if angle.dtype is not float32:
        return angle.unary("cos")
    square = angle * angle
    first, second, third = COSINE
    rest = square * square * ((square * third + second) * square + first)
    return 1.0 - square * 0.5 + rest
