"""Invertible functions with the logarithms of their derivatives, for TransformedDistribution.

Source: Rezende and Mohamed, "Variational Inference with Normalizing Flows" (2015).
"""

import math
from collections.abc import Sequence
from typing import Any

from picograd.distributions import constraints
from picograd.distributions.distribution import sum_last
from picograd.tensor.tensor import Tensor


class Transform:
    """This class is the base: a function, its inverse, and log |dy / dx|."""

    bijective = True
    domain: Any = constraints.real
    codomain: Any = constraints.real
    event_dim = 0  # axes that one application reads together
    sign = 1

    def __init__(self, cache_size: int = 0) -> None:
        self.cache_size = cache_size

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the function.

        >>> from picograd import Tensor
        >>> from picograd.distributions import ExpTransform
        >>> ExpTransform()(Tensor([0.0])).tolist()
        [1.0]
        """
        return self._call(x)

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute log |dy / dx|, summed over the axes that belong together."""
        raise NotImplementedError

    @property
    def inv(self) -> "Transform":
        """The inverse function."""
        return InverseTransform(self)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Give the shape of results."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Give the shape of arguments."""
        return tuple(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class InverseTransform(Transform):
    """This class is the inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self.transform, self.event_dim = transform, transform.event_dim
        self.domain, self.codomain = transform.codomain, transform.domain
        self.sign = transform.sign

    @property
    def inv(self) -> Transform:
        """The function itself."""
        return self.transform

    def _call(self, x: Tensor) -> Tensor:
        return self.transform._inverse(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.transform(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute that of the function, negated."""
        return -self.transform.log_abs_det_jacobian(y, x)


class ExpTransform(Transform):
    """This class computes exp(x)."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute x."""
        return x


class AffineTransform(Transform):
    """This class computes loc + scale x."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute log |scale|."""
        if isinstance(self.scale, Tensor):
            found = self.scale.abs().log().expand(*x.shape)
        else:
            found = Tensor.full_like(x, math.log(abs(self.scale)))
        return sum_last(found, self.event_dim)


class SigmoidTransform(Transform):
    """This class computes 1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return x.sigmoid().clamp(1.1754944e-38, 1.0 - 2.0**-24)

    def _inverse(self, y: Tensor) -> Tensor:
        inside = y.clamp(1.1754944e-38, 1.0 - 2.0**-24)
        return inside.log() - (-inside).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute -softplus(-x) - softplus(x)."""
        return -(-x).softplus() - x.softplus()


class TanhTransform(Transform):
    """This class computes tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute log(1 - tanh(x)^2) without cancellation."""
        return 2.0 * (math.log(2.0) - x - (-2.0 * x).softplus())


class SoftplusTransform(Transform):
    """This class computes log(1 + exp(x))."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.softplus()

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute -softplus(-x)."""
        return -(-x).softplus()


class PowerTransform(Transform):
    """This class computes x ** exponent of positive numbers."""

    domain = codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1.0 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute log |exponent y / x|."""
        return (self.exponent * y / x).abs().log()


class AbsTransform(Transform):
    """This class computes |x|, which has no inverse."""

    bijective = False
    codomain = constraints.nonnegative

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class SoftmaxTransform(Transform):
    """This class computes the softmax of vectors."""

    bijective = False
    domain, codomain = constraints.real_vector, constraints.simplex
    event_dim = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class ComposeTransform(Transform):
    """This class applies transforms, the first one first."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        self.event_dim = max([part.event_dim for part in parts], default=0)
        self.bijective = all(part.bijective for part in parts)
        if parts:
            self.domain, self.codomain = parts[0].domain, parts[-1].codomain
        self.sign = math.prod(part.sign for part in parts)

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inverse(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Add those of the parts."""
        total: Any = 0.0
        for part in self.parts:
            after = part(x)
            found = part.log_abs_det_jacobian(x, after)
            total = total + sum_last(found, self.event_dim - part.event_dim)
            x = after
        return total  # type: ignore[no-any-return]


class IndependentTransform(Transform):
    """This class lets a transform read several axes together."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform, self.axes = base_transform, reinterpreted_batch_ndims
        self.event_dim = base_transform.event_dim + reinterpreted_batch_ndims

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform._inverse(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Sum that of the transform."""
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self.axes)


identity_transform = ComposeTransform([])
