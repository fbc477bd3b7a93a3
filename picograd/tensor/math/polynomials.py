"""Orthogonal polynomials, by their recurrences in the degree.

    p(0) = 1,   p(1) = first x + shift,   p(k + 1) = (a(k) x + b(k)) p(k) - c(k) p(k - 1)

Source: NIST Digital Library of Mathematical Functions, 18.9. A negative degree gives 0.
"""

from collections.abc import Callable

from picograd.graph.node import Node
from picograd.late_methods import dataclass
from picograd.tensor.core.operands import floating

Steps = Callable[[int], tuple[float, float, float]]


@dataclass(frozen=True)
class Family:
    """This class is a row of FAMILIES: p(1), and a, b and c of the step from degree k."""

    first: float
    shift: float
    step: Steps


def doubled(k: int) -> tuple[float, float, float]:
    """Step as Chebyshev's polynomials do."""
    return 2.0, 0.0, 1.0


FAMILIES = {
    "chebyshev_t": Family(1.0, 0.0, doubled),
    "chebyshev_u": Family(2.0, 0.0, doubled),
    "chebyshev_v": Family(2.0, -1.0, doubled),
    "chebyshev_w": Family(2.0, 1.0, doubled),
    "hermite_h": Family(2.0, 0.0, lambda k: (2.0, 0.0, 2.0 * k)),
    "hermite_he": Family(1.0, 0.0, lambda k: (1.0, 0.0, float(k))),
    "laguerre": Family(-1.0, 1.0, lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1))),
    "legendre": Family(1.0, 0.0, lambda k: ((2 * k + 1) / (k + 1), 0.0, k / (k + 1))),
}


def polynomial(node: Node, name: str, degree: int, is_shifted: bool = False) -> Node:
    """Compute one polynomial of a family; `is_shifted`: of 2 x - 1, which takes [0, 1] to [-1, 1].

    16-bit floats compute in float32.
    """
    known = floating(name, node)
    x = known.accumulated()
    if is_shifted:
        x = x * 2.0 - 1.0
    family = FAMILIES[name]
    start = 0.0 if degree < 0 else 1.0
    before = x.const_like(start)
    if degree <= 0:
        return before.cast(known.dtype)
    found = x * family.first + family.shift
    for k in range(1, degree):
        a, b, c = family.step(k)
        factor = x * a + b
        after = factor * found - before * c
        before, found = found, after
    return found.cast(known.dtype)
