"""Invertible functions with the logarithms of their derivatives, for TransformedDistribution.

Here are functions of numbers; `transform` has the base, `vector_transforms` those of vectors.
Source: Rezende and Mohamed, "Variational Inference with Normalizing Flows" (2015).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.distributions import constraints
from picograd.distributions.distribution import sum_last
from picograd.distributions.transform import (
    ComposeTransform,
    IndependentTransform,
    InverseTransform,
    ScalarTransform,
    Shape,
    Transform,
    _InverseTransform,
    identity_transform,
    widened,
)
from picograd.distributions.vector_transforms import (
    CatTransform,
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    ReshapeTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
    clipped_sigmoid,
)
from picograd.tensor.core.type_info import finfo
from picograd.tensor.tensor import Tensor

_clipped_sigmoid = clipped_sigmoid  # programs of PyTorch import it

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "InverseTransform",
    "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform",
    "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "TanhTransform", "Transform", "_InverseTransform",
    "identity_transform",
]  # fmt: skip


def broadcast_shape(shape: Sequence[int], *values: Any) -> Shape:
    """Give the shape of numbers of a shape that meet parameters."""
    return np.broadcast_shapes(tuple(shape), *(tuple(getattr(v, "shape", ())) for v in values))


def sign_of(value: Any) -> Any:
    """Give 1, 0 or -1 of a number; of a tensor, tensors of them."""
    return value.sign() if isinstance(value, Tensor) else (value > 0) - (value < 0)


def same_values(one: Any, other: Any) -> bool:
    """Tell whether two parameters are equal; computes tensors."""
    equal = one == other
    return bool(equal.all().item()) if isinstance(equal, Tensor) else bool(equal)


class ExpTransform(ScalarTransform):
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

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        """How many axes belong together."""
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """All numbers."""
        return widened(constraints.real, self._event_dim)

    codomain = domain

    @property
    def sign(self) -> Any:
        """That of the scale."""
        return sign_of(self.scale)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        return same_values(self.loc, other.loc) and same_values(self.scale, other.scale)

    __hash__ = Transform.__hash__

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

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of results."""
        return broadcast_shape(shape, self.loc, self.scale)

    inverse_shape = forward_shape


class SigmoidTransform(ScalarTransform):
    """This class computes 1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        info = finfo(y.dtype)
        inside = y.clamp(info.tiny, 1.0 - info.eps)
        return inside.log() - (-inside).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute -softplus(-x) - softplus(x)."""
        return -(-x).softplus() - x.softplus()


class TanhTransform(ScalarTransform):
    """This class computes tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute log(1 - tanh(x)^2) without cancellation."""
        return 2.0 * (math.log(2.0) - x - (-2.0 * x).softplus())


class SoftplusTransform(ScalarTransform):
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

    bijective = True
    domain = codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        """That of the exponent."""
        return sign_of(self.exponent)

    def __eq__(self, other: object) -> bool:
        is_power = isinstance(other, PowerTransform)
        return is_power and same_values(self.exponent, other.exponent)  # type: ignore[attr-defined]

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1.0 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute log |exponent y / x|."""
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of results."""
        return broadcast_shape(shape, self.exponent)

    inverse_shape = forward_shape


class AbsTransform(ScalarTransform):
    """This class computes |x|, which has no inverse."""

    bijective = False
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class CumulativeDistributionTransform(Transform):
    """This class computes the distribution function of a distribution."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        """The support of the distribution."""
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute the logarithm of the density."""
        return self.distribution.log_prob(x)  # type: ignore[no-any-return]
