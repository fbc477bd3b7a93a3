"""Resampling of images and volumes: `interpolate` to other sizes.

Every mode works axis by axis: gathers with weights known on the host, of whole images of bytes
under `antialias` a contraction with a matrix of weights. 16-bit floats are weighted in float32.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from picograd.dtype import DType, accumulate_dtype, uint8
from picograd.errors import DTypeError, ShapeError, ValueRangeError, check_known
from picograd.graph.build_composite import custom
from picograd.graph.node import Node
from picograd.graph.room import check_size
from picograd.number import size_of
from picograd.tensor.core.annotations import Sizes, Tensor
from picograd.tensor.core.arguments import from_host, need_tensor
from picograd.tensor.core.autocast import listed
from picograd.tensor.core.function import method_within, within
from picograd.tensor.core.recording import Recorded, apart, apply
from picograd.tensor.shaping.movement import move_axis

Array = Any
LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}
CUBIC = -0.75  # the free slope of Keys's kernel (1981); -0.5 with antialias, as in Pillow
CUBIC_SMOOTH = -0.5
PLAIN = False, True  # inputs beside an output are as many everywhere, outputs beside an input not
FEW_TAPS = 6  # elements that are read one by one; more in a loop
MODES = ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area")


@within("functional")
@listed
def upsample(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Resample the spatial axes: the old name of `interpolate`.

    >>> nn.functional.upsample(Tensor([[[1.0, 2.0]]]), scale_factor=2).tolist()
    [[[1.0, 1.0, 2.0, 2.0]]]
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


@within("functional")
def upsample_nearest(
    input: Tensor, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Repeat elements: an old name of `interpolate`.

    >>> nn.functional.upsample_nearest(Tensor([[[1.0, 2.0]]]), scale_factor=2).tolist()
    [[[1.0, 1.0, 2.0, 2.0]]]
    """
    return interpolate(input, size, scale_factor)


