"""Adjoint ("transposed") convolutions: they enlarge what Conv1d, Conv2d and Conv3d shrink."""

from collections.abc import Sequence
from typing import Any

from picograd.errors import ShapeError, ValueRangeError
from picograd.nn.conv import ConvSettings, Sizes, per_axis
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.operands import as_sizes
from picograd.tensor.core.recording import apply
from picograd.tensor.network import convolution
from picograd.tensor.tensor import Tensor


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
        op = type(self).__name__
        if padding_mode != "zeros" or isinstance(padding, str):
            problem = "only padding in numbers with padding_mode='zeros' is defined"
            raise ValueRangeError(op, problem, "leave padding_mode out")
        self.output_padding = per_axis(op, output_padding, self.axes, "output_padding", 0)
        options: dict[str, Any] = dict(kernel_size=kernel_size, stride=stride)
        options |= dict(padding=padding, dilation=dilation, padding_mode=padding_mode)
        options |= dict(groups=groups, bias=bias, device=device, dtype=dtype)
        self.make((in_channels, out_channels), options)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Convolve and add the bias; `output_size` chooses among the sizes a stride allows."""
        return self.convolve_to(input, output_size)

    def convolve_to(self, x: Tensor, output_size: Any) -> Tensor:
        """Convolve (B, C, *S), or (C, *S), and add the bias."""
        op, rank = type(self).__name__, len(self.kernel_size)
        need_tensor(op, x)
        if len(x.shape) == rank + 1:
            return self.convolve_to(x.unsqueeze(0), output_size).squeeze(0)
        extra = self._extra(x, output_size)
        options: dict[str, Any] = dict(stride=self.stride, padding=self.padding)
        options |= dict(dilation=self.dilation, groups=self.groups, output_padding=extra)
        name = f"conv_transpose{rank}d"
        record = convolution.convolve_transposed
        return apply(record, name, rank, x, self.weight, self.bias, options)

    def _extra(self, x: Tensor, output_size: Any) -> tuple[int, ...]:
        """Find the output padding that gives a wanted size."""
        if output_size is None:
            return self.output_padding
        rank = len(self.kernel_size)
        name = type(self).__name__
        sizes = as_sizes(output_size, name)
        wanted = sizes[-rank:]
        extra = []
        for axis, size in enumerate(wanted):
            reach = self.dilation[axis] * (self.kernel_size[axis] - 1) + 1
            least = (x.shape[2 + axis] - 1) * self.stride[axis] - 2 * self.padding[axis] + reach
            extra.append(size - least)
        limits = [max(s, d) for s, d in zip(self.stride, self.dilation)]
        if len(extra) != rank or any(not 0 <= n < top for n, top in zip(extra, limits)):
            problem = f"output_size={sizes} cannot come from {tuple(x.shape)}"
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
