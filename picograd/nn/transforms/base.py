"""The interface of transforms, their composition, and what random transforms draw."""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.errors import DTypeError, ShapeError, ValueRangeError, check_least
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.making.random import Generator
from picograd.tensor.tensor import Tensor


class Transform:
    """This class is the base of transforms of batches: `apply` is all that one defines.

    Raises ShapeError for a batch that is not (N, C, H, W), DTypeError for what is no tensor.

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> class Invert(transforms.Transform):
    ...     def apply(self, images):
    ...         return 1 - images
    >>> Invert()(Tensor([[[[0.25]]]])).tolist()
    [[[[0.75]]]]
    """

    generator: Generator | None = None

    def __call__(self, images: Tensor) -> Tensor:
        """Check a batch and transform it."""
        op = type(self).__name__
        need_tensor(op, images)
        if len(images.shape) != 4:
            problem = f"images of shape {tuple(images.shape)} are no batch (N, C, H, W)"
            raise ShapeError(op, problem, "add the batch axis: images[None]")
        return self.apply(images)

    def apply(self, images: Tensor) -> Tensor:
        """Transform a checked batch."""
        raise NotImplementedError(f"{type(self).__name__} has to define apply")

    def draw(self, images: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Draw one number from [low, high) for each image, as (N, 1, 1, 1)."""
        size = (len(images), 1, 1, 1)
        return low + (high - low) * Tensor.rand(
            size, generator=self.generator, device=images.device
        )

    def draw_below(self, images: Tensor, count: Tensor | int) -> Tensor:
        """Draw one whole number from 0, 1, ..., count - 1 for each image, as (N, 1, 1, 1)."""
        return (self.draw(images) * count).floor().cast("int64")


class Compose:
    """This class applies transforms, or any functions of a batch, one after the other.

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> halves = transforms.Compose([transforms.Normalize([0.0], [2.0]), lambda images: images + 1])
    >>> halves(Tensor([[[[4.0]]]])).tolist()
    [[[[3.0]]]]
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = list(transforms)
        for transform in self.transforms:
            if not callable(transform):
                problem = f"{type(transform).__name__} is no function of a batch"
                raise DTypeError("Compose", problem, "pass a list of transforms")

    def __call__(self, images: Any) -> Any:
        """Apply the transforms in order."""
        for transform in self.transforms:
            images = transform(images)
        return images


def check_chance(op: str, p: float) -> None:
    """Raise unless p is a probability."""
    if not 0 <= p <= 1:
        raise ValueRangeError(op, f"p={p} is no probability", "use 0 to 1")


def read_size(op: str, size: int | Sequence[int]) -> tuple[int, int]:
    """Read (height, width), or one number for both."""
    height, width = (size, size) if isinstance(size, int) else size
    if height < 1 or width < 1:
        raise ValueRangeError(op, f"size={size} is not positive", "use 1 or more")
    return int(height), int(width)


def read_range(
    op: str, name: str, value: float | Sequence[float], centre: float
) -> tuple[float, float]:
    """Read (low, high), or one number: that much around a centre."""
    if isinstance(value, (int, float)):
        check_least(op, name, value)
        return centre - value, centre + value
    low, high = value
    if low > high:
        raise ValueRangeError(op, f"{name}={tuple(value)} is empty", "use (low, high)")
    return float(low), float(high)
