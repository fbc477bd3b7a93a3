"""Transforms that take parts of images away, or mix images with one another."""

import functools
import math
from collections.abc import Sequence
from typing import Any

from picograd.buffer import RuntimeScalar
from picograd.engine.tracing import note_draw
from picograd.errors import DTypeError, ShapeError, ValueRangeError, check_positive
from picograd.nn.dataset_types import host_stream
from picograd.nn.transforms.base import Transform, check_chance, read_size
from picograd.nn.transforms.values import choose
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.making.random import Generator
from picograd.tensor.tensor import Tensor


def is_inside(start: Tensor, size: Tensor | int, axis: int, images: Tensor) -> Tensor:
    """Tell for the positions along an axis whether they lie in [start, start + size)."""
    places = Tensor.arange(images.shape[axis], device=images.device)
    places = places.reshape(-1, 1) if axis == 2 else places
    return (places >= start) & (places < start + size)


class RandomErasing(Transform):
    """This class overwrites a random rectangle of each image with a value, with probability p.

    The rectangle takes a share of the area from `scale` and has a ratio of height to width from
    `ratio` (drawn on a logarithmic scale); one that would not fit is cut to the image's size.
    Source: Zhong et al., "Random erasing data augmentation" (2017).

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> erase = transforms.RandomErasing(p=1.0, scale=(1.0, 1.0), ratio=(1.0, 1.0))
    >>> erase(Tensor([[[[5.0]]]])).tolist()
    [[[[0.0]]]]
    """

    value: float

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float = 0,
        generator: Generator | None = None,
    ) -> None:
        check_chance("RandomErasing", p)
        if not 0 <= scale[0] <= scale[1] <= 1 or not 0 < ratio[0] <= ratio[1]:
            problem = f"scale={tuple(scale)} or ratio={tuple(ratio)} is no range"
            raise ValueRangeError("RandomErasing", problem, "use (low, high), areas up to 1")
        self.p = p
        self.scale = scale
        self.ratio = ratio
        self.value, self.generator = value, generator

    def apply(self, images: Tensor) -> Tensor:
        """Choose between pixel and value."""
        height, width = images.shape[2:]
        area = self.draw(images, self.scale[0], self.scale[1]) * (height * width)
        ratio = self.draw(images, math.log(self.ratio[0]), math.log(self.ratio[1])).exp()
        rows = (area * ratio).sqrt().round().clamp(0, height).cast("int64")
        columns = (area / ratio).sqrt().round().clamp(0, width).cast("int64")
        top = self.draw_below(images, height - rows + 1)
        left = self.draw_below(images, width - columns + 1)
        is_erased = is_inside(top, rows, 2, images) & is_inside(left, columns, 3, images)
        return choose(~(is_erased & (self.draw(images) < self.p)), images, self.value)


class Cutout(Transform):
    """This class overwrites a window of each image, centred anywhere in it, with zeros.

    Source: DeVries and Taylor, "Improved regularization of convolutional neural networks with
    cutout" (2017).

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> transforms.Cutout(1)(Tensor([[[[5.0]]]])).tolist()
    [[[[0.0]]]]
    """

    size: tuple[int, int]

    def __init__(self, size: int | Sequence[int], generator: Generator | None = None) -> None:
        self.size, self.generator = read_size("Cutout", size), generator

    def apply(self, images: Tensor) -> Tensor:
        """Write zeros inside the window."""
        height, width = self.size
        top = self.draw_below(images, images.shape[2]) - height // 2
        left = self.draw_below(images, images.shape[3]) - width // 2
        is_cut = is_inside(top, height, 2, images) & is_inside(left, width, 3, images)
        return choose(~is_cut, images, 0)


def draw_beta(generator: Generator | None, alpha: float) -> float:
    """Draw from Beta(alpha, alpha) on the host."""
    return float(host_stream(generator).beta(alpha, alpha))


