"""Pooling over windows of sequences, images and volumes, as modules.

Inputs are (B, C, *S), or (C, *S) without a batch. With `return_indices` max pooling also gives the
place of each maximum in the flattened spatial axes, which MaxUnpool takes.
"""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.errors import ValueRangeError
from picograd.nn import functional, init
from picograd.nn.family import Family
from picograd.nn.init import per_axis
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.tensor import Tensor

Sizes = int | tuple[int, ...]


class Pool(Family):
    """This class holds the sizes of windows."""

    _shown = "kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"

    pool: Callable[..., Any]

    def keep(self, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, ceil: bool) -> None:
        """Check and store the sizes; the stride is the kernel's size unless given."""
        init.check_sizes(type(self).__name__, 1, kernel_size=kernel_size)
        init.check_sizes(type(self).__name__, 0, padding=padding)
        self.kernel_size: Sizes = kernel_size
        self.padding: Sizes = padding
        self.ceil_mode: bool = ceil
        self.stride: Sizes = kernel_size if stride is None else stride


class MaxPool(Pool):
    """This class takes the maximum of each window; padded places never win."""

    _shown = Pool._shown + ", dilation={self.dilation}, ceil_mode={self.ceil_mode}"

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        init.check_sizes(type(self).__name__, 1, dilation=dilation)
        self.keep(kernel_size, stride, padding, ceil_mode)
        self.dilation = dilation
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """Pool; with `return_indices` (maxima, places)."""
        need_tensor(type(self).__name__, input)
        sizes = (self.kernel_size, self.stride, self.padding, self.dilation)
        return self.pool(input, *sizes, self.ceil_mode, self.return_indices)


class MaxPool1d(MaxPool, pool=functional.max_pool1d):
    """This class takes the maximum of each window of (B, C, L).

    >>> from picograd import Tensor, nn
    >>> nn.MaxPool1d(2)(Tensor([[[1.0, 2.0, 3.0, 4.0]]])).tolist()
    [[[2.0, 4.0]]]
    """


class MaxPool2d(MaxPool, pool=functional.max_pool2d):
    """This class takes the maximum of each window: (B, C, H, W) -> (B, C, H', W').

    >>> from picograd import Tensor, nn
    >>> nn.MaxPool2d(2)(Tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).tolist()
    [[[[4.0]]]]
    """


class MaxPool3d(MaxPool, pool=functional.max_pool3d):
    """This class takes the maximum of each window of (B, C, D, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.MaxPool3d((1, 2, 2))(Tensor([[[[[1.0, 2.0], [3.0, 4.0]]]]])).tolist()
    [[[[[4.0]]]]]
    """


class MaxUnpool(Pool):
    """This class puts maxima back to their places in zeros (Zeiler et al., 2011)."""

    axes: int = 1

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        name, axes = type(self).__name__, self.axes
        step = kernel_size if stride is None else stride
        self.kernel_size = per_axis(name, kernel_size, axes, "kernel_size")
        self.stride = per_axis(name, step, axes, "stride")
        self.padding = per_axis(name, padding, axes, "padding", 0)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """Unpool; `output_size` chooses among the sizes that pool to the input's."""
        need_tensor(type(self).__name__, input, indices)
        sizes = (self.kernel_size, self.stride, self.padding)
        return self.pool(input, indices, *sizes, output_size)


class MaxUnpool1d(MaxUnpool, pool=functional.max_unpool1d):
    """This class undoes MaxPool1d: (B, C, L) -> (B, C, L').

    >>> from picograd import Tensor, nn
    >>> values, places = nn.MaxPool1d(2, return_indices=True)(Tensor([[[1.0, 3.0, 2.0, 4.0]]]))
    >>> nn.MaxUnpool1d(2)(values, places).tolist()
    [[[0.0, 3.0, 0.0, 4.0]]]
    """


class MaxUnpool2d(MaxUnpool, axes=2, pool=functional.max_unpool2d):
    """This class undoes MaxPool2d: (B, C, H, W) -> (B, C, H', W').

    >>> from picograd import Tensor, nn
    >>> values, places = nn.MaxPool2d(2, return_indices=True)(Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]))
    >>> nn.MaxUnpool2d(2)(values, places).tolist()
    [[[[0.0, 0.0], [0.0, 4.0]]]]
    """


class MaxUnpool3d(MaxUnpool, axes=3, pool=functional.max_unpool3d):
    """This class undoes MaxPool3d: (B, C, D, H, W) -> (B, C, D', H', W').

    >>> from picograd import Tensor, nn
    >>> values, places = nn.MaxPool3d((1, 1, 2), return_indices=True)(Tensor([[[[[1.0, 2.0]]]]]))
    >>> nn.MaxUnpool3d((1, 1, 2))(values, places).tolist()
    [[[[[0.0, 2.0]]]]]
    """


