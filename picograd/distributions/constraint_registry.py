"""From a constraint to a transform of unconstrained numbers onto what it allows.

`biject_to` finds one with an inverse, `transform_to` one that suits optimizers. A row of TABLE
covers all constraints of a class; programs add classes by `register`.
"""

from collections.abc import Callable
from typing import Any

from picograd.distributions import constraints, transforms
from picograd.distributions.constraints import Constraint

Factory = Callable[[Any], transforms.Transform]


class ConstraintRegistry:
    """This class finds the transform of a constraint, by its class.

    >>> from picograd import Tensor
    >>> from picograd.distributions import constraints, transform_to
    >>> transform_to(constraints.positive)(Tensor([0.0])).tolist()
    [1.0]
    """

    def __init__(self) -> None:
        self.rows: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Keep a function that makes the transform of a class of constraints; or decorate one."""
        if factory is None:
            return lambda made: self.register(constraint, made)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(f"register: {constraint!r} is no constraint. Fix: pass a Constraint.")
        self.rows[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> transforms.Transform:
        """Make the transform of a constraint. Raises NotImplementedError where there is none."""
        if type(constraint) not in self.rows:
            raise NotImplementedError(f"no transform is registered for {constraint!r}")
        return self.rows[type(constraint)](constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def above(constraint: Any) -> transforms.Transform:
    """Reach the numbers above a bound."""
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


def below(constraint: Any) -> transforms.Transform:
    """Reach the numbers below a bound."""
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


def between(constraint: Any) -> transforms.Transform:
    """Reach the numbers between two bounds."""
    low, high = constraint.lower_bound, constraint.upper_bound
    is_unit = all(isinstance(bound, (int, float)) for bound in (low, high))
    if is_unit and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


# classes of constraints: what both registries make of one
TABLE: list[tuple[tuple[type[Constraint], ...], Factory]] = [
    ((constraints.Real,), lambda c: transforms.identity_transform),
    ((constraints.GreaterThan, constraints.GreaterThanEq), above),
    ((constraints.LessThan,), below),
    ((constraints.Interval, constraints.HalfOpenInterval), between),
    ((constraints.CorrCholesky,), lambda c: transforms.CorrCholeskyTransform()),
]
for kinds, make in TABLE:
    for kind in kinds:
        biject_to.register(kind, make)
        transform_to.register(kind, make)
biject_to.register(constraints.Simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.Simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.LowerCholesky, lambda c: transforms.LowerCholeskyTransform())
for kind in (constraints.PositiveDefinite, constraints.PositiveSemidefinite):
    transform_to.register(kind, lambda c: transforms.PositiveDefiniteTransform())


def register_combined(registry: ConstraintRegistry) -> None:
    """Let a registry make transforms of constraints that are made of others."""

    @registry.register(constraints.IndependentConstraint)
    def independent(constraint: Any) -> transforms.Transform:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.Cat)
    def joined(constraint: Any) -> transforms.Transform:
        parts = [registry(part) for part in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    @registry.register(constraints.Stack)
    def stacked(constraint: Any) -> transforms.Transform:
        return transforms.StackTransform(
            [registry(part) for part in constraint.cseq], constraint.dim
        )


for each in (biject_to, transform_to):
    register_combined(each)
