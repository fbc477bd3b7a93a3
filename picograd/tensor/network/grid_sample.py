"""Reading images and volumes at given places: `grid_sample`, and `affine_grid` that makes places.

Source: Jaderberg et al., "Spatial transformer networks" (2015). A place is (x, y) or (x, y, z), -1
and 1 being the ends of an axis. Values are gathered; weights are computed from the places, so that
gradients reach both the input and the grid.
"""

import itertools
import operator
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from picograd.dtype import DType, int32, int64
from picograd.errors import ShapeError, ValueRangeError, check_known
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.room import check_host
from picograd.helpers import product
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.autocast import listed
from picograd.tensor.core.function import within
from picograd.tensor.core.recording import Recorded, apply
from picograd.tensor.core.repeated import repeated
from picograd.tensor.indexing.indexing import gather

PADDINGS = ("zeros", "border", "reflection")
Spot = tuple[Node, Node]  # a place of an axis inside it, and where that is the one wanted
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
    sizes = tuple(size)
    rank = len(sizes) - 2
    if rank not in (2, 3) or tuple(theta.shape) != (sizes[0], rank, rank + 1):
        text = f"theta {tuple(theta.shape)} does not fit size {sizes}"
        raise ShapeError(op, text, "pass (N, 2, 3) with 4 sizes or (N, 3, 4) with 5")
    if any(each < 1 for each in sizes):
        raise ShapeError(op, f"size {sizes} is not positive", "use sizes of 1 or more")
    check_host(op, product(sizes[2:]) * (rank + 1))
    places = places_of(sizes[2:], bool(align_corners), theta.dtype, theta.device) @ theta.mT
    return places.reshape(sizes[0], *sizes[2:], rank)


@lru_cache(4)  # each has all places of a picture
def places_of(sizes: tuple[int, ...], align_corners: bool, dtype: DType, device: str) -> Tensor:
    """Bring the places of a map that moves nothing to a device, once, a row and 1 for each."""
    ends = [line(each, align_corners) for each in sizes]
    mesh = np.meshgrid(*ends, indexing="ij")[::-1]  # x, the last axis, comes first
    base = np.stack([*mesh, np.ones(sizes)], -1).reshape(-1, len(sizes) + 1)
    return Recorded.kind.of(base, dtype, device)


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
    return apply(sampled, input, grid, mode, padding_mode, bool(align_corners))


@repeated
def sampled(node: Node, grid: Node, mode: str, padding: str, align: bool) -> Node:
    """Record `grid_sample`, 16-bit floats in float32."""
    x, places = node.accumulated(), grid.accumulated()
    batch, *target, rank = grid.shape
    count = product(target)
    places = places.reshape((batch, count, rank))
    coordinates = []  # of the axes from the first spatial one on, so the reverse of (x, y, z)
    for axis, size in enumerate(x.shape[2:]):
        at = rank - 1 - axis
        place = places.slice(((0, batch, 1), (0, count, 1), (at, at + 1, 1)))
        place = place.reshape((batch, count)) + 1.0
        wide = place * ((size - 1) / 2) if align else (place * float(size) - 1.0) / 2.0
        coordinates.append(wide)
    if mode == "bicubic":
        found = sample_cubic(x, coordinates, padding, align)
    elif mode == "nearest":
        padded = [pad_place(c, n, padding, align) for c, n in zip(coordinates, x.shape[2:])]
        found = corner(x, [spot(c.unary("round"), n) for c, n in zip(padded, x.shape[2:])])
    else:
        padded = [pad_place(c, n, padding, align) for c, n in zip(coordinates, x.shape[2:])]
        found = sample_linear(x, padded)
    return found.reshape((*x.shape[:2], *target)).cast(node.dtype)


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


def pad_place(place: Node, size: int, padding: str, align: bool) -> Node:
    """Bring places outside an axis back to it; zeros stay outside.

    Those at its ends count as outside, as in PyTorch: where they move changes nothing.
    """
    if padding == "zeros":
        return place
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
        place = reflect(place, low, high)
    end = float(size - 1)
    is_above = place.const_like(0.0).binary("less", place)  # not of NaN, which goes to 0
    is_inside = is_above.binary("logical_and", place.binary("less", end))
    nearest = is_above.where(place.binary("minimum", end), 0.0)
    return is_inside.where(place, build.detach(nearest))


