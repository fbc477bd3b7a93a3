"""Dropout: zeroes a random part of its input while training."""

from picograd.errors import ShapeError, ValueRangeError
from picograd.nn import functional
from picograd.nn.functional_activation import (
    SELU_ALPHA,
    SELU_SCALE,
)
from picograd.nn.module import Module
from picograd.tensor.tensor import Tensor

# The value that SELU tends to for large negative inputs: what AlphaDropout drops to.
SATURATED = -SELU_ALPHA * SELU_SCALE


class Dropout(Module):
    """This class zeroes each element with probability p and scales the others by 1/(1-p).

    Srivastava et al. (2014). Evaluation returns the input.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not isinstance(p, (int, float)) or not 0.0 <= p <= 1.0:
            problem = f"p={p!r} is not a probability"
            raise ValueRangeError(
                type(self).__name__,
                problem,
                "use 0 <= p <= 1",
            )
        self.p, self.inplace = p, inplace

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements in training mode; do nothing in evaluation mode."""
        return functional.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"p={self.p}"


class ChannelDropout(Dropout):
    """This class zeroes whole channels: (B, C, *S), or (C, *S) without a batch.

    Tompson et al. (2015).
    """

    axes = 1

    def forward(self, x: Tensor) -> Tensor:
        """Drop channels in training mode."""
        if not self.training or self.p == 0.0:
            return x
        return x * functional.dropout(
            Tensor.ones(*self._mask_shape(x), **_place(x)),
            self.p,
        )

    def _mask_shape(self, x: Tensor) -> tuple[int, ...]:
        rank = len(x.shape)
        if rank not in (self.axes + 1, self.axes + 2):
            problem = f"input of shape {tuple(x.shape)} has {rank} axes"
            fix = f"give {self.axes + 2}, or {self.axes + 1} without a batch"
            raise ShapeError(type(self).__name__, problem, fix)
        return (
            *x.shape[: rank - self.axes],
            *(1,) * self.axes,
        )


class Dropout1d(ChannelDropout):
    """This class zeroes whole channels of (B, C, L)."""


class Dropout2d(ChannelDropout):
    """This class zeroes whole channels of (B, C, H, W)."""

    axes = 2


class Dropout3d(ChannelDropout):
    """This class zeroes whole channels of (B, C, D, H, W)."""

    axes = 3


class AlphaDropout(Dropout):
    """This class drops to SELU's negative limit and keeps mean 0 and variance 1.

    Klambauer et al. (2017).
    """

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements in training mode."""
        return alpha_dropout(x, self.p, self.training, tuple(x.shape))


class FeatureAlphaDropout(Dropout):
    """This class is AlphaDropout of whole channels (axes 0 and 1 are drawn for)."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop channels in training mode."""
        shape = (
            *x.shape[:2],
            *(1,) * (len(x.shape) - 2),
        )
        return alpha_dropout(x, self.p, self.training, shape)


def alpha_dropout(
    x: Tensor,
    p: float,
    training: bool,
    shape: tuple[int, ...],
) -> Tensor:
    """Drop with a mask of a shape that broadcasts to the input's."""
    if not training or p == 0.0:
        return x
    if p == 1.0:
        return x * 0.0
    scale = ((1.0 - p) * (1.0 + p * SATURATED * SATURATED)) ** -0.5
    is_kept = Tensor.rand(*shape, device=x.device) >= p
    return is_kept.where(x, SATURATED) * scale - scale * SATURATED * p


def _place(x: Tensor) -> dict[str, object]:
    return dict(device=x.device, dtype=x.dtype)
