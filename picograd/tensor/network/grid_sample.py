"""Reading images and volumes at given places: `grid_sample`, and `affine_grid` that makes places.

Source: Jaderberg et al., "Spatial transformer networks" (2015). A place is (x, y) or (x, y, z), -1
and 1 being the ends of an axis. Values are gathered; weights are computed from the places, so that
gradients reach both the input and the grid.
"""

import itertools
import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from picograd.errors import ShapeError, ValueRangeError, check_known
from picograd.graph.room import check_host
from picograd.helpers import product
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.arguments import from_host, need_tensor, positions
from picograd.tensor.core.autocast import listed
from picograd.tensor.core.function import within

PADDINGS = ("zeros", "border", "reflection")
Spot = tuple[Tensor, Tensor]  # a place of an axis inside it, and where that is the one wanted
CUBIC = -0.75  # the free slope of Keys's kernel (1981), as `interpolate` has it


@within("functional")
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = False) -> Tensor:
    """Make the places of an affine map: (N, 2, 3) -> (N, H, W, 2), (N, 3, 4) -> (N, D, H, W, 3).

    `size` is that of the output, (N, C, H, W) or (N, C, D, H, W).

    >>> theta = picograd.Tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> picograd.nn.functional.affine_grid(theta, (1, 1, 1, 2)).tolist()
    [[[[-0.5, 0.0], [0.5, 0.0]]]]
    """
    op = "affine_grid"
    need_tensor(op, theta)
    sizes = tuple(size)
    rank = len(sizes) - 2
    if rank not in (2, 3) or tuple(theta.shape) != (sizes[0], rank, rank + 1):
        text = f"theta {tuple(theta.shape)} does not fit size {sizes}"
        raise ShapeError(op, text, "pass (N, 2, 3) with 4 sizes or (N, 3, 4) with 5")
    if any(each < 1 for each in sizes):
        raise ShapeError(op, f"size {sizes} is not positive", "use sizes of 1 or more")
    check_host(op, product(sizes[2:]) * (rank + 1))
    ends = [line(each, bool(align_corners)) for each in sizes[2:]]
    mesh = np.meshgrid(*ends, indexing="ij")[::-1]  # x, the last axis, comes first
    base = np.stack([*mesh, np.ones(sizes[2:])], -1).reshape(-1, rank + 1)
    places = from_host(base, theta).cast(theta.dtype) @ theta.mT
    return places.reshape(sizes[0], *sizes[2:], rank)


def line(size: int, align_corners: bool) -> Any:
    """Space the samples of an axis over -1..1."""
    if align_corners:
        return np.linspace(-1, 1, size) if size > 1 else np.zeros(1)
    return (2 * np.arange(size) + 1) / size - 1


