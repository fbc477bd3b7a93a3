"""ONNX operators that move elements: shapes, slices, gathers, scatters, constants by shape."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import picograd.nn.functional as functional
from picograd.errors import ShapeError
from picograd.helpers import lying_along
from picograd.onnx.graph import constant_of
from picograd.onnx.table import Array, Call, Value, formulas, ints, operator
from picograd.onnx.values import constant, dtype_of_onnx
from picograd.tensor.core.annotations import Scalar
from picograd.tensor.public import cat, einsum, stack, where
from picograd.tensor.tensor import Tensor

REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}

FORMULAS: dict[str, Callable[..., Value]] = {  # one expression each
    "Transpose": lambda x, perm=None: x.permute(list(perm or range(x.ndim)[::-1])),
    "Concat": lambda *xs, axis=1: cat(list(xs), axis),
    "GatherElements": lambda x, places, axis=0: x.gather(axis, wrapped(places, x.shape[axis])),
    "NonZero": lambda x: (x != 0).nonzero().T,
    "Einsum": lambda *xs, equation: einsum(equation.replace(" ", ""), *xs),
    "SequenceLength": lambda values: np.asarray(len(values), np.int64),
}
formulas(FORMULAS)


@operator("Shape")
def shape_of(x: Value, start: int = 0, end: int | None = None) -> Array:
    """Give a shape, for the host."""
    return np.asarray(list(x.shape)[start:end], np.int64)


@operator("Size")
def size_of(x: Value) -> Array:
    """Count elements, for the host."""
    return np.asarray(math.prod(x.shape), np.int64)


@operator("Reshape")
def reshape(x: Tensor, shape: list[int], allowzero: int = 0) -> Tensor:
    """Give other axes; 0 keeps an axis, unless `allowzero`."""
    kept = [x.shape[n] if size == 0 and not allowzero else size for n, size in enumerate(shape)]
    return x.reshape(kept)


@operator("Flatten")
def flatten(x: Tensor, axis: int = 1) -> Tensor:
    """Make a matrix: the axes before `axis` are the rows."""
    axis += x.ndim * (axis < 0)
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@operator("Squeeze")
def squeeze(x: Tensor, axes: list[int] | None = None) -> Tensor:
    """Take axes of size 1 away."""
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


@operator("Unsqueeze")
def unsqueeze(x: Tensor, axes: list[int]) -> Tensor:
    """Add axes of size 1, counted in the result."""
    places = sorted(axis + (x.ndim + len(axes)) * (axis < 0) for axis in axes)
    for place in places:
        x = x.unsqueeze(place)
    return x


@operator("Split")
def split(
    call: Call,
    x: Tensor,
    sizes: list[int] | None = None,
    axis: int = 0,
    split: Any = None,
    num_outputs: int | None = None,
) -> tuple[Tensor, ...]:
    """Cut along an axis: into sizes, or equal parts of which the last may be smaller."""
    if sizes is None and split is None:
        count = num_outputs or call.outputs
        part = -(-x.shape[axis] // count)
        wanted = [min(part, max(0, x.shape[axis] - n * part)) for n in range(count)]
    else:
        wanted = ints(split) if sizes is None else sizes
    return tuple(x.split(wanted, axis))


@operator("Slice")
def slice_(
    x: Tensor,
    starts: list[int],
    ends: list[int],
    axes: list[int] | None = None,
    steps: list[int] | None = None,
) -> Tensor:
    """Cut out a range of axes; before opset 10 all but `x` are attributes."""
    which = range(len(starts)) if axes is None else axes
    for axis, low, high, stride in zip(which, starts, ends, steps or [1] * len(starts)):
        x = cut(x, axis, low, high, stride)
    return x


def cut(x: Tensor, axis: int, low: int, high: int, step: int) -> Tensor:
    """Cut one axis as Python does, backwards too."""
    axis += x.ndim * (axis < 0)
    begin, end, step = slice(low, high, step).indices(x.shape[axis])
    if step < 0:
        count = len(range(begin, end, step))
        first = begin + (count - 1) * step
        rest = x.narrow(axis, first, begin - first + 1) if count else x.narrow(axis, 0, 0)
        x, begin, end, step = rest.flip(axis), 0, rest.shape[axis], -step
    return x[(slice(None),) * axis + (slice(begin, max(begin, end), step),)]


@operator("Pad")
def pad(
    x: Tensor,
    pads: list[int],
    value: Scalar = 0,
    axes: list[int] | None = None,
    mode: str = "constant",
) -> Tensor:
    """Add elements around; negative counts cut. Before opset 11 all but `x` are attributes."""
    which = list(range(x.ndim)) if axes is None else axes
    return padded(x, pads, which, mode, value or 0)


def padded(x: Tensor, pads: list[int], axes: list[int], mode: Any, value: float) -> Tensor:
    """Pad axes one by one, or all at once with a constant."""
    widths = {axis % x.ndim: (pads[n], pads[n + len(axes)]) for n, axis in enumerate(axes)}
    for axis, (before, after) in widths.items():
        low, high = max(0, -before), x.shape[axis] - max(0, -after)
        x = x.narrow(axis, low, high - low)
    grown = {axis: (max(0, a), max(0, b)) for axis, (a, b) in widths.items()}
    if mode == "constant":
        flat = [n for axis in reversed(range(x.ndim)) for n in grown.get(axis, (0, 0))]
        return functional.pad(x, flat, value=value) if any(flat) else x
    for axis, (before, after) in grown.items():
        places: Array = np.arange(x.shape[axis])
        x = x.index_select(axis, Tensor(np.pad(places, (before, after), mode)))
    return x


@operator("Expand")
def expand(x: Tensor, shape: list[int]) -> Tensor:
    """Broadcast to a shape, both ways."""
    return x.broadcast_to(np.broadcast_shapes(tuple(x.shape), tuple(shape)))


@operator("Tile")
def tile(x: Tensor, repeats: list[int]) -> Tensor:
    """Repeat along axes."""
    return x.tile(repeats)


@operator("Gather")
def gather(x: Tensor, places: Tensor, axis: int = 0) -> Tensor:
    """Take slices at places."""
    axis += x.ndim * (axis < 0)
    return x[(slice(None),) * axis + (places.long(),)]


def wrapped(places: Tensor, size: int) -> Tensor:
    """Count negative places from the end."""
    places = places.long()
    return where(places < 0, places + size, places)


@operator("GatherND")
def gather_nd(x: Tensor, places: Tensor, batch_dims: int = 0) -> Tensor:
    """Take what lies at places of several axes; the first axes are a batch."""
    places = places.long()
    depth = places.shape[-1]
    batch = [places_along(x.shape[n], n, places.ndim - 1) for n in range(batch_dims)]
    index = (*batch, *(places[..., n] for n in range(depth)))
    return x[index]


def places_along(size: int, axis: int, rank: int) -> Tensor:
    """Number the places of an axis, in a shape that lies along it."""
    return Tensor(np.arange(size).reshape(lying_along(axis, rank)))


@operator("ScatterElements", "Scatter")
def scatter_elements(
    x: Tensor, places: Tensor, updates: Tensor, axis: int = 0, reduction: str = "none"
) -> Tensor:
    """Write elements along an axis."""
    places = wrapped(places, x.shape[axis])
    if reduction == "none":
        return x.scatter(axis, places, updates)
    return x.scatter_reduce(axis, places, updates, REDUCTIONS[reduction])


@operator("ScatterND")
def scatter_nd(x: Tensor, places: Tensor, updates: Tensor, reduction: str = "none") -> Tensor:
    """Write what lies at places of several axes."""
    depth = places.shape[-1]
    flat = Tensor(np.zeros(tuple(places.shape[:-1]), np.int64))
    for n in range(depth):
        flat = flat * x.shape[n] + wrapped(places[..., n], x.shape[n])
    rest = math.prod(x.shape[depth:])
    rows = x.reshape(math.prod(x.shape[:depth]), rest)
    index = flat.reshape(-1, 1).expand(flat.numel(), rest)
    new = updates.reshape(flat.numel(), rest)
    return scatter_elements(rows, index, new, 0, reduction).reshape(x.shape)


@operator("TensorScatter")
def tensor_scatter(
    cache: Tensor,
    update: Tensor,
    places: Tensor | None = None,
    axis: int = -2,
    mode: str = "linear",
) -> Tensor:
    """Write a piece into a cache, for each sample at its own place."""
    axis %= cache.ndim
    count, size = update.shape[axis], cache.shape[axis]
    begin = Tensor(np.zeros(cache.shape[0], np.int64)) if places is None else places.long()
    index = begin.reshape(-1, 1) + Tensor(np.arange(count))
    index = index % size if mode == "circular" else index
    shape = [1] * cache.ndim
    shape[0], shape[axis] = cache.shape[0], count
    return cache.scatter(axis, index.reshape(shape).expand(update.shape), update)


@operator("Compress")
def compress(call: Call, x: Tensor, condition: Value, axis: int | None = None) -> Tensor:
    """Take the slices at which a condition holds."""
    kept = np.flatnonzero(call.host(condition))
    return x.reshape(-1).index_select(0, Tensor(kept)) if axis is None else (
        x.index_select(axis, Tensor(kept)))  # fmt: skip


@operator("OneHot")
def one_hot(index: Tensor, size: int, pair: Tensor, axis: int = -1) -> Tensor:
    """Write one of two values: at the place, and elsewhere."""
    axis += (index.ndim + 1) * (axis < 0)
    index = where(index < 0, index + size, index).unsqueeze(axis)
    return where(index == places_along(size, axis, index.ndim), pair[1], pair[0])


@operator("Range")
def range_(call: Call, start: Value, limit: Value, delta: Value) -> Value:
    """Count from a number up to another one."""
    begin, end, step = (call.host(each).reshape(()) for each in (start, limit, delta))
    return call.tensor(np.arange(begin, end, step, dtype=begin.dtype))


@operator("Constant")
def constant_of_a_call(call: Call, **attributes: Any) -> Value:
    """Give what a call of a function names; other constants are read with their graph."""
    return constant(constant_of(attributes))


@operator("ConstantOfShape")
def constant_of_shape(call: Call, shape: list[int], value: Array | None = None) -> Tensor:
    """Fill a shape with a value."""
    number = np.zeros(1, np.float32) if value is None else value
    return call.tensor(np.full(shape, number.reshape(()), number.dtype))


@operator("EyeLike")
def eye_like(x: Tensor, dtype: int | None = None, k: int = 0) -> Tensor:
    """Make ones on a diagonal."""
    wanted = (dtype_of_onnx(dtype) if dtype else None) or x.dtype
    return Tensor(np.eye(x.shape[0], x.shape[1], k, np.float32)).to(wanted)


@operator("DepthToSpace")
def depth_to_space(x: Tensor, blocksize: int, mode: str = "DCR") -> Tensor:
    """Spread channels over blocks of a picture."""
    n, c, *space = x.shape
    parts, order = [blocksize] * len(space), len(space)
    inner = c // blocksize**order
    if mode == "DCR":
        x, at, channel = x.reshape(n, *parts, inner, *space), 1, order + 1
    else:
        x, at, channel = x.reshape(n, inner, *parts, *space), 2, 1
    axes = [axis for k in range(order) for axis in (order + 2 + k, at + k)]
    return x.permute(0, channel, *axes).reshape(n, inner, *(s * blocksize for s in space))


@operator("SpaceToDepth")
def space_to_depth(x: Tensor, blocksize: int, mode: str = "DCR") -> Tensor:
    """Gather blocks of a picture into channels."""
    n, c, *space = x.shape
    order = len(space)
    split = [part for size in space for part in (size // blocksize, blocksize)]
    x = x.reshape(n, c, *split)
    blocks, cells = range(3, 3 + 2 * order, 2), range(2, 2 + 2 * order, 2)
    first = [*blocks, 1] if mode == "DCR" else [1, *blocks]
    x = x.permute(0, *first, *cells)
    return x.reshape(n, c * blocksize**order, *(size // blocksize for size in space))


@operator("Trilu")
def trilu(x: Tensor, k: int | None = None, upper: int = 1) -> Tensor:
    """Keep the triangle above a diagonal, or below."""
    return x.triu(k or 0) if upper else x.tril(k or 0)


@operator("ReverseSequence")
def reverse_sequence(x: Tensor, lengths: Tensor, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    """Turn the first elements of each sample round."""
    steps = places_along(x.shape[time_axis], time_axis, x.ndim)
    count = lengths.long().reshape(lying_along(batch_axis, x.ndim))
    places = where(steps < count, count - 1 - steps, steps)
    return x.gather(time_axis, places.expand(x.shape))


@operator("CenterCropPad")
def center_crop_pad(x: Tensor, shape: list[int], axes: Any = None) -> Tensor:
    """Cut or pad evenly on both sides."""
    for axis, size in zip(axes or range(x.ndim), shape):
        less = x.shape[axis] - size
        if less > 0:
            x = x.narrow(axis, less // 2, size)
        elif less < 0:
            before = -less // 2
            x = padded(x, [before, -less - before], [axis], "constant", 0)
    return x


@operator("Col2Im")
def col2im(
    x: Tensor,
    size: list[int],
    window: list[int],
    dilations: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Tensor:
    """Sum the windows of a picture back into it."""
    order = len(size)
    dilation, stride = dilations or [1] * order, strides or [1] * order
    pad = list(pads or [0] * 2 * order)
    n, channels = x.shape[0], x.shape[1] // math.prod(window)
    whole = [s + pad[k] + pad[k + order] for k, s in enumerate(size)]
    index: Array = np.zeros((math.prod(window), 1), np.int64)
    for k in range(order):
        steps = (whole[k] - dilation[k] * (window[k] - 1) - 1) // stride[k] + 1
        grid = np.arange(window[k])[:, None] * dilation[k] + np.arange(steps) * stride[k]
        index = spread(index, grid, whole[k], window, k)
    flat = Tensor(np.zeros((n, channels, math.prod(whole)), np.float32)).to(x.dtype)
    places = Tensor(index.reshape(1, 1, -1)).expand(n, channels, index.size)
    values = x.reshape(n, channels, -1)
    if values.shape[-1] != index.size:
        text = f"{values.shape[-1]} columns, where the picture has {index.size}"
        raise ShapeError("Col2Im", text, "check image_shape, block_shape and strides")
    found = flat.scatter_reduce(2, places, values, "sum").reshape(n, channels, *whole)
    for k in range(order):
        found = found.narrow(2 + k, pad[k], size[k])
    return found


def spread(index: Array, grid: Array, size: int, window: list[int], axis: int) -> Array:
    """Add an axis to the flat places of windows: rows are cells of a window, columns windows."""
    cells = np.unravel_index(np.arange(math.prod(window)), window)[axis]
    return (index[:, :, None] * size + grid[cells][:, None, :]).reshape(len(index), -1)


@operator("SequenceAt")
def sequence_at(values: list[Value], place: int) -> Value:
    """Take a member of a sequence."""
    return values[place]


@operator("SequenceConstruct")
def sequence_construct(call: Call, *values: Value) -> list[Value]:
    """Make a sequence."""
    return list(values)


@operator("SequenceEmpty")
def sequence_empty(call: Call, dtype: int | None = None) -> list[Value]:
    """Make a sequence of nothing."""
    return []


@operator("SequenceInsert")
def sequence_insert(
    call: Call, values: list[Value], new: Value, place: int | None = None
) -> list[Value]:
    """Put a value into a sequence; at its end by default."""
    at = len(values) if place is None else place
    at += len(values) * (at < 0)
    return [*values[:at], new, *values[at:]]


@operator("SequenceErase")
def sequence_erase(values: list[Value], place: int | None = None) -> list[Value]:
    """Take a value out of a sequence; the last one by default."""
    at = len(values) - 1 if place is None else place
    return [each for n, each in enumerate(values) if n != at % len(values)]


@operator("ConcatFromSequence")
def concat_from_sequence(call: Call, values: list[Value], axis: int, new_axis: int = 0) -> Tensor:
    """Join the values of a sequence."""
    tensors = [call.tensor(each) for each in values]
    return stack(tensors, axis) if new_axis else cat(tensors, axis)


@operator("SplitToSequence")
def split_to_sequence(
    call: Call, x: Tensor, sizes: Value = None, axis: int = 0, keepdims: int = 1
) -> list[Value]:
    """Cut along an axis into a sequence."""
    if sizes is None:
        parts = x.split(1, axis)
        return list(parts) if keepdims else [each.squeeze(axis) for each in parts]
    given = call.host(sizes)
    return list(x.split(int(given) if given.ndim == 0 else ints(given), axis))


@operator("OptionalHasElement")
def optional_has_element(call: Call, value: Value = None) -> Array:
    """Tell whether there is a value."""
    return np.asarray(value is not None)


@operator("OptionalGetElement", "Optional")
def optional_get_element(call: Call, value: Value = None, type: Any = None) -> Value:
    """Give the value."""
    return value
