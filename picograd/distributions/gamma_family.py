"""Distributions made of gamma draws: Gamma, Chi2, Beta, Dirichlet, StudentT, NegativeBinomial.

A gamma draw follows its shape by implicit differentiation (Figurnov et al., 2018): dx / da is
-(dF / da) / p, F the distribution function, whose derivative is a central difference in float64.
"""

import math
from typing import Any

from picograd.distributions import constraints
from picograd.distributions.discrete import Trials
from picograd.distributions.distribution import Distribution, ExponentialFamily, Sizes, as_tensors
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.core.type_info import finfo
from picograd.tensor.making.distributions import host_draw, poisson
from picograd.tensor.math.special import gammainc, xlog1py
from picograd.tensor.tensor import Tensor

STEP = 1e-4  # of the central difference, relative to shapes above 1
SMALL = -60.0  # the logarithm of draws for which the distribution function is a power


def standard_gamma(shape: Tensor) -> Tensor:
    """Draw from gamma distributions of rate 1 whose shapes are the elements; gradients flow."""
    least = finfo(shape.dtype).tiny  # a draw is never 0: logarithms of it are finite
    with no_grad():
        wide = shape.detach().double()
        draws = host_draw("gamma", wide.dtype, None, wide)
        draws = draws.maximum(finfo(draws.dtype).tiny)
        drawn = draws.cast(shape.dtype).maximum(least)
        if not shape.requires_grad:
            return drawn
        follows = draws_slope(wide, draws).cast(shape.dtype)
    zero = shape - shape.detach()  # its gradient is that of the shape
    return drawn + zero * follows


_standard_gamma = standard_gamma  # PyTorch's name


def draws_slope(shape: Tensor, draws: Tensor) -> Tensor:
    """Compute how far draws move with their shapes, in float64."""
    step = shape.maximum(1.0) * STEP
    above = shape + step
    below = (shape - step).maximum(shape * 0.5)
    rise = gammainc(above, draws) - gammainc(below, draws)
    slope = rise / (above - below)
    power = (shape - 1.0) * draws.log()
    return -slope / (power - draws - shape.lgamma()).exp()


def log_gamma(shape: Tensor) -> Tensor:
    """Draw logarithms of what `standard_gamma` draws, in float64; gradients flow."""
    with no_grad():
        wide = shape.detach().double()
        logs = host_draw("log_gamma", wide.dtype, None, wide)
        if not shape.requires_grad:
            return logs
        draws = logs.maximum(SMALL).exp()
        power_slope = (1.0 / wide + wide.digamma() - logs) / wide
        follows = (logs < SMALL).where(power_slope, draws_slope(wide, draws) / draws)
    return logs + (shape - shape.detach()).double() * follows


def half_of_squares(df: Tensor, shape: Sizes) -> Tensor:
    """Draw halves of chi-squared numbers of some degrees of freedom; gradients flow."""
    return standard_gamma((0.5 * df).expand(*shape))


def beta_normaliser(a: Tensor, b: Tensor) -> Tensor:
    """Compute -log B(a, b), which the logarithm of a beta density has."""
    return (a + b).lgamma() - a.lgamma() - b.lgamma()


class Gamma(ExponentialFamily):
    """This class is the gamma distribution of shape `concentration` and `rate`.

    >>> from picograd.distributions import Gamma
    >>> Gamma(3.0, 2.0).mean.item()
    1.5
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = as_tensors(concentration, rate)
        super().__init__(self.concentration.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        """Shape by rate."""
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        """(Shape - 1) by rate, at least 0."""
        return ((self.concentration - 1.0) / self.rate).maximum(0.0)

    @property
    def variance(self) -> Tensor:
        """Shape by the square of the rate."""
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        return standard_gamma(self.concentration.expand(*shape)) / self.rate

    def log_prob(self, value: Tensor | float) -> Tensor:
        """Compute a log(rate) + (a - 1) log(x) - rate x - log(gamma(a)); x may be a number."""
        a, rate = self.concentration, self.rate
        if not isinstance(value, Tensor):
            value = Tensor.of(value, dtype=rate.dtype, device=rate.device)
        self._validate_sample(value)
        power = (a - 1.0).xlogy(value)  # 0 where a is 1, at 0 too
        return a * rate.log() + power - rate * value - a.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of values up to these."""
        shape, scaled = as_tensors(self.concentration, self.rate * value)
        return gammainc(shape, scaled)

    def entropy(self) -> Tensor:
        """Compute a - log(rate) + log(gamma(a)) + (1 - a) digamma(a)."""
        a = self.concentration
        slope = (1.0 - a) * a.digamma()
        return a - self.rate.log() + a.lgamma() + slope


