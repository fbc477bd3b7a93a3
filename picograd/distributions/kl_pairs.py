"""Divergences of two distributions of different kinds: -H(p) less the mean of log q under p.

So one function a kind of q is enough: it needs what p's mean, variance, mean of log(x) or mean of
exp(-t x) are. Where p has values that q cannot have, the divergence is infinite.
"""

import math
from collections.abc import Callable
from typing import Any

from picograd.distributions.continuous_bernoulli import ContinuousBernoulli
from picograd.distributions.discrete import Bernoulli, Binomial, Poisson
from picograd.distributions.distribution import EULER, LOG_2, LOG_2_PI, Distribution
from picograd.distributions.gamma_family import Beta, Gamma, beta_normaliser
from picograd.distributions.kl import Rule, register_kl
from picograd.distributions.transformed import Pareto
from picograd.distributions.univariate import Exponential, Gumbel, Laplace, Normal, Uniform
from picograd.tensor.tensor import Tensor

Kinds = tuple[type, ...]
BOUNDED: Kinds = (Beta, ContinuousBernoulli, Uniform)
STARTING_ABOVE_ZERO: Kinds = (*BOUNDED, Pareto)
WITHOUT_NEGATIVES: Kinds = (*STARTING_ABOVE_ZERO, Exponential, Gamma)

# p: the kinds of q that lack some of p's values
OUTSIDE: dict[type, Kinds] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: STARTING_ABOVE_ZERO,
    Gamma: STARTING_ABOVE_ZERO,
    Gumbel: WITHOUT_NEGATIVES,
    Laplace: WITHOUT_NEGATIVES,
    Normal: WITHOUT_NEGATIVES,
    Pareto: BOUNDED,
    Poisson: (Bernoulli, Binomial),
}


def zeros_of(each: Distribution) -> Tensor:
    """Give zeros of a distribution's shape and dtype, without gradients."""
    last = list(each.arg_constraints)[-1]
    parameter: Tensor = getattr(each, last)
    return parameter.detach() * 0.0


def infinite(p: Distribution, q: Distribution) -> Tensor:
    """Give infinity: q lacks some of p's values."""
    return zeros_of(p) + zeros_of(q) + math.inf


for one, others in OUTSIDE.items():
    for other in others:
        register_kl(one, other)(infinite)


def register_all(types_p: Kinds, type_q: type) -> Callable[[Rule], Rule]:
    """Declare the divergence of several kinds from another, as a decorator."""

    def declare(rule: Rule) -> Rule:
        for kind in types_p:
            register_kl(kind, type_q)(rule)
        return rule

    return declare


@register_kl(Bernoulli, Poisson)
def kl_bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    """A coin, and a count of events."""
    power = p.mean * q.rate.log()
    return q.rate - power - p.entropy()


@register_all(
    (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform), Normal
)
def kl_to_normal(p: Distribution, q: Normal) -> Tensor:
    """Log q is a square, whose mean is that of the distance and the variance."""
    distance = p.mean - q.loc
    square = distance.square() + p.variance
    scaled = square / q.scale.square()
    crossed = 0.5 * (scaled + LOG_2_PI) + q.scale.log()
    return crossed - p.entropy()


@register_all((Beta, ContinuousBernoulli, Gamma, Pareto, Uniform), Exponential)
def kl_to_exponential(p: Distribution, q: Exponential) -> Tensor:
    """Log q is linear."""
    crossed = q.rate * p.mean - q.rate.log()
    return from_zero(p, crossed - p.entropy())


@register_all((Beta, Exponential, Pareto, Uniform), Gamma)
def kl_to_gamma(p: Distribution, q: Gamma) -> Tensor:
    """Log q has x and log(x)."""
    a = q.concentration
    power = (a - 1.0) * mean_log(p)
    powers = q.rate * p.mean - power
    crossed = powers + a.lgamma() - a * q.rate.log()
    return from_zero(p, crossed - p.entropy())


def from_zero(p: Distribution, found: Tensor) -> Tensor:
    """Take infinity where p has negative values."""
    if not isinstance(p, Uniform):
        return found
    return found.where(p.low >= 0, math.inf)


def within_unit(p: Uniform, found: Tensor) -> Tensor:
    """Take infinity where p has values outside of [0, 1]."""
    inside = (p.low >= 0) & (p.high <= 1)
    return found.where(inside, math.inf)


