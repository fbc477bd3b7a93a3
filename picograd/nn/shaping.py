"""Layers that rearrange: Identity, Flatten, Unflatten, pixel shuffles, padding, Upsample."""

from collections.abc import Sequence
from typing import Any

from picograd.nn import functional_shape as functional
from picograd.nn.module import Module
from picograd.tensor.tensor import Tensor

Margins = int | Sequence[int]


class Identity(Module):
    """This class returns its input; any arguments of the constructor are ignored."""

    def __init__(self, *args: Any, **options: Any) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        """Return the input."""
        return x


class Flatten(Module):
    """This class merges axes `start_dim` to `end_dim`: (B, C, H, W) -> (B, C*H*W)."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        """Merge the axes."""
        return x.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """This class splits one axis into several: Unflatten(1, (2, 3)) on (B, 6) -> (B, 2, 3)."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        """Split the axis."""
        return x.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class PixelShuffle(Module):
    """This class moves channels into space: (..., C r r, H, W) -> (..., C, H r, W r).

    Shi et al. (2016). Raises ShapeError when r * r does not divide the channels.
    """

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, x: Tensor) -> Tensor:
        """Rearrange."""
        return functional.pixel_shuffle(x, self.upscale_factor)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """This class moves space into channels: (..., C, H r, W r) -> (..., C r r, H, W)."""

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, x: Tensor) -> Tensor:
        """Rearrange."""
        return functional.pixel_unshuffle(x, self.downscale_factor)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """This class interleaves groups of channels (Zhang et al., 2018): (B, C, ...) keeps shape."""

    def __init__(self, groups: int) -> None:
        self.groups = groups

    def forward(self, x: Tensor) -> Tensor:
        """Rearrange."""
        return functional.channel_shuffle(x, self.groups)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"groups={self.groups}"


class Upsample(Module):
    """This class enlarges the spatial axes of (B, C, *S) by mode "nearest", "bilinear", ...

    Give `size` or `scale_factor`; see `functional.interpolate`.
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, x: Tensor) -> Tensor:
        """Enlarge."""
        scale, corners = self.scale_factor, self.align_corners
        return functional.interpolate(x, self.size, scale, self.mode, corners)

    def extra_repr(self) -> str:
        """Describe the settings."""
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={getattr(self, name)}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """This class enlarges (B, C, H, W) by repeating pixels."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """This class enlarges (B, C, H, W) bilinearly with aligned corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class Pad(Module):
    """This class pads the last axes of (B, C, *S) or (C, *S): (low, high) per axis, last first."""

    axes = 1
    mode = "constant"
    value: float = 0.0

    def __init__(self, padding: Margins) -> None:
        count = 2 * self.axes
        self.padding = (padding,) * count if isinstance(padding, int) else tuple(padding)

    def forward(self, x: Tensor) -> Tensor:
        """Pad."""
        return functional.pad(x, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return str(self.padding)


class ConstantPad1d(Pad):
    """This class pads the last axis with a value."""

    def __init__(self, padding: Margins, value: float) -> None:
        super().__init__(padding)
        self.value = value


class ConstantPad2d(ConstantPad1d):
    """This class pads the last two axes with a value."""

    axes = 2


class ConstantPad3d(ConstantPad1d):
    """This class pads the last three axes with a value."""

    axes = 3


class ZeroPad1d(Pad):
    """This class pads the last axis with zeros."""


class ZeroPad2d(Pad):
    """This class pads the last two axes with zeros."""

    axes = 2


class ZeroPad3d(Pad):
    """This class pads the last three axes with zeros."""

    axes = 3


class ReflectionPad1d(Pad):
    """This class pads the last axis with its mirror image, the border not repeated."""

    mode = "reflect"


class ReflectionPad2d(Pad):
    """This class pads the last two axes with their mirror image, the border not repeated."""

    axes, mode = 2, "reflect"


class ReplicationPad1d(Pad):
    """This class pads the last axis with its border."""

    mode = "replicate"


class ReplicationPad2d(Pad):
    """This class pads the last two axes with their border."""

    axes, mode = 2, "replicate"


class CircularPad1d(Pad):
    """This class pads the last axis with its other end."""

    mode = "circular"


class CircularPad2d(Pad):
    """This class pads the last two axes with their other ends."""

    axes, mode = 2, "circular"
