"""Pooling, its partial inverse, and patches, by PyTorch's names: methods of Tensor as functions.

Inputs are (B, C, *S), or (C, *S) without a batch; a number stands for every spatial axis. The
functions raise ShapeError for windows that do not fit and ValueRangeError for sizes below 1.
"""

from typing import Any

from picograd.nn.parameter import check_tensor
from picograd.tensor import pooling
from picograd.tensor.tensor import Tensor, apply


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Take the maximum of each window; with `return_indices` also its place in the input."""
    check_tensor("max_pool1d", input)
    sizes = (kernel_size, stride, padding, dilation)
    return input.max_pool1d(*sizes, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Take the maximum of each window; with `return_indices` also its place in the input."""
    check_tensor("max_pool2d", input)
    sizes = (kernel_size, stride, padding, dilation)
    return input.max_pool2d(*sizes, ceil_mode, return_indices)


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Take the maximum of each window; with `return_indices` also its place in the input."""
    check_tensor("max_pool3d", input)
    sizes = (kernel_size, stride, padding, dilation)
    return input.max_pool3d(*sizes, ceil_mode, return_indices)


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Average each window; padded places count as zeros unless `count_include_pad` is False."""
    check_tensor("avg_pool1d", input)
    sizes = (kernel_size, stride, padding, ceil_mode)
    return input.avg_pool1d(*sizes, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Average each window; padded places count as zeros unless `count_include_pad` is False."""
    check_tensor("avg_pool2d", input)
    sizes = (kernel_size, stride, padding, ceil_mode)
    return input.avg_pool2d(*sizes, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Average each window; padded places count as zeros unless `count_include_pad` is False."""
    check_tensor("avg_pool3d", input)
    sizes = (kernel_size, stride, padding, ceil_mode)
    return input.avg_pool3d(*sizes, count_include_pad, divisor_override)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Compute sum(x ** p) ** (1 / p) over each window."""
    check_tensor("lp_pool1d", input)
    options = dict(kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode)
    return apply(pooling.norm_pool, 1, input, norm_type, options)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Compute sum(x ** p) ** (1 / p) over each window."""
    check_tensor("lp_pool2d", input)
    options = dict(kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode)
    return apply(pooling.norm_pool, 2, input, norm_type, options)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Compute sum(x ** p) ** (1 / p) over each window.

    >>> from picograd import Tensor, nn
    >>> nn.functional.lp_pool3d(Tensor([[[[[3.0, 4.0]]]]]), 2, (1, 1, 2)).tolist()
    [[[[[5.0]]]]]
    """
    check_tensor("lp_pool3d", input)
    options = dict(kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode)
    return apply(pooling.norm_pool, 3, input, norm_type, options)


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Take maxima so that the spatial axes get the given sizes; None keeps a size."""
    check_tensor("adaptive_max_pool1d", input)
    return input.adaptive_max_pool1d(output_size, return_indices)


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Average so that the spatial axes get the given sizes; None keeps a size."""
    check_tensor("adaptive_avg_pool1d", input)
    return input.adaptive_avg_pool1d(output_size)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Put maxima back to their places in zeros: the partial inverse of max_pool1d."""
    check_tensor("max_unpool1d", input, indices)
    return input.max_unpool1d(indices, kernel_size, stride, padding, output_size)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Take maxima so that the spatial axes get the given sizes; None keeps a size."""
    check_tensor("adaptive_max_pool2d", input)
    return input.adaptive_max_pool2d(output_size, return_indices)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Average so that the spatial axes get the given sizes; None keeps a size."""
    check_tensor("adaptive_avg_pool2d", input)
    return input.adaptive_avg_pool2d(output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Put maxima back to their places in zeros: the partial inverse of max_pool2d."""
    check_tensor("max_unpool2d", input, indices)
    return input.max_unpool2d(indices, kernel_size, stride, padding, output_size)


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Take maxima so that the spatial axes get the given sizes; None keeps a size."""
    check_tensor("adaptive_max_pool3d", input)
    return input.adaptive_max_pool3d(output_size, return_indices)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Average so that the spatial axes get the given sizes; None keeps a size."""
    check_tensor("adaptive_avg_pool3d", input)
    return input.adaptive_avg_pool3d(output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Put maxima back to their places in zeros: the partial inverse of max_pool3d."""
    check_tensor("max_unpool3d", input, indices)
    return input.max_unpool3d(indices, kernel_size, stride, padding, output_size)


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Lay windows out as columns: (B, C, H, W) -> (B, C * KH * KW, windows).

    >>> from picograd import Tensor
    >>> unfold(Tensor.arange(4).reshape(1, 1, 2, 2), (1, 2)).tolist()
    [[[0, 2], [1, 3]]]
    """
    check_tensor("unfold", input)
    return input.im2col(kernel_size, dilation, padding, stride)


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Add columns up to an image: (B, C * KH * KW, windows) -> (B, C, H, W), unlike `unfold`.

    >>> from picograd import Tensor, nn
    >>> nn.functional.fold(Tensor([[[1.0, 2.0], [2.0, 3.0]]]), (1, 3), (1, 2)).tolist()
    [[[[1.0, 4.0, 3.0]]]]
    """
    check_tensor("fold", input)
    return input.col2im(output_size, kernel_size, dilation, padding, stride)
