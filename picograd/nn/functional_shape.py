"""Functions that rearrange or resample: pixel shuffles, padding, interpolation."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.errors import ShapeError, ValueRangeError
from picograd.tensor.tensor import Tensor

LINEAR_MODES = {
    "linear": 1,
    "bilinear": 2,
    "trilinear": 3,
}


def pad(
    x: Tensor,
    pad: Sequence[int],
    mode: str = "constant",
    value: float = 0.0,
) -> Tensor:
    """Pad: (low, high) of the last axis first. Modes constant, reflect, replicate, circular."""
    return x.pad(tuple(pad), mode=mode, value=value)


def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    """Move channels into space: (..., C r r, H, W) -> (..., C, H r, W r) (Shi et al., 2016)."""
    r = upscale_factor
    *batch, channels, height, width = x.shape
    if channels % (r * r):
        problem = f"{channels} channels do not divide by {r} * {r}"
        raise ShapeError(
            "pixel_shuffle",
            problem,
            "choose another upscale_factor",
        )
    first = len(batch)
    cut = x.reshape(*batch, channels // (r * r), r, r, height, width)  # ... C r r H W
    order = (
        *range(first + 1),
        first + 3,
        first + 1,
        first + 4,
        first + 2,
    )
    return cut.permute(*order).reshape(
        *batch,
        channels // (r * r),
        height * r,
        width * r,
    )


def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    """Move space into channels: (..., C, H r, W r) -> (..., C r r, H, W)."""
    r = downscale_factor
    *batch, channels, height, width = x.shape
    if height % r or width % r:
        problem = f"image {height} x {width} does not divide by {r}"
        raise ShapeError(
            "pixel_unshuffle",
            problem,
            "choose another downscale_factor",
        )
    first = len(batch)
    cut = x.reshape(*batch, channels, height // r, r, width // r, r)  # ... C H r W r
    order = (
        *range(first + 1),
        first + 2,
        first + 4,
        first + 1,
        first + 3,
    )
    return cut.permute(*order).reshape(
        *batch,
        channels * r * r,
        height // r,
        width // r,
    )


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Interleave groups of channels: channel g * n + i goes to i * groups + g."""
    batch, channels, *rest = x.shape
    if channels % groups:
        problem = f"{channels} channels do not divide into {groups} groups"
        raise ShapeError(
            "channel_shuffle",
            problem,
            "choose a divisor",
        )
    cut = x.reshape(batch, groups, channels // groups, *rest)
    return cut.transpose(1, 2).reshape(x.shape)


def interpolate(
    x: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Resample the spatial axes of (B, C, *S) to `size`, or by `scale_factor`.

    Modes: nearest, nearest-exact, area, and linear (3 axes), bilinear (4), trilinear (5). With
    align_corners the outermost samples coincide, else the outermost edges do.
    """
    op = "interpolate"
    rank = _check_mode(op, x, mode)
    scales = _scales(op, rank, scale_factor)
    sizes = _sizes(op, x, size, scales)
    if mode == "area":
        return _area(x, sizes)
    for axis, (wanted, scale) in enumerate(zip(sizes, scales), start=2):
        ratio = x.shape[axis] / wanted if scale is None else 1.0 / scale
        if mode in LINEAR_MODES:
            x = _linear(
                x,
                axis,
                wanted,
                ratio,
                bool(align_corners),
            )
        else:
            x = _nearest(
                x,
                axis,
                wanted,
                ratio,
                0.5 if mode == "nearest-exact" else 0.0,
            )
    return x


def _check_mode(op: str, x: Tensor, mode: str) -> int:
    """Check the mode; count the spatial axes."""
    rank = len(x.shape) - 2
    known = (
        "nearest",
        "nearest-exact",
        "area",
        *LINEAR_MODES,
    )
    if mode not in known:
        raise ValueRangeError(
            op,
            f"mode={mode!r} is not known",
            f"use {', '.join(known)}",
        )
    if LINEAR_MODES.get(mode, rank) != rank:
        problem = f"mode={mode!r} does not fit input of shape {tuple(x.shape)}"
        raise ShapeError(
            op,
            problem,
            "use linear for 3 axes, bilinear for 4, trilinear for 5",
        )
    return rank


def _scales(op: str, rank: int, scale_factor: Any) -> list[float | None]:
    if scale_factor is None:
        return [None] * rank
    single = isinstance(scale_factor, (int, float))
    scales = [float(scale_factor)] * rank if single else [float(each) for each in scale_factor]
    if len(scales) != rank or any(scale <= 0 for scale in scales):
        problem = f"scale_factor={scale_factor} does not fit {rank} spatial axes"
        raise ValueRangeError(
            op,
            problem,
            "give one positive number, or one per axis",
        )
    return list(scales)


def _sizes(
    op: str,
    x: Tensor,
    size: Any,
    scales: list[float | None],
) -> list[int]:
    spatial = list(x.shape[2:])
    if (size is None) == (scales[:1] in ([None], [])):
        raise ValueRangeError(
            op,
            "give size or scale_factor, one of them",
            "pass one",
        )
    if size is None:
        return [int(full * (scale or 1.0)) for full, scale in zip(spatial, scales)]
    sizes = [size] * len(spatial) if isinstance(size, int) else list(size)
    if len(sizes) != len(spatial):
        problem = f"size={size} does not fit {len(spatial)} spatial axes"
        raise ShapeError(
            op,
            problem,
            "give one size, or one per axis",
        )
    return sizes


def _take(x: Tensor, axis: int, index: "np.ndarray[Any, Any]") -> Tensor:
    return x.index_select(
        axis,
        Tensor(index.astype(np.int64), device=x.device),
    )


def _nearest(
    x: Tensor,
    axis: int,
    size: int,
    ratio: float,
    offset: float,
) -> Tensor:
    full = x.shape[axis]
    if size % full == 0 and ratio * size == full:  # whole factors need no index
        shape = list(x.shape)
        parts = [
            *shape[: axis + 1],
            size // full,
            *shape[axis + 1 :],
        ]
        shape[axis] = size
        return x.unsqueeze(axis + 1).expand(*parts).reshape(*shape)
    # float32, as PyTorch computes it: other roundings pick other pixels
    places = (np.arange(size, dtype=np.float32) + np.float32(offset)) * np.float32(ratio)
    return _take(x, axis, np.minimum(np.floor(places), full - 1))


def _linear(
    x: Tensor,
    axis: int,
    size: int,
    ratio: float,
    align_corners: bool,
) -> Tensor:
    full = x.shape[axis]
    places: Any = np.arange(size, dtype=np.float64)
    if align_corners:
        places *= (full - 1) / (size - 1) if size > 1 else 0.0
    else:
        places = np.maximum((places + 0.5) * ratio - 0.5, 0.0)
    low = np.minimum(np.floor(places), full - 1)
    high = np.minimum(low + 1, full - 1)
    shape = [size if i == axis else 1 for i in range(len(x.shape))]
    share = np.clip(places - low, 0.0, 1.0).reshape(shape).astype(np.float32)
    weight = Tensor(share, device=x.device).cast(x.dtype)
    below, above = (
        _take(x, axis, low),
        _take(x, axis, high),
    )
    return below + (above - below) * weight


def _area(x: Tensor, sizes: list[int]) -> Tensor:
    """Average over the cells of an even division, axis by axis."""
    for axis, size in enumerate(sizes, start=2):
        full = x.shape[axis]
        edges = [
            (
                n * full // size,
                -(-(n + 1) * full // size),
            )
            for n in range(size)
        ]
        cells = [x.narrow(axis, low, high - low).mean(axis, True) for low, high in edges]
        x = Tensor.cat(cells, axis)
    return x
