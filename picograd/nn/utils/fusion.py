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
    return fused(conv, bn, transpose)


def fuse_linear_bn_eval(linear: M, bn: Any) -> M:
    """Fold a batch norm into the linear layer before it; gives a new layer.

    >>> from picograd import nn
    >>> layer, norm = nn.Linear(2, 3).eval(), nn.BatchNorm1d(3).eval()
    >>> nn.utils.fusion.fuse_linear_bn_eval(layer, norm)
    Linear(in_features=2, out_features=3, bias=True)
    """
    return fused(linear, bn, False)


def fused(layer: M, norm: Any, transpose: bool) -> M:
    """Make the layer that a layer and its norm are in evaluation."""
    if layer.training or norm.training:
        raise StateError("fuse", "a module is in training mode", "call eval() first")
    result: Any = copy.deepcopy(layer)
    statistics = (norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias)
    found = fuse_conv_bn_weights(result.weight, result.bias, *statistics, transpose)
    result.weight, result.bias = found
    return result  # type: ignore[no-any-return]


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
    bn_w: Tensor | None, bn_b: Tensor | None, transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Scale the outputs of a layer, along an axis of its weight, and shift its bias.

    >>> from picograd import Tensor, nn
    >>> mean, var = Tensor([1.0]), Tensor([4.0])
    >>> fused = nn.utils.fuse_conv_bn_weights(Tensor([[6.0]]), None, mean, var, 0.0, None, None)
    >>> [value.tolist() for value in fused]
    [[[3.0]], [-0.5]]
    """
    scale = (bn_rv + bn_eps).rsqrt()
    if bn_w is not None:
        scale = scale * bn_w
    bias = (-bn_rm if conv_b is None else conv_b - bn_rm) * scale
    if bn_b is not None:
        bias = bias + bn_b
    scaled = conv_w * scale.reshape(lying_along(1 if transpose else 0, conv_w.ndim))
    return as_parameter(scaled, conv_w), as_parameter(bias, conv_w)


def as_parameter(value: Tensor, like: Tensor) -> Parameter:
    """Make a parameter of a value, in the dtype of another."""
    return Parameter(value.detach().cast(like.dtype))
