"""ONNX operators of pictures: resizing, sampling at places, regions."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import picograd.nn.functional as functional
from picograd.helpers import lying_along
from picograd.late_methods import dataclass
from picograd.onnx.table import Array, Call, Value, ints, operator
from picograd.tensor.public import stack, where
from picograd.tensor.tensor import Tensor

MODES = {"bilinear": "bilinear", "linear": "bilinear", "nearest": "nearest",
         "bicubic": "bicubic", "cubic": "bicubic"}  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """This class is how one axis is resized: sizes, scale, and the part that is looked at."""

    size: int
    new: int
    scale: float
    begin: float = 0.0
    end: float = 1.0


PLACES: dict[str, Callable[[Array, Axis], Array]] = {  # of an output element in the input
    "half_pixel": lambda x, a: (x + 0.5) / a.scale - 0.5,
    "asymmetric": lambda x, a: x / a.scale,
    "align_corners": lambda x, a: x * (a.size - 1) / max(a.scale * a.size - 1, 1e-9)
    if a.new > 1 else x * 0.0,
    "pytorch_half_pixel": lambda x, a: (x + 0.5) / a.scale - 0.5 if a.new > 1 else x * 0.0,
    "tf_half_pixel_for_nn": lambda x, a: (x + 0.5) / a.scale,
    "half_pixel_symmetric": lambda x, a: a.size / 2 * (1 - a.new / (a.scale * a.size))
    + (x + 0.5) / a.scale - 0.5,
    "tf_crop_and_resize": lambda x, a: a.begin * (a.size - 1)
    + (x * (a.end - a.begin) * (a.size - 1) / (a.new - 1) if a.new > 1
       else x * 0 + 0.5 * (a.end - a.begin) * (a.size - 1)),
}  # fmt: skip
NEAREST: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


@operator("Resize", since=11)
def resize(
    call: Call, x: Value, roi: Value = None, scales: Value = None, sizes: Value = None,
    antialias: int = 0, axes: Any = None, coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75, exclude_outside: int = 0, extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:  # fmt: skip
    """Give a picture other sizes; every axis on its own."""
    x = call.tensor(x)
    which = [axis % x.ndim for axis in axes] if axes else list(range(x.ndim))
    factors = [] if scales is None else [float(each) for each in call.host(scales)]
    wanted = [] if sizes is None else ints(call.host(sizes))
    region = None if roi is None else call.host(roi).astype(np.float64)
    plan = planned([x.shape[n] for n in which], factors, wanted, keep_aspect_ratio_policy)
    crops = coordinate_transformation_mode == "tf_crop_and_resize"
    for place, (axis, how) in enumerate(zip(which, plan)):
        if crops and region is not None and region.size:
            how = Axis(how.size, how.new, how.scale, *map(float, region[place :: len(which)]))
        if how.size == how.new and how.scale == 1 and not crops:
            continue
        at = PLACES[coordinate_transformation_mode](np.arange(how.new, dtype=np.float64), how)
        if mode == "nearest":
            nearest = np.clip(NEAREST[nearest_mode](at), 0, how.size - 1).astype(np.int64)
            x = x.index_select(axis, Tensor(nearest))
        else:
            cubic = cubic_coeff_a if mode == "cubic" else None
            weights = weights_of(at, how, cubic, bool(antialias), bool(exclude_outside))
            x = apply_weights(x, weights, axis)
        if crops:
            x = filled_outside(x, (at >= 0) & (at <= how.size - 1), axis, extrapolation_value)
    return x


def filled_outside(x: Tensor, inside: Array, axis: int, value: float) -> Tensor:
    """Write a value where an axis was read outside the picture."""
    return where(Tensor(inside.reshape(lying_along(axis, x.ndim))), x, value).to(x.dtype)


def planned(have: list[int], scales: list[float], sizes: list[int], policy: str) -> list[Axis]:
    """Find the new sizes and scales of axes."""
    if scales:
        return [Axis(n, math.floor(n * s), s) for n, s in zip(have, scales)]
    ratios = [new / n for n, new in zip(have, sizes)]
    if policy == "stretch":
        return [Axis(n, new, ratio) for n, new, ratio in zip(have, sizes, ratios)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [Axis(n, math.floor(n * scale + 0.5), scale) for n in have]


def weights_of(at: Array, how: Axis, cubic: float | None, antialias: bool, exclude: bool) -> Array:
    """Make the matrix (new, size) that resizes an axis linearly, or cubically."""
    stretch = min(1.0, how.scale) if antialias else 1.0
    reach = math.ceil((1 if cubic is None else 2) / stretch)
    found = np.zeros((how.new, how.size))
    cells = np.floor(at)[:, None] + np.arange(-reach + 1, reach + 1)
    distance = np.abs((cells - at[:, None]) * stretch)
    if cubic is None:
        weight = np.maximum(0, 1 - distance)
    else:
        near = ((cubic + 2) * distance - (cubic + 3)) * distance**2 + 1
        far = ((cubic * distance - 5 * cubic) * distance + 8 * cubic) * distance - 4 * cubic
        weight = np.where(distance <= 1, near, np.where(distance < 2, far, 0))
    if exclude or antialias:
        outside = (cells < 0) | (cells >= how.size)
        weight = np.where(outside & exclude, 0, weight)
        weight = weight / weight.sum(1, keepdims=True)
    np.add.at(found, (np.arange(how.new)[:, None], np.clip(cells, 0, how.size - 1).astype(int)),
              weight)  # fmt: skip
    return found


def apply_weights(x: Tensor, weights: Array, axis: int) -> Tensor:
    """Multiply an axis by a matrix."""
    wide = x if x.is_floating_point() else x.float()
    moved = wide.movedim(axis, -1) @ Tensor(np.ascontiguousarray(weights.T)).to(wide.dtype)
    found = moved.movedim(-1, axis)
    return found if x.is_floating_point() else found.round().to(x.dtype)


@operator("Resize", "Upsample")
def resize_before(
    call: Call, x: Value, scales: Value = None, mode: str = "nearest", **attributes: Any
) -> Tensor:
    """Give a picture other sizes, as before opset 11."""
    factors = np.asarray(attributes["scales"]) if scales is None else scales
    return resize(
        call, x, None, factors, mode="linear" if "linear" in mode else mode,
        coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    )  # fmt: skip


@operator("GridSample")
def grid_sample(
    x: Tensor,
    grid: Tensor,
    align_corners: int = 0,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
) -> Tensor:
    """Read a picture at places from -1 to 1."""
    return functional.grid_sample(x, grid, MODES[mode], padding_mode, bool(align_corners))


@operator("AffineGrid")
def affine_grid(theta: Tensor, size: list[int], align_corners: int = 0) -> Tensor:
    """Make the places of a picture that is moved, turned and stretched."""
    return functional.affine_grid(theta, size, bool(align_corners))


@operator("RoiAlign")
def roi_align(
    call: Call, x: Any, rois: Any, batches: Any, coordinate_transformation_mode: str | None = None,
    mode: str = "avg", output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:  # fmt: skip
    """Read regions of pictures at a grid of places, and average each cell, or take its largest."""
    name = coordinate_transformation_mode or ("half_pixel" if call.opset >= 16 else "")
    half = 0.5 if name == "half_pixel" else 0.0
    boxes = call.host(rois) * spatial_scale - half
    parts = []
    for box, batch in zip(boxes, ints(call.host(batches))):
        lengths = [box[3] - box[1], box[2] - box[0]]
        lengths = lengths if half else [max(each, 1.0) for each in lengths]
        rows, columns = (
            samples(begin, length, cells, sampling_ratio, limit)
            for begin, length, cells, limit in zip(
                (box[1], box[0]), lengths, (output_height, output_width), x.shape[2:]
            )
        )
        parts.append(region(x[batch], rows, columns, output_height, output_width, mode))
    return stack(parts, 0)


def samples(begin: float, length: float, cells: int, ratio: int, limit: int) -> Array:
    """List where a region is read along an axis, as a matrix (samples, size)."""
    count = ratio if ratio > 0 else math.ceil(length / cells)
    at = begin + (np.arange(cells * count) + 0.5) * length / (cells * count)
    inside = (at >= -1) & (at <= limit)
    at = np.clip(at, 0, limit - 1)
    found = np.zeros((len(at), limit))
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, limit - 1)
    np.add.at(found, (np.arange(len(at)), low), (1 - (at - low)) * inside)
    np.add.at(found, (np.arange(len(at)), high), (at - low) * inside)
    return found.astype(np.float32)


def region(x: Tensor, rows: Array, columns: Array, height: int, width: int, mode: str) -> Tensor:
    """Read a region of a picture (C, H, W)."""
    if mode == "avg":
        read = Tensor(rows).to(x.dtype) @ x @ Tensor(np.ascontiguousarray(columns.T)).to(x.dtype)
        cells = read.reshape(x.shape[0], height, len(rows) // height, width, -1)
        return cells.mean([2, 4])
    values = [  # of the four neighbours of each sample the largest, weighted
        x.reshape(x.shape[0], -1)[:, Tensor(flat)] * Tensor(weight).to(x.dtype)
        for flat, weight in corners(rows, columns, x.shape[2])
    ]
    best = values[0].maximum(values[1]).maximum(values[2].maximum(values[3]))
    cells = best.reshape(x.shape[0], height, len(rows) // height, width, -1)
    return cells.amax([2, 4])


def corners(rows: Array, columns: Array, width: int) -> list[tuple[Array, Array]]:
    """List the four neighbours of samples: flat places, and weights."""
    found = []
    for row in two_of(rows):
        for column in two_of(columns):
            flat = row[0][:, None] * width + column[0][None, :]
            weight = row[1][:, None] * column[1][None, :]
            found.append((flat.reshape(-1), weight.reshape(-1).astype(np.float32)))
    return found


def two_of(weights: Array) -> list[tuple[Array, Array]]:
    """Find the two places of every sample of an axis, and their weights."""
    low = np.argmax(weights != 0, 1)
    every = np.arange(len(weights))
    high = np.minimum(low + 1, weights.shape[1] - 1)
    second = np.where(high == low, 0, weights[every, high])
    return [(low, weights[every, low]), (high, second)]
