"""Layers that rearrange: Identity, Flatten, Unflatten, pixel shuffles, padding, Upsample."""

from collections.abc import Sequence
from typing import Any

from picograd.errors import DTypeError
from picograd.nn import functional
from picograd.nn.family import Family
from picograd.nn.module import Module
from picograd.tensor.core.annotations import Sizes
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.tensor import Tensor

Margins = int | Sequence[int]


class Identity(Module):
    """This class returns its input; any arguments of the constructor are ignored.

    >>> from picograd import Tensor, nn
    >>> nn.Identity()(Tensor([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 3.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return the input."""
        return input


class Flatten(Module):
    """This class merges axes `start_dim` to `end_dim`: (B, C, H, W) -> (B, C*H*W).

    >>> from picograd import Tensor, nn
    >>> nn.Flatten()(Tensor([[[1.0, 2.0], [3.0, 4.0]]])).tolist()
    [[1.0, 2.0, 3.0, 4.0]]
    """

    _shown = "start_dim={self.start_dim}, end_dim={self.end_dim}"

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Merge the axes."""
        need_tensor("Flatten", input)
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    """This class splits one axis into several: Unflatten(1, (2, 3)) on (B, 6) -> (B, 2, 3).

    >>> from picograd import Tensor, nn
    >>> nn.Unflatten(1, (2, 2))(Tensor([[1.0, 2.0, 3.0, 4.0]])).tolist()
    [[[1.0, 2.0], [3.0, 4.0]]]
    """

    _shown = "dim={self.dim}, unflattened_size={self.unflattened_size}"

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        if isinstance(unflattened_size, int):
            problem = f"unflattened_size is one number, {unflattened_size}"
            raise DTypeError("Unflatten", problem, "pass the sizes: (2, 3)")
        self.dim: int = dim
        self.unflattened_size: tuple[int, ...] = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """Split the axis."""
        need_tensor("Unflatten", input)
        return input.unflatten(self.dim, self.unflattened_size)


class PixelShuffle(Module):
    """This class moves channels into space: (..., C r r, H, W) -> (..., C, H r, W r).

    Shi et al. (2016). Raises ShapeError when r * r does not divide the channels.

    >>> from picograd import Tensor, nn
    >>> nn.PixelShuffle(2)(Tensor([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]])).tolist()
    [[[[1.0, 2.0], [3.0, 4.0]]]]
    """

    _shown = "upscale_factor={self.upscale_factor}"

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Rearrange."""
        return functional.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """This class moves space into channels: (..., C, H r, W r) -> (..., C r r, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.PixelUnshuffle(2)(Tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).tolist()
    [[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]
    """

    _shown = "downscale_factor={self.downscale_factor}"

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Rearrange."""
        return functional.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Module):
    """This class interleaves groups of channels (Zhang et al., 2018): (B, C, ...) keeps shape.

    >>> from picograd import Tensor, nn
    >>> nn.ChannelShuffle(2)(Tensor([[[1.0], [2.0], [3.0], [4.0]]])).tolist()
    [[[1.0], [3.0], [2.0], [4.0]]]
    """

    _shown = "groups={self.groups}"

    def __init__(self, groups: int) -> None:
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Rearrange."""
        return functional.channel_shuffle(input, self.groups)


