"""Transforms of places: crops, flips, padding, sizes, rotations and other affine maps."""

import math
from collections.abc import Sequence

from picograd.errors import ShapeError, ValueRangeError
from picograd.nn.functional_basic import pad
from picograd.nn.transforms.base import Transform, check_chance, read_range, read_size
from picograd.nn.transforms.values import choose
from picograd.tensor.making.random import Generator
from picograd.tensor.network.grid_sample import affine_grid, grid_sample
from picograd.tensor.network.interpolation import interpolate
from picograd.tensor.public import stack, where
from picograd.tensor.tensor import Tensor


def read_padding(op: str, padding: int | Sequence[int]) -> tuple[int, int, int, int]:
    """Read (left, top, right, bottom), (across, down) or one number, as torchvision does."""
    sides = (padding,) * 4 if isinstance(padding, int) else tuple(padding)
    sides = sides * 2 if len(sides) == 2 else sides
    if len(sides) != 4 or min(sides) < 0:
        problem = f"padding={padding} is not 1, 2 or 4 numbers of at least 0"
        raise ValueRangeError(op, problem, "use (left, top, right, bottom)")
    left, top, right, bottom = sides
    return left, top, right, bottom


class Pad(Transform):
    """This class adds a border: constant, edge (repeated), reflect or circular.

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> transforms.Pad((1, 0), fill=7)(Tensor([[[[1.0, 2.0]]]])).tolist()
    [[[[7.0, 1.0, 2.0, 7.0]]]]
    """

    def __init__(
        self, padding: int | Sequence[int], fill: float = 0, padding_mode: str = "constant"
    ) -> None:
        self.sides: tuple[int, int, int, int] = read_padding("Pad", padding)
        self.fill: float = fill
        self.mode: str = "replicate" if padding_mode == "edge" else padding_mode

    def apply(self, images: Tensor) -> Tensor:
        """Pad left, right, top, bottom."""
        left, top, right, bottom = self.sides
        sides = (left, right, top, bottom)
        if self.mode == "constant":
            return pad(images, sides, value=self.fill)
        return pad(images, sides, self.mode)


