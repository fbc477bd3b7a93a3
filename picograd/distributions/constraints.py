"""What parameters and values of distributions may be: each constraint is one condition.

A condition is written with operators that tensors and NumPy arrays share, so that values which are
known already are looked at without computing anything.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Condition = Callable[[Any], Any]
TOLERANCE = 1e-6


class Constraint:
    """This class is a set of values: `check` tells, for every event, whether it is inside."""

    def __init__(
        self, name: str, holds: Condition, event_dim: int = 0, is_discrete: bool = False
    ) -> None:
        self.name, self.holds = name, holds
        self.event_dim, self.is_discrete = event_dim, is_discrete

    def check(self, value: Any) -> Any:
        """Tell where values are inside.

        >>> from picograd import Tensor, distributions
        >>> distributions.constraints.positive.check(Tensor([1.0, -1.0])).tolist()
        [True, False]
        """
        return self.holds(value)

    def __repr__(self) -> str:
        return self.name


def is_whole(value: Any) -> Any:
    """Tell where numbers are whole."""
    return value % 1 == 0


def is_simplex(value: Any) -> Any:
    """Tell where the last axis sums to one, and holds nothing negative."""
    is_one = abs(value.sum(-1) - 1) < TOLERANCE
    return (value >= 0).all(-1) & is_one


def is_one_hot(value: Any) -> Any:
    """Tell where the last axis is one 1 among zeros."""
    is_binary = (value == 0) | (value == 1)
    return is_binary.all(-1) & (value.sum(-1) == 1)


def is_lower(value: Any) -> Any:
    """Tell where matrices are lower triangular with a positive diagonal."""
    size = value.shape[-1]
    above = np.triu(np.ones((size, size), bool), 1)
    array = np.asarray(value)
    is_zero = ((array == 0) | ~above).all((-2, -1))
    diagonal = np.diagonal(array, axis1=-2, axis2=-1)
    return is_zero & (diagonal > 0).all(-1)


def is_positive_definite(value: Any) -> Any:
    """Tell where matrices are symmetric with positive eigenvalues."""
    array = np.asarray(value)
    transposed = array.swapaxes(-1, -2)
    is_symmetric = np.isclose(array, transposed, atol=TOLERANCE).all((-2, -1))
    smallest = np.linalg.eigvalsh(array)[..., 0]
    return is_symmetric & (smallest > 0)


real = Constraint("Real()", lambda v: v == v)
real_vector = Constraint("RealVector()", lambda v: (v == v).all(-1), 1)
positive = Constraint("GreaterThan(lower_bound=0.0)", lambda v: v > 0)
nonnegative = Constraint("GreaterThanEq(lower_bound=0.0)", lambda v: v >= 0)
unit_interval = Constraint("Interval(0.0, 1.0)", lambda v: (v >= 0) & (v <= 1))
boolean = Constraint("Boolean()", lambda v: (v == 0) | (v == 1), is_discrete=True)
nonnegative_integer = Constraint(
    "IntegerGreaterThan(0)", lambda v: is_whole(v) & (v >= 0), is_discrete=True
)
positive_integer = Constraint(
    "IntegerGreaterThan(1)", lambda v: is_whole(v) & (v >= 1), is_discrete=True
)
simplex = Constraint("Simplex()", is_simplex, 1)
one_hot = Constraint("OneHot()", is_one_hot, 1, True)
lower_cholesky = Constraint("LowerCholesky()", is_lower, 2)
positive_definite = Constraint("PositiveDefinite()", is_positive_definite, 2)


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Make the numbers between two bounds, both included."""
    name = f"Interval({lower_bound}, {upper_bound})"
    return Constraint(name, lambda v: (v >= lower_bound) & (v <= upper_bound))


half_open_interval = interval


def greater_than(lower_bound: Any) -> Constraint:
    """Make the numbers above a bound."""
    return Constraint(f"GreaterThan({lower_bound})", lambda v: v > lower_bound)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """Make the numbers from a bound on."""
    return Constraint(f"GreaterThanEq({lower_bound})", lambda v: v >= lower_bound)


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Make the whole numbers between two bounds, both included."""

    def holds(value: Any) -> Any:
        inside = (value >= lower_bound) & (value <= upper_bound)
        return is_whole(value) & inside

    return Constraint(f"IntegerInterval({lower_bound}, {upper_bound})", holds, is_discrete=True)


def independent(base: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """Make a constraint on events of more axes: every part is inside."""

    def holds(value: Any) -> Any:
        found = base.check(value)
        for _ in range(reinterpreted_batch_ndims):
            found = found.all(-1)
        return found

    name = f"IndependentConstraint({base!r}, {reinterpreted_batch_ndims})"
    return Constraint(name, holds, base.event_dim + reinterpreted_batch_ndims, base.is_discrete)