class Upsample(Module):
    """This class enlarges the spatial axes of (B, C, *S) by mode "nearest", "bilinear", ...

    Give `size` or `scale_factor`; see `functional.interpolate`.

    >>> from picograd import Tensor, nn
    >>> nn.Upsample(scale_factor=2)(Tensor([[[1.0, 2.0]]])).tolist()
    [[[1.0, 1.0, 2.0, 2.0]]]
    """

    def __init__(
        self,
        size: Sizes | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self.name = type(self).__name__
        self.size = size
        self.mode = mode
        if isinstance(scale_factor, (int, float)):
            scale_factor = float(scale_factor)
        if isinstance(scale_factor, tuple):
            scale_factor = tuple(map(float, scale_factor))
        self.scale_factor = scale_factor
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Enlarge."""
        options = (self.mode, self.align_corners, self.recompute_scale_factor)
        return functional.interpolate(input, self.size, self.scale_factor, *options)

    def extra_repr(self) -> str:
        """Describe the settings."""
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={getattr(self, name)}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """This class enlarges (B, C, H, W) by repeating pixels.

    >>> from picograd import Tensor, nn
    >>> nn.UpsamplingNearest2d((1, 4))(Tensor([[[[1.0, 2.0]]]])).tolist()
    [[[[1.0, 1.0, 2.0, 2.0]]]]
    """

    def __init__(
        self, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """This class enlarges (B, C, H, W) bilinearly with aligned corners.

    >>> from picograd import Tensor, nn
    >>> nn.UpsamplingBilinear2d((1, 3))(Tensor([[[[1.0, 2.0]]]])).tolist()
    [[[[1.0, 1.5, 2.0]]]]
    """

    def __init__(
        self, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class Pad(Family):
    """This class pads the last axes of (B, C, *S) or (C, *S): (low, high) per axis, last first."""

    _shown = "{self.padding}"

    padding: tuple[int, ...]

    axes: int = 1
    mode: str = "constant"
    value: float = 0.0

    def __init__(self, padding: Margins) -> None:
        count = 2 * self.axes
        self.padding = (padding,) * count if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        """Pad."""
        return functional.pad(input, self.padding, self.mode, self.value)


class ConstantPad1d(Pad):
    """This class pads the last axis with a value.

    >>> from picograd import Tensor, nn
    >>> nn.ConstantPad1d(1, 9.0)(Tensor([[[1.0, 2.0, 3.0]]])).tolist()
    [[[9.0, 1.0, 2.0, 3.0, 9.0]]]
    """

    _shown = "padding={self.padding}, value={self.value}"

    def __init__(self, padding: Margins, value: float) -> None:
        super().__init__(padding)
        self.value = value


class ConstantPad2d(ConstantPad1d, axes=2):
    """This class pads the last two axes with a value.

    >>> from picograd import Tensor, nn
    >>> nn.ConstantPad2d((1, 1, 0, 0), 9.0)(Tensor([[[[1.0, 2.0, 3.0]]]])).tolist()
    [[[[9.0, 1.0, 2.0, 3.0, 9.0]]]]
    """


class ConstantPad3d(ConstantPad1d, axes=3):
    """This class pads the last three axes with a value.

    >>> from picograd import Tensor, nn
    >>> nn.ConstantPad3d((1, 1, 0, 0, 0, 0), 9.0)(Tensor([[[[[1.0, 2.0, 3.0]]]]])).tolist()
    [[[[[9.0, 1.0, 2.0, 3.0, 9.0]]]]]
    """


class ZeroPad1d(Pad):
    """This class pads the last axis with zeros.

    >>> from picograd import Tensor, nn
    >>> nn.ZeroPad1d(1)(Tensor([[[1.0, 2.0, 3.0]]])).tolist()
    [[[0.0, 1.0, 2.0, 3.0, 0.0]]]
    """


class ZeroPad2d(Pad, axes=2):
    """This class pads the last two axes with zeros.

    >>> from picograd import Tensor, nn
    >>> nn.ZeroPad2d((1, 1, 0, 0))(Tensor([[[[1.0, 2.0, 3.0]]]])).tolist()
    [[[[0.0, 1.0, 2.0, 3.0, 0.0]]]]
    """


class ZeroPad3d(Pad, axes=3):
    """This class pads the last three axes with zeros.

    >>> from picograd import Tensor, nn
    >>> nn.ZeroPad3d((1, 1, 0, 0, 0, 0))(Tensor([[[[[1.0, 2.0, 3.0]]]]])).tolist()
    [[[[[0.0, 1.0, 2.0, 3.0, 0.0]]]]]
    """


class ReflectionPad1d(Pad, mode="reflect"):
    """This class pads the last axis with its mirror image, the border not repeated.

    >>> from picograd import Tensor, nn
    >>> nn.ReflectionPad1d(1)(Tensor([[[1.0, 2.0, 3.0]]])).tolist()
    [[[2.0, 1.0, 2.0, 3.0, 2.0]]]
    """


class ReflectionPad2d(Pad, axes=2, mode="reflect"):
    """This class pads the last two axes with their mirror image, the border not repeated.

    >>> from picograd import Tensor, nn
    >>> nn.ReflectionPad2d((1, 1, 0, 0))(Tensor([[[[1.0, 2.0, 3.0]]]])).tolist()
    [[[[2.0, 1.0, 2.0, 3.0, 2.0]]]]
    """


class ReplicationPad1d(Pad, mode="replicate"):
    """This class pads the last axis with its border.

    >>> from picograd import Tensor, nn
    >>> nn.ReplicationPad1d(1)(Tensor([[[1.0, 2.0, 3.0]]])).tolist()
    [[[1.0, 1.0, 2.0, 3.0, 3.0]]]
    """


class ReplicationPad2d(Pad, axes=2, mode="replicate"):
    """This class pads the last two axes with their border.

    >>> from picograd import Tensor, nn
    >>> nn.ReplicationPad2d((1, 1, 0, 0))(Tensor([[[[1.0, 2.0, 3.0]]]])).tolist()
    [[[[1.0, 1.0, 2.0, 3.0, 3.0]]]]
    """


class ReflectionPad3d(Pad, axes=3, mode="reflect"):
    """This class pads the last three axes with their mirror image, the border not repeated.

    >>> from picograd import Tensor, nn
    >>> nn.ReflectionPad3d((1, 1, 0, 0, 0, 0))(Tensor([[[[[1.0, 2.0, 3.0]]]]])).tolist()
    [[[[[2.0, 1.0, 2.0, 3.0, 2.0]]]]]
    """


class ReplicationPad3d(Pad, axes=3, mode="replicate"):
    """This class pads the last three axes with their border.

    >>> from picograd import Tensor, nn
    >>> nn.ReplicationPad3d((1, 1, 0, 0, 0, 0))(Tensor([[[[[1.0, 2.0, 3.0]]]]])).tolist()
    [[[[[1.0, 1.0, 2.0, 3.0, 3.0]]]]]
    """


class CircularPad1d(Pad, mode="circular"):
    """This class pads the last axis with its other end.

    >>> from picograd import Tensor, nn
    >>> nn.CircularPad1d(1)(Tensor([[[1.0, 2.0, 3.0]]])).tolist()
    [[[3.0, 1.0, 2.0, 3.0, 1.0]]]
    """


class CircularPad2d(Pad, axes=2, mode="circular"):
    """This class pads the last two axes with their other ends.

    >>> from picograd import Tensor, nn
    >>> nn.CircularPad2d((1, 1, 0, 0))(Tensor([[[[1.0, 2.0, 3.0]]]])).tolist()
    [[[[3.0, 1.0, 2.0, 3.0, 1.0]]]]
    """


class CircularPad3d(Pad, axes=3, mode="circular"):
    """This class pads the last three axes with their other ends.

    >>> from picograd import Tensor, nn
    >>> nn.CircularPad3d((1, 1, 0, 0, 0, 0))(Tensor([[[[[1.0, 2.0, 3.0]]]]])).tolist()
    [[[[[3.0, 1.0, 2.0, 3.0, 1.0]]]]]
    """


class Unfold(Module):
    """This class lays windows out as columns: (B, C, H, W) -> (B, C * KH * KW, windows).

    >>> from picograd import Tensor, nn
    >>> nn.Unfold((1, 2))(Tensor([[[[1.0, 2.0, 3.0]]]])).tolist()
    [[[1.0, 2.0], [2.0, 3.0]]]
    """

    _shown = (
        "kernel_size={self.kernel_size}, dilation={self.dilation}, "
        "padding={self.padding}, stride={self.stride}"
    )

    def __init__(
        self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """Cut the windows out."""
        sizes = (self.kernel_size, self.dilation, self.padding, self.stride)
        return functional.unfold(input, *sizes)


class Fold(Unfold):
    """This class adds columns up to images: (B, C * KH * KW, windows) -> (B, C, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.Fold((1, 3), (1, 2))(Tensor([[[1.0, 2.0], [2.0, 3.0]]])).tolist()
    [[[[1.0, 4.0, 3.0]]]]
    """

    _shown = "output_size={self.output_size}, " + Unfold._shown

    def __init__(
        self,
        output_size: Sizes,
        kernel_size: Sizes,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        stride: Sizes = 1,
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Add the columns."""
        sizes = (self.kernel_size, self.dilation, self.padding, self.stride)
        return functional.fold(input, self.output_size, *sizes)