class CenterCrop(Transform):
    """This class cuts out the middle; an image that is smaller gets a border of zeros.

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> transforms.CenterCrop((1, 2))(Tensor([[[[1.0, 2.0, 3.0, 4.0]]]])).tolist()
    [[[[2.0, 3.0]]]]
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size: tuple[int, int] = read_size("CenterCrop", size)

    def apply(self, images: Tensor) -> Tensor:
        """Pad what is missing, then cut."""
        height, width = self.size
        down, across = (max(0, a - b) for a, b in zip(self.size, images.shape[2:]))
        if down or across:
            sides = (across // 2, (across + 1) // 2, down // 2, (down + 1) // 2)
            images = pad(images, sides)
        top, left = (round((a - b) / 2) for a, b in zip(images.shape[2:], self.size))
        return images[:, :, top : top + height, left : left + width]


class Resize(Transform):
    """This class resamples to (height, width); one number is the shorter side's.

    `mode` is one of `nn.functional.interpolate`: bilinear, bicubic, nearest, area, ... With
    `antialias`, bilinear and bicubic average what they shrink. Whole numbers are rounded back.

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> transforms.Resize((1, 2), mode="nearest")(Tensor([[[[1.0, 2.0, 3.0, 4.0]]]])).tolist()
    [[[[1.0, 3.0]]]]
    """

    def __init__(
        self, size: int | Sequence[int], mode: str = "bilinear", antialias: bool = True
    ) -> None:
        self.size = size
        self.mode = mode
        self.antialias: bool = antialias and mode in ("bilinear", "bicubic")
        read_size("Resize", size)

    def apply(self, images: Tensor) -> Tensor:
        """Interpolate."""
        size = self.size
        if isinstance(size, int):
            height, width = images.shape[2:]
            short = min(height, width)
            size = (size * height // short, size * width // short)
        values = images if images.dtype.is_float else images.cast("float32")
        resized = interpolate(values, tuple(size), mode=self.mode, antialias=self.antialias)
        return resized if images.dtype.is_float else resized.round().cast(images.dtype)


class RandomHorizontalFlip(Transform):
    """This class mirrors each image left to right with probability p.

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> transforms.RandomHorizontalFlip(p=1.0)(Tensor([[[[1.0, 2.0]]]])).tolist()
    [[[[2.0, 1.0]]]]
    """

    p: float

    axis = 3

    def __init__(self, p: float = 0.5, generator: Generator | None = None) -> None:
        check_chance(type(self).__name__, p)
        self.p, self.generator = p, generator

    def apply(self, images: Tensor) -> Tensor:
        """Choose between the images and their mirror images."""
        return where(self.draw(images) < self.p, images.flip(self.axis), images)


class RandomVerticalFlip(RandomHorizontalFlip):
    """This class mirrors each image top to bottom with probability p.

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> transforms.RandomVerticalFlip(p=1.0)(Tensor([[[[1.0], [2.0]]]])).tolist()
    [[[[2.0], [1.0]]]]
    """

    axis = 2


def count_up(count: int, images: Tensor) -> Tensor:
    """Make 0, 1, ..., count - 1 where the images are."""
    return Tensor.arange(count, device=images.device)


class RandomCrop(Transform):
    """This class cuts a window of `size` out of each image, at a random place.

    The image is first padded (as by `Pad` with `fill`), in thought: no padded copy is made.
    Raises ShapeError when the window is larger than the padded image.

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> transforms.RandomCrop((1, 2))(Tensor([[[[1.0, 2.0]]]])).tolist()
    [[[[1.0, 2.0]]]]
    """

    fill: float

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] = 0,
        fill: float = 0,
        generator: Generator | None = None,
    ) -> None:
        self.size: tuple[int, int] = read_size("RandomCrop", size)
        self.sides: tuple[int, int, int, int] = read_padding("RandomCrop", padding)
        self.fill, self.generator = fill, generator

    def apply(self, images: Tensor) -> Tensor:
        """Read the pixels of each window, and `fill` outside the image."""
        count, channels, height, width = images.shape
        left, top, right, bottom = self.sides
        room = (height + top + bottom - self.size[0], width + left + right - self.size[1])
        if min(room) < 0:
            problem = f"a window of {self.size} does not fit into images of {(height, width)}"
            raise ShapeError("RandomCrop", problem, "use a smaller size, or padding")
        # First row and column of each window, in the image without padding.
        first_row = self.draw_below(images, room[0] + 1) - top  # N 1 1 1
        first_column = self.draw_below(images, room[1] + 1) - left
        rows = first_row + count_up(self.size[0], images).reshape(-1, 1)  # N 1 h 1
        columns = first_column + count_up(self.size[1], images)  # N 1 1 w
        cut = images[
            count_up(count, images).reshape(-1, 1, 1, 1),
            count_up(channels, images).reshape(-1, 1, 1),
            rows.clamp(0, height - 1),
            columns.clamp(0, width - 1),
        ]
        if not any(self.sides):
            return cut
        is_row = (rows >= 0) & (rows < height)
        return choose(is_row & (columns >= 0) & (columns < width), cut, self.fill)


class RandomAffine(Transform):
    """This class rotates, shifts, scales and shears each image about its centre, at random.

    degrees     rotation, counter-clockwise, from [-degrees, degrees] or (low, high)
    translate   largest shift (across, down) as shares of width and height
    scale       factor from (low, high)
    shear       horizontal shear in degrees, from [-shear, shear] or (low, high)

    Between pixels `mode` interpolates (bilinear, nearest, bicubic); outside lie zeros. Output pixel
    p is read at centre + M^-1 (p - centre - shift), with M = rotation * shear * scale.

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> transforms.RandomAffine(0)(Tensor([[[[1.0, 2.0]]]])).tolist()
    [[[[1.0, 2.0]]]]
    """

    mode: str
    translate: tuple[float, ...]

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] = (0.0, 0.0),
        scale: Sequence[float] = (1.0, 1.0),
        shear: float | Sequence[float] = 0,
        mode: str = "bilinear",
        generator: Generator | None = None,
    ) -> None:
        op = type(self).__name__
        self.degrees: tuple[float, float] = read_range(op, "degrees", degrees, 0.0)
        self.scale: tuple[float, float] = read_range(op, "scale", scale, 1.0)
        self.shear: tuple[float, float] = read_range(op, "shear", shear, 0.0)
        self.translate, self.mode, self.generator = tuple(translate), mode, generator
        if not all(0 <= share <= 1 for share in self.translate) or self.scale[0] <= 0:
            problem = f"translate={self.translate} or scale={self.scale} is out of range"
            raise ValueRangeError(op, problem, "shift by 0 to 1, scale by numbers above 0")

    def apply(self, images: Tensor) -> Tensor:
        """Read every output pixel at its place in the input."""
        height, width = images.shape[2:]
        radians = math.pi / 180
        angle = self.draw(images, *self.degrees).reshape(-1) * radians
        slope = (self.draw(images, *self.shear).reshape(-1) * radians).tan()
        scale = self.draw(images, *self.scale).reshape(-1)
        right, down = (self.draw(images, -t, t).reshape(-1) * 2 for t in self.translate)
        cosine, sine = angle.cos() / scale, angle.sin() / scale
        # Inverse map in pixels, y pointing down; then in units of half a width and half a height.
        a, b, c, d = cosine + slope * sine, slope * cosine - sine, sine, cosine
        b, c = b * (height / width), c * (width / height)
        rows = [
            stack([a, b, -(a * right + b * down)], 1),
            stack([c, d, -(c * right + d * down)], 1),
        ]
        theta = stack(rows, 1)
        values = images if images.dtype.is_float else images.cast("float32")
        grid = affine_grid(theta, tuple(images.shape), align_corners=False).cast(values.dtype)
        moved = grid_sample(values, grid, self.mode, "zeros", align_corners=False)
        return moved if images.dtype.is_float else moved.round().cast(images.dtype)


class RandomRotation(RandomAffine):
    """This class rotates each image about its centre by an angle from [-degrees, degrees].

    >>> from picograd import Tensor
    >>> from picograd.nn import transforms
    >>> turned = transforms.RandomRotation((90, 90))(Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]))
    >>> turned.round().tolist()
    [[[[2.0, 4.0], [1.0, 3.0]]]]
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        mode: str = "bilinear",
        generator: Generator | None = None,
    ) -> None:
        super().__init__(degrees, mode=mode, generator=generator)
