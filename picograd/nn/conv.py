"""Convolutions over one, two and three spatial axes, and their adjoints."""

from typing import Any

from picograd.errors import ShapeError, ValueRangeError
from picograd.helpers import product
from picograd.nn import init
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter, check_tensor
from picograd.tensor import convolution
from picograd.tensor.tensor import Tensor, apply

Sizes = int | tuple[int, ...]


def per_axis(
    op: str, value: Sizes, count: int, name: str, least: int = 1
) -> tuple[int, ...]:
    """Repeat one number for every spatial axis, or check that there is one number per axis."""
    init.check_sizes(op, least, **{name: value})
    sizes = (value,) * count if isinstance(value, int) else tuple(value)
    if len(sizes) != count:
        problem = f"{name}={value} has {len(sizes)} sizes, {count} wanted"
        raise ShapeError(op, problem, "pass one int, or one for every spatial axis")
    return sizes


def _padding_mode(op: str, mode: str) -> str:
    known = ("zeros", "reflect", "replicate", "circular")
    if mode not in known:
        problem = f"padding_mode={mode!r} is unknown"
        raise ValueRangeError(op, problem, f"use {', '.join(known)}")
    return mode


class ConvSettings(Module):
    """This class holds what convolutions share: sizes, weight and bias.

    The weight is (O, C/groups, *K), of adjoint convolutions (C, O/groups, *K).
    """

    is_adjoint = False
    output_padding: tuple[int, ...] = ()

    def __init__(self, channels: tuple[int, int], axes: int, options: dict[str, Any]) -> None:
        op = type(self).__name__
        self.in_channels, self.out_channels = channels
        init.check_sizes(op, in_channels=channels[0], out_channels=channels[1])
        init.check_sizes(op, 1, groups=options["groups"])
        self.groups = options["groups"]
        self.kernel_size = per_axis(op, options["kernel_size"], axes, "kernel_size")
        self.stride = per_axis(op, options["stride"], axes, "stride")
        self.dilation = per_axis(op, options["dilation"], axes, "dilation")
        self.padding = self._padding(options["padding"], axes)
        if self.in_channels % self.groups or self.out_channels % self.groups:
            problem = f"{channels} channels do not divide into {self.groups} groups"
            raise ShapeError(op, problem, "choose a divisor of both")
        self.padding_mode = _padding_mode(op, options["padding_mode"])
        outer, inner = channels if self.is_adjoint else channels[::-1]
        shape = (outer, inner // self.groups, *self.kernel_size)
        bound = init.fan_in_bound(product(shape[1:]))
        place = (options["device"], options["dtype"])
        self.weight = Parameter(init.uniform(shape, bound, *place))
        has_bias = options["bias"]
        self.bias = None
        if has_bias:
            self.bias = Parameter(init.uniform((channels[1],), bound, *place))

    def _padding(self, padding: Sizes | str, axes: int) -> tuple[int, ...]:
        if padding == "valid":
            return (0,) * axes
        op = type(self).__name__
        if isinstance(padding, str) and padding != "same":
            problem = f"padding={padding!r} is unknown"
            raise ValueRangeError(op, problem, 'use "same", "valid" or numbers')
        if not isinstance(padding, str):
            return per_axis(op, padding, axes, "padding", 0)
        spans = [d * (k - 1) for k, d in zip(self.kernel_size, self.dilation)]
        if any(stride != 1 for stride in self.stride) or any(span % 2 for span in spans):
            problem = "padding='same' needs stride 1 and an odd kernel"
            raise ValueRangeError(op, problem, "give the padding in numbers")
        return tuple(span // 2 for span in spans)

    def convolve(self, x: Tensor) -> Tensor:
        """Convolve (B, C, *S), or (C, *S), and add the bias."""
        op = type(self).__name__
        check_tensor(op, x)
        rank = len(self.kernel_size)
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            margins = [size for size in reversed(self.padding) for _ in range(2)]
            x, padding = x.pad(margins, mode=self.padding_mode), (0,) * rank
        options = dict(stride=self.stride, padding=padding, dilation=self.dilation)
        options["groups"] = self.groups
        name = f"conv{rank}d"
        return apply(convolution.convolve, name, rank, x, self.weight, self.bias, options)

    def extra_repr(self) -> str:
        """Describe the settings."""
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        text += f", stride={self.stride}"
        if any(self.padding):
            text += f", padding={self.padding}"
        if any(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if any(size != 1 for size in self.dilation):
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text + ("" if self.bias is not None else ", bias=False")


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
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
        options |= dict(groups=groups, bias=bias, device=device, dtype=dtype)
        options["padding_mode"] = padding_mode
        ConvSettings.__init__(self, (in_channels, out_channels), 1, options)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve and add the bias."""
        return self.convolve(x)


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
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
        options |= dict(groups=groups, bias=bias, device=device, dtype=dtype)
        options["padding_mode"] = padding_mode
        ConvSettings.__init__(self, (in_channels, out_channels), 2, options)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve and add the bias."""
        return self.convolve(x)


class Conv3d(ConvSettings):
    """This class slides kernels over volumes: (B, C, D, H, W) -> (B, O, D', H', W')."""

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
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
        options |= dict(groups=groups, bias=bias, device=device, dtype=dtype)
        options["padding_mode"] = padding_mode
        ConvSettings.__init__(self, (in_channels, out_channels), 3, options)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve and add the bias."""
        return self.convolve(x)