class MixUp:
    """This class mixes each image and its label with its neighbour's in the batch.

    (images, labels) -> (share * images + (1 - share) * rolled, the same of one-hot labels); labels
    are classes (N,) or already probabilities (N, num_classes). The share is drawn once a batch from
    Beta(alpha, alpha), anew at each replay of a jitted step.
    Source: Zhang et al., "mixup: beyond empirical risk minimization" (2018).

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> images, labels = Tensor([1.0, 1.0]).reshape(2, 1, 1, 1), Tensor([0, 1])
    >>> mixed, chances = transforms.MixUp(num_classes=2)(images, labels)
    >>> mixed.flatten().tolist(), [round(each, 4) for each in chances.sum(1).tolist()]
    ([1.0, 1.0], [1.0, 1.0])
    """

    def __init__(
        self, num_classes: int, alpha: float = 1.0, generator: Generator | None = None
    ) -> None:
        check_positive(type(self).__name__, "alpha", alpha)
        self.num_classes = num_classes
        self.alpha = alpha
        self.generator = generator

    def __call__(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Mix a batch and its labels."""
        op = type(self).__name__
        need_tensor(op, images=images, labels=labels)
        if len(images.shape) != 4 or len(labels) != len(images) or len(labels.shape) > 2:
            problem = f"images {tuple(images.shape)} and labels {tuple(labels.shape)} do not fit"
            raise ShapeError(op, problem, "pass (N, C, H, W) and (N,)")
        if not images.dtype.is_float:
            raise DTypeError(op, f"images are {images.dtype.name}", "put ToFloat() before it")
        chances = labels.cast(images.dtype)
        if len(labels.shape) == 1:
            chances = labels.one_hot(self.num_classes).cast(images.dtype)
        mixed, share = self.mix(images, self.draw_share(images))
        return mixed, share * chances + (1 - share) * chances.roll(1, 0)

    def draw_share(self, images: Tensor) -> Tensor:
        """Draw the share of the image itself, as a number that jitted plans renew."""
        draw = functools.partial(draw_beta, self.generator, self.alpha)
        share: Any = note_draw(RuntimeScalar(draw(), draw))
        return Tensor.of(share, device=images.device).cast(images.dtype)

    def mix(self, images: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
        """Mix all pixels; returns the share of the image itself too."""
        return share * images + (1 - share) * images.roll(1, 0), share


class CutMix(MixUp):
    """This class puts a rectangle of its neighbour into each image, and mixes labels by area.

    The rectangle covers a share of 1 - lambda, lambda drawn from Beta(alpha, alpha), centred
    anywhere and cut at the border; it is the same for the whole batch.
    Source: Yun et al., "CutMix: regularization strategy to train strong classifiers" (2019).

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> images, labels = Tensor([1.0, 1.0]).reshape(2, 1, 1, 1), Tensor([0, 1])
    >>> mixed, chances = transforms.CutMix(num_classes=2)(images, labels)
    >>> mixed.flatten().tolist(), chances.sum(1).tolist()
    ([1.0, 1.0], [1.0, 1.0])
    """

    def mix(self, images: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
        """Choose by place; returns the share of pixels that stayed."""
        height, width = images.shape[2:]
        side = (1 - share.float()).sqrt()
        options: dict[str, Any] = {"generator": self.generator, "device": images.device}
        bounds = []
        for size in (height, width):
            centre = (Tensor.rand(1, **options).reshape(()) * size).floor()
            half = (side * size / 2).floor()
            bounds.append(((centre - half).clamp(0, size), (centre + half).clamp(0, size)))
        (top, bottom), (left, right) = bounds
        is_pasted = is_inside(top, bottom - top, 2, images) & is_inside(
            left, right - left, 3, images
        )
        kept = 1 - (bottom - top) * (right - left) / (height * width)
        return choose(~is_pasted, images, images.roll(1, 0)), kept.cast(images.dtype)
