"""What parameters and values of distributions may be: each constraint is one condition.

A condition on numbers is written with operators that tensors and NumPy arrays share, so that values
which are known already are looked at without computing anything; one on matrices is NumPy's.
`constraint_registry` finds a transform onto what a constraint allows.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from picograd.errors import ShapeError, ValueRangeError
from picograd.tensor.tensor import Tensor

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
    "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip
TOLERANCE = 1e-6


class Constraint:
    """This class is a set of values: `check` tells, for every event, whether it is inside."""

    event_dim: Any = 0
    is_discrete: Any = False
    takes_arrays: ClassVar[bool] = False  # else `check` is only given tensors

    def check(self, value: Any) -> Any:
        """Tell where values are inside.

        >>> from picograd import Tensor, distributions
        >>> distributions.constraints.positive.check(Tensor([1.0, -1.0])).tolist()
        [True, False]
        """
        raise NotImplementedError(f"{type(self).__name__} has no check")

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}()"


class Bounded(Constraint):
    """This class compares numbers with bounds, which its printed form shows."""

    takes_arrays = True
    names: ClassVar[tuple[str, ...]] = ("lower_bound",)
    lower_bound: Any
    upper_bound: Any

    def __init__(self, *bounds: Any, **named: Any) -> None:
        given = {**dict(zip(self.names, bounds)), **named}
        if len(bounds) + len(named) != len(self.names) or given.keys() != set(self.names):
            text = f"the bounds {', '.join(self.names)} are wanted"
            raise ValueRangeError(type(self).__name__, text, "pass each of them once")
        vars(self).update(given)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self.names)
        return f"{type(self).__name__}({shown})"


class Real(Constraint):
    """This class is all numbers, infinities among them, but NaN."""

    takes_arrays = True

    def check(self, value: Any) -> Any:
        """Tell where values are not NaN."""
        return value == value


class Boolean(Constraint):
    """This class is 0 and 1."""

    takes_arrays = is_discrete = True

    def check(self, value: Any) -> Any:
        """Tell where values are 0 or 1."""
        return (value == 0) | (value == 1)


class GreaterThan(Bounded):
    """This class is the numbers above a bound."""

    def check(self, value: Any) -> Any:
        """Tell where values are above."""
        return value > self.lower_bound


class GreaterThanEq(Bounded):
    """This class is the numbers from a bound on."""

    def check(self, value: Any) -> Any:
        """Tell where values are not below."""
        return value >= self.lower_bound


class LessThan(Bounded):
    """This class is the numbers below a bound."""

    names = ("upper_bound",)

    def check(self, value: Any) -> Any:
        """Tell where values are below."""
        return value < self.upper_bound


class Interval(Bounded):
    """This class is the numbers between two bounds, both included."""

    names = ("lower_bound", "upper_bound")

    def check(self, value: Any) -> Any:
        """Tell where values are inside."""
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class HalfOpenInterval(Bounded):
    """This class is the numbers between two bounds, the lower one included."""

    names = ("lower_bound", "upper_bound")

    def check(self, value: Any) -> Any:
        """Tell where values are inside."""
        return (value >= self.lower_bound) & (value < self.upper_bound)


class IntegerInterval(Interval):
    """This class is the whole numbers between two bounds, both included."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        """Tell where values are whole and inside."""
        return super().check(value) & (value % 1 == 0)


class IntegerGreaterThan(GreaterThanEq):
    """This class is the whole numbers from a bound on, which is included."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        """Tell where values are whole and not below."""
        return super().check(value) & (value % 1 == 0)


class IntegerLessThan(Bounded):
    """This class is the whole numbers up to a bound, which is included."""

    names = ("upper_bound",)
    is_discrete = True

    def check(self, value: Any) -> Any:
        """Tell where values are whole and not above."""
        return (value <= self.upper_bound) & (value % 1 == 0)


class Simplex(Constraint):
    """This class is vectors that sum to one, and hold nothing negative."""

    takes_arrays = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        """Tell where the last axis is such a vector."""
        is_one = abs(value.sum(-1) - 1) < TOLERANCE
        return (value >= 0).all(-1) & is_one


class OneHot(Constraint):
    """This class is vectors of one 1 among zeros."""

    takes_arrays = is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        """Tell where the last axis is such a vector."""
        is_binary = (value == 0) | (value == 1)
        return is_binary.all(-1) & (value.sum(-1) == 1)


class Multinomial(Bounded):
    """This class is vectors of counts whose sum is a bound at most."""

    names = ("upper_bound",)
    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        """Tell where the last axis is such a vector."""
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class Square(Constraint):
    """This class is square matrices; those derived from it say which, in `holds`."""

    takes_arrays = True
    event_dim = 2

    def check(self, value: Any) -> Any:
        """Tell which matrices are inside; computes them."""
        array = np.asarray(value.detach().numpy() if isinstance(value, Tensor) else value)
        is_square = array.ndim >= 2 and array.shape[-1] == array.shape[-2]
        found = self.holds(array) if is_square else np.zeros(array.shape[:-2], bool)
        return Tensor.of(found, device=value.device) if isinstance(value, Tensor) else found

    def holds(self, array: np.ndarray) -> np.ndarray:
        """Tell which square matrices are inside."""
        return np.ones(array.shape[:-2], bool)


class LowerTriangular(Square):
    """This class is lower triangular matrices."""

    def holds(self, array: np.ndarray) -> np.ndarray:
        """Tell where everything above the diagonal is 0."""
        return (np.tril(array) == array).all((-2, -1))


class LowerCholesky(LowerTriangular):
    """This class is lower triangular matrices with positive diagonals."""

    def holds(self, array: np.ndarray) -> np.ndarray:
        """Tell where that is so."""
        diagonal = np.diagonal(array, axis1=-2, axis2=-1)
        return super().holds(array) & (diagonal > 0).all(-1)


class CorrCholesky(LowerCholesky):
    """This class is lower factors of correlation matrices: rows of length one."""

    def holds(self, array: np.ndarray) -> np.ndarray:
        """Tell where that is so, within ten roundings a number."""
        off = np.abs(np.linalg.norm(array, axis=-1) - 1)
        near = off <= np.finfo(array.dtype).eps * array.shape[-1] * 10
        return super().holds(array) & near.all(-1)


class Symmetric(Square):
    """This class is symmetric matrices."""

    def holds(self, array: np.ndarray) -> np.ndarray:
        """Tell where a matrix is its transpose, nearly."""
        near = np.isclose(array, array.swapaxes(-1, -2), atol=TOLERANCE)
        return near.all((-2, -1))


class PositiveSemidefinite(Symmetric):
    """This class is symmetric matrices without negative eigenvalues."""

    def holds(self, array: np.ndarray) -> np.ndarray:
        """Tell where that is so."""
        known = np.nan_to_num(array)
        return super().holds(array) & (np.linalg.eigvalsh(known) >= 0).all(-1)


class PositiveDefinite(Symmetric):
    """This class is symmetric matrices with positive eigenvalues."""

    def holds(self, array: np.ndarray) -> np.ndarray:
        """Tell where that is so."""
        known = np.nan_to_num(array)
        return super().holds(array) & (np.linalg.eigvalsh(known) > 0).all(-1)


class IndependentConstraint(Constraint):
    """This class is events of more axes: every part is inside."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims
        vars(self)["takes_arrays"] = base_constraint.takes_arrays

    def check(self, value: Any) -> Any:
        """Tell where all parts are inside."""
        if value.ndim < self.event_dim:
            text = f"events have {self.event_dim} axes, the value has shape {value.shape}"
            raise ShapeError(repr(self), text, "pass values with the axes of an event")
        found = self.base_constraint.check(value)
        for _ in range(self.reinterpreted_batch_ndims):
            found = found.all(-1)
        return found

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """This class is the values of a mixture: inside for every component."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim
        vars(self)["takes_arrays"] = base_constraint.takes_arrays

    def check(self, value: Any) -> Any:
        """Tell where values are inside for every component."""
        shape = value.shape[: value.ndim - self.event_dim]
        parts = value.reshape(*shape, 1, *value.shape[len(shape) :])
        return self.base_constraint.check(parts).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class Pieces(Constraint):
    """This class cuts values along an axis: each piece has a constraint of its own."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            text = f"{len(self.lengths)} lengths for {len(self.cseq)} constraints"
            raise ValueRangeError("cat", text, "pass one length a constraint")
        self.is_discrete = any(part.is_discrete for part in self.cseq)
        self.event_dim = max(part.event_dim for part in self.cseq)

    def pieces(self, value: Tensor) -> list[Tensor]:
        """Cut a value."""
        return list(value.split(self.lengths, self.dim))