class Chi2(Gamma):
    """This class is the sum of `df` squares of standard normal draws."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (self.df,) = as_tensors(df)
        super().__init__(0.5 * self.df, self.df * 0.0 + 0.5, validate_args)


class Dirichlet(ExponentialFamily):
    """This class is the Dirichlet distribution: positive numbers that sum to one."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        """The concentrations by their sum."""
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        """The concentrations less one, by their sum."""
        a = self.concentration
        less = (a - 1.0).maximum(0.0)
        inner = less / less.sum(-1, keepdim=True)
        corner = a.argmax(-1).one_hot(a.shape[-1]).cast(a.dtype)
        is_corner = (a < 1.0).all(-1, keepdim=True)
        return corner.where(is_corner, inner)

    @property
    def variance(self) -> Tensor:
        """a (total - a) / (total^2 (total + 1))."""
        a = self.concentration
        total = a.sum(-1, keepdim=True)
        below = total.square() * (total + 1.0)
        return a * (total - a) / below

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw gamma numbers and divide them by their sum; none is 0 or 1, as floats may be."""
        shape = self._extended_shape(sample_shape)
        shares = log_gamma(self.concentration.expand(*shape)).softmax(-1)
        limits = finfo(self.concentration.dtype)
        return shares.cast(self.concentration.dtype).clamp(limits.tiny, 1.0 - limits.eps / 2.0)

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the sum of (a - 1) log(x), and the normaliser."""
        self._validate_sample(value)
        a = self.concentration
        powers = (a - 1.0).xlogy(value)  # 0 where a is 1, at 0 too
        return powers.sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats."""
        a, count = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        inner = ((a - 1.0) * a.digamma()).sum(-1)
        normaliser = a.lgamma().sum(-1) - total.lgamma()
        outer = (count - total) * total.digamma()
        return normaliser - outer - inner


