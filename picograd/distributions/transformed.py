"""Distributions that are simple ones, transformed."""

import math
from typing import Any

from picograd.distributions import constraints
from picograd.distributions.composed import Independent, TransformedDistribution
from picograd.distributions.distribution import EULER, as_tensors
from picograd.distributions.gamma_family import Gamma
from picograd.distributions.transforms import (
    AffineTransform,
    ExpTransform,
    PowerTransform,
    StickBreakingTransform,
)
from picograd.distributions.univariate import Exponential, Normal, Uniform
from picograd.tensor.tensor import Tensor


class LogNormal(TransformedDistribution):
    """This class is exp of a normal draw."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    base_dist: Normal

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        """exp(loc + scale^2 / 2)."""
        return (self.loc + self.scale.square() / 2.0).exp()

    @property
    def mode(self) -> Tensor:
        """exp(loc - scale^2)."""
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        """(exp(scale^2) - 1) exp(2 loc + scale^2)."""
        square = self.scale.square()
        return square.expm1() * (2.0 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        """Compute that of the logarithm, and its mean."""
        return self.base_dist.entropy() + self.loc


class Weibull(TransformedDistribution):
    """This class is scale times a power of an exponential draw."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        pair = Normal(scale, concentration, validate_args=False)
        self.scale, self.concentration = pair.loc, pair.scale
        power = PowerTransform(self.concentration.reciprocal())
        transforms = [power, AffineTransform(0.0, self.scale)]
        base = Exponential(self.scale * 0.0 + 1.0, validate_args)
        super().__init__(base, transforms, validate_args)

    @property
    def mean(self) -> Tensor:
        """scale gamma(1 + 1 / concentration)."""
        return self.scale * (1.0 + 1.0 / self.concentration).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        """scale (1 - 1 / concentration) ** (1 / concentration)."""
        power = self.concentration.reciprocal()
        return self.scale * (1.0 - power) ** power

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats."""
        power = self.concentration.reciprocal()
        return EULER * (1.0 - power) + (self.scale * power).log() + 1.0

    @property
    def variance(self) -> Tensor:
        """The variance of each distribution."""
        first = (1.0 + 1.0 / self.concentration).lgamma()
        second = (1.0 + 2.0 / self.concentration).lgamma()
        return self.scale.square() * (second.exp() - (2.0 * first).exp())


class Pareto(TransformedDistribution):
    """This class is a power law of exponent `alpha` for numbers of at least `scale`.

    >>> from picograd.distributions import Pareto
    >>> Pareto(1.0, 3.0).mean.item()
    1.5
    """

    arg_constraints = {"scale": constraints.positive, "alpha": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        pair = Normal(scale, alpha, validate_args=False)
        self.scale, self.alpha = pair.loc, pair.scale
        transforms = [ExpTransform(), AffineTransform(0.0, self.scale)]
        super().__init__(Exponential(self.alpha, validate_args), transforms, validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """Numbers of at least the scale."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        """scale alpha / (alpha - 1); infinite up to alpha 1."""
        alpha: Tensor = self.alpha.clamp(min=1.0)
        return self.scale * alpha / (alpha - 1.0)

    @property
    def mode(self) -> Tensor:
        """The scale."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """scale ** 2 alpha / ((alpha - 1) ** 2 (alpha - 2)); infinite up to alpha 2."""
        alpha: Tensor = self.alpha.clamp(min=2.0)
        return self.scale.square() * alpha / ((alpha - 1.0).square() * (alpha - 2.0))

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats."""
        inverse = self.alpha.reciprocal()
        return (self.scale * inverse).log() + 1.0 + inverse


class InverseGamma(TransformedDistribution):
    """This class is one by a gamma draw of shape `concentration` and `rate`.

    >>> from picograd.distributions import InverseGamma
    >>> InverseGamma(3.0, 1.0).mean.item()
    0.5
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    base_dist: Gamma

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(-1.0), validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape of the gamma draw."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma draw."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        """rate / (a - 1); infinite up to a shape of 1."""
        less: Tensor = (self.concentration - 1.0).clamp(min=0.0)
        return self.rate / less

    @property
    def mode(self) -> Tensor:
        """rate / (a + 1)."""
        return self.rate / (self.concentration + 1.0)

    @property
    def variance(self) -> Tensor:
        """rate^2 / ((a - 1)^2 (a - 2)); infinite up to a shape of 2."""
        a: Tensor = self.concentration.clamp(min=2.0)
        return self.rate.square() / ((a - 1.0).square() * (a - 2.0))

    def entropy(self) -> Tensor:
        """Compute a + log(rate) + log(gamma(a)) - (1 + a) digamma(a)."""
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1.0 + a) * a.digamma()


class Kumaraswamy(TransformedDistribution):
    """This class is a number from 0 to 1 of distribution function 1 - (1 - x^a)^b.

    Here a is `concentration1` and b is `concentration0`.

    >>> from picograd.distributions import Kumaraswamy
    >>> Kumaraswamy(1.0, 1.0).mean.item()
    0.5
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = as_tensors(concentration1, concentration0)
        zeros = self.concentration0.detach() * 0.0
        outer = PowerTransform(self.concentration1.reciprocal())
        inner = PowerTransform(self.concentration0.reciprocal())
        base = Uniform(zeros, zeros + 1.0, validate_args)
        super().__init__(base, [inner, AffineTransform(1.0, -1.0), outer], validate_args)

    def moment(self, power: int) -> Tensor:
        """Compute the mean of x ** power: b beta(1 + power / a, b)."""
        b, first = self.concentration0, 1.0 + power / self.concentration1
        return b * (first.lgamma() + b.lgamma() - (first + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        """The mean of each distribution."""
        return self.moment(1)

    @property
    def mode(self) -> Tensor:
        """((a - 1) / (a b - 1)) ** (1 / a); NaN where a or b is below 1."""
        a, b = self.concentration1, self.concentration0
        found: Tensor = ((a - 1.0) / (a * b - 1.0)) ** a.reciprocal()
        return found.where((a >= 1.0) & (b >= 1.0), math.nan)

    @property
    def variance(self) -> Tensor:
        """The variance of each distribution."""
        return self.moment(2) - self.mean.square()

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats."""
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1.0).digamma() + EULER
        parts = 1.0 - b.reciprocal() + (1.0 - a.reciprocal()) * harmonic
        return parts - a.log() - b.log()


class LogisticNormal(TransformedDistribution):
    """This class is a stick broken by normal draws: n of them give n + 1 parts that sum to one.

    >>> from picograd import Tensor
    >>> from picograd.distributions import LogisticNormal
    >>> LogisticNormal(Tensor.zeros(2), Tensor.ones(2)).event_shape
    (3,)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    base_dist: Independent

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        base = base if base.batch_shape else base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The means of the normal draws."""
        return self.base_dist.base_dist.loc  # type: ignore[attr-defined]

    @property
    def scale(self) -> Tensor:
        """The deviations of the normal draws."""
        return self.base_dist.base_dist.scale  # type: ignore[attr-defined]
