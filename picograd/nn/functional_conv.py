"""Convolutions and their adjoints by PyTorch's names: methods of Tensor as functions."""

from typing import Any

from picograd.nn.parameter import check_tensor
from picograd.tensor.tensor import Tensor


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Slide kernels (O, C / groups, *K) over (B, C, L); also "same" or "valid" padding."""
    check_tensor("conv1d", input)
    return input.conv1d(weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Compute the adjoint of conv1d: (B, C, L) with weight (C, O / groups, *K)."""
    check_tensor("conv_transpose1d", input)
    sizes = dict(stride=stride, padding=padding, output_padding=output_padding)
    return input.conv_transpose1d(weight, bias, groups=groups, dilation=dilation, **sizes)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Slide kernels (O, C / groups, *K) over (B, C, H, W); also "same" or "valid" padding."""
    check_tensor("conv2d", input)
    return input.conv2d(weight, bias, stride, padding, dilation, groups)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Compute the adjoint of conv2d: (B, C, H, W) with weight (C, O / groups, *K)."""
    check_tensor("conv_transpose2d", input)
    sizes = dict(stride=stride, padding=padding, output_padding=output_padding)
    return input.conv_transpose2d(weight, bias, groups=groups, dilation=dilation, **sizes)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Slide kernels (O, C / groups, *K) over (B, C, D, H, W); also "same" or "valid" padding."""
    check_tensor("conv3d", input)
    return input.conv3d(weight, bias, stride, padding, dilation, groups)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Compute the adjoint of conv3d: (B, C, D, H, W) with weight (C, O / groups, *K)."""
    check_tensor("conv_transpose3d", input)
    sizes = dict(stride=stride, padding=padding, output_padding=output_padding)
    return input.conv_transpose3d(weight, bias, groups=groups, dilation=dilation, **sizes)
