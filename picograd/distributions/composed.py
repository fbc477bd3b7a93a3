"""Distributions made of others: independent axes, transforms, mixtures, relaxations."""

from collections.abc import Sequence
from typing import Any

from picograd.distributions import constraints
from picograd.distributions.discrete import Categorical, Chances, Choices
from picograd.distributions.distribution import Distribution, Sizes, sum_last
from picograd.distributions.transform import ComposeTransform, Transform, need_axes, widened
from picograd.distributions.univariate import uniform
from picograd.errors import ShapeError, ValueRangeError
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
        self.base_dist = base_distribution
        self.axes = self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        shape = base_distribution.batch_shape + base_distribution.event_shape
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            text = f"{reinterpreted_batch_ndims} axes of {base_distribution.batch_shape}"
            raise ShapeError("Independent", text, "use at most the axes of batch_shape")
        events = len(base_distribution.event_shape) + reinterpreted_batch_ndims
        at = len(shape) - events
        super().__init__(shape[:at], shape[at:], validate_args)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.axes})"

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether gradients flow through draws."""
        return self.base_dist.has_rsample

    @constraints.dependent_property
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

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether values can be listed: not those of several parts together."""
        return self.axes == 0 and self.base_dist.has_enumerate_support

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """List all values of a distribution none of whose axes were taken."""
        if self.axes:
            raise self._lacks("enumerate_support")
        return self.base_dist.enumerate_support(expand)


class TransformedDistribution(Distribution):
    """This class is what transforms make of the draws of a distribution."""

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(each, Transform) for each in self.transforms):
            text = f"{transforms!r} are not transforms"
            raise ValueRangeError("TransformedDistribution", text, "pass a Transform, or a list")
        chain = ComposeTransform(self.transforms)
        reads, writes = chain.domain.event_dim, chain.codomain.event_dim
        shape = base_distribution.batch_shape + base_distribution.event_shape
        need_axes(shape, reads)
        after = chain.forward_shape(shape)
        self.base_dist = taken(base_distribution, chain.inverse_shape(after), reads)
        cut = len(after) - max(writes, len(base_distribution.event_shape) + writes - reads)
        super().__init__(after[:cut], after[cut:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether gradients flow through draws."""
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """What the last transform gives."""
        if not self.transforms:
            return self.base_dist.support
        return widened(self.transforms[-1].codomain, len(self.event_shape))

    def expand(self, batch_shape: Sizes, _instance: Any = None) -> Any:
        """Make the distribution with a larger batch shape."""
        shape: tuple[int, ...] = (*batch_shape, *self.event_shape)
        for each in reversed(self.transforms):
            shape = each.inverse_shape(shape)
        cut = len(shape) - len(self.base_dist.event_shape)
        made = super().expand(batch_shape, _instance)
        made.base_dist = self.base_dist.expand(shape[:cut])
        return made

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; no gradients."""
        with no_grad():
            return self.moved(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        return self.moved(self.base_dist.rsample(sample_shape))

    def moved(self, value: Tensor) -> Tensor:
        """Apply the transforms."""
        for transform in self.transforms:
            value = transform(value)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute that of the argument, less log |dy / dx|."""
        self._validate_sample(value)
        events = len(self.event_shape)
        total: Any = 0.0
        for transform in reversed(self.transforms):
            before = transform.inv(value)
            found = transform.log_abs_det_jacobian(before, value)
            events += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_last(found, events - transform.domain.event_dim)
            value = before
        inner = self.base_dist.log_prob(value)
        return total + sum_last(inner, events - len(self.base_dist.event_shape))

    def turned(self, chance: Tensor) -> Tensor:
        """Take 1 - p for p where the transforms fall."""
        sign = ComposeTransform(self.transforms).sign
        return chance if isinstance(sign, int) and sign == 1 else sign * (chance - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of values up to these."""
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self.turned(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the values up to which the probability is this."""
        return self.moved(self.base_dist.icdf(self.turned(value)))


def taken(base: Distribution, shape: Sizes, event_dim: int) -> Distribution:
    """Give a distribution the shape and the axes of events that transforms read."""
    events = len(base.event_shape)
    if tuple(shape) != base.batch_shape + base.event_shape:
        base = base.expand(tuple(shape)[: len(shape) - events])
    return Independent(base, event_dim - events) if event_dim > events else base


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

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the components."""
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

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

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

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
        return inner - value.log() - (-value).log1p()


class RelaxedOneHotCategorical(Choices):
    """This class is a smooth form of OneHotCategorical (Jang et al., 2017)."""

    support = constraints.simplex
    has_rsample = True
    has_enumerate_support = False

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: Sizes, _instance: Any = None) -> Any:
        """Make the distribution with a larger batch shape; the temperature is one for all."""
        made = super().expand(batch_shape, _instance)
        made.temperature = self.temperature
        return made

    def entropy(self) -> Tensor:
        """Raise: the entropy has no closed form."""
        raise NotImplementedError("RelaxedOneHotCategorical.entropy: there is no closed form")

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
