"""Distributions of whole numbers and choices.

Source: Johnson, Kemp and Kotz, "Univariate Discrete Distributions" (2005).
"""

import math
from typing import Any

from picograd.distributions import constraints
from picograd.distributions.distribution import (
    Distribution,
    ExponentialFamily,
    Sizes,
    as_tensors,
    need_one,
)
from picograd.distributions.univariate import uniform
from picograd.errors import check_least
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.making.distributions import binomial, poisson
from picograd.tensor.math.special import xlog1py
from picograd.tensor.public import broadcast_tensors
from picograd.tensor.tensor import Tensor

LEAST = 1.1920929e-07  # probabilities are kept this far from 0 and 1 in logarithms, as in PyTorch


def clamped(probs: Tensor) -> Tensor:
    """Keep probabilities away from 0 and 1."""
    least = 2.220446049250313e-16 if probs.dtype.bits == 64 else LEAST
    return probs.clamp(least, 1.0 - least)


def picked(counts: Tensor, logits: Tensor) -> Tensor:
    """Sum logits as often as they occur; what does not occur may be impossible."""
    return (counts * logits.where((counts != 0) | (logits != -math.inf), 0.0)).sum(-1)


def listed(values: Tensor, batch: Sizes, expand: bool) -> Tensor:
    """Give the values of a support, listed along a first axis, the axes of a batch."""
    count, *event = values.shape
    values = values.reshape(count, *[1] * len(batch), *event)
    return values.expand(count, *batch, *event) if expand else values


