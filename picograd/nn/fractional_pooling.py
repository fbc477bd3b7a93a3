"""Max pooling over windows whose places are drawn at random (Graham, 2014)."""

from typing import Any

from picograd.errors import ShapeError
from picograd.nn.init import per_axis
from picograd.nn.module import Module
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.function import within
from picograd.tensor.public import arange, cat, rand
from picograd.tensor.tensor import Tensor

Sizes = int | tuple[int, ...]
Ratios = float | tuple[float, ...]


def starts(samples: Tensor, size: int, kernel: int, count: int) -> Tensor:
    """Place `count` windows along an axis: they advance by size / count on average.

    `samples` (N, C) in [0, 1) say where rounding goes up; the last window ends with the axis.
    """
    last = (samples[..., None] * 0).long() + (size - kernel)
    if count == 1:
        return last
    step = (size - kernel) / (count - 1)
    places = arange(count - 1, device=samples.device).to(samples.dtype)
    moved = ((places + samples[..., None]) * step).floor()
    return cat([(moved - (samples[..., None] * step).floor()).long(), last], -1)


def check_one_is_given(name: str, output_size: Any, output_ratio: Any) -> None:
    """Raise unless the number of windows is said in one of two ways."""
    if (output_size is None) == (output_ratio is None):
        problem = "one of output_size and output_ratio says how many windows there are"
        raise ShapeError(name, problem, "pass one of them")


def check_windows(name: str, sizes: Any, kernel: Any, counts: Any) -> None:
    """Raise unless the windows fit into the axes."""
    for size, width, count in zip(sizes, kernel, counts):
        if count < 1 or size < width + count - 1:
            problem = f"{count} windows of {width} do not fit into {size}"
            raise ShapeError(name, problem, "choose fewer or smaller windows")


def fractional_max_pool(
    name: str,
    axes: int,
    x: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None,
    output_ratio: Ratios | None,
    samples: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Pool (N, C, *S), or (C, *S); gives maxima and their places in the flattened axes."""
    need_tensor(name, x)
    check_one_is_given(name, output_size, output_ratio)
    if x.ndim == axes + 1:
        found = fractional_max_pool(
            name, axes, x[None], kernel_size, output_size, output_ratio, samples
        )
        return found[0][0], found[1][0]
    sizes, kernel = x.shape[2:], per_axis(name, kernel_size, axes, "kernel_size")
    if output_ratio is not None:
        ratios = output_ratio if isinstance(output_ratio, tuple) else (output_ratio,) * axes
        output_size = tuple(int(size * ratio) for size, ratio in zip(sizes, ratios))
    counts = per_axis(name, output_size or 0, axes, "output_size")
    check_windows(name, sizes, kernel, counts)
    if samples is None:
        samples = rand(*x.shape[:2], axes, dtype=x.dtype, device=x.device)
    samples = samples[: x.shape[0]]
    # the samples of images are (W, H), those of volumes (T, H, W)
    order = range(axes)[::-1] if axes == 2 else range(axes)
    place = (samples[..., 0] * 0).long()  # N C, then windows and what is inside of each axis
    for axis, sample in zip(range(axes), order):
        first = starts(samples[..., sample], sizes[axis], kernel[axis], counts[axis])
        rows = first[..., None] + arange(kernel[axis], device=x.device)
        rows = rows.reshape(*rows.shape[:2], *[1] * (2 * axis), *rows.shape[2:])
        place = place[..., None, None] * sizes[axis] + rows
    inner = [2 + 2 * axis for axis in range(axes)]
    order_of_axes = [0, 1, *inner, *(axis + 1 for axis in inner)]
    place = place.permute(order_of_axes).flatten(2 + axes)  # N C *counts K
    values = x.flatten(2).gather(2, place.flatten(2)).reshape(place.shape)
    best = values.argmax(-1, keepdim=True)
    return values.gather(-1, best)[..., 0], place.gather(-1, best)[..., 0]


@within("functional")
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Take the largest element of windows at random places, as many as asked for.

    >>> from picograd import Tensor, nn
    >>> nn.functional.fractional_max_pool2d(Tensor.ones(1, 1, 5, 5), 2, output_size=3).shape
    (1, 1, 3, 3)
    """
    settings = kernel_size, output_size, output_ratio, _random_samples
    found = fractional_max_pool("fractional_max_pool2d", 2, input, *settings)
    return found if return_indices else found[0]


@within("functional")
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Take the largest element of windows at random places, as many as asked for.

    >>> from picograd import Tensor, nn
    >>> nn.functional.fractional_max_pool3d(Tensor.ones(1, 1, 5, 5, 5), 2, output_ratio=0.5).shape
    (1, 1, 2, 2, 2)
    """
    settings = kernel_size, output_size, output_ratio, _random_samples
    found = fractional_max_pool("fractional_max_pool3d", 3, input, *settings)
    return found if return_indices else found[0]


class FractionalMaxPool(Module):
    """This class holds the sizes of windows at random places."""

    axes: int
    _random_samples: Tensor | None

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: Ratios | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        name = type(self).__name__
        check_one_is_given(name, output_size, output_ratio)
        self.kernel_size = per_axis(name, kernel_size, self.axes, "kernel_size")
        self.output_size, self.output_ratio = output_size, output_ratio
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Any:
        """Pool; with `return_indices` (maxima, places)."""
        settings = self.kernel_size, self.output_size, self.output_ratio, self._random_samples
        found = fractional_max_pool(type(self).__name__, self.axes, input, *settings)
        return found if self.return_indices else found[0]


class FractionalMaxPool2d(FractionalMaxPool):
    """This class takes maxima of windows at random places of (B, C, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.FractionalMaxPool2d(2, output_size=(3, 2))(Tensor.ones(1, 1, 6, 6)).shape
    (1, 1, 3, 2)
    """

    axes = 2


class FractionalMaxPool3d(FractionalMaxPool):
    """This class takes maxima of windows at random places of (B, C, D, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.FractionalMaxPool3d(2, output_ratio=0.5)(Tensor.ones(1, 1, 6, 6, 6)).shape
    (1, 1, 3, 3, 3)
    """

    axes = 3