@within("functional")
@listed
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Read an input at the places of a grid: (N, C, *S), (N, *T, rank) -> (N, C, *T).

    `mode` is "bilinear" (in volumes: trilinear), "nearest" or "bicubic" (images alone). Outside
    lie zeros, the border repeated, or reflections. With `align_corners` -1 and 1 are the centres
    of the outermost elements, else their outer edges.

    >>> x = picograd.Tensor([[[[1.0, 3.0]]]])
    >>> picograd.nn.functional.grid_sample(x, picograd.Tensor([[[[0.0, 0.0]]]])).tolist()
    [[[[2.0]]]]
    """
    check_grid(input, grid, mode, padding_mode)
    is_half = input.dtype.bits == 16
    x, places = (input.float(), grid.float()) if is_half else (input, grid)
    align = bool(align_corners)
    sizes = tuple(input.shape[2:])
    coordinates = []  # of the axes from the first spatial one on, so the reverse of (x, y, z)
    for axis, size in enumerate(sizes):
        place = places[..., len(sizes) - 1 - axis]
        wide = (place + 1) * ((size - 1) / 2) if align else ((place + 1) * size - 1) / 2
        coordinates.append(wide)
    if mode == "bicubic":
        return sample_cubic(x, coordinates, padding_mode, align).cast(input.dtype)
    padded = [pad_place(c, size, padding_mode, align) for c, size in zip(coordinates, sizes)]
    if mode == "nearest":
        spots = [spot(c.round(), size) for c, size in zip(padded, sizes)]
        return corner(x, spots).cast(input.dtype)
    return sample_linear(x, padded).cast(input.dtype)


def check_grid(x: Tensor, grid: Tensor, mode: str, padding: str) -> None:
    """Raise for shapes that do not fit and names that are not known."""
    op = "grid_sample"
    need_tensor(op, x, grid)
    rank = x.ndim - 2
    fits = rank in (2, 3) and grid.ndim == x.ndim and grid.shape[-1] == rank
    if not fits or grid.shape[0] != x.shape[0] or 0 in x.shape[2:]:
        text = f"input {tuple(x.shape)} does not fit grid {tuple(grid.shape)}"
        raise ShapeError(op, text, "pass (N, C, H, W) with (N, H', W', 2), or volumes with 3")
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and rank != 2):
        raise ValueRangeError(op, f"mode={mode!r}", "use bilinear or nearest; for images bicubic")
    check_known(op, "padding_mode", padding, PADDINGS)
    if x.dtype is not grid.dtype or not x.dtype.is_float:
        text = f"input is {x.dtype.name} and grid {grid.dtype.name}"
        raise ValueRangeError(op, text, "use one float dtype")


def pad_place(place: Tensor, size: int, padding: str, align: bool) -> Tensor:
    """Bring places outside an axis back to it; zeros stay outside."""
    if padding == "zeros":
        return place
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
        place = reflect(place, low, high)
    return place.clamp(0.0, float(size - 1))


def reflect(place: Tensor, low: float, high: float) -> Tensor:
    """Fold the line at `low` and `high`, again and again."""
    span = high - low
    if not span:
        return place * 0
    away = (place - low).abs()
    turns = (away / span).floor().detach()
    rest = away - turns * span
    is_odd = turns % 2 == 1
    return is_odd.where(span - rest, rest) + low


def spot(place: Tensor, size: int) -> Spot:
    """Find the element of an axis at whole places, and where there is one."""
    within = (place >= 0).logical_and(place <= size - 1)
    index = place.detach().clamp(0, size - 1).long()
    return index.clamp(0, size - 1), within  # of NaN too: nobody need look at the values


def corner(x: Tensor, spots: Sequence[Spot]) -> Tensor:
    """Gather what lies at spots, zero outside: (N, C, *S) -> (N, C, *T)."""
    indices, within = zip(*spots)
    inside = reduce(operator.and_, within)
    items = (positions(x.shape[0], indices[0]), *indices)
    found = x.movedim(1, -1)[items]  # N, *T, C
    return inside.unsqueeze(-1).where(found, 0.0).movedim(-1, 1)


def weighed(x: Tensor, axes: Sequence[Sequence[tuple[Spot, Tensor]]]) -> Tensor:
    """Add up what lies at all combinations of spots of each axis, times the spots' weights."""
    total: Any = None
    for chosen in itertools.product(*axes):
        spots, weights = zip(*chosen)
        part = corner(x, spots) * reduce(operator.mul, weights).unsqueeze(1)
        total = part if total is None else total + part
    return total


def sample_linear(x: Tensor, places: Sequence[Tensor]) -> Tensor:
    """Weigh the 2^rank corners around each place."""
    axes = []
    for place, size in zip(places, x.shape[2:]):
        low = place.floor().detach()
        share = place - low
        axes.append([(spot(low, size), 1 - share), (spot(low + 1, size), share)])
    return weighed(x, axes)


def sample_cubic(x: Tensor, places: Sequence[Tensor], padding: str, align: bool) -> Tensor:
    """Weigh the 4 x 4 neighbours of each place."""
    axes = []
    for place, size in zip(places, x.shape[2:]):
        low = place.floor().detach()
        near = [pad_place(low + step, size, padding, align).round() for step in (-1, 0, 1, 2)]
        spots = [spot(each, size) for each in near]
        axes.append(list(zip(spots, cubic_weights(place - low))))
    return weighed(x, axes)


def cubic_weights(share: Tensor) -> list[Tensor]:
    """Compute the weights of the neighbours at -1, 0, 1 and 2 by Keys's kernel (1981)."""

    def near(d: Tensor) -> Tensor:
        return ((CUBIC + 2) * d - (CUBIC + 3)) * d * d + 1

    def far(d: Tensor) -> Tensor:
        return (((d - 5) * d + 8) * d - 4) * CUBIC

    return [far(share + 1), near(share), near(1 - share), far(2 - share)]
