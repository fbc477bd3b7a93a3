"""Distributions made of others: independent axes, transforms, mixtures, relaxations."""

from collections.abc import Sequence
from typing import Any

from picograd.distributions import constraints
from picograd.distributions.discrete import Categorical, Chances, Choices
from picograd.distributions.distribution import EULER, Distribution, Sizes, sum_last
from picograd.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    PowerTransform,
    Transform,
)
from picograd.distributions.univariate import Exponential, Normal, uniform
from picograd.errors import ShapeError
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.tensor import Tensor


class Independent(Distribution):
    """This class takes the last batch axes of a distribution as parts of one event.

    >>> from picograd import Tensor
    >>> from picograd.distributions import Independent, Normal
    >>> Independent(Normal(Tensor.zeros(3), Tensor.ones(3)), 1).event_shape
    (3,)
    """

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        self.base_dist, self.axes = base_distribution, reinterpreted_batch_ndims
        shape = base_distribution.batch_shape + base_distribution.event_shape
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            text = f"{reinterpreted_batch_ndims} axes of {base_distribution.batch_shape}"
            raise ShapeError("Independent", text, "use at most the axes of batch_shape")
        events = len(base_distribution.event_shape) + reinterpreted_batch_ndims
        at = len(shape) - events
        super().__init__(shape[:at], shape[at:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether gradients flow through draws."""
        return self.base_dist.has_rsample

    @property
    def support(self) -> Any:
        """That of the distribution, for every part."""
        return constraints.independent(self.base_dist.support, self.axes)

    @property
    def mean(self) -> Tensor:
        """The mean of the distribution."""
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        """The mode of the distribution."""
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        """The variance of the distribution."""
        return self.base_dist.variance

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; no gradients."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """Sum that of the parts."""
        return sum_last(self.base_dist.log_prob(value), self.axes)

    def entropy(self) -> Tensor:
        """Sum that of the parts."""
        return sum_last(self.base_dist.entropy(), self.axes)


class TransformedDistribution(Distribution):
    """This class is what transforms make of the draws of a distribution."""

    has_rsample = True

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        listed = [transforms] if isinstance(transforms, Transform) else list(transforms)
        self.transforms, self.chain = listed, ComposeTransform(listed)
        grows = self.chain.event_dim - len(base_distribution.event_shape)
        if grows > 0:
            base_distribution = Independent(base_distribution, grows)
        self.base_dist = base_distribution
        shapes = base_distribution.batch_shape, base_distribution.event_shape
        super().__init__(*shapes, validate_args)

    @property
    def support(self) -> Any:
        """What the last transform gives."""
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; no gradients."""
        with no_grad():
            return self.chain(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        return self.chain(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute that of the argument, less log |dy / dx|."""
        self._validate_sample(value)
        events = len(self.event_shape)
        total: Any = 0.0
        for transform in reversed(self.transforms):
            before = transform._inverse(value)
            found = transform.log_abs_det_jacobian(before, value)
            total = total - sum_last(found, events - transform.event_dim)
            value = before
        inner = self.base_dist.log_prob(value)
        return total + sum_last(inner, events - len(self.base_dist.event_shape))

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of values up to these."""
        return self.base_dist.cdf(self.chain._inverse(value))

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the values up to which the probability is this."""
        return self.chain(self.base_dist.icdf(value))


class LogNormal(TransformedDistribution):
    """This class is exp of a normal draw."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    base_dist: Normal

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        super().__init__(base, ExpTransform(), validate_args)

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

    @property
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
        found: Tensor = (self.scale * inverse).log() + 1.0 + inverse
        return found


class MixtureSameFamily(Distribution):
    """This class is one of several distributions of a family, chosen by a Categorical."""

    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution
        events = component_distribution.event_shape
        self.count = component_distribution.batch_shape[-1]
        super().__init__(component_distribution.batch_shape[:-1], events, validate_args)

    @property
    def support(self) -> Any:
        """That of the components."""
        return self.component_distribution.support

    def weights(self) -> Tensor:
        """Give the probabilities of the components, with the axes of an event."""
        found = self.mixture_distribution.probs
        return found.reshape(*found.shape, *[1] * len(self.event_shape))

    @property
    def mean(self) -> Tensor:
        """The weighted mean of the components'."""
        axis = -1 - len(self.event_shape)
        return (self.weights() * self.component_distribution.mean).sum(axis)

    @property
    def variance(self) -> Tensor:
        """The mean of the components' variances, and the variance of their means."""
        axis = -1 - len(self.event_shape)
        parts, weights = self.component_distribution, self.weights()
        away = parts.mean - self.mean.unsqueeze(axis)
        return (weights * (parts.variance + away.square())).sum(axis)

    def expanded(self, value: Tensor) -> Tensor:
        """Give a value an axis of components."""
        return value.unsqueeze(-1 - len(self.event_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute log of the weighted sum of densities."""
        inner = self.component_distribution.log_prob(self.expanded(value))
        return (inner + self.mixture_distribution.logits).logsumexp(-1)

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the weighted sum of the components'."""
        inner = self.component_distribution.cdf(self.expanded(value))
        return (inner * self.mixture_distribution.probs).sum(-1)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw from all components, and choose."""
        with no_grad():
            draws = self.component_distribution.sample(sample_shape)
            chosen = self.mixture_distribution.sample(sample_shape).one_hot(self.count)
            keep = chosen.reshape(*chosen.shape, *[1] * len(self.event_shape)).bool()
            return draws.where(keep, 0.0).sum(-1 - len(self.event_shape))


class RelaxedBernoulli(Chances):
    """This class is a smooth form of Bernoulli on (0, 1) (Maddison et al., 2017)."""

    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        own = self.take(probs, logits)
        self.temperature = temperature
        super().__init__(own.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """Numbers from 0 to 1."""
        return constraints.unit_interval

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameter."""
        draws = uniform(self.own(), self._extended_shape(sample_shape))
        noise = draws.log() - (-draws).log1p()
        found: Tensor = ((noise + self.logits) / self.temperature).sigmoid()
        return found.clamp(1e-7, 1.0 - 1e-7)

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the density."""
        self._validate_sample(value)
        y = value.log() - (-value).log1p()
        away = self.logits - y * self.temperature
        t = self.temperature
        scale = t.log() if isinstance(t, Tensor) else Tensor(float(t)).log()
        inner = away + scale - 2.0 * away.exp().log1p()
        found: Tensor = inner - value.log() - (-value).log1p()
        return found


class RelaxedOneHotCategorical(Choices):
    """This class is a smooth form of OneHotCategorical (Jang et al., 2017)."""

    has_rsample = True
    has_enumerate_support = False

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.take(probs, logits)
        self.temperature = temperature
        shape = self.logits.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def support(self) -> Any:
        """Numbers that sum to one."""
        return constraints.simplex

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameter."""
        draws = uniform(self.logits, self._extended_shape(sample_shape))
        noise = -(-draws.log()).log()
        return ((self.logits + noise) / self.temperature).softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the density."""
        self._validate_sample(value)
        count = self.logits.shape[-1]
        t = self.temperature
        temperature = t if isinstance(t, Tensor) else Tensor(float(t))
        score = (self.logits - value.log() * temperature).log_softmax(-1)
        scale = Tensor(float(count)).lgamma() + temperature.log() * (count - 1)
        return scale + (score - value.log()).sum(-1)