class AvgPool1d(Pool):
    """This class averages each window of (B, C, L).

    >>> from picograd import Tensor, nn
    >>> nn.AvgPool1d(2)(Tensor([[[1.0, 2.0, 3.0, 4.0]]])).tolist()
    [[[1.5, 3.5]]]
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        name, step = "AvgPool1d", kernel_size if stride is None else stride
        kernel = per_axis(name, kernel_size, 1, "kernel_size")
        margin = per_axis(name, padding, 1, "padding", 0)
        self.keep(kernel, per_axis(name, step, 1, "stride"), margin, ceil_mode)
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        need_tensor("AvgPool1d", input)
        sizes = (self.kernel_size, self.stride, self.padding, self.ceil_mode)
        return functional.avg_pool1d(input, *sizes, self.count_include_pad)


class AvgPool2d(Pool):
    """This class averages each window; padded places count as zeros, as in PyTorch.

    `divisor_override` divides the sums by another number than the window's size.

    >>> from picograd import Tensor, nn
    >>> nn.AvgPool2d(2)(Tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).tolist()
    [[[[2.5]]]]
    """

    pool = staticmethod(functional.avg_pool2d)

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        if divisor_override == 0:
            name, fix = type(self).__name__, "use another number, or None"
            raise ValueRangeError(name, "divisor_override is 0", fix)
        self.keep(kernel_size, stride, padding, ceil_mode)
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        need_tensor(type(self).__name__, input)
        sizes = (self.kernel_size, self.stride, self.padding, self.ceil_mode)
        return self.pool(input, *sizes, self.count_include_pad, self.divisor_override)


class AvgPool3d(AvgPool2d, pool=functional.avg_pool3d):
    """This class averages each window of (B, C, D, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.AvgPool3d((1, 2, 2))(Tensor([[[[[1.0, 2.0], [3.0, 4.0]]]]])).tolist()
    [[[[[2.5]]]]]
    """


class LPPool(Family):
    """This class takes (sum of x ** p) ** (1 / p) of each window."""

    _shown = (
        "norm_type={self.norm_type}, kernel_size={self.kernel_size}, "
        "stride={self.stride}, ceil_mode={self.ceil_mode}"
    )

    pool: Callable[..., Any]

    def __init__(
        self,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> None:
        init.check_sizes(type(self).__name__, 1, kernel_size=kernel_size)
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        need_tensor(type(self).__name__, input)
        sizes = (self.norm_type, self.kernel_size, self.stride)
        return self.pool(input, *sizes, self.ceil_mode)


class LPPool1d(LPPool, pool=functional.lp_pool1d):
    """This class takes the p-norm of each window of (B, C, L).

    >>> from picograd import Tensor, nn
    >>> nn.LPPool1d(2, 2)(Tensor([[[3.0, 4.0]]])).tolist()
    [[[5.0]]]
    """


class LPPool2d(LPPool, pool=functional.lp_pool2d):
    """This class takes the p-norm of each window of (B, C, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.LPPool2d(2, (1, 2))(Tensor([[[[3.0, 4.0]]]])).tolist()
    [[[[5.0]]]]
    """


class LPPool3d(LPPool, pool=functional.lp_pool3d):
    """This class takes the p-norm of each window of (B, C, D, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.LPPool3d(2, (1, 1, 2))(Tensor([[[[[3.0, 4.0]]]]])).tolist()
    [[[[[5.0]]]]]
    """


class AdaptiveAvgPool(Family):
    """This class averages so that the spatial axes get given sizes; None keeps a size."""

    _shown = "output_size={self.output_size}"

    pool: Callable[..., Any]

    def __init__(self, output_size: int | Sequence[int | None]) -> None:
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        need_tensor(type(self).__name__, input)
        return self.pool(input, self.output_size)


class AdaptiveMaxPool(AdaptiveAvgPool):
    """This class takes maxima so that the spatial axes get given sizes; None keeps a size."""

    def __init__(
        self, output_size: int | Sequence[int | None], return_indices: bool = False
    ) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """Pool; with `return_indices` (maxima, places)."""
        need_tensor(type(self).__name__, input)
        return self.pool(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(AdaptiveAvgPool, pool=functional.adaptive_avg_pool1d):
    """This class averages so that the last axis gets the given size.

    >>> from picograd import Tensor, nn
    >>> nn.AdaptiveAvgPool1d(2)(Tensor([[[1.0, 2.0, 3.0, 4.0]]])).tolist()
    [[[1.5, 3.5]]]
    """


class AdaptiveMaxPool1d(AdaptiveMaxPool, pool=functional.adaptive_max_pool1d):
    """This class takes maxima so that the last axis gets the given size.

    >>> from picograd import Tensor, nn
    >>> nn.AdaptiveMaxPool1d(2)(Tensor([[[1.0, 2.0, 3.0, 4.0]]])).tolist()
    [[[2.0, 4.0]]]
    """


class AdaptiveAvgPool2d(AdaptiveAvgPool, pool=functional.adaptive_avg_pool2d):
    """This class averages so that the last two axes get the given sizes.

    >>> from picograd import Tensor, nn
    >>> nn.AdaptiveAvgPool2d(1)(Tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).tolist()
    [[[[2.5]]]]
    """


class AdaptiveMaxPool2d(AdaptiveMaxPool, pool=functional.adaptive_max_pool2d):
    """This class takes maxima so that the last two axes get the given sizes.

    >>> from picograd import Tensor, nn
    >>> nn.AdaptiveMaxPool2d(1)(Tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).tolist()
    [[[[4.0]]]]
    """


class AdaptiveAvgPool3d(AdaptiveAvgPool, pool=functional.adaptive_avg_pool3d):
    """This class averages so that the last three axes get the given sizes.

    >>> from picograd import Tensor, nn
    >>> nn.AdaptiveAvgPool3d(1)(Tensor([[[[[1.0, 2.0], [3.0, 4.0]]]]])).tolist()
    [[[[[2.5]]]]]
    """


class AdaptiveMaxPool3d(AdaptiveMaxPool, pool=functional.adaptive_max_pool3d):
    """This class takes maxima so that the last three axes get the given sizes.

    >>> from picograd import Tensor, nn
    >>> nn.AdaptiveMaxPool3d(1)(Tensor([[[[[1.0, 2.0], [3.0, 4.0]]]]])).tolist()
    [[[[[4.0]]]]]
    """
