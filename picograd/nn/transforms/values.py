"""Transforms of values: scaling to floats, normalising, colours."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.errors import DTypeError, ShapeError, ValueRangeError, check_known
from picograd.nn.transforms.base import Transform, read_range
from picograd.tensor.core.annotations import DeviceLike
from picograd.tensor.making.random import Generator
from picograd.tensor.public import where
from picograd.tensor.tensor import Tensor

LUMA = (0.2989, 0.587, 0.114)  # of red, green, blue: ITU-R BT.601, with torchvision's digits


class ToFloat(Transform):
    """This class turns uint8 pixels into float32 numbers from 0 to 1; floats stay as they are.

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> transforms.ToFloat()(Tensor([[[[0, 51, 255]]]], dtype="uint8")).tolist()
    [[[[0.0, 0.2..., 1.0]]]]
    """

    def apply(self, images: Tensor) -> Tensor:
        """Divide by 255."""
        if images.dtype.is_float:
            return images
        if images.dtype.name != "uint8":
            problem = f"images are {images.dtype.name}"
            raise DTypeError(type(self).__name__, problem, "pass uint8 pixels or floats")
        return images.cast("float32") / 255


class ToTensor:
    """This class makes a batch of floats from 0 to 1, (N, C, H, W), of pixels (N, H, W, C).

    It takes arrays as image libraries make them, or tensors; one image may be (H, W, C), or (H, W)
    when it is grey. uint8 is scaled, floats stay.

    >>> import numpy as np
    >>> from picograd.nn import transforms
    >>> pixels = np.array([[[255, 0, 51]]], np.uint8)  # one red pixel
    >>> transforms.ToTensor()(pixels).shape
    (1, 3, 1, 1)
    """

    def __init__(self, device: DeviceLike | None = None) -> None:
        self.device = device

    def __call__(self, pixels: Any) -> Tensor:
        """Make the batch."""
        images = pixels if isinstance(pixels, Tensor) else Tensor.of(pixels, device=self.device)
        shape = tuple(images.shape)
        images = images[..., None] if len(shape) == 2 else images
        images = images[None] if len(images.shape) == 3 else images
        if len(images.shape) != 4:
            problem = f"pixels of shape {shape} are no image (H, W, C) nor a batch of them"
            raise ShapeError("ToTensor", problem, "put the channels last")
        return ToFloat()(images.permute(0, 3, 1, 2))


def per_channel(op: str, values: Sequence[float], images: Tensor) -> Tensor:
    """Make a tensor (C, 1, 1) of one number, or one per channel."""
    numbers = np.atleast_1d(np.asarray(values, np.float32))
    if numbers.size not in (1, images.shape[1]):
        problem = f"{numbers.size} values for images of {images.shape[1]} channels"
        raise ShapeError(op, problem, "give one number, or one per channel")
    return Tensor.of(numbers.reshape(-1, 1, 1), device=images.device).cast(images.dtype)


class Normalize(Transform):
    """This class subtracts a mean and divides by a standard deviation, per channel.

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> transforms.Normalize(mean=[1.0], std=[2.0])(Tensor([[[[3.0]]]])).tolist()
    [[[[1.0]]]]
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean = mean
        self.std = std
        if not np.all(np.asarray(std) != 0):
            raise ValueRangeError("Normalize", f"std={std} has a zero", "use numbers above 0")

    def apply(self, images: Tensor) -> Tensor:
        """Compute (images - mean) / std."""
        check_float("Normalize", images)
        mean = per_channel("Normalize", self.mean, images)
        return (images - mean) / per_channel("Normalize", self.std, images)


def check_float(op: str, images: Tensor) -> None:
    """Raise for pixels that are not yet floats."""
    if not images.dtype.is_float:
        problem = f"images are {images.dtype.name}"
        raise DTypeError(op, problem, "put ToFloat() before it")


def luma(images: Tensor) -> Tensor:
    """Weigh red, green and blue into one channel (N, 1, H, W); one channel stays."""
    if images.shape[1] == 1:
        return images
    if images.shape[1] != 3:
        problem = f"images have {images.shape[1]} channels"
        raise ShapeError("Grayscale", problem, "pass 3 (red, green, blue) or 1")
    weights = Tensor.of(np.array(LUMA, np.float32).reshape(3, 1, 1), device=images.device)
    return (images * weights.cast(images.dtype)).sum(1, keepdim=True)


class Grayscale(Transform):
    """This class weighs the colours into brightness, in 1 channel or repeated in 3.

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> transforms.Grayscale()(Tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1, 1)).item()
    0.298...
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        self.channels = num_output_channels
        check_known("Grayscale", "num_output_channels", num_output_channels, (1, 3))

    def apply(self, images: Tensor) -> Tensor:
        """Weigh the channels."""
        check_float("Grayscale", images)
        count, _, height, width = images.shape
        return luma(images).expand(count, self.channels, height, width)


class ColorJitter(Transform):
    """This class changes brightness, contrast and saturation, by random factors for each image.

    An option of s draws factors from [max(0, 1 - s), 1 + s]; (low, high) gives the range. The three
    are applied in this order, where torchvision shuffles them. Values stay in 0 to 1.

    brightness    factor * image
    contrast      factor * image + (1 - factor) * mean brightness of the image
    saturation    factor * image + (1 - factor) * brightness of the pixel

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> transforms.ColorJitter(brightness=(0.5, 0.5))(Tensor([[[[0.5]]]])).tolist()
    [[[[0.25]]]]
    """

    def __init__(
        self,
        brightness: float | Sequence[float] = 0,
        contrast: float | Sequence[float] = 0,
        saturation: float | Sequence[float] = 0,
        generator: Generator | None = None,
    ) -> None:
        named = {"brightness": brightness, "contrast": contrast, "saturation": saturation}
        self.generator = generator
        self.ranges = {}
        for name, value in named.items():
            low, high = read_range("ColorJitter", name, value, 1.0)
            self.ranges[name] = max(0.0, low), high
            if high < 0:
                problem = f"{name}={value} is negative"
                raise ValueRangeError("ColorJitter", problem, "use factors of 0 or more")

    def factor(self, name: str, images: Tensor) -> Tensor | None:
        """Draw a factor for each image; None when it can only be 1."""
        low, high = self.ranges[name]
        return None if low == high == 1.0 else self.draw(images, low, high).cast(images.dtype)

    def apply(self, images: Tensor) -> Tensor:
        """Blend three times."""
        check_float("ColorJitter", images)
        bright = self.factor("brightness", images)
        if bright is not None:
            images = (images * bright).clamp(0, 1)
        contrast = self.factor("contrast", images)
        if contrast is not None:
            grey = luma(images).mean((1, 2, 3), keepdim=True)
            images = (images * contrast + grey * (1 - contrast)).clamp(0, 1)
        saturation = self.factor("saturation", images)
        if saturation is not None:
            images = (images * saturation + luma(images) * (1 - saturation)).clamp(0, 1)
        return images


def choose(condition: Tensor, images: Tensor, value: Tensor | float) -> Tensor:
    """Take `images` where the condition holds, and a value, in their dtype, elsewhere."""
    other = value if isinstance(value, Tensor) else Tensor.of(value, device=images.device)
    return where(condition, images, other.cast(images.dtype))