class Chances(ExponentialFamily):
    """This class has a probability of success, or its logit, as the parameter."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        own = self.take(probs, logits)
        super().__init__(own.shape, (), validate_args)

    def take(self, probs: Any, logits: Any) -> Tensor:
        """Keep the one that is given."""
        self._given: str = need_one(type(self).__name__, probs=probs, logits=logits)
        (own,) = as_tensors(probs if logits is None else logits)
        vars(self)[self._given] = own
        return own

    def __getattr__(self, name: str) -> Any:
        if name == "probs" and "logits" in vars(self):
            return self.logits.sigmoid()
        if name == "logits" and "probs" in vars(self):
            return clamped(self.probs).logit()
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        own: Tensor = vars(self)[self._given]
        return own.shape

    def own(self) -> Tensor:
        """Give the parameter as it was given."""
        return vars(self)[self._given]


class Bernoulli(Chances):
    """This class is 1 with probability `probs`, else 0.

    >>> from picograd import Tensor
    >>> from picograd.distributions import Bernoulli
    >>> Bernoulli(probs=Tensor([0.25])).variance.tolist()
    [0.1875]
    """

    support = constraints.boolean
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        """The probability."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The more likely value."""
        likely = (self.probs >= 0.5).cast(self.own().dtype)
        return likely.where(self.probs != 0.5, math.nan)

    @property
    def variance(self) -> Tensor:
        """p (1 - p)."""
        return self.probs * (1.0 - self.probs)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; no gradients."""
        with no_grad():
            return self.probs.expand(*self._extended_shape(sample_shape)).bernoulli()

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute x log(p) + (1 - x) log(1 - p) from the logit."""
        self._validate_sample(value)
        logits: Tensor = self.logits
        return value * logits - logits.softplus()

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats."""
        logits: Tensor = self.logits
        return logits.softplus() - self.probs * logits

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """List 0 and 1 along a new first axis."""
        values = Tensor.arange(2, dtype=self.own().dtype, device=self.own().device)
        return listed(values, self.batch_shape, expand)


class Geometric(Chances):
    """This class counts failures before the first success."""

    support = constraints.nonnegative_integer

    def take(self, probs: Any, logits: Any) -> Tensor:
        """Keep the one that is given; without any chance there is no first success."""
        own = super().take(probs, logits)
        if logits is None:
            self._check("parameter probs", own, constraints.positive)
        return own

    @property
    def mean(self) -> Tensor:
        """1 / p - 1."""
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        """Zero."""
        return self.probs * 0.0

    @property
    def variance(self) -> Tensor:
        """(1 / p - 1) / p."""
        return self.mean / self.probs

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; no gradients."""
        with no_grad():
            draws = uniform(self.own(), self._extended_shape(sample_shape))
            return (draws.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute x log(1 - p) + log(p)."""
        self._validate_sample(value)
        probs: Tensor = self.probs
        return xlog1py(value, -probs) + probs.log()

    def entropy(self) -> Tensor:
        """Compute that of one trial by its probability."""
        return Bernoulli(probs=self.probs, validate_args=False).entropy() / self.probs


class Trials(Chances):
    """This class is chances with a count of trials: `total_count`."""

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        own = self.take(probs, logits)
        self.total_count, own = as_tensors(total_count, own)
        vars(self)[self._given] = own
        self.total_count = self.total_count.cast(own.dtype)
        ExponentialFamily.__init__(self, own.shape, (), validate_args)


class Binomial(Trials):
    """This class counts successes in `total_count` trials."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, **Chances.arg_constraints}

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """0, 1, ... up to the number of trials."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        """n p."""
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        """n p (1 - p)."""
        return self.total_count * self.probs * (1.0 - self.probs)

    @property
    def mode(self) -> Tensor:
        """(n + 1) p, rounded down."""
        found = ((self.total_count + 1.0) * self.probs).floor()
        return found.minimum(self.total_count)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """List the counts along a new first axis; all distributions have as many trials."""
        most = int(self.total_count.max().item())
        if self.total_count.min().item() != most:
            raise NotImplementedError("enumerate_support: counts of trials differ")
        values = Tensor.arange(most + 1, dtype=self.own().dtype, device=self.own().device)
        return listed(values, self.batch_shape, expand)

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats, over all counts."""
        chances = self.log_prob(self.enumerate_support(False))
        return -(chances.exp() * chances).sum(0)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; no gradients."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(*shape), self.probs.expand(*shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the probability."""
        self._validate_sample(value)
        n, logits = self.total_count, self.logits
        ways = (n + 1.0).lgamma() - (value + 1.0).lgamma() - (n - value + 1.0).lgamma()
        return ways + value * logits - n * logits.softplus()


class Poisson(ExponentialFamily):
    """This class counts events that happen at a rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = as_tensors(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        """The rate."""
        return self.rate

    @property
    def mode(self) -> Tensor:
        """The rate, rounded down."""
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        """The rate."""
        return self.rate

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; no gradients."""
        with no_grad():
            return poisson(self.rate.expand(*self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute x log(rate) - rate - log(x!)."""
        self._validate_sample(value)
        return value.xlogy(self.rate) - self.rate - (value + 1.0).lgamma()


class Choices(Distribution):
    """This class has weights, or logits, of choices along its last axis."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    is_vector = True  # a draw has the last axis of the parameter
    logits: Tensor
    probs: Tensor

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.take(probs, logits)
        *batch, count = self.logits.shape
        super().__init__(batch, (count,) if self.is_vector else (), validate_args)
        inside = constraints.real if self._given == "logits" else constraints.nonnegative
        self._check(f"parameter {self._given}", self._own, inside)

    def take(self, probs: Tensor | None, logits: Tensor | None) -> None:
        """Keep normalised logits and probabilities of what is given."""
        self._given = need_one(type(self).__name__, probs=probs, logits=logits)
        (given,) = as_tensors(logits if probs is None else probs)
        self._own = given
        if probs is not None:
            self.probs = given / given.sum(-1, keepdim=True)
            self.logits = clamped(self.probs).log()
        else:
            self.logits = given.log_softmax(-1)
            self.probs = self.logits.softmax(-1)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return self.logits.shape

    def drawn(self, sample_shape: Sizes) -> Tensor:
        """Draw positions."""
        shape = (*sample_shape, *self._batch_shape)
        with no_grad():
            gumbel = -(-uniform(self.logits, (*shape, self.logits.shape[-1])).log()).log()
            return (self.logits + gumbel).argmax(-1)

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats."""
        return -(self.logits.clamp(min=-3.4e38) * self.probs).sum(-1)


class Categorical(Choices):
    """This class is the position of a choice: 0, 1, ..., by weights or logits.

    >>> from picograd import Tensor
    >>> from picograd.distributions import Categorical
    >>> Categorical(Tensor([0.0, 2.0, 0.0])).sample().item()
    1
    """

    is_vector = False

    @property
    def _num_events(self) -> int:
        return self.logits.shape[-1]

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The positions."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        """Not a number."""
        return self.probs.sum(-1) * math.nan

    @property
    def mode(self) -> Tensor:
        """The most likely position."""
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        """Not a number."""
        return self.mean

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw positions."""
        return self.drawn(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """Pick the logits of positions."""
        self._validate_sample(value)
        shape = broadcast_tensors(value, self.logits[..., 0])[0].shape
        index = value.long().expand(*shape).unsqueeze(-1)
        return self.logits.expand(*shape, self._num_events).gather(-1, index).squeeze(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """List the positions along a new first axis."""
        values = Tensor.arange(self._num_events, device=self.logits.device)
        return listed(values, self.batch_shape, expand)


class OneHotCategorical(Choices):
    """This class is a choice as a vector: 1 at its position, 0 elsewhere."""

    support = constraints.one_hot

    @property
    def mean(self) -> Tensor:
        """The probabilities."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The most likely vector."""
        return self.as_vectors(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        """p (1 - p)."""
        return self.probs * (1.0 - self.probs)

    def as_vectors(self, positions: Tensor) -> Tensor:
        """Write positions as vectors."""
        return positions.one_hot(self.logits.shape[-1]).cast(self.logits.dtype)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw vectors."""
        return self.as_vectors(self.drawn(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Pick the logits of vectors."""
        self._validate_sample(value)
        return picked(value, self.logits)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """List the vectors along a new first axis."""
        count = self.logits.shape[-1]
        values = Tensor.eye(count, dtype=self.logits.dtype, device=self.logits.device)
        return listed(values, self.batch_shape, expand)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """This class draws vectors whose gradients are those of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw vectors; gradients reach the probabilities."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(Choices):
    """This class counts how often each of several choices came in `total_count` draws."""

    has_enumerate_support = False

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.total_count: int = int(total_count)
        check_least("Multinomial", "total_count", self.total_count)
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        """n p."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        """n p (1 - p)."""
        return self.total_count * self.probs * (1.0 - self.probs)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw counts."""
        drawn = self.drawn((self.total_count, *sample_shape))
        vectors = drawn.one_hot(self.logits.shape[-1])
        return vectors.sum(0).cast(self.logits.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the probability."""
        self._validate_sample(value)
        ways = (value.sum(-1) + 1.0).lgamma() - (value + 1.0).lgamma().sum(-1)
        return ways + picked(value, self.logits)

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats, by the chances of every count of every choice."""
        n, probs = self.total_count, self.probs
        counts = Tensor.arange(n + 1, dtype=probs.dtype, device=probs.device)
        counts = counts.reshape(-1, *[1] * probs.ndim)
        one = Binomial(n, probs=probs, validate_args=False)
        ways = one.log_prob(counts).exp() * (counts + 1.0).lgamma()
        drawn = super().entropy() * n - math.lgamma(n + 1.0)
        return drawn + ways.sum((0, -1))
