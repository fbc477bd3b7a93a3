"""Divergences of two distributions of different kinds: -H(p) less the mean of log q under p.

So one function a kind of q is enough: it needs what p's mean, variance, mean of log(x) or mean of
exp(-t x) are. Where p has values that q cannot have, the divergence is infinite.
"""

import math
from typing import Any

from picograd.distributions.continuous_bernoulli import ContinuousBernoulli
from picograd.distributions.discrete import Bernoulli, Binomial, Poisson
from picograd.distributions.distribution import EULER, LOG_2, LOG_2_PI, Distribution
from picograd.distributions.gamma_family import Beta, Gamma
from picograd.distributions.kl import register_kl
from picograd.distributions.transformed import Pareto
from picograd.distributions.univariate import Exponential, Gumbel, Laplace, Normal, Uniform
from picograd.tensor.tensor import Tensor

# p: the kinds of q that lack some of p's values
OUTSIDE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def infinite(p: Distribution, q: Distribution) -> Tensor:
    """Give infinity: q lacks some of p's values."""
    zeros = [getattr(each, list(each.arg_constraints)[-1]).detach() * 0.0 for each in (p, q)]
    return zeros[0] + zeros[1] + math.inf


for one, others in OUTSIDE.items():
    for other in others:
        register_kl(one, other)(infinite)


@register_kl(Bernoulli, Poisson)
def kl_bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    """A coin, and a count of events."""
    return q.rate - p.mean * q.rate.log() - p.entropy()


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Pareto, Normal)
@register_kl(Uniform, Normal)
def kl_to_normal(p: Distribution, q: Normal) -> Tensor:
    """Log q is a square, whose mean is that of the distance and the variance."""
    square = (p.mean - q.loc).square() + p.variance
    return 0.5 * (square / q.scale.square() + LOG_2_PI) + q.scale.log() - p.entropy()


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
@register_kl(Pareto, Exponential)
@register_kl(Uniform, Exponential)
def kl_to_exponential(p: Distribution, q: Exponential) -> Tensor:
    """Log q is linear."""
    return from_zero(p, q.rate * p.mean - q.rate.log() - p.entropy())


@register_kl(Beta, Gamma)
@register_kl(Exponential, Gamma)
@register_kl(Pareto, Gamma)
@register_kl(Uniform, Gamma)
def kl_to_gamma(p: Distribution, q: Gamma) -> Tensor:
    """Log q has x and log(x)."""
    a = q.concentration
    powers = q.rate * p.mean - (a - 1.0) * mean_log(p)
    return from_zero(p, powers + a.lgamma() - a * q.rate.log() - p.entropy())


def from_zero(p: Distribution, found: Tensor) -> Tensor:
    """Take infinity where p has negative values."""
    return found.where(p.low >= 0, math.inf) if isinstance(p, Uniform) else found


def within_unit(p: Uniform, found: Tensor) -> Tensor:
    """Take infinity where p has values outside of [0, 1]."""
    return found.where((p.low >= 0) & (p.high <= 1), math.inf)


def mean_log(p: Any) -> Tensor:
    """Compute the mean of log(x)."""
    if isinstance(p, Beta):
        total = p.concentration1 + p.concentration0
        return p.concentration1.digamma() - total.digamma()
    if isinstance(p, Uniform):
        return mean_log_between(p.low, p.high)
    found = -p.rate.log() - EULER if isinstance(p, Exponential) else p.scale.log() + 1.0 / p.alpha
    return found  # type: ignore[no-any-return]


def mean_log_between(low: Tensor, high: Tensor) -> Tensor:
    """Compute the mean of log(x) between two bounds."""
    return (high.xlogy(high) - low.xlogy(low)) / (high - low) - 1.0


@register_kl(Exponential, Gumbel)
@register_kl(Gamma, Gumbel)
@register_kl(Normal, Gumbel)
@register_kl(Uniform, Gumbel)
def kl_to_gumbel(p: Distribution, q: Gumbel) -> Tensor:
    """Log q has z and exp(-z)."""
    start = q.loc / q.scale
    tail = (start + log_mean_power(p, q.scale.reciprocal())).exp()
    return p.mean / q.scale - start + tail + q.scale.log() - p.entropy()


def log_mean_power(p: Any, t: Tensor) -> Tensor:
    """Compute the logarithm of the mean of exp(-t x)."""
    if isinstance(p, Exponential):
        return -(t / p.rate).log1p()
    if isinstance(p, Gamma):
        return -p.concentration * (t / p.rate).log1p()
    if isinstance(p, Normal):
        return 0.5 * (t * p.scale).square() - t * p.loc
    width = t * (p.high - p.low)
    found: Tensor = (-(-width).expm1() / width).log() - t * p.low
    return found


@register_kl(Normal, Laplace)
def kl_normal_laplace(p: Normal, q: Laplace) -> Tensor:
    """Log q is a distance, whose mean is that of a folded normal distribution."""
    away = (p.loc - q.loc) / p.scale
    root = math.sqrt(2.0 / math.pi) * (-0.5 * away.square()).exp()
    distance = p.scale * (root + away * (away / math.sqrt(2.0)).erf())
    return distance / q.scale + q.scale.log() + LOG_2 - p.entropy()


@register_kl(Beta, ContinuousBernoulli)
def kl_beta_continuous(p: Beta, q: ContinuousBernoulli) -> Tensor:
    """Log q is linear."""
    found: Tensor = -p.entropy() - q.logits * p.mean - q.log_norm
    return found


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def kl_continuous(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    """Log q is linear."""
    found: Tensor = (p.logits - q.logits) * p.mean + p.log_norm - q.log_norm
    return found


@register_kl(Uniform, ContinuousBernoulli)
def kl_uniform_continuous(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    """Log q is linear."""
    return within_unit(p, -p.entropy() - q.logits * p.mean - q.log_norm)


@register_kl(Uniform, Beta)
def kl_uniform_beta(p: Uniform, q: Beta) -> Tensor:
    """Log q has log(x) and log(1 - x)."""
    a, b = q.concentration1, q.concentration0
    rise = (a - 1.0) * mean_log_between(p.low, p.high)
    fall = (b - 1.0) * mean_log_between(1.0 - p.high, 1.0 - p.low)
    normaliser = (a + b).lgamma() - a.lgamma() - b.lgamma()
    return within_unit(p, -p.entropy() - rise - fall - normaliser)


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def kl_unit_uniform(p: Distribution, q: Uniform) -> Tensor:
    """Log q is constant."""
    inside = (q.low <= 0) & (q.high >= 1)
    return ((q.high - q.low).log() - p.entropy()).where(inside, math.inf)


@register_kl(Uniform, Pareto)
def kl_uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    """Log q has log(x)."""
    power = (q.alpha + 1.0) * mean_log_between(p.low, p.high)
    start = q.alpha.log() + q.alpha * q.scale.log()
    found = power - start - p.entropy()
    return found.where(p.low >= q.scale, math.inf)
