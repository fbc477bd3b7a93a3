"""stream_powers: exponentials in the weights of a stream, written as powers of 2.

    exp(x - m) / l    ->    2^(x * log2(e) - (m * log2(e) + log2(l)))

What is subtracted has one value a row. Of a hidden row it is so much that 0 is left.
"""

import math
from collections.abc import Callable, Iterable
from itertools import chain

from picograd.codegen.operands import cast
from picograd.codegen.stream_masks import scaled, unscaled
from picograd.codegen.streams import binary
from picograd.dtype import bool_
from picograd.errors import internal
from picograd.graph.elementwise import ELEMENTWISE
from picograd.graph.ops import OPS
from picograd.late_methods import dataclass
from picograd.schedule.loop import Expr, const, walk
from picograd.schedule.score_masks import is_constant, is_number


def refs_of(exprs: Iterable[Expr]) -> set[int]:
    """Find the numbers of the scores that expressions are made of."""
    parts = chain.from_iterable(map(walk, exprs))
    return {part.arg for part in parts if part.op == "ref"}


def exponentials_of(exprs: Iterable[Expr]) -> set[Expr]:
    """Find the exponentials in expressions: see `exponentials_in`."""
    found = map(exponentials_in, exprs)
    return set(chain.from_iterable(found))


def outermost(root: Expr, find: Callable[[Expr], Expr | None]) -> Expr:
    """Replace the outermost parts of an expression that `find` knows."""
    found = find(root)
    if found is not None:
        return found
    args = tuple([outermost(each, find) for each in root.args])
    return Expr(root.op, args, root.arg, root.dtype)


def unrounded(expr: Expr) -> Expr:
    """Take conversions off: weights are rounded once, where they are packed."""
    while expr.args and OPS[expr.op].keeps_value:
        (expr,) = expr.args
    return expr


def exponentials_in(body: Expr) -> list[Expr]:
    """List the largest parts of a body that are exp(x - m), or that over a total."""
    found: list[Expr] = []

    def find(expr: Expr) -> Expr | None:
        if parts_of(expr) is None:
            return None
        found.append(expr)
        return expr

    outermost(body, find)
    return found


def is_multiple(body: Expr, of: set[Expr]) -> bool:
    """Tell whether a body is 0 wherever the one of `of` in it is."""
    if body in of:
        return True
    row = OPS.get(body.op)
    if row is None or not row.linear:
        return False
    parts = [body.args[place] for place in row.linear]
    has_multiple = any(is_multiple(part, of) for part in parts)
    if row.linear == (1, 2):
        has_zero = any(is_number(part, 0.0) for part in parts)
        return has_zero and has_multiple
    return has_multiple


Parts = tuple[Expr, Expr, Expr | None, float]


def parts_of(expr: Expr) -> Parts | None:
    """Read exp(x - m), or that over a total: x, m, the total, and the base of the exponential."""
    total: Expr | None = None
    inner = expr
    row = OPS.get(expr.op)
    is_quotient = row is not None and row.linear == (0,)
    if is_quotient and len(expr.args) == 2:
        above, total = expr.args
        inner = unrounded(above)
    if not is_power(inner) or len(inner.args) != 1:
        return None
    (less,) = inner.args
    row = OPS.get(less.op)
    is_difference = row is not None and row.factors == (1, -1)
    if not is_difference or less.dtype.bits != 32:
        return None
    score, peak = less.args
    base = ELEMENTWISE[inner.op].numpy(1.0)  # type: ignore[misc]
    return score, peak, total, float(base)


@dataclass(frozen=True, slots=True)
class Power:
    """A power of 2 of `factor` times `score`, less what has one value a row."""

    score: Expr
    factor: Expr
    peak: Expr
    exponent: Expr

    @staticmethod
    def of(expr: Expr) -> "Power":
        """Read exp(x - m), or that over a total, as such a power."""
        found = parts_of(expr) or internal("an exponential of a difference", expr)
        score, peak, total, base = found
        inner, scale = unscaled(score)
        bits = math.log2(base)
        exponent = scaled(peak, bits)
        if total is not None:
            logarithm = Expr("log", (total,), None, total.dtype)
            total_bits = scaled(logarithm, math.log2(math.e))
            exponent = binary("add", exponent, total_bits)
        factor = const(scale * bits, peak.dtype)
        return Power(inner, factor, peak, exponent)

    def less(self, is_safe: bool) -> Expr:
        """Write what is subtracted; if it is to be safe, so much of a hidden row that 0 is left."""
        if not is_safe:
            return self.exponent
        dtype = self.peak.dtype
        lowest = const(-math.inf, dtype)
        highest = const(math.inf, dtype)
        is_low = Expr("equal", (self.peak, lowest), None, bool_)
        choices = is_low, highest, self.exponent
        return Expr("where", choices, None, dtype)


def without_factor(weight: Expr) -> tuple[Expr, float]:
    """Take the numbers off that a weight is multiplied by last: the result is, instead."""
    factor = 1.0
    weight = unrounded(weight)
    while weight.op in OPS and OPS[weight.op].linear == (0, 1):
        first, second = weight.args
        if not is_constant(second):
            break
        factor *= float(second.arg)
        weight = unrounded(first)
    return weight, factor


def is_power(expr: Expr) -> bool:
    """Tell whether an expression is an exponential."""
    row = OPS.get(expr.op)
    return row is not None and row.is_exponential


def power_of_two(score: Expr, less: Expr) -> Expr:
    """Write the power of 2 of a score less what is of its row."""
    exponent = binary("sub", score, less)
    return Expr("quick_exp2", (exponent,), None, exponent.dtype)


def needs_guard(expr: Expr) -> bool:
    """Tell whether an expression must not be computed where conditions do not hold."""
    return expr.op == "load" or is_power(expr)


def power_of(expr: Expr) -> Expr | None:
    """Write exp(x - m), or that over a total, as one power of 2: what is subtracted is of a row."""
    if parts_of(expr) is None:
        return None
    power = Power.of(expr)
    factor = power.factor
    score = cast(power.score, factor.dtype)
    scaled_score = binary("mul", score, factor)
    exponent = binary("sub", scaled_score, power.less(False))
    return Expr("quick_exp2", (exponent,), None, exponent.dtype)
