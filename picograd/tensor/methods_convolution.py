"""Methods of `Tensor` by kind. Convolutions, pooling and patches.

Inputs are (N, C, *S) or (C, *S). Sizes are one int, or one per spatial axis; padding may also be
"same", "valid", or (low, high) pairs for convolutions. 16-bit floats accumulate in float32.
ShapeError for channels that do not fit and kernels larger than the padded input, ValueRangeError
for arguments out of range. With `return_indices` a pool also gives the flat position of each
element over the spatial axes, in int64.
"""

from typing import Any

from picograd.tensor import convolution, pooling
from picograd.tensor.recording import Recorded, Same, apply, read, several


class ConvolutionMethods(Recorded):
    """This class holds the convolutions and pools of `Tensor`."""

    __slots__ = ()

    # convolutions

    def conv1d(
        self: Same,
        weight: Same,
        bias: Same | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
    ) -> Same:
        """Cross-correlate (N, C, L) with (O, C / groups, K)."""
        options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
        return apply(convolution.convolve, "conv1d", 1, self, weight, bias, options)

    def conv2d(
        self: Same,
        weight: Same,
        bias: Same | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
    ) -> Same:
        """Cross-correlate (N, C, H, W) with (O, C / groups, KH, KW)."""
        options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
        return apply(convolution.convolve, "conv2d", 2, self, weight, bias, options)

    def conv3d(
        self: Same,
        weight: Same,
        bias: Same | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
    ) -> Same:
        """Cross-correlate (N, C, D, H, W) with (O, C / groups, KD, KH, KW)."""
        options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
        return apply(convolution.convolve, "conv3d", 3, self, weight, bias, options)

    def conv_transpose1d(
        self: Same,
        weight: Same,
        bias: Same | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: Any = 1,
        dilation: Any = 1,
    ) -> Same:
        """Apply the adjoint of conv1d: (N, C, L) with (C, O / groups, K)."""
        name, options = "conv_transpose1d", dict(stride=stride, padding=padding)
        options |= dict(output_padding=output_padding, groups=groups, dilation=dilation)
        return apply(convolution.convolve_transposed, name, 1, self, weight, bias, options)

    def conv_transpose2d(
        self: Same,
        weight: Same,
        bias: Same | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: Any = 1,
        dilation: Any = 1,
    ) -> Same:
        """Apply the adjoint of conv2d: (N, C, H, W) with (C, O / groups, KH, KW)."""
        name, options = "conv_transpose2d", dict(stride=stride, padding=padding)
        options |= dict(output_padding=output_padding, groups=groups, dilation=dilation)
        return apply(convolution.convolve_transposed, name, 2, self, weight, bias, options)

    def conv_transpose3d(
        self: Same,
        weight: Same,
        bias: Same | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: Any = 1,
        dilation: Any = 1,
    ) -> Same:
        """Apply the adjoint of conv3d: (N, C, D, H, W) with (C, O / groups, KD, KH, KW)."""
        name, options = "conv_transpose3d", dict(stride=stride, padding=padding)
        options |= dict(output_padding=output_padding, groups=groups, dilation=dilation)
        return apply(convolution.convolve_transposed, name, 3, self, weight, bias, options)

    # pooling

    def max_pool1d(
        self: Same,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: Any = False,
        return_indices: Any = False,
    ) -> Any:
        """Take the largest element of each window; the first one gets the gradient."""
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options |= dict(dilation=dilation, ceil_mode=ceil_mode)
        return max_pool(1, self, options, return_indices)

    def max_pool2d(
        self: Same,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: Any = False,
        return_indices: Any = False,
    ) -> Any:
        """Take the largest element of each window; the first one gets the gradient."""
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options |= dict(dilation=dilation, ceil_mode=ceil_mode)
        return max_pool(2, self, options, return_indices)

    def max_pool3d(
        self: Same,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: Any = False,
        return_indices: Any = False,
    ) -> Any:
        """Take the largest element of each window; the first one gets the gradient."""
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options |= dict(dilation=dilation, ceil_mode=ceil_mode)
        return max_pool(3, self, options, return_indices)

    def avg_pool1d(
        self: Same,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: Any = False,
        count_include_pad: Any = True,
        divisor_override: Any = None,
    ) -> Same:
        """Average each window; `divisor_override` replaces the number of elements."""
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options |= dict(ceil_mode=ceil_mode, count_include_pad=count_include_pad)
        options["divisor"] = divisor_override
        return apply(convolution.average_pool, 1, self, options)

    def avg_pool2d(
        self: Same,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: Any = False,
        count_include_pad: Any = True,
        divisor_override: Any = None,
    ) -> Same:
        """Average each window; `divisor_override` replaces the number of elements."""
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options |= dict(ceil_mode=ceil_mode, count_include_pad=count_include_pad)
        options["divisor"] = divisor_override
        return apply(convolution.average_pool, 2, self, options)

    def avg_pool3d(
        self: Same,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: Any = False,
        count_include_pad: Any = True,
        divisor_override: Any = None,
    ) -> Same:
        """Average each window; `divisor_override` replaces the number of elements."""
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options |= dict(ceil_mode=ceil_mode, count_include_pad=count_include_pad)
        options["divisor"] = divisor_override
        return apply(convolution.average_pool, 3, self, options)

    def adaptive_avg_pool1d(
        self: Same,
        output_size: Any,
    ) -> Same:
        """Average so that the spatial axes get the given sizes; None keeps a size."""
        return apply(convolution.adaptive_average_pool, 1, self, output_size)

    def adaptive_max_pool1d(
        self: Same,
        output_size: Any,
        return_indices: Any = False,
    ) -> Any:
        """Take the largest elements so that the spatial axes get the given sizes."""
        pair = several(self, pooling.adaptive_max_pool(1, read(self), output_size))
        return pair if return_indices else pair[0]

    def max_unpool1d(
        self: Same,
        indices: Same,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Same:
        """Put each element at its position in zeros: the partial inverse of max_pool1d."""
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options["output_size"] = output_size
        return apply(pooling.max_unpool, 1, self, indices, options)

    def adaptive_avg_pool2d(
        self: Same,
        output_size: Any,
    ) -> Same:
        """Average so that the spatial axes get the given sizes; None keeps a size."""
        return apply(convolution.adaptive_average_pool, 2, self, output_size)

    def adaptive_max_pool2d(
        self: Same,
        output_size: Any,
        return_indices: Any = False,
    ) -> Any:
        """Take the largest elements so that the spatial axes get the given sizes."""
        pair = several(self, pooling.adaptive_max_pool(2, read(self), output_size))
        return pair if return_indices else pair[0]

    def max_unpool2d(
        self: Same,
        indices: Same,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Same:
        """Put each element at its position in zeros: the partial inverse of max_pool2d."""
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options["output_size"] = output_size
        return apply(pooling.max_unpool, 2, self, indices, options)

    def adaptive_avg_pool3d(
        self: Same,
        output_size: Any,
    ) -> Same:
        """Average so that the spatial axes get the given sizes; None keeps a size."""
        return apply(convolution.adaptive_average_pool, 3, self, output_size)

    def adaptive_max_pool3d(
        self: Same,
        output_size: Any,
        return_indices: Any = False,
    ) -> Any:
        """Take the largest elements so that the spatial axes get the given sizes."""
        pair = several(self, pooling.adaptive_max_pool(3, read(self), output_size))
        return pair if return_indices else pair[0]

    def max_unpool3d(
        self: Same,
        indices: Same,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Same:
        """Put each element at its position in zeros: the partial inverse of max_pool3d."""
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options["output_size"] = output_size
        return apply(pooling.max_unpool, 3, self, indices, options)

    def lp_pool1d(
        self: Same,
        norm_type: float,
        kernel_size: Any,
        stride: Any = None,
        ceil_mode: Any = False,
    ) -> Same:
        """Compute sum(x^p)^(1/p) over each window."""
        options = dict(kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode)
        return apply(pooling.norm_pool, 1, self, norm_type, options)

    def lp_pool2d(
        self: Same,
        norm_type: float,
        kernel_size: Any,
        stride: Any = None,
        ceil_mode: Any = False,
    ) -> Same:
        """Compute sum(x^p)^(1/p) over each window."""
        options = dict(kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode)
        return apply(pooling.norm_pool, 2, self, norm_type, options)

    # patches

    def im2col(
        self: Same,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> Same:
        """Lay windows out as columns: torch.nn.functional.unfold, (N, C * KH * KW, places)."""
        options = dict(kernel_size=kernel_size, dilation=dilation)
        options |= dict(padding=padding, stride=stride)
        return apply(pooling.patches, self, options)

    def col2im(
        self: Same,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> Same:
        """Add columns back to images: torch.nn.functional.fold, the adjoint of im2col."""
        options = dict(kernel_size=kernel_size, dilation=dilation)
        options |= dict(padding=padding, stride=stride)
        return apply(pooling.overlay, self, output_size, options)


def max_pool(rank: int, x: Any, options: dict[str, Any], has_indices: Any) -> Any:
    """Pool, with the positions if they are wanted."""
    if has_indices:
        return several(x, pooling.max_pool_indices(rank, read(x), options))
    return apply(convolution.max_pool, rank, x, options)
