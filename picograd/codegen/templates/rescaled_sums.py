"""Rescaled sums: a maximum and a sum of exponentials below it, of rows that blocks share.

    p = max over a piece of x                   each block, of its piece
    q = sum over the piece of exp(x - p)
    m = max over pieces of p                    the last block to finish
    s = sum over pieces of q * exp(p - m)

What is subtracted is the maximum, or made of it. A piece of nothing but -inf adds nothing: its sum,
which is NaN, is left out.
"""

import math
from dataclasses import replace
from typing import NamedTuple

from picograd.dtype import bool_
from picograd.graph.row import EXPONENTIALS, OPS
from picograd.schedule.index import Axes
from picograd.schedule.loop import Compute, Expr, Part, const, rewrite, walk
from picograd.shared_parts import once_a_node


def rescaled_axes(part: Part) -> Axes | None:
    """Find the axes that all reductions of a part share, if sums depend on a maximum at most."""
    sums = sums_of(part)
    over = set()
    for number, compute in enumerate(part.computes):
        if compute.axes != part.rows:
            return None
        if not compute.reduce:
            continue
        over.add(compute.reduce)
        if number not in sums and refs_of(compute.body):
            return None
    return over.pop() if sums and len(over) == 1 else None


class Below(NamedTuple):
    """A sum of exponentials: the maximum that it depends on, and what is subtracted by it."""

    peak: int
    shift: Expr  # refers to the maximum

    def shift_of(self, peak: Expr) -> Expr:
        """Write what is subtracted, by a maximum."""

        def known(expr: Expr) -> Expr | None:
            return peak if expr.op == "ref" else None

        return rewrite(self.shift, {}, known)


def sums_of(part: Part) -> dict[int, Below]:
    """Find the sums of exponentials below a maximum of the same elements, by their numbers."""
    found = {}
    for number, compute in enumerate(part.computes):
        away = difference_of(compute)
        if away is None:
            continue
        x, shift = away
        shift = inlined(shift, part)
        peaks = refs_of(shift)
        is_loading = any(each.op == "load" for each in walk(shift))
        if is_loading or len(peaks) != 1:
            continue
        peak = min(peaks)
        if is_peak(part.computes[peak], compute, x):
            found[number] = Below(peak, shift)
    return found


def difference_of(compute: Compute) -> tuple[Expr, Expr] | None:
    """Find x and what is subtracted of it, in a sum of exp(x - shift)."""
    power = compute.body
    is_sum = bool(compute.reduce) and compute.monoid == "sum"
    if not is_sum or power.op not in EXPONENTIALS:
        return None
    (away,) = power.args
    row = OPS.get(away.op)
    if row is None or row.factors != (1, -1):
        return None
    x, shift = away.args
    return x, shift


def is_peak(peak: Compute, total: Compute, x: Expr) -> bool:
    """Tell whether a compute is the maximum of what a sum takes the exponentials of."""
    is_same = peak.reduce == total.reduce and peak.body == x
    return is_same and peak.monoid == "max" and not refs_of(x)


@once_a_node
def inlined(expr: Expr, part: Part) -> Expr:
    """Put what is computed of whole rows in its place, down to reductions."""

    def known(each: Expr) -> Expr | None:
        if each.op != "ref":
            return None
        compute = part.computes[each.arg]
        return None if compute.reduce else inlined(compute.body, part)

    return rewrite(expr, {}, known)


def refs_of(expr: Expr) -> set[int]:
    """List the computes that an expression refers to."""
    found = set()
    for each in walk(expr):
        if each.op == "ref":
            found.add(each.arg)
    return found


def below_piece(compute: Compute, below: Below, peak: Expr) -> Compute:
    """Write the sum that a block takes of its piece, by the maximum of that."""
    power = compute.body
    (away,) = power.args
    x, _ = away.args
    away = Expr(away.op, (x, below.shift_of(peak)), away.arg, away.dtype)
    return replace(compute, body=Expr(power.op, (away,), power.arg, power.dtype))


def unless_nothing(peak: Expr, value: Expr) -> Expr:
    """Write a value; 0 for a piece of nothing but -inf."""
    least = const(-math.inf, peak.dtype)
    is_nothing = Expr("equal", (peak, least), None, bool_)
    zero = const(0.0, value.dtype)
    return Expr("where", (is_nothing, zero, value), None, value.dtype)


def rescaled(compute: Compute, below: Below, total: Expr, own: Expr, peak: Expr) -> Expr:
    """Write the sum of a piece, whose maximum is `own`, below the maximum of all."""
    dtype, power = compute.dtype, compute.body
    (away,) = power.args
    before, after = below.shift_of(own), below.shift_of(peak)
    away = Expr(away.op, (before, after), None, dtype)
    factor = Expr(power.op, (away,), None, dtype)
    scaled = Expr("mul", (total, factor), None, dtype)
    return unless_nothing(own, scaled)