@within("functional")
def upsample_bilinear(
    input: Tensor, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Resample linearly with `align_corners`: an old name of `interpolate`.

    >>> nn.functional.upsample_bilinear(Tensor([[[[1.0, 3.0]]]]), size=(1, 3)).tolist()
    [[[[1.0, 2.0, 3.0]]]]
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


@method_within("functional")
def interpolate(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resample the spatial axes of (N, C, *S) to `size`, or by `scale_factor`.

    Modes: nearest, nearest-exact, area; linear (one spatial axis), bilinear and bicubic (two),
    trilinear (three). With `align_corners` the outermost samples coincide, else the outermost
    edges do. `scale_factor` also says where samples lie, unless `recompute_scale_factor`.
    `antialias` widens the bilinear or bicubic kernel when an image shrinks.

    >>> x = picograd.Tensor([[[1.0, 2.0]]])
    >>> picograd.nn.functional.interpolate(x, 4, mode="linear").tolist()
    [[[1.0, 1.25, 1.75, 2.0]]]
    """
    rank = check_mode(input, mode, align_corners, antialias)
    scales = read_scales(rank, scale_factor)
    sizes = read_sizes(input, size, scales)
    check_size("interpolate", (*input.shape[:2], *sizes), input.itemsize)
    if mode == "area":
        return getattr(input, f"adaptive_avg_pool{rank}d")(tuple(sizes))
    is_weighed = not mode.startswith("nearest")
    if is_weighed and input.dtype is uint8:
        options = scales, mode, bool(align_corners), bool(recompute_scale_factor), antialias
        return resampled_bytes(input, sizes, *options)
    if is_weighed and not input.dtype.is_float:
        text = f"mode={mode!r} needs floats or uint8, got {input.dtype.name}"
        raise DTypeError("interpolate", text, "call .float() first")
    wide = input.float() if input.dtype.is_float and input.dtype.bits == 16 else input
    for axis in range(rank + 1, 1, -1):  # rows last: their elements lie side by side
        wanted, scale = sizes[axis - 2], scales[axis - 2]
        given = None if recompute_scale_factor else scale
        ratio = step_of(input.shape[axis], wanted, given, bool(align_corners))
        wide = resample(wide, axis, wanted, ratio, mode, bool(align_corners), antialias)
    result = wide.cast(input.dtype)
    return input.clone() if result is input else apart(result)


def step_of(full: int, wanted: int, scale: float | None, align: bool) -> float:
    """Find the distance of two outputs, in input elements."""
    if align:
        return (full - 1) / (wanted - 1) if wanted > 1 else 0.0
    return full / wanted if scale is None else 1.0 / scale


def check_mode(x: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> int:
    """Check the mode against the input; count the spatial axes."""
    op = "interpolate"
    need_tensor(op, x)
    rank = x.ndim - 2
    check_known(op, "mode", mode, MODES)
    wanted = 2 if mode == "bicubic" else LINEAR.get(mode, rank)
    if wanted != rank or not 1 <= rank <= 3:
        text = f"mode={mode!r} does not fit input of shape {tuple(x.shape)}"
        fix = "use linear for 3 axes, bilinear or bicubic for 4, trilinear for 5"
        raise ShapeError(op, text, fix)
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        text = f"align_corners has no meaning for mode={mode!r}"
        raise ValueRangeError(op, text, "leave it out")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueRangeError(op, f"antialias with mode={mode!r}", "use bilinear or bicubic")
    if 0 in x.shape[1:]:
        raise ShapeError(op, f"input {tuple(x.shape)} has no elements", "pass a non-empty one")
    return rank


def read_scales(rank: int, scale_factor: Any) -> list[float | None]:
    """Read one factor for all axes, or one per axis."""
    if scale_factor is None:
        return [None] * rank
    is_single = isinstance(scale_factor, (int, float))
    scales = [float(scale_factor)] * rank if is_single else [float(each) for each in scale_factor]
    if len(scales) != rank or any(scale <= 0 for scale in scales):
        text = f"scale_factor={scale_factor} does not fit {rank} spatial axes"
        raise ValueRangeError("interpolate", text, "give one positive number, or one per axis")
    return list(scales)


def read_sizes(x: Tensor, size: Any, scales: list[float | None]) -> list[int]:
    """Read the sizes, or compute them from the factors."""
    op, spatial = "interpolate", list(x.shape[2:])
    if (size is None) == (scales[0] is None):
        raise ValueRangeError(op, "give size or scale_factor, one of them", "pass one")
    if size is None:
        sizes = [math.floor(full * (scale or 1.0)) for full, scale in zip(spatial, scales)]
    else:
        sizes = [size] * len(spatial) if isinstance(size, int) else [size_of(each) for each in size]
    if len(sizes) != len(spatial) or any(each < 1 for each in sizes):
        given = sizes if size is None else size
        text = f"size={given} does not fit {len(spatial)} spatial axes"
        raise ShapeError(op, text, "give one size >= 1, or one per axis")
    return sizes


def resample(
    x: Tensor, axis: int, size: int, ratio: float, mode: str, align: bool, antialias: bool
) -> Tensor:
    """Resample one axis: output i lies at i * ratio, or at (i + 1/2) * ratio - 1/2."""
    full = x.shape[axis]
    if antialias:
        smooth = smooth_tables(full, size, ratio, mode == "bicubic", x.dtype, x.device)
        return apply(resampled, x, axis, (True, True), *smooth)
    if mode.startswith("nearest"):
        return nearest(x, axis, size, ratio, 0.5 if mode == "nearest-exact" else 0.0)
    found = neighbours(full, size, ratio, mode == "bicubic", align, x.dtype, x.device)
    return apply(resampled, x, axis, PLAIN, *found)


# bytes, in whole numbers: one axis after the other from the last, each rounded to bytes


def resampled_bytes(
    x: Tensor, sizes: list[int], scales: list[float | None], mode: str, align: bool,
    recompute: bool, antialias: bool,
) -> Tensor:  # fmt: skip
    """Resample uint8 images with weights of 16 bits, as PyTorch does on the CPU."""
    if len(sizes) != 2:
        text = f"mode={mode!r} of uint8 is for images"
        raise DTypeError("interpolate", text, "call .float() first")
    for axis in (3, 2):
        full, wanted = x.shape[axis], sizes[axis - 2]
        ratio = step_of(full, wanted, None if recompute else scales[axis - 2], align)
        if antialias:
            weights = smooth_weights(full, wanted, ratio, mode == "bicubic")
        else:
            weights = plain_weights(full, wanted, ratio, mode == "bicubic", align)
        shift = weight_bits(float(weights.max()))
        whole = np.trunc(weights * 2.0**shift + np.where(weights < 0, -0.5, 0.5))
        total = contract_axis(x.int(), axis, whole) + (1 << (shift - 1))
        x = (total >> shift).clamp(0, 255).cast(uint8)
    return x


def plain_weights(full: int, size: int, ratio: float, is_cubic: bool, align: bool) -> Array:
    """Make the (size, full) weights of interpolation; the border is repeated."""
    weights, rows = np.zeros((size, full)), np.arange(size)
    for column, each in taps(full, size, ratio, is_cubic, align):
        np.add.at(weights, (rows, column), each)
    return weights


def weight_bits(largest: float) -> int:
    """Count the bits below the point of weights that fit 16 bits, at most 22."""
    for bits in range(22):
        if int(0.5 + largest * (1 << (bits + 1))) >= 1 << 15:
            return bits
    return 22


# one axis of floats


def places_of(size: int, ratio: float, align: bool) -> Array:
    """Place the outputs among the inputs: edges or, with `align`, samples coincide."""
    return np.arange(size) * ratio if align else (np.arange(size) + 0.5) * ratio - 0.5


def taps(
    full: int, size: int, ratio: float, is_cubic: bool, align: bool
) -> Iterator[tuple[Array, Array]]:
    """Give the inputs beside each output, one after the other, and their weights."""
    places = places_of(size, ratio, align)
    places = places if is_cubic else np.maximum(places, 0.0)
    low = np.minimum(np.floor(places), full - 1)
    share = np.clip(places - low, 0.0, 1.0)
    for step in (-1, 0, 1, 2) if is_cubic else (0, 1):
        distance = share - step
        each = cubic_kernel(distance, CUBIC) if is_cubic else triangle_kernel(distance)
        yield np.clip(low + step, 0, full - 1).astype(np.int32), each


@lru_cache(256)
def neighbours(
    full: int, size: int, ratio: float, is_cubic: bool, align: bool, dtype: DType, device: str
) -> list[Tensor]:
    """Bring positions and weights to a device once: equal calls share them."""
    positions, weights = zip(*taps(full, size, ratio, is_cubic, align))
    return tables_of(np.stack(positions), np.stack(weights), full, dtype, device)


def tables_of(
    positions: Array, weights: Array, full: int, dtype: DType, device: str
) -> list[Tensor]:
    """Bring the inputs beside each output to a device, and the outputs beside each input."""
    pairs = (positions, weights), beside_inputs(positions, weights, full)
    wide = accumulate_dtype(dtype).numpy
    arrays = [each for at, weight in pairs for each in (at.astype(np.int32), weight.astype(wide))]
    return [Recorded.kind.of(each, device=device) for each in arrays]


def beside_inputs(positions: Array, weights: Array, full: int) -> tuple[Array, Array]:
    """List the outputs that read each input, with its weights: (most outputs, inputs).

    An input of fewer outputs has some of weight 0.
    """
    size = positions.shape[1]
    pairs = positions.astype(np.int64) * size + np.arange(size)
    pairs, number = np.unique(pairs, return_inverse=True)  # the border is read twice
    total = np.bincount(number.reshape(-1), weights.reshape(-1))
    pairs, total = pairs[total != 0], total[total != 0]
    inputs, outputs = np.divmod(pairs, size)
    rank = np.arange(len(inputs)) - np.searchsorted(inputs, inputs)
    shape = rank.max() + 1, full
    found, share = np.zeros(shape, np.int64), np.zeros(shape)
    found[rank, inputs] = outputs
    share[rank, inputs] = total
    return found, share


def resampled(x: Node, axis: int, padded: tuple[bool, bool], *tables: Node) -> Node:
    """Weigh the inputs beside each output; the gradient weighs the outputs beside each input.

    So nothing is scattered. `tables` are positions and weights (taps, outputs) of the one, and of
    the other: those of weight 0 are no neighbours where they are `padded`.
    """

    def vjp(gradient: Node, output: Node, x: Node, *tables: Node) -> list[Node | None]:
        turned = *tables[2:], *tables[:2]
        return [resampled(gradient, axis, padded[::-1], *turned), *[None] * 4]

    value = weighed(x.accumulated(), axis, padded[0], *tables[:2])
    return custom(value.cast(x.dtype), (x, *tables), vjp, "interpolate")


def weighed(x: Node, axis: int, is_padded: bool, positions: Node, weights: Node) -> Node:
    """Add up what lies at the positions along an axis, times the weights."""
    count, size = positions.shape
    along = (*(1,) * axis, size, *(1,) * (x.rank - axis - 1))
    if count > FEW_TAPS:
        parts = [move_axis(x.gather([positions], (axis,)), 1, axis + 1)]
        shares = [weights.reshape((count, *along))]
    else:
        rows = [((tap, tap + 1, 1), (0, size, 1)) for tap in range(count)]
        at = [positions.slice(row).reshape((size,)) for row in rows]
        parts = [move_axis(x.gather([each], (axis,)), 0, axis) for each in at]
        shares = [weights.slice(row).reshape(along) for row in rows]
    for number, share in enumerate(shares):
        part, share = parts[number], share.expand(parts[number].shape)
        parts[number] = part * share
        if is_padded:  # an infinite element has no part in a sum
            parts[number] = share.binary("equal", 0).where(0, parts[number])
    total = sum(parts[1:], parts[0])
    return total.reduce("sum", (0,)) if count > FEW_TAPS else total


@lru_cache(256)
def nearest_tables(
    full: int, size: int, ratio: float, offset: float, dtype: DType, device: str
) -> list[Tensor]:
    """Bring to a device, once, the input that each output repeats."""
    # float32, as PyTorch computes it: other roundings pick other pixels
    places = (np.arange(size, dtype=np.float32) + np.float32(offset)) * np.float32(ratio)
    found = np.minimum(np.floor(places), full - 1).reshape(1, size)
    return tables_of(found, np.ones(found.shape), full, dtype, device)


def taken(x: Node, axis: int, index: Node) -> Node:
    """Gather along an axis by positions that are all inside."""
    return move_axis(x.gather([index.reshape((index.size,))], (axis,)), 0, axis)


def nearest(x: Tensor, axis: int, size: int, ratio: float, offset: float) -> Tensor:
    """Repeat or drop elements; whole factors need no index."""
    full = x.shape[axis]
    if size % full == 0 and ratio * size == full:
        wide = x.unsqueeze(axis + 1).expand(
            *x.shape[: axis + 1], size // full, *x.shape[axis + 1 :]
        )
        return wide.reshape(*x.shape[:axis], size, *x.shape[axis + 1 :])
    tables = nearest_tables(full, size, ratio, offset, x.dtype, x.device)
    if not x.dtype.is_float:
        return apply(taken, x, axis, tables[0])
    return apply(resampled, x, axis, PLAIN, *tables)


def cubic_kernel(distance: Array, slope: float) -> Array:
    """Evaluate Keys's convolution kernel (1981) at distances from a sample."""
    d = np.abs(distance)
    near = ((slope + 2) * d - (slope + 3)) * d * d + 1
    far = (((d - 5) * d + 8) * d - 4) * slope
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def triangle_kernel(distance: Array) -> Array:
    """Evaluate the kernel of linear interpolation."""
    return np.maximum(1 - np.abs(distance), 0.0)


def smooth_weights(full: int, size: int, ratio: float, is_cubic: bool) -> Array:
    """Make the (size, full) weights of a kernel as wide as the output's cells, rows of sum 1."""
    stretch = max(ratio, 1.0)
    reach = (2.0 if is_cubic else 1.0) * stretch
    kernel: Callable[[Array], Array] = (
        (lambda d: cubic_kernel(d, CUBIC_SMOOTH)) if is_cubic else triangle_kernel
    )
    weights = np.zeros((size, full))
    for row in range(size):
        centre = ratio * (row + 0.5)
        low = max(int(centre - reach + 0.5), 0)
        high = min(int(centre + reach + 0.5), full)
        each = kernel((np.arange(low, high) - centre + 0.5) / stretch)
        weights[row, low:high] = each / each.sum()
    return weights


@lru_cache(256)
def smooth_tables(
    full: int, size: int, ratio: float, is_cubic: bool, dtype: DType, device: str
) -> list[Tensor]:
    """Bring the inputs under the kernel of each output to a device, once."""
    weights = smooth_weights(full, size, ratio, is_cubic)
    first = (weights != 0).argmax(1)
    count = (weights != 0).sum(1).max()
    positions = first + np.arange(count)[:, None]
    is_inside = positions < full
    positions = np.minimum(positions, full - 1)
    shares = np.where(is_inside, weights[np.arange(size), positions], 0.0)
    return tables_of(positions, shares, full, dtype, device)


def contract_axis(x: Tensor, axis: int, weights: Array) -> Tensor:
    """Multiply one axis by a matrix."""
    matrix = from_host(weights, x).cast(x.dtype)
    return (x.movedim(axis, -1) @ matrix.mT).movedim(-1, axis)
