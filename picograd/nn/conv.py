"""Convolutions over one, two and three spatial axes, and their adjoints.

Adjoint ("transposed") convolutions: they enlarge what Conv1d, Conv2d and Conv3d shrink.
"""

from collections.abc import Sequence
from typing import Any

from picograd.errors import ShapeError, ValueRangeError, check_known
from picograd.helpers import product
from picograd.nn import functional, init
from picograd.nn.family import Family
from picograd.nn.init import per_axis
from picograd.nn.parameter import Parameter
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.operands import as_sizes
from picograd.tensor.tensor import Tensor

Sizes = int | tuple[int, ...]


PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


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

    def make(self, options: dict[str, Any]) -> None:
        """Check and store the sizes, by the names of PyTorch; draw the weight and the bias."""
        op, axes = type(self).__name__, self.axes
        channels = options["in_channels"], options["out_channels"]
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
        self.padding_mode: str = options["padding_mode"]
        check_known(op, "padding_mode", self.padding_mode, PADDING_MODES)
        outer, inner = channels if self.is_adjoint else channels[::-1]
        shape = (outer, inner // self.groups, *self.kernel_size)
        bound = init.fan_in_bound(product(shape[1:]))
        place = (options["device"], options["dtype"])
        self.weight: Parameter = init.uniform_parameter(shape, bound, *place)
        self.bias: Parameter | None = None
        if options["bias"]:
            self.bias = init.uniform_parameter((channels[1],), bound, *place)
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

    @property
    def _reversed_padding_repeated_twice(self) -> list[int]:
        """The padding as (low, high) of the last axis first: programs read it, too."""
        if self.padding == "valid":
            return [0] * (2 * self.axes)
        if self.padding != "same":
            return [size for size in reversed(self.padding) for _ in range(2)]
        spans = [gap * (size - 1) for size, gap in zip(self.kernel_size, self.dilation)]
        return [part for span in reversed(spans) for part in (span // 2, span - span // 2)]

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve (B, C, *S), or (C, *S): subclasses give other weights, or write it anew."""
        need_tensor(type(self).__name__, x)
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = x.pad(self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
        convolve = getattr(functional, f"conv{self.axes}d")
        sizes = (self.stride, padding, self.dilation, self.groups)
        return convolve(x, weight, bias, *sizes)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """Describe the settings."""
        axes = len(self.kernel_size)
        zeros = (0,) * axes
        ones = (1,) * axes
        extra = (0,) * len(getattr(self, "output_padding", ()))  # a lazy one has none of the class
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        text += f", stride={self.stride}"
        text += self._unusual(padding=zeros, dilation=ones, output_padding=extra, groups=1)
        if self.bias is None:
            text += ", bias=False"
        return text + self._unusual(padding_mode="zeros")


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
        self.make(locals())

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


class AdjointConv(ConvSettings):
    """This class is the base of adjoint convolutions: weight (C, O/groups, *K).

    Output size (S - 1) * stride - 2 * padding + dilation * (K - 1) + output_padding + 1.
    """

    is_adjoint = transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        options, op = locals(), type(self).__name__
        if padding_mode != "zeros" or isinstance(padding, str):
            problem = "only padding in numbers with padding_mode='zeros' is defined"
            raise ValueRangeError(op, problem, "leave padding_mode out")
        self.output_padding = per_axis(op, output_padding, self.axes, "output_padding", 0)
        self.make(options)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Convolve and add the bias; `output_size` chooses among the sizes a stride allows."""
        op, rank = type(self).__name__, len(self.kernel_size)
        need_tensor(op, input)
        x = input.unsqueeze(0) if input.ndim == rank + 1 else input
        layer = (self.stride, self.padding, self.kernel_size, rank, self.dilation)
        extra = self._output_padding(x, output_size, *layer)
        convolve = getattr(functional, f"conv_transpose{rank}d")
        sizes = (self.stride, self.padding, extra, self.groups, self.dilation)
        found = convolve(x, self.weight, self.bias, *sizes)
        return found if x is input else found.squeeze(0)  # type: ignore[no-any-return]

    def _output_padding(
        self,
        input: Tensor,
        output_size: Any,
        stride: Sequence[int],
        padding: Sequence[int],
        kernel_size: Sequence[int],
        num_spatial_dims: int,
        dilation: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        """Find the output padding that gives a wanted size, as layers of programs ask, too."""
        if output_size is None:
            return self.output_padding
        rank, dilation = num_spatial_dims, dilation or (1,) * num_spatial_dims
        name = type(self).__name__
        sizes = as_sizes(output_size, name)
        wanted = sizes[-rank:]
        extra = []
        for axis, size in enumerate(wanted):
            reach = dilation[axis] * (kernel_size[axis] - 1) + 1
            least = (input.shape[2 + axis] - 1) * stride[axis] - 2 * padding[axis] + reach
            extra.append(size - least)
        limits = [max(s, d) for s, d in zip(stride, dilation)]
        if len(extra) != rank or any(not 0 <= n < top for n, top in zip(extra, limits)):
            problem = f"output_size={sizes} cannot come from {tuple(input.shape)}"
            raise ShapeError(name, problem, "differ by less than the stride")
        return tuple(extra)


class ConvTranspose1d(AdjointConv):
    """This class is the adjoint of Conv1d over sequences: (B, C, L) -> (B, O, L').

    >>> from picograd import Tensor, nn
    >>> nn.ConvTranspose1d(1, 4, 2, stride=2)(Tensor.ones(2, 1, 8)).shape
    (2, 4, 16)
    """


class ConvTranspose2d(AdjointConv, axes=2):
    """This class is the adjoint of Conv2d over images: (B, C, H, W) -> (B, O, H', W').

    >>> from picograd import Tensor, nn
    >>> nn.ConvTranspose2d(1, 4, 2, stride=2)(Tensor.ones(2, 1, 4, 4)).shape
    (2, 4, 8, 8)
    """


class ConvTranspose3d(AdjointConv, axes=3):
    """This class is the adjoint of Conv3d over volumes: (B, C, D, H, W) -> (B, O, D', H', W').

    >>> from picograd import Tensor, nn
    >>> nn.ConvTranspose3d(1, 4, 2, stride=2)(Tensor.ones(2, 1, 2, 2, 2)).shape
    (2, 4, 4, 4, 4)
    """
