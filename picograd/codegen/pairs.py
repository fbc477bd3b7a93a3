"""Pair: an unevaluated sum high + low of two float64 values, about 106 bits of precision.

The formulas of elementary.py are written once: on float64 values, which is enough digits for a
float32 result, and on pairs for a float64 result. Sums and products follow Dekker (1971) and Knuth
(TAOCP 2, 4.2.2); the error of a product comes from an fma.
"""

from typing import Any

from picograd.codegen.value import Value
from picograd.late_methods import dataclass

Wide = Any  # a Value or a Pair: formulas are written for either


def two_sum(a: Value, b: Value) -> "Pair":
    """Add exactly."""
    total = a + b
    part = total - a
    return Pair(total, (a - (total - part)) + (b - part))


def quick_sum(a: Value, b: Value) -> "Pair":
    """Add exactly if |a| >= |b|, or a is 0."""
    total = a + b
    return Pair(total, b - (total - a))


def two_product(a: Value, b: Value) -> "Pair":
    """Multiply exactly."""
    product = a * b
    return Pair(product, a.fma(b, -product))


@dataclass(frozen=True, slots=True)
class Pair:
    """A sum of two float64 values; |low| is at most about half a unit of high's last place."""

    high: Value
    low: Value

    def __add__(self, other: Wide) -> "Pair":
        if isinstance(other, Pair):
            total = two_sum(self.high, other.high)
            return quick_sum(total.high, total.low + (self.low + other.low))
        total = two_sum(self.high, as_value(other, self))
        return quick_sum(total.high, total.low + self.low)

    def __neg__(self) -> "Pair":
        return Pair(-self.high, -self.low)

    def __sub__(self, other: Wide) -> "Pair":
        return self + -other

    def __mul__(self, other: Wide) -> "Pair":
        if isinstance(other, Pair):
            product = two_product(self.high, other.high)
            low = self.high.fma(other.low, product.low)
            return quick_sum(product.high, self.low.fma(other.high, low))
        factor = as_value(other, self)
        product = two_product(self.high, factor)
        return quick_sum(product.high, self.low.fma(factor, product.low))

    def __truediv__(self, other: "Pair") -> "Pair":
        quotient = self.high / other.high
        rest = (-quotient).fma(other.high, self.high)
        rest = (-quotient).fma(other.low, rest + self.low)
        return quick_sum(quotient, rest / other.high)

    def scaled(self, power: Value) -> "Pair":
        """Multiply by a power of two."""
        return Pair(self.high * power, self.low * power)


def as_value(number: Value | float, like: Pair) -> Value:
    """Make a float64 value of a number."""
    return number if isinstance(number, Value) else like.high.constant(number)


def square_root(x: Wide) -> Wide:
    """Compute the root; of a pair by one step of Heron's. The root of 0 is 0."""
    if isinstance(x, Value):
        return x.raw("sqrt")
    root = x.high.raw("sqrt")
    rest = (-root).fma(root, x.high) + x.low
    low = rest / (root + root)
    return Pair(root, root.is_equal(0.0).where(root, low))


def choose(mask: Value, a: Wide, b: Wide) -> Wide:
    """Choose a where a mask holds, else b."""
    if isinstance(a, Pair) or isinstance(b, Pair):
        first, second = as_pair(a), as_pair(b)
        return Pair(mask.where(first.high, second.high), mask.where(first.low, second.low))
    return mask.where(a, b)


def as_pair(x: Wide) -> Pair:
    """See a value as a pair."""
    return x if isinstance(x, Pair) else Pair(x, x.constant(0.0))


def head(x: Wide) -> Value:
    """Take the larger part of a pair."""
    return x.high if isinstance(x, Pair) else x


def is_single_part(x: Pair) -> bool:
    """Tell whether a pair was made of one value."""
    return x.low.emitter.constant_of(x.low.position) == 0.0


def rounded(x: Wide) -> Value:
    """Round to one float64 value."""
    return x.high + x.low if isinstance(x, Pair) else x