class Beta(ExponentialFamily):
    """This class is the beta distribution of a number from 0 to 1.

    >>> from picograd.distributions import Beta
    >>> Beta(1.0, 3.0).mean.item()
    0.25
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = as_tensors(concentration1, concentration0)
        super().__init__(self.concentration1.shape, (), validate_args)

    @property
    def _dirichlet(self) -> Dirichlet:
        """The same as a distribution of two numbers."""
        both = Tensor.stack([self.concentration1, self.concentration0], dim=-1)
        return Dirichlet(both, validate_args=False)

    @property
    def mean(self) -> Tensor:
        """The first concentration by the sum of both."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        """The variance of each distribution."""
        return self._dirichlet.variance[..., 0]

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the density."""
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        rise = (a - 1.0).xlogy(value)  # 0 where a is 1, at 0 too
        fall = xlog1py(b - 1.0, -value)
        powers = rise + fall
        return powers + (a + b).lgamma() - a.lgamma() - b.lgamma()

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats."""
        return self._dirichlet.entropy()


class FisherSnedecor(Distribution):
    """This class is the ratio of two chi-squared draws, each by its degrees of freedom.

    >>> from picograd.distributions import FisherSnedecor
    >>> FisherSnedecor(2.0, 4.0).mean.item()
    2.0
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = as_tensors(df1, df2)
        super().__init__(self.df1.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        """df2 / (df2 - 2); NaN up to 2."""
        df2 = self.df2.where(self.df2 > 2, math.nan)
        return df2 / (df2 - 2.0)

    @property
    def mode(self) -> Tensor:
        """(df1 - 2) / df1 * df2 / (df2 + 2); NaN up to df1 = 2."""
        df1 = self.df1.where(self.df1 > 2, math.nan)
        return (df1 - 2.0) / df1 * self.df2 / (self.df2 + 2.0)

    @property
    def variance(self) -> Tensor:
        """2 df2^2 (df1 + df2 - 2) / (df1 (df2 - 2)^2 (df2 - 4)); NaN up to 4."""
        df2 = self.df2.where(self.df2 > 4, math.nan)
        above = 2.0 * df2.square() * (self.df1 + df2 - 2.0)
        below = self.df1 * (df2 - 2.0).square() * (df2 - 4.0)
        return above / below

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        above = half_of_squares(self.df1, shape) / self.df1
        below = half_of_squares(self.df2, shape) / self.df2
        ratio = above / below  # neither is 0
        return ratio.clamp(min=finfo(ratio.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the density."""
        self._validate_sample(value)
        a, b = 0.5 * self.df1, 0.5 * self.df2
        ratio = self.df1 / self.df2
        power = a * ratio.log() + (a - 1.0) * value.log()
        tail = (a + b) * (ratio * value).log1p()
        return beta_normaliser(a, b) + power - tail


class StudentT(Distribution):
    """This class is Student's distribution of `df` degrees of freedom."""

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = as_tensors(df, loc, scale)
        super().__init__(self.df.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        """The location; NaN up to one degree of freedom."""
        return self.loc.where(self.df > 1, math.nan)

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """scale^2 df / (df - 2); infinite from 1 to 2 degrees of freedom."""
        wide = self.df > 2
        below = (self.df - 2.0).where(wide, 1.0)
        found = self.scale.square() * self.df / below
        return found.where(wide, math.inf).where(self.df > 1, math.nan)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        normal = Tensor.randn(*shape, dtype=self.loc.dtype, device=self.loc.device)
        squares = 2.0 * half_of_squares(self.df, shape)
        return self.loc + self.scale * normal * (squares / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the density."""
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        half = 0.5 * (self.df + 1.0)
        normaliser = half.lgamma() - (0.5 * self.df).lgamma()
        spread = 0.5 * (self.df * math.pi).log() + self.scale.log()
        tail = half * (z.square() / self.df).log1p()
        return normaliser - spread - tail

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats."""
        half = 0.5 * (self.df + 1.0)
        rest = 0.5 * self.df
        beta = rest.lgamma() + math.lgamma(0.5) - half.lgamma()
        spread = 0.5 * self.df.log() + beta + self.scale.log()
        slope = half.digamma() - rest.digamma()
        return spread + half * slope


class NegativeBinomial(Trials):
    """This class counts successes before `total_count` failures.

    >>> from picograd.distributions import NegativeBinomial
    >>> NegativeBinomial(4, probs=0.5).mean.item()
    4.0
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    @property
    def mean(self) -> Tensor:
        """total p / (1 - p)."""
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        """The most likely number."""
        likeliest = (self.total_count - 1.0) * self.logits.exp()
        return likeliest.floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        """total p / (1 - p) ** 2."""
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw: a Poisson number whose rate is a gamma draw; no gradients."""
        with no_grad():
            shape = self._extended_shape(sample_shape)
            return poisson(standard_gamma(self.total_count.expand(shape)) * self.logits.exp())

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute total log(1 - p) + x log(p) and the logarithm of the number of orders."""
        self._validate_sample(value)
        count, logits = self.total_count, self.logits
        failures = count * (-logits).logsigmoid()
        share = failures + value * logits.logsigmoid()
        both = count + value
        orders = both.lgamma() - (value + 1.0).lgamma() - count.lgamma()
        return share + (both == 0).where(0.0, orders)
