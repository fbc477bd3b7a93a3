"""Distributions of one real number, by formulas of their densities.

Source: Johnson, Kotz and Balakrishnan, "Continuous Univariate Distributions" (1994-95).
"""

import math
from typing import Any

from picograd.distributions import constraints
from picograd.distributions.distribution import (
    EULER,
    LOG_2,
    LOG_2_PI,
    Centred,
    Distribution,
    ExponentialFamily,
    Sizes,
    as_tensors,
)
from picograd.tensor.tensor import Tensor

ROOT_2 = math.sqrt(2.0)


class LocationScale(Centred):
    """This class is loc + scale * (a draw of a standard distribution)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = as_tensors(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    def standard(self, value: Tensor) -> Tensor:
        """Compute (value - loc) / scale."""
        self._validate_sample(value)
        return (value - self.loc) / self.scale

    def unit(self, shape: Sizes) -> Tensor:
        """Draw from the standard distribution."""
        return self.inverse(uniform(self.loc, self._extended_shape(shape)))

    def inverse(self, chance: Tensor) -> Tensor:
        """Compute the inverse distribution function of the standard distribution."""
        raise self._lacks("icdf")

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        return self.loc + self.scale * self.unit(sample_shape)

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the values up to which the probability is this."""
        return self.loc + self.scale * self.inverse(value)


def uniform(like: Tensor, shape: Sizes) -> Tensor:
    """Draw from (0, 1) in the dtype and on the device of a tensor."""
    draws = Tensor.rand(*shape, dtype=like.dtype, device=like.device)
    return draws.clamp(2.0**-25, 1.0 - 2.0**-24)


class Normal(LocationScale, ExponentialFamily):
    """This class is the normal distribution of mean `loc` and deviation `scale`.

    >>> from picograd import Tensor
    >>> from picograd.distributions import Normal
    >>> round(Normal(0.0, 1.0).log_prob(Tensor(0.0)).item(), 4)
    -0.9189
    """

    @property
    def variance(self) -> Tensor:
        """The square of the deviation."""
        return self.scale.square()

    @property
    def stddev(self) -> Tensor:
        """The deviation."""
        return self.scale

    def unit(self, shape: Sizes) -> Tensor:
        """Draw from the standard distribution."""
        place: dict[str, Any] = dict(dtype=self.loc.dtype, device=self.loc.device)
        return Tensor.randn(*self._extended_shape(shape), **place)

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute -z^2 / 2 - log(scale) - log(2 pi) / 2."""
        z = self.standard(value)
        return -0.5 * z.square() - self.scale.log() - 0.5 * LOG_2_PI

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of values up to these."""
        return 0.5 * (1.0 + (self.standard(value) / ROOT_2).erf())

    def inverse(self, chance: Tensor) -> Tensor:
        """Compute the inverse distribution function of the standard distribution."""
        return (2.0 * chance - 1.0).erfinv() * ROOT_2

    def entropy(self) -> Tensor:
        """Compute log(scale) + (1 + log(2 pi)) / 2."""
        return self.scale.log() + (0.5 + 0.5 * LOG_2_PI)


class Laplace(LocationScale):
    """This class is the Laplace distribution: exp(-|z|) / (2 scale)."""

    @property
    def variance(self) -> Tensor:
        """Twice the square of the scale."""
        return 2.0 * self.scale.square()

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute -|z| - log(2 scale)."""
        return -self.standard(value).abs() - self.scale.log() - LOG_2

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of values up to these."""
        z = self.standard(value)
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def inverse(self, chance: Tensor) -> Tensor:
        """Compute the inverse distribution function of the standard distribution."""
        side = chance - 0.5
        return -side.sign() * (-2.0 * side.abs()).log1p()

    def entropy(self) -> Tensor:
        """Compute 1 + log(2 scale)."""
        return self.scale.log() + (1.0 + LOG_2)


class Cauchy(LocationScale):
    """This class is the Cauchy distribution, which has no mean."""

    @property
    def mean(self) -> Tensor:
        """Not a number."""
        return self.loc * math.nan

    @property
    def variance(self) -> Tensor:
        """Infinite."""
        return self.scale * math.inf

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute -log(pi scale (1 + z^2))."""
        z = self.standard(value)
        return -math.log(math.pi) - self.scale.log() - z.square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of values up to these."""
        return self.standard(value).atan() / math.pi + 0.5

    def inverse(self, chance: Tensor) -> Tensor:
        """Compute the inverse distribution function of the standard distribution."""
        return (math.pi * (chance - 0.5)).tan()

    def entropy(self) -> Tensor:
        """Compute log(4 pi scale)."""
        return self.scale.log() + math.log(4.0 * math.pi)


class Gumbel(LocationScale):
    """This class is the Gumbel distribution, of largest values."""

    @property
    def mean(self) -> Tensor:
        """The location and Euler's constant times the scale."""
        return self.loc + EULER * self.scale

    @property
    def variance(self) -> Tensor:
        """The square of the scale times pi^2 / 6."""
        return self.scale.square() * (math.pi**2 / 6.0)

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute -(z + exp(-z)) - log(scale)."""
        z = self.standard(value)
        return -(z + (-z).exp()) - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        """Compute exp(-exp(-z))."""
        return (-(-self.standard(value)).exp()).exp()

    def inverse(self, chance: Tensor) -> Tensor:
        """Compute the inverse distribution function of the standard distribution."""
        return -(-chance.log()).log()

    def entropy(self) -> Tensor:
        """Compute log(scale) + 1 + Euler's constant."""
        return self.scale.log() + (1.0 + EULER)


