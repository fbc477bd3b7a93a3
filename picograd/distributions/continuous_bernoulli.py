"""The continuous Bernoulli distribution on [0, 1] (Loaiza-Ganem and Cunningham, 2019).

With the logit t its density is exp(t x) t / (exp(t) - 1). Near t = 0, where that is 0 / 0, sums of
powers of t take over, so that values and gradients keep their digits there.
"""

from typing import Any

from picograd.distributions import constraints
from picograd.distributions.discrete import Chances, clamped
from picograd.distributions.distribution import Sizes
from picograd.distributions.univariate import uniform
from picograd.tensor.tensor import Tensor

NEAR = 0.5  # |t| below which the sums are used: their next terms are under 1e-9 there
FLAT = 1e-3  # |t| below which the distribution function is bent by t x (x - 1) / 2 alone


def even_sum(t: Tensor, *terms: float) -> Tensor:
    """Sum terms times t^0, t^2, t^4, ..."""
    square = t.square()
    total: Any = terms[-1]
    for term in reversed(terms[:-1]):
        total = total * square + term
    return total  # type: ignore[no-any-return]


class ContinuousBernoulli(Chances):
    """This class is a number from 0 to 1 of density p^x (1 - p)^(1 - x), up to a factor.

    `lims` is taken as PyTorch takes it; the formulas here do not need it.

    >>> from picograd.distributions import ContinuousBernoulli
    >>> ContinuousBernoulli(0.5).mean.item()
    0.5
    """

    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._lims = lims
        super().__init__(probs, logits, validate_args)
        if probs is not None:
            self.probs = clamped(self.own())

    def chosen(self, near: Tensor, far: Any) -> Tensor:
        """Take one formula near t = 0 and another, of |t| kept off 0, elsewhere."""
        t: Tensor = self.logits
        is_near = t.abs() < NEAR
        return near.where(is_near, far(Tensor.where(is_near, NEAR, t.abs())))

    @property
    def log_norm(self) -> Tensor:
        """log(t / (exp(t) - 1))."""
        return self.log_of(self.logits)

    def log_of(self, t: Tensor) -> Tensor:
        """Compute log(t / (exp(t) - 1)) = -t / 2 - log(sinh(t / 2) / (t / 2))."""
        is_near = t.abs() < NEAR
        size = Tensor.where(is_near, NEAR, t.abs())
        rise = -(-size).expm1()
        far = size.log() - rise.log() - size / 2.0
        near = even_sum(t, 0.0, -1 / 24, 1 / 2880, -1 / 181440, 1 / 9676800)
        return near.where(is_near, far) - t / 2.0

    @property
    def mean(self) -> Tensor:
        """1 / (1 - exp(-t)) - 1 / t."""
        t: Tensor = self.logits
        bend = even_sum(t, 1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)

        def far(size: Tensor) -> Tensor:
            rise = -(-size).expm1().reciprocal() - size.reciprocal()
            return (rise - 0.5) * t.sign()

        return 0.5 + self.chosen(t * bend, far)

    @property
    def variance(self) -> Tensor:
        """1 / t^2 - 1 / (4 sinh(t / 2)^2)."""
        near = even_sum(self.logits, 1 / 12, -1 / 240, 1 / 6048, -1 / 172800, 1 / 5322240)

        def far(size: Tensor) -> Tensor:
            fall = (-size).exp() / (-size).expm1().square()
            return size.square().reciprocal() - fall

        return self.chosen(near, far)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; no gradients."""
        return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameter."""
        return self.icdf(uniform(self.own(), self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute t x + log(t / (exp(t) - 1))."""
        self._validate_sample(value)
        return self.logits * value + self.log_norm

    def mirrored(self, value: Tensor, bend: float, formula: Any) -> Tensor:
        """Apply a formula of t < 0 to values, or to those from the other end where t > 0."""
        t: Tensor = self.logits
        is_flat, is_up = t.abs() < FLAT, t > 0
        fall = -Tensor.where(is_flat, FLAT, t.abs())
        turned = Tensor.where(is_up, 1.0 - value, value)
        found = formula(turned, fall)
        found = Tensor.where(is_up, 1.0 - found, found)
        away = value * (1.0 - value)
        bent = value + bend * t * away
        return bent.where(is_flat, found)

    def cdf(self, value: Tensor) -> Tensor:
        """Compute (exp(t x) - 1) / (exp(t) - 1)."""
        self._validate_sample(value)
        return self.mirrored(value, -0.5, lambda x, t: (t * x).expm1() / t.expm1()).clamp(0.0, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        """Compute log(1 + p (exp(t) - 1)) / t."""
        return self.mirrored(value, 0.5, lambda p, t: (p * t.expm1()).log1p() / t)

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats."""
        return -self.logits * self.mean - self.log_norm

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return -self.log_of(natural_params[0])
