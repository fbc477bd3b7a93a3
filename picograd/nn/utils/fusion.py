"""Batch norms folded into the convolution or product before them, for evaluation."""

import copy
from typing import Any, TypeVar

from picograd.errors import StateError
from picograd.helpers import lying_along
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.tensor import Tensor

M = TypeVar("M", bound=Module)


def fuse_conv_bn_eval(conv: M, bn: Any, transpose: bool = False) -> M:
    """Fold a batch norm into the convolution before it; gives a new convolution.

    Raises StateError in training mode.

    >>> import picograd
    >>> from picograd import nn
    >>> conv, norm = nn.Conv1d(2, 3, 1).eval(), nn.BatchNorm1d(3).eval()
    >>> x = picograd.rand(1, 2, 4)
    >>> fused = nn.utils.fusion.fuse_conv_bn_eval(conv, norm)
    >>> bool(fused(x).allclose(norm(conv(x)), atol=1e-5))
    True
    """
    return fused(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: M, bn: Any) -> M:
    """Fold a batch norm into the linear layer before it; gives a new layer.

    >>> from picograd import nn
    >>> layer, norm = nn.Linear(2, 3).eval(), nn.BatchNorm1d(3).eval()
    >>> nn.utils.fusion.fuse_linear_bn_eval(layer, norm)
    Linear(in_features=2, out_features=3, bias=True)
    """
    return fused(linear, bn, 0)


def fused(layer: M, norm: Any, axis: int) -> M:
    """Scale the outputs of a layer, along an axis of its weight, and shift its bias."""
    if layer.training or norm.training:
        raise StateError("fuse", "a module is in training mode", "call eval() first")
    result: Any = copy.deepcopy(layer)
    scale = (norm.running_var + norm.eps).rsqrt()
    if norm.weight is not None:
        scale = scale * norm.weight
    shift = -norm.running_mean
    if result.bias is not None:
        shift = shift + result.bias
    bias = shift * scale
    if norm.bias is not None:
        bias = bias + norm.bias
    weight: Tensor = result.weight
    scaled = weight * scale.reshape(lying_along(axis, weight.ndim))
    result.weight = as_parameter(scaled, weight)
    result.bias = as_parameter(bias, weight)
    return result  # type: ignore[no-any-return]


def as_parameter(value: Tensor, like: Tensor) -> Parameter:
    """Make a parameter of a value, in the dtype of another."""
    return Parameter(value.detach().cast(like.dtype))