class Uniform(Distribution):
    """This class is the uniform distribution on [low, high).

    >>> from picograd.distributions import Uniform
    >>> Uniform(1.0, 3.0).mean.item()
    2.0
    """

    arg_constraints = {"low": constraints.real, "high": constraints.real}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = as_tensors(low, high)
        super().__init__(self.low.shape, (), validate_args)
        self._check("parameter high", self.high, constraints.greater_than(self.low))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """The numbers between the bounds."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        """The middle."""
        return (self.low + self.high) / 2.0

    @property
    def mode(self) -> Tensor:
        """Not a number: all values are as likely."""
        return self.low * math.nan

    @property
    def variance(self) -> Tensor:
        """The square of the width by 12."""
        return (self.high - self.low).square() / 12.0

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        draws = Tensor.rand(*shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + (self.high - self.low) * draws

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute -log(high - low); minus infinity outside."""
        self._validate_sample(value)
        inside = (self.low <= value) & (value < self.high)
        flat = -(self.high - self.low).log()
        return flat.where(inside, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of values up to these."""
        return ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the values up to which the probability is this."""
        return self.low + (self.high - self.low) * value

    def entropy(self) -> Tensor:
        """Compute log(high - low)."""
        return (self.high - self.low).log()


class Exponential(ExponentialFamily):
    """This class is the exponential distribution: rate exp(-rate x)."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = as_tensors(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        """One by the rate."""
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        """Zero."""
        return self.rate * 0.0

    @property
    def variance(self) -> Tensor:
        """One by the square of the rate."""
        return self.rate.square().reciprocal()

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the rate."""
        draws = uniform(self.rate, self._extended_shape(sample_shape))
        return -draws.log() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute log(rate) - rate x."""
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        """Compute 1 - exp(-rate x)."""
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        """Compute -log(1 - p) / rate."""
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        """Compute 1 - log(rate)."""
        return 1.0 - self.rate.log()


class HalfNormal(Distribution):
    """This class is the size of a normal draw of mean 0 and deviation `scale`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_kind: Any = Normal

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = as_tensors(scale)
        self.base = self.base_kind(self.scale * 0.0, self.scale, validate_args)
        super().__init__(self.scale.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        """The scale times sqrt(2 / pi)."""
        return self.scale * math.sqrt(2.0 / math.pi)

    @property
    def mode(self) -> Tensor:
        """Zero."""
        return self.scale * 0.0

    @property
    def variance(self) -> Tensor:
        """The square of the scale times 1 - 2 / pi."""
        return self.scale.square() * (1.0 - 2.0 / math.pi)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the scale."""
        drawn: Tensor = self.base.rsample(sample_shape)
        return drawn.abs()

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the density of the whole distribution, twice; none below 0."""
        self._validate_sample(value)
        found: Tensor = self.base.log_prob(value) + LOG_2
        return found.where(value >= 0, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of values up to these."""
        found: Tensor = self.base.cdf(value)
        return 2.0 * found - 1.0

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the values up to which the probability is this."""
        return self.base.icdf((value + 1.0) / 2.0)

    def entropy(self) -> Tensor:
        """Compute that of the whole distribution, less log(2)."""
        found: Tensor = self.base.entropy()
        return found - LOG_2


class HalfCauchy(HalfNormal):
    """This class is the size of a Cauchy draw, which has no mean."""

    base_kind = Cauchy

    @property
    def mean(self) -> Tensor:
        """Infinite."""
        return self.scale * math.inf

    @property
    def variance(self) -> Tensor:
        """Infinite."""
        return self.scale * math.inf


class GeneralizedPareto(Distribution):
    """This class is what exceeds a threshold: exponential for concentration 0, else a power law.

    >>> from picograd.distributions import GeneralizedPareto
    >>> GeneralizedPareto(0.0, 1.0, 0.5).mean.item()
    2.0
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = as_tensors(loc, scale, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From the location on; up to loc - scale / concentration where that is negative."""
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, end.where(self.concentration < 0, math.inf))

    def powers(self) -> tuple[Tensor, Tensor]:
        """Tell where the concentration is 0, nearly, and give one that never is."""
        is_zero = self.concentration.abs() <= 1e-8
        return is_zero, Tensor.where(is_zero, 1.0, self.concentration)

    @property
    def mean(self) -> Tensor:
        """loc + scale / (1 - concentration); NaN from 1 on."""
        c = self.concentration.where(self.concentration < 1, math.nan)
        return self.loc + self.scale / (1.0 - c)

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """scale^2 / ((1 - c)^2 (1 - 2 c)); NaN from a concentration of 1/2 on."""
        c = self.concentration.where(self.concentration < 0.5, math.nan)
        return self.scale.square() / ((1.0 - c).square() * (1.0 - 2.0 * c))

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        return self.icdf(uniform(self.loc, self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute -(1 + 1 / c) log(1 + c z) - log(scale)."""
        is_zero, power = self.powers()
        survival = self.log_survival_function(value)
        return survival + Tensor.where(is_zero, 0.0, power) * survival - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the probability of values above these."""
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        is_zero, power = self.powers()
        return Tensor.where(is_zero, -z, -(power * z).log1p() / power)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the probability of values up to these."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of values up to these."""
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the values up to which the probability is this."""
        is_zero, power = self.powers()
        rest = (-value).log1p()
        away = Tensor.where(is_zero, -rest, (-power * rest).expm1() / power)
        return self.loc + self.scale * away

    def entropy(self) -> Tensor:
        """Compute log(scale) + concentration + 1."""
        return self.scale.log() + self.concentration + 1.0
