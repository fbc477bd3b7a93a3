"""Kullback-Leibler divergences in closed form: one function a pair of classes.

Divergences of two distributions of different kinds: -H(p) less the mean of log q under p.

So one function a kind of q is enough: it needs what p's mean, variance, mean of log(x) or mean of
exp(-t x) are. Where p has values that q cannot have, the divergence is infinite.
"""

import math
from collections.abc import Callable
from typing import Any

from picograd.distributions.composed import Independent, TransformedDistribution
from picograd.distributions.continuous_bernoulli import ContinuousBernoulli
from picograd.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Choices,
    Geometric,
    OneHotCategorical,
    Poisson,
)
from picograd.distributions.distribution import (
    EULER,
    LOG_2,
    LOG_2_PI,
    Distribution,
    ExponentialFamily,
    normalizer_slopes,
    sum_last,
)
from picograd.distributions.gamma_family import Beta, Dirichlet, Gamma, beta_normaliser
from picograd.distributions.multivariate import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    Wishart,
    kl_of_wisharts,
)
from picograd.distributions.transformed import Pareto
from picograd.distributions.univariate import (
    Cauchy,
    Exponential,
    Gumbel,
    HalfNormal,
    Laplace,
    Normal,
    Uniform,
)
from picograd.errors import ShapeError
from picograd.tensor.public import broadcast_shapes
from picograd.tensor.tensor import Tensor

