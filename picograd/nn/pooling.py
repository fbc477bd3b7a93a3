"""Pooling over windows of an image."""

from picograd.nn.module import Module
from picograd.tensor.tensor import Tensor

Sizes = int | tuple[int, int]


class MaxPool2d(Module):
    """This class takes the maximum of each window: (B, C, H, W) -> (B, C, H', W')."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
    ) -> None:
        self.kernel_size, self.padding, self.dilation = kernel_size, padding, dilation
        self.stride = kernel_size if stride is None else stride

    def forward(self, x: Tensor) -> Tensor:
        """Pool; padded places never win."""
        return x.max_pool2d(self.kernel_size, self.stride, self.padding, self.dilation)

    def extra_repr(self) -> str:
        """Describe the settings."""
        sizes = f"kernel_size={self.kernel_size}, stride={self.stride}"
        return f"{sizes}, padding={self.padding}, dilation={self.dilation}"


class AvgPool2d(Module):
    """This class averages each window; padded places count as zeros, as in PyTorch."""

    def __init__(
        self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0
    ) -> None:
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride

    def forward(self, x: Tensor) -> Tensor:
        """Pool."""
        return x.avg_pool2d(self.kernel_size, self.stride, self.padding)

    def extra_repr(self) -> str:
        """Describe the settings."""
        sizes = f"kernel_size={self.kernel_size}, stride={self.stride}"
        return f"{sizes}, padding={self.padding}"