def mean_log(p: Any) -> Tensor:
    """Compute the mean of log(x)."""
    if isinstance(p, Beta):
        total = p.concentration1 + p.concentration0
        return p.concentration1.digamma() - total.digamma()
    if isinstance(p, Uniform):
        return mean_log_between(p.low, p.high)
    if isinstance(p, Exponential):
        return -p.rate.log() - EULER
    start: Tensor = p.scale.log()
    return start + 1.0 / p.alpha


def mean_log_between(low: Tensor, high: Tensor) -> Tensor:
    """Compute the mean of log(x) between two bounds."""
    rise = high.xlogy(high) - low.xlogy(low)
    width = high - low
    return rise / width - 1.0


@register_all((Exponential, Gamma, Normal, Uniform), Gumbel)
def kl_to_gumbel(p: Distribution, q: Gumbel) -> Tensor:
    """Log q has z and exp(-z)."""
    start = q.loc / q.scale
    power = log_mean_power(p, q.scale.reciprocal())
    tail = (start + power).exp()
    away = p.mean / q.scale - start
    return away + tail + q.scale.log() - p.entropy()


def log_mean_power(p: Any, t: Tensor) -> Tensor:
    """Compute the logarithm of the mean of exp(-t x)."""
    if isinstance(p, Exponential):
        return -(t / p.rate).log1p()
    if isinstance(p, Gamma):
        return -p.concentration * (t / p.rate).log1p()
    if isinstance(p, Normal):
        spread = t * p.scale
        return 0.5 * spread.square() - t * p.loc
    width = t * (p.high - p.low)
    fall = -(-width).expm1()
    mean = fall / width
    return mean.log() - t * p.low


@register_kl(Normal, Laplace)
def kl_normal_laplace(p: Normal, q: Laplace) -> Tensor:
    """Log q is a distance, whose mean is that of a folded normal distribution."""
    away = (p.loc - q.loc) / p.scale
    peak = math.sqrt(2.0 / math.pi)
    bell = peak * (-0.5 * away.square()).exp()
    sided = (away / math.sqrt(2.0)).erf()
    distance = p.scale * (bell + away * sided)
    crossed = distance / q.scale + q.scale.log()
    return crossed + LOG_2 - p.entropy()


@register_kl(Beta, ContinuousBernoulli)
def kl_beta_continuous(p: Beta, q: ContinuousBernoulli) -> Tensor:
    """Log q is linear."""
    return linear(p, q)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def kl_continuous(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    """Log q is linear."""
    slope = p.logits - q.logits
    return slope * p.mean + p.log_norm - q.log_norm


@register_kl(Uniform, ContinuousBernoulli)
def kl_uniform_continuous(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    """Log q is linear."""
    return within_unit(p, linear(p, q))


def linear(p: Distribution, q: ContinuousBernoulli) -> Tensor:
    """Compute the divergence from a p of values in [0, 1]."""
    slope = q.logits * p.mean
    return -p.entropy() - slope - q.log_norm


@register_kl(Uniform, Beta)
def kl_uniform_beta(p: Uniform, q: Beta) -> Tensor:
    """Log q has log(x) and log(1 - x)."""
    a, b = q.concentration1, q.concentration0
    rise = (a - 1.0) * mean_log_between(p.low, p.high)
    low, high = 1.0 - p.high, 1.0 - p.low
    fall = (b - 1.0) * mean_log_between(low, high)
    found = -p.entropy() - rise - fall - beta_normaliser(a, b)
    return within_unit(p, found)


@register_all((Beta, ContinuousBernoulli), Uniform)
def kl_unit_uniform(p: Distribution, q: Uniform) -> Tensor:
    """Log q is constant."""
    inside = (q.low <= 0) & (q.high >= 1)
    width = q.high - q.low
    found = width.log() - p.entropy()
    return found.where(inside, math.inf)


@register_kl(Uniform, Pareto)
def kl_uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    """Log q has log(x)."""
    inner = mean_log_between(p.low, p.high)
    power = (q.alpha + 1.0) * inner
    start = q.alpha.log() + q.alpha * q.scale.log()
    found = power - start - p.entropy()
    return found.where(p.low >= q.scale, math.inf)