Vectors = MultivariateNormal | LowRankMultivariateNormal
Rule = Callable[[Any, Any], Tensor]
RULES: dict[tuple[type, type], Rule] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Rule], Rule]:
    """Declare a function as the divergence of two classes, and of those derived from them."""

    def declare(rule: Rule) -> Rule:
        RULES[type_p, type_q] = rule
        return rule

    return declare


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Compute the divergence of q from p: the mean of log(p / q) under p.

    Raises NotImplementedError for a pair without a closed form.

    >>> from picograd.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0)).item()
    0.5
    """
    for kind_p in type(p).__mro__:
        for kind_q in type(q).__mro__:
            if (kind_p, kind_q) in RULES:
                return RULES[kind_p, kind_q](p, q)
    names = f"{type(p).__name__} and {type(q).__name__}"
    raise NotImplementedError(f"no divergence is known of {names}: use register_kl")


@register_kl(Normal, Normal)
def kl_normal(p: Normal, q: Normal) -> Tensor:
    """Two normal distributions."""
    ratio = (p.scale / q.scale).square()
    away = ((p.loc - q.loc) / q.scale).square()
    return 0.5 * (ratio + away - 1.0 - ratio.log())


@register_kl(Pareto, Pareto)
def kl_pareto(p: Pareto, q: Pareto) -> Tensor:
    """Two power laws; infinite where the first begins below the second."""
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1.0
    outside = p.scale < q.scale
    return outside.where(math.inf, found)


@register_kl(HalfNormal, HalfNormal)
def kl_half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    """Halves diverge as much as the whole, which may be a Cauchy distribution."""
    return kl_divergence(p.base, q.base)


@register_kl(Cauchy, Cauchy)
def kl_cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """Two Cauchy distributions (Chyzak and Nielsen, 2019)."""
    spread = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return (spread / (4.0 * p.scale * q.scale)).log()


@register_kl(Bernoulli, Bernoulli)
def kl_bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    """Two coins."""
    ones = p.probs * ((-q.logits).softplus() - (-p.logits).softplus())
    zeros = (1.0 - p.probs) * (q.logits.softplus() - p.logits.softplus())
    is_impossible = ((q.probs == 0) & (p.probs != 0)) | ((q.probs == 1) & (p.probs != 1))
    return is_impossible.where(math.inf, ones + zeros)


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def kl_categorical(p: Choices, q: Choices) -> Tensor:
    """Two choices."""
    terms = p.probs * (p.logits - q.logits)
    terms = terms.where(q.probs > 0, math.inf)
    return terms.where(p.probs > 0, 0.0).sum(-1)


@register_kl(Binomial, Binomial)
def kl_binomial(p: Binomial, q: Binomial) -> Tensor:
    """Two counts; infinite where the first has more trials."""
    if (p.total_count < q.total_count).any().item():
        raise NotImplementedError("kl_divergence: the second Binomial has more trials")
    odds = p.probs * (p.logits - q.logits)
    ratio = (-p.probs).log1p() - (-q.probs).log1p()
    found = p.total_count * (odds + ratio)
    outside = p.total_count > q.total_count
    return outside.where(math.inf, found)


@register_kl(Geometric, Geometric)
def kl_geometric(p: Geometric, q: Geometric) -> Tensor:
    """Two waits."""
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def kl_poisson(p: Poisson, q: Poisson) -> Tensor:
    """Two counts of events."""
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Exponential, Exponential)
def kl_exponential(p: Exponential, q: Exponential) -> Tensor:
    """Two exponential distributions."""
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1.0


@register_kl(Laplace, Laplace)
def kl_laplace(p: Laplace, q: Laplace) -> Tensor:
    """Two Laplace distributions."""
    ratio = p.scale / q.scale
    away = (p.loc - q.loc).abs()
    tail = ratio * (-away / p.scale).exp()
    return -ratio.log() + away / q.scale + tail - 1.0


@register_kl(Gumbel, Gumbel)
def kl_gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    """Two Gumbel distributions."""
    ratio = p.scale / q.scale
    shift = (q.loc - p.loc) / q.scale
    tail = (shift + (1.0 + ratio).lgamma()).exp()
    return -ratio.log() - shift + ratio * EULER + tail - (1.0 + EULER)


@register_kl(Uniform, Uniform)
def kl_uniform(p: Uniform, q: Uniform) -> Tensor:
    """Infinite unless one lies within the other."""
    found = ((q.high - q.low) / (p.high - p.low)).log()
    outside = (q.low > p.low) | (q.high < p.high)
    return found.where(outside.logical_not(), math.inf)


@register_kl(Gamma, Gamma)
def kl_gamma(p: Gamma, q: Gamma) -> Tensor:
    """Two gamma distributions."""
    rates = q.concentration * (p.rate / q.rate).log()
    shapes = q.concentration.lgamma() - p.concentration.lgamma()
    slope = (p.concentration - q.concentration) * p.concentration.digamma()
    means = (q.rate - p.rate) * (p.concentration / p.rate)
    return rates + shapes + slope + means


@register_kl(Dirichlet, Dirichlet)
def kl_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    """Two Dirichlet distributions."""
    a, b = p.concentration, q.concentration
    totals = a.sum(-1).lgamma() - b.sum(-1).lgamma()
    shapes = (a.lgamma() - b.lgamma()).sum(-1)
    inner = a.digamma() - a.sum(-1, keepdim=True).digamma()
    return totals - shapes + ((a - b) * inner).sum(-1)


@register_kl(Beta, Beta)
def kl_beta(p: Beta, q: Beta) -> Tensor:
    """Two beta distributions."""
    return kl_dirichlet(p._dirichlet, q._dirichlet)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def kl_multivariate(p: Vectors, q: Vectors) -> Tensor:
    """Two normal distributions of vectors."""
    if p.event_shape != q.event_shape:
        text = f"vectors of {p.event_shape[0]} and {q.event_shape[0]} numbers"
        raise ShapeError("kl_divergence", text, "compare vectors of one size")
    batch = tuple(broadcast_shapes(p.batch_shape, q.batch_shape))
    p, q = p.expand(batch), q.expand(batch)
    spread = q.squared_lengths(p.columns())
    distance = q.squared_lengths((q.loc - p.loc).unsqueeze(-1))
    volume = q.half_log_det() - p.half_log_det()
    return volume + 0.5 * (spread + distance - p.event_shape[0])


register_kl(Wishart, Wishart)(kl_of_wisharts)


@register_kl(ExponentialFamily, ExponentialFamily)
def kl_exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """Two of a family that tells its normalizer: the Bregman divergence of their parameters."""
    if type(p) is not type(q):
        names = f"{type(p).__name__} and {type(q).__name__}"
        raise NotImplementedError(f"no divergence is known of {names}: use register_kl")
    ours, theirs = p._natural_params, q._natural_params
    value, slopes = normalizer_slopes(p, ours)
    found = q._log_normalizer(*theirs) - value
    for one, other, slope in zip(ours, theirs, slopes):
        found = found - sum_last((other - one) * slope, one.ndim - len(p.batch_shape))
    return found


@register_kl(Independent, Independent)
def kl_independent(p: Independent, q: Independent) -> Tensor:
    """Sum that of the parts."""
    if p.axes != q.axes:
        raise NotImplementedError("kl_divergence: the two take other numbers of axes together")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.axes)


@register_kl(TransformedDistribution, TransformedDistribution)
def kl_transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """What one chain of transforms made diverges as much as before."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: the two were transformed in different ways")
    return kl_divergence(p.base_dist, q.base_dist)


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
    return found.where((p.low >= 0) & (p.high <= 1), math.inf)


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
    tail = (start + log_mean_power(p, q.scale.reciprocal())).exp()
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
    bell = math.sqrt(2.0 / math.pi) * (-0.5 * away.square()).exp()
    distance = p.scale * (bell + away * (away / math.sqrt(2.0)).erf())
    crossed = distance / q.scale + q.scale.log()
    return crossed + LOG_2 - p.entropy()


@register_all((Beta, Uniform), ContinuousBernoulli)
def kl_to_continuous(p: Distribution, q: ContinuousBernoulli) -> Tensor:
    """Log q is linear."""
    slope = q.logits * p.mean
    found = -p.entropy() - slope - q.log_norm
    if isinstance(p, Uniform):
        return within_unit(p, found)
    return found


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def kl_continuous(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    """Log q is linear."""
    slope = p.logits - q.logits
    return slope * p.mean + p.log_norm - q.log_norm


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
