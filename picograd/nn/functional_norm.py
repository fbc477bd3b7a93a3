"""Normalisation over groups of channels, instances and features."""

import numpy as np

from picograd.dtype import accumulate_dtype
from picograd.errors import ShapeError
from picograd.graph import build_composite as composite
from picograd.tensor.tensor import Tensor, apply


def group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each sample over groups of channels: (B, C, *S) -> the same (Wu and He, 2018).

    16-bit floats are averaged in float32. Raises ShapeError when groups do not divide C.
    """
    batch, channels = x.shape[:2]
    if channels % num_groups:
        problem = f"{channels} channels of {tuple(x.shape)} do not divide into {num_groups} groups"
        raise ShapeError("group_norm", problem, "choose a divisor")
    rows = x.reshape(
        batch,
        num_groups,
        x.numel() // max(1, batch * num_groups),
    )
    y = apply(composite.layer_norm, rows, 1, None, None, eps).reshape(x.shape)
    return scale_channels(y, weight, bias)


def instance_norm(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each sample over space: (B, C, *S) (Ulyanov et al., 2016)."""
    return group_norm(x, x.shape[1], weight, bias, eps)


def scale_channels(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
) -> Tensor:
    """Multiply and shift each channel (axis 1)."""
    shape = (1, x.shape[1]) + (1,) * (len(x.shape) - 2)
    y = x if weight is None else x * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def rms_norm(
    x: Tensor,
    normalized_shape: tuple[int, ...],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide by the root mean square over the last axes (Zhang and Sennrich, 2019).

    `eps` None: the machine epsilon of the dtype the mean is computed in. 16-bit floats are squared
    and averaged in float32.
    """
    rank = len(normalized_shape)
    if tuple(x.shape[len(x.shape) - rank :]) != tuple(normalized_shape):
        problem = f"input of shape {tuple(x.shape)} does not end in {tuple(normalized_shape)}"
        raise ShapeError(
            "rms_norm",
            problem,
            "pass the sizes of the last axes",
        )
    wide = x.cast(accumulate_dtype(x.dtype))
    axes = tuple(range(len(x.shape) - rank, len(x.shape)))
    least = float(np.finfo(wide.dtype.numpy).eps) if eps is None else eps
    y = (wide * ((wide * wide).mean(axes, True) + least).rsqrt()).cast(x.dtype)
    return y if weight is None else y * weight
