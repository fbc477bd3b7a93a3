"""Convolutions of tensors and their adjoints, by PyTorch's names; `convolution.py` has the nodes.

Inputs are (N, C, *S) or (C, *S). Sizes are one int, or one per spatial axis; padding may also be
"same", "valid", or (low, high) pairs. 16-bit floats accumulate in float32. ShapeError for channels
that do not fit and kernels larger than the padded input, ValueRangeError for wrong sizes.
"""

from typing import Any

from picograd.tensor.core.annotations import Sizes
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.function import composed, within
from picograd.tensor.core.recording import Same, apply
from picograd.tensor.network import convolution


@composed()
@within("functional")
def conv1d(
    input: Same,
    weight: Same,
    bias: Same | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Same:
    """Cross-correlate (N, C, L) with (O, C / groups, K).

    >>> Tensor([[[1.0, 2.0, 3.0]]]).conv1d(Tensor([[[1.0, 1.0]]])).tolist()
    [[[3.0, 5.0]]]
    """
    need_tensor("conv1d", input)
    options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    return apply(convolution.convolve, "conv1d", 1, input, weight, bias, options)


@composed()
@within("functional")
def conv2d(
    input: Same,
    weight: Same,
    bias: Same | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Same:
    """Cross-correlate (N, C, H, W) with (O, C / groups, KH, KW).

    >>> Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).conv2d(Tensor([[[[1.0, 1.0]]]])).tolist()
    [[[[3.0], [7.0]]]]
    """
    need_tensor("conv2d", input)
    options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    return apply(convolution.convolve, "conv2d", 2, input, weight, bias, options)


@composed()
@within("functional")
def conv3d(
    input: Same,
    weight: Same,
    bias: Same | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Same:
    """Cross-correlate (N, C, D, H, W) with (O, C / groups, KD, KH, KW).

    >>> Tensor([[[[[1.0, 2.0], [3.0, 4.0]]]]]).conv3d(Tensor([[[[[1.0, 1.0]]]]])).tolist()
    [[[[[3.0], [7.0]]]]]
    """
    need_tensor("conv3d", input)
    options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    return apply(convolution.convolve, "conv3d", 3, input, weight, bias, options)


@composed()
@within("functional")
def conv_transpose1d(
    input: Same,
    weight: Same,
    bias: Same | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Same:
    """Apply the adjoint of conv1d: (N, C, L) with (C, O / groups, K).

    >>> Tensor([[[1.0, 2.0]]]).conv_transpose1d(Tensor([[[1.0, 1.0]]])).tolist()
    [[[1.0, 3.0, 2.0]]]
    """
    settings = stride, padding, output_padding, groups, dilation
    return transposed(1, input, weight, bias, *settings)


@composed()
@within("functional")
def conv_transpose2d(
    input: Same,
    weight: Same,
    bias: Same | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Same:
    """Apply the adjoint of conv2d: (N, C, H, W) with (C, O / groups, KH, KW).

    >>> Tensor([[[[1.0, 2.0]]]]).conv_transpose2d(Tensor([[[[1.0, 1.0]]]])).tolist()
    [[[[1.0, 3.0, 2.0]]]]
    """
    settings = stride, padding, output_padding, groups, dilation
    return transposed(2, input, weight, bias, *settings)


@composed()
@within("functional")
def conv_transpose3d(
    input: Same,
    weight: Same,
    bias: Same | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Same:
    """Apply the adjoint of conv3d: (N, C, D, H, W) with (C, O / groups, KD, KH, KW).

    >>> Tensor([[[[[1.0, 2.0]]]]]).conv_transpose3d(Tensor([[[[[1.0, 1.0]]]]])).tolist()
    [[[[[1.0, 3.0, 2.0]]]]]
    """
    settings = stride, padding, output_padding, groups, dilation
    return transposed(3, input, weight, bias, *settings)


def transposed(rank: int, x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """Apply the adjoint of a convolution over `rank` axes."""
    name, names = f"conv_transpose{rank}d", ("stride", "padding", "output_padding")
    need_tensor(name, x)
    options = dict(zip((*names, "groups", "dilation"), settings, strict=True))
    return apply(convolution.convolve_transposed, name, rank, x, weight, bias, options)
