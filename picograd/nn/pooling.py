"""Pooling over windows of sequences, images and volumes.

Inputs are (B, C, *S), or (C, *S) without a batch. `return_indices` is refused.
"""

from typing import Any

from picograd.errors import ShapeError, ValueRangeError
from picograd.helpers import product
from picograd.nn import init
from picograd.nn.module import Module
from picograd.nn.parameter import check_tensor
from picograd.tensor import convolution
from picograd.tensor.tensor import Tensor, apply

Sizes = int | tuple[int, ...]


def max_pool(axes: int, x: Tensor, options: dict[str, Any]) -> Tensor:
    """Take the maximum of windows over the last axes; the first of equals gets the gradient."""
    return apply(convolution.max_pool, axes, x, options)


def average_pool(axes: int, x: Tensor, options: dict[str, Any]) -> Tensor:
    """Average windows over the last axes."""
    return apply(convolution.average_pool, axes, x, options)


def adaptive_average_pool(axes: int, x: Tensor, output_size: Any) -> Tensor:
    """Average so that the last axes get the given sizes."""
    return apply(convolution.adaptive_average_pool, axes, x, output_size)


def adaptive_max_pool(axes: int, x: Tensor, output_size: Any) -> Tensor:
    """Take maxima so that the last axes get the given sizes; None keeps a size."""
    single = isinstance(output_size, int) or output_size is None
    sizes = (output_size,) * axes if single else tuple(output_size)
    first = len(x.shape) - axes
    for axis, size in enumerate(sizes, start=first):
        if size is not None and size != x.shape[axis]:
            x = _largest(x, axis, size)
    return x