def reflect(place: Node, low: float, high: float) -> Node:
    """Fold the line at `low` and `high`, again and again."""
    span = high - low
    if not span:
        return place * 0.0
    away = (place - low).unary("abs")
    turns = build.detach((away / span).unary("floor"))
    rest = away - turns * span
    is_odd = turns.binary("mod", 2.0).binary("equal", 1.0)
    return is_odd.where(span - rest, rest) + low


def spot(place: Node, size: int) -> Spot:
    """Find the element of an axis at whole places, and where there is one."""
    is_above = place.const_like(0.0).binary("less_equal", place)
    within = is_above.binary("logical_and", place.binary("less_equal", float(size - 1)))
    index = build.detach(place).cast(int32)  # of NaN too: nobody need look at the values
    return index.binary("maximum", 0).binary("minimum", size - 1), within


def corner(x: Node, spots: Sequence[Spot]) -> Node:
    """Gather what lies at spots, zero outside: (N, C, *S), (N, T) -> (N, C, T).

    Where they are is the same for every channel: one number a spot, stored, which is negative
    outside.
    """
    indices, within = zip(*spots)
    inside = reduce(lambda a, b: a.binary("logical_and", b), within)
    size = product(x.shape[2:])
    place = indices[0].cast(int32 if size < 1 << 31 else int64)
    for index, length in zip(indices[1:], x.shape[3:]):
        place = place * length + index
    place = over_channels(build.contiguous(inside.where(place, -1)), x)
    flat = x.reshape((*x.shape[:2], size))
    found = gather("grid_sample", flat, 2, place.binary("maximum", 0))
    return place.binary("less", 0).where(found.const_like(0.0), found)


def over_channels(values: Node, x: Node) -> Node:
    """Repeat (N, T) for every channel."""
    batch, count = values.shape
    return values.reshape((batch, 1, count)).expand((batch, x.shape[1], count))


def weighed(x: Node, axes: Sequence[Sequence[tuple[Spot, Node]]]) -> Node:
    """Add up what lies at all combinations of spots of each axis, times the spots' weights."""
    parts = []
    for chosen in itertools.product(*axes):
        spots, weights = zip(*chosen)
        parts.append(corner(x, spots) * over_channels(reduce(operator.mul, weights), x))
    return reduce(operator.add, parts)


def sample_linear(x: Node, places: Sequence[Node]) -> Node:
    """Weigh the 2^rank corners around each place."""
    axes = []
    for place, size in zip(places, x.shape[2:]):
        low = build.detach(place.unary("floor"))
        share = place - low
        axes.append([(spot(low, size), 1.0 - share), (spot(low + 1.0, size), share)])
    return weighed(x, axes)


def sample_cubic(x: Node, places: Sequence[Node], padding: str, align: bool) -> Node:
    """Weigh the 4 x 4 neighbours of each place."""
    axes = []
    for place, size in zip(places, x.shape[2:]):
        low = build.detach(place.unary("floor"))
        near = [pad_place(low + step, size, padding, align) for step in (-1.0, 0.0, 1.0, 2.0)]
        spots = [spot(each.unary("round"), size) for each in near]
        axes.append(list(zip(spots, cubic_weights(place - low))))
    return weighed(x, axes)


def cubic_weights(share: Node) -> list[Node]:
    """Compute the weights of the neighbours at -1, 0, 1 and 2 by Keys's kernel (1981)."""

    def near(d: Node) -> Node:
        return (d * (CUBIC + 2) - (CUBIC + 3)) * d * d + 1.0

    def far(d: Node) -> Node:
        return (((d - 5.0) * d + 8.0) * d - 4.0) * CUBIC

    return [far(share + 1.0), near(share), near(1.0 - share), far(2.0 - share)]
