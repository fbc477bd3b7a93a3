"""Convolutions in one and two dimensions."""

from typing import Any

from picograd.errors import ShapeError, ValueRangeError
from picograd.helpers import product
from picograd.nn import init
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.tensor import Tensor

Sizes = int | tuple[int, ...]


def per_axis(value: Sizes, count: int, name: str) -> tuple[int, ...]:
    """Repeat one number for every spatial axis, or check that there is one number per axis."""
    sizes = (value,) * count if isinstance(value, int) else tuple(value)
    if len(sizes) != count:
        raise ShapeError("conv", f"{name}={value} has {len(sizes)} sizes, {count} wanted")
    return sizes


class ConvSettings(Module):
    """This class holds what Conv1d and Conv2d share: sizes, weight (O, C/groups, *K) and bias."""

    def __init__(self, channels: tuple[int, int], axes: int, options: dict[str, Any]) -> None:
        self.in_channels, self.out_channels = channels
        self.groups = options["groups"]
        self.kernel_size = per_axis(options["kernel_size"], axes, "kernel_size")
        self.stride = per_axis(options["stride"], axes, "stride")
        self.dilation = per_axis(options["dilation"], axes, "dilation")
        self.padding = self._padding(options["padding"], axes)
        if self.in_channels % self.groups or self.out_channels % self.groups:
            problem = f"{channels} channels do not divide into {self.groups} groups"
            raise ShapeError("conv", problem, "choose a divisor of both")
        shape = (self.out_channels, self.in_channels // self.groups, *self.kernel_size)
        bound = init.fan_in_bound(product(shape[1:]))
        place = (options["device"], options["dtype"])
        self.weight = Parameter(init.uniform(shape, bound, *place))
        has_bias = options["bias"]
        self.bias = Parameter(init.uniform(shape[:1], bound, *place)) if has_bias else None

    def _padding(self, padding: Sizes | str, axes: int) -> tuple[int, ...]:
        if padding == "valid":
            return (0,) * axes
        if padding != "same":
            return per_axis(padding, axes, "padding")  # type: ignore[arg-type]
        spans = [d * (k - 1) for k, d in zip(self.kernel_size, self.dilation)]
        if any(stride != 1 for stride in self.stride) or any(span % 2 for span in spans):
            problem = "padding='same' needs stride 1 and an odd kernel"
            raise ValueRangeError("conv", problem, "give the padding in numbers")
        return tuple(span // 2 for span in spans)

    def extra_repr(self) -> str:
        """Describe the settings."""
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        text += f", stride={self.stride}"
        if any(self.padding):
            text += f", padding={self.padding}"
        if any(size != 1 for size in self.dilation):
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text + ("" if self.bias is not None else ", bias=False")


class Conv2d(ConvSettings):
    """This class slides kernels over images: (B, C, H, W) -> (B, O, H', W')."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
        options |= dict(groups=groups, bias=bias, device=device, dtype=dtype)
        ConvSettings.__init__(self, (in_channels, out_channels), 2, options)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve and add the bias."""
        return x.conv2d(
            self.weight,
            self.bias,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
        )


class Conv1d(ConvSettings):
    """This class slides kernels over sequences: (B, C, L) -> (B, O, L')."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
        options |= dict(groups=groups, bias=bias, device=device, dtype=dtype)
        ConvSettings.__init__(self, (in_channels, out_channels), 1, options)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve and add the bias: the two-dimensional convolution with height 1."""
        image = x.unsqueeze(-2)  # B C 1 L
        kernel = self.weight.unsqueeze(-2)  # O C 1 K
        return image.conv2d(
            kernel,
            self.bias,
            stride=(1, *self.stride),
            padding=(0, *self.padding),
            dilation=(1, *self.dilation),
            groups=self.groups,
        ).squeeze(-2)