def _largest(x: Tensor, axis: int, size: int) -> Tensor:
    full = x.shape[axis]
    if size < 1 or not full:
        problem = f"cannot pool {full} elements to {size}"
        raise ShapeError("adaptive_max_pool", problem, "use sizes of 1 or more")
    edges = [(n * full // size, -(-(n + 1) * full // size)) for n in range(size)]
    cells = [x.narrow(axis, low, high - low).amax(axis, True) for low, high in edges]
    return Tensor.cat(cells, axis)


class Pool(Module):
    """This class holds the sizes of windows."""

    axes = 1
    kernel_size: Sizes
    stride: Sizes
    padding: Sizes
    ceil_mode: bool

    def keep(self, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, ceil: bool) -> None:
        """Check and store the sizes; the stride is the kernel's size unless given."""
        init.check_sizes(type(self).__name__, 1, kernel_size=kernel_size)
        init.check_sizes(type(self).__name__, 0, padding=padding)
        self.kernel_size, self.padding, self.ceil_mode = kernel_size, padding, ceil
        self.stride = kernel_size if stride is None else stride

    def options(self, **more: Any) -> dict[str, Any]:
        """Collect the arguments of the pooling functions."""
        sizes = dict(kernel_size=self.kernel_size, stride=self.stride, padding=self.padding)
        return sizes | dict(ceil_mode=self.ceil_mode) | more

    def extra_repr(self) -> str:
        """Describe the settings."""
        sizes = f"kernel_size={self.kernel_size}, stride={self.stride}"
        return f"{sizes}, padding={self.padding}"


class MaxPool(Pool):
    """This class takes the maximum of each window."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        name = type(self).__name__
        if return_indices:
            raise ValueRangeError(name, "return_indices is not supported", "leave it out")
        init.check_sizes(name, 1, dilation=dilation)
        self.keep(kernel_size, stride, padding, ceil_mode)
        self.dilation, self.return_indices = dilation, return_indices

    def forward(self, x: Tensor) -> Tensor:
        """Pool; padded places never win."""
        check_tensor(type(self).__name__, x)
        return max_pool(self.axes, x, self.options(dilation=self.dilation))

    def extra_repr(self) -> str:
        """Describe the settings."""
        more = f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        return f"{super().extra_repr()}, {more}"


class MaxPool1d(MaxPool):
    """This class takes the maximum of each window of (B, C, L)."""


class MaxPool2d(MaxPool):
    """This class takes the maximum of each window: (B, C, H, W) -> (B, C, H', W')."""

    axes = 2


class MaxPool3d(MaxPool):
    """This class takes the maximum of each window of (B, C, D, H, W)."""

    axes = 3


class AvgPool1d(Pool):
    """This class averages each window of (B, C, L)."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        self.keep(kernel_size, stride, padding, ceil_mode)
        self.count_include_pad = count_include_pad

    def forward(self, x: Tensor) -> Tensor:
        """Pool."""
        check_tensor(type(self).__name__, x)
        options = self.options(count_include_pad=self.count_include_pad)
        return average_pool(1, x, options)


class AvgPool2d(Pool):
    """This class averages each window; padded places count as zeros, as in PyTorch.

    `divisor_override` divides the sums by another number than the window's size.
    """

    axes = 2

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

    def forward(self, x: Tensor) -> Tensor:
        """Pool."""
        check_tensor(type(self).__name__, x)
        divisor = self.divisor_override
        if divisor is None:
            options = self.options(count_include_pad=self.count_include_pad)
            return average_pool(self.axes, x, options)
        name = f"avg_pool{self.axes}d"
        return apply(convolution.window_sums, name, self.axes, x, self.options()) / divisor


class AvgPool3d(AvgPool2d):
    """This class averages each window of (B, C, D, H, W)."""

    axes = 3


class LPPool(Pool):
    """This class takes (sum of x ** p) ** (1 / p) of each window."""

    def __init__(
        self,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> None:
        self.keep(kernel_size, stride, 0, ceil_mode)
        self.norm_type = norm_type

    def forward(self, x: Tensor) -> Tensor:
        """Pool."""
        mean = average_pool(self.axes, x**self.norm_type, self.options(count_include_pad=True))
        size = self.kernel_size
        count = size**self.axes if isinstance(size, int) else product(size)
        return (mean.sign() * mean.abs().relu() * count) ** (1.0 / self.norm_type)


class LPPool1d(LPPool):
    """This class takes the p-norm of each window of (B, C, L)."""


class LPPool2d(LPPool):
    """This class takes the p-norm of each window of (B, C, H, W)."""

    axes = 2


class AdaptivePool(Module):
    """This class pools so that the spatial axes get given sizes; None keeps a size."""

    axes = 1

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(AdaptivePool):
    """This class averages so that the last axis gets the given size."""

    axes = 1

    def forward(self, x: Tensor) -> Tensor:
        """Pool."""
        return adaptive_average_pool(1, x, self.output_size)


class AdaptiveMaxPool1d(AdaptivePool):
    """This class takes maxima so that the last axis gets the given size."""

    axes = 1

    def forward(self, x: Tensor) -> Tensor:
        """Pool."""
        return adaptive_max_pool(1, x, self.output_size)


class AdaptiveAvgPool2d(AdaptivePool):
    """This class averages so that the last two axes get the given sizes."""

    axes = 2

    def forward(self, x: Tensor) -> Tensor:
        """Pool."""
        return adaptive_average_pool(2, x, self.output_size)


class AdaptiveMaxPool2d(AdaptivePool):
    """This class takes maxima so that the last two axes get the given sizes."""

    axes = 2

    def forward(self, x: Tensor) -> Tensor:
        """Pool."""
        return adaptive_max_pool(2, x, self.output_size)


class AdaptiveAvgPool3d(AdaptivePool):
    """This class averages so that the last three axes get the given sizes."""

    axes = 3

    def forward(self, x: Tensor) -> Tensor:
        """Pool."""
        return adaptive_average_pool(3, x, self.output_size)


class AdaptiveMaxPool3d(AdaptivePool):
    """This class takes maxima so that the last three axes get the given sizes."""

    axes = 3

    def forward(self, x: Tensor) -> Tensor:
        """Pool."""
        return adaptive_max_pool(3, x, self.output_size)
