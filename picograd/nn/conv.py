"""Convolutions over one, two and three spatial axes, and their adjoints."""

from typing import Any

from picograd.errors import ShapeError, ValueRangeError, check_known
from picograd.helpers import product
from picograd.nn import init
from picograd.nn.family import Family
from picograd.nn.parameter import Parameter
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.recording import apply
from picograd.tensor.network import convolution
from picograd.tensor.tensor import Tensor

Sizes = int | tuple[int, ...]


def per_axis(op: str, value: Sizes, count: int, name: str, least: int = 1) -> tuple[int, ...]:
    """Repeat one number for every spatial axis, or check that there is one number per axis."""
    init.check_sizes(op, least, **{name: value})
    sizes = (value,) if isinstance(value, int) else tuple(value)
    sizes = sizes * count if len(sizes) == 1 else sizes
    if len(sizes) != count:
        problem = f"{name}={value} has {len(sizes)} sizes, {count} wanted"
        raise ShapeError(op, problem, "pass one int, or one for every spatial axis")
    return sizes


def _padding_mode(op: str, mode: str) -> str:
    known = ("zeros", "reflect", "replicate", "circular")
    check_known(op, "padding_mode", mode, known)
    return mode


class ConvSettings(Family):
    """This class holds what convolutions share: sizes, weight and bias.

    The weight is (O, C/groups, *K), of adjoint convolutions (C, O/groups, *K).
    """

    kernel_size: tuple[int, ...]
    in_channels: int
    out_channels: int

    axes = 1  # spatial ones
    is_adjoint = transposed = False
    output_padding: tuple[int, ...] = ()

    def make(self, channels: tuple[int, int], options: dict[str, Any]) -> None:
        """Check and store the sizes; draw the weight and the bias."""
        op, axes = type(self).__name__, self.axes
        self.in_channels, self.out_channels = channels
        init.check_sizes(op, in_channels=channels[0], out_channels=channels[1])
        init.check_sizes(op, 1, groups=options["groups"])
        self.groups: Any = options["groups"]
        self.kernel_size = per_axis(op, options["kernel_size"], axes, "kernel_size")
        self.stride: tuple[int, ...] = per_axis(op, options["stride"], axes, "stride")
        self.dilation: tuple[int, ...] = per_axis(op, options["dilation"], axes, "dilation")
        self.padding: Any = self._padding(options["padding"], axes)
        if self.in_channels % self.groups or self.out_channels % self.groups:
            problem = f"{channels} channels do not divide into {self.groups} groups"
            raise ShapeError(op, problem, "choose a divisor of both")
        self.padding_mode: str = _padding_mode(op, options["padding_mode"])
        outer, inner = channels if self.is_adjoint else channels[::-1]
        shape = (outer, inner // self.groups, *self.kernel_size)
        bound = init.fan_in_bound(product(shape[1:]))
        place = (options["device"], options["dtype"])
        self.weight: Parameter = Parameter(init.uniform(shape, bound, *place))
        has_bias = options["bias"]
        self.bias: Parameter | None = None
        if has_bias:
            self.bias = Parameter(init.uniform((channels[1],), bound, *place))
        init.begin(self, ConvSettings)

    def reset_parameters(self) -> None:
        """Draw the weight and the bias anew."""
        init.draw_again(self, product(self.weight.shape[1:]))

    def _padding(self, padding: Sizes | str, axes: int) -> Any:
        """Read the padding: numbers for every axis, or a word, kept as PyTorch keeps it."""
        op = type(self).__name__
        if not isinstance(padding, str):
            return per_axis(op, padding, axes, "padding", 0)
        if padding not in ("same", "valid"):
            problem = f"padding={padding!r} is unknown"
            raise ValueRangeError(op, problem, 'use "same", "valid" or numbers')
        if padding == "same" and any(stride != 1 for stride in self.stride):
            problem = "padding='same' needs stride 1"
            raise ValueRangeError(op, problem, "give the padding in numbers")
        return padding

    def _margins(self) -> list[int]:
        """Write the padding as (low, high) of the last axis first."""
        if self.padding == "valid":
            return [0] * (2 * self.axes)
        if self.padding != "same":
            return [size for size in reversed(self.padding) for _ in range(2)]
        spans = [gap * (size - 1) for size, gap in zip(self.kernel_size, self.dilation)]
        return [part for span in reversed(spans) for part in (span // 2, span - span // 2)]

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve (B, C, *S), or (C, *S): subclasses give other weights, or write it anew."""
        op = type(self).__name__
        need_tensor(op, x)
        rank, padding = self.axes, self.padding
        if self.padding_mode != "zeros":
            x, padding = x.pad(self._margins(), mode=self.padding_mode), 0
        options = dict(stride=self.stride, padding=padding, dilation=self.dilation)
        options["groups"] = self.groups
        name = f"conv{rank}d"
        return apply(convolution.convolve, name, rank, x, weight, bias, options)

    def extra_repr(self) -> str:
        """Describe the settings."""
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        text += f", stride={self.stride}"
        if self.padding != (0,) * self.axes:
            text += f", padding={self.padding}"
        if any(size != 1 for size in self.dilation):
            text += f", dilation={self.dilation}"
        if any(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class Conv(ConvSettings):
    """This class is the base of convolutions: weight (O, C / groups, *K).

    `padding` in numbers, "same" (the odd element goes to the high end) or "valid"; `padding_mode`
    zeros, reflect, replicate or circular. Raises ShapeError, ValueRangeError.

    >>> from picograd import Tensor, nn
    >>> nn.Conv2d(3, 8, 3, padding="same")(Tensor.ones(1, 3, 5, 5)).shape
    (1, 8, 5, 5)
    """

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
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        options: dict[str, Any] = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options |= dict(dilation=dilation, groups=groups, bias=bias, device=device, dtype=dtype)
        options["padding_mode"] = padding_mode
        self.make((in_channels, out_channels), options)

    def forward(self, input: Tensor) -> Tensor:
        """Convolve and add the bias."""
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(Conv):
    """This class slides kernels over sequences: (B, C, L) -> (B, O, L').

    >>> from picograd import Tensor, nn
    >>> nn.Conv1d(1, 4, 3)(Tensor.ones(2, 1, 8)).shape
    (2, 4, 6)
    """


class Conv2d(Conv, axes=2):
    """This class slides kernels over images: (B, C, H, W) -> (B, O, H', W').

    >>> from picograd import Tensor, nn
    >>> nn.Conv2d(1, 4, 3, padding=1)(Tensor.ones(2, 1, 8, 8)).shape
    (2, 4, 8, 8)
    """


class Conv3d(Conv, axes=3):
    """This class slides kernels over volumes: (B, C, D, H, W) -> (B, O, D', H', W').

    >>> from picograd import Tensor, nn
    >>> nn.Conv3d(1, 4, 3)(Tensor.ones(2, 1, 4, 4, 4)).shape
    (2, 4, 2, 2, 2)
    """