class Cat(Pieces):
    """This class is tensors joined along an axis, each inside its constraint."""

    def check(self, value: Any) -> Any:
        """Tell where values are inside, piece by piece."""
        found = [part.check(piece) for part, piece in zip(self.cseq, self.pieces(value))]
        return Tensor.cat(found, dim=self.dim)


class Stack(Pieces):
    """This class is tensors stacked along an axis, each inside its constraint."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        super().__init__(cseq, dim)
        self.event_dim += dim + self.event_dim < 0  # a negative axis is one of the event

    def check(self, value: Any) -> Any:
        """Tell where values are inside, piece by piece."""
        pairs = zip(self.cseq, self.pieces(value))
        found = [part.check(piece.squeeze(self.dim)) for part, piece in pairs]
        return Tensor.stack(found, dim=self.dim)


class Dependent(Constraint):
    """This class stands for what depends on other parameters, and cannot be checked alone."""

    def __init__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> Any:  # type: ignore[override]
        """Whether values are whole, where that is known without an object."""
        return self.known(self._is_discrete, "is_discrete")

    @property
    def event_dim(self) -> Any:  # type: ignore[override]
        """The number of axes of an event, where that is known without an object."""
        return self.known(self._event_dim, "event_dim")

    def known(self, value: Any, name: str) -> Any:
        """Give what is known. Raises NotImplementedError."""
        if value is NotImplemented:
            raise NotImplementedError(f"{name} of this constraint depends on the distribution")
        return value

    def __call__(self, **more: Any) -> "Dependent":
        """Make one of which more is known."""
        return Dependent(**dict(is_discrete=self._is_discrete, event_dim=self._event_dim) | more)

    def check(self, value: Any) -> Any:
        """Raise ValueRangeError: nothing is known of it."""
        text = "a dependent constraint has no values of its own"
        raise ValueRangeError("check", text, "ask the distribution for its support")


class DependentProperty(property, Dependent):
    """This class is a property of an object, and a Dependent where a class is asked."""

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[[Any], Any]) -> "DependentProperty":  # type: ignore[override]
        """Decorate a function: `@dependent_property(event_dim=1)`."""
        return DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: Any) -> bool:
    """Tell whether a constraint depends on other parameters."""
    return isinstance(constraint, Dependent)


boolean, one_hot, simplex = Boolean(), OneHot(), Simplex()
real, real_vector = Real(), IndependentConstraint(Real(), 1)
positive, nonnegative, unit_interval = GreaterThan(0.0), GreaterThanEq(0.0), Interval(0.0, 1.0)
nonnegative_integer, positive_integer = IntegerGreaterThan(0), IntegerGreaterThan(1)
square, symmetric, lower_triangular = Square(), Symmetric(), LowerTriangular()
lower_cholesky, corr_cholesky = LowerCholesky(), CorrCholesky()
positive_definite, positive_semidefinite = PositiveDefinite(), PositiveSemidefinite()
dependent = Dependent()
dependent_property = DependentProperty
independent = IndependentConstraint
interval, half_open_interval, integer_interval = Interval, HalfOpenInterval, IntegerInterval
greater_than, greater_than_eq, less_than = GreaterThan, GreaterThanEq, LessThan
multinomial, cat, stack = Multinomial, Cat, Stack
# programs of PyTorch import the classes by names of an underscore
for _kind in [kind for kind in vars().values() if isinstance(kind, type)]:
    if issubclass(_kind, Constraint):
        globals()[f"_{_kind.__name__}"] = _kind
