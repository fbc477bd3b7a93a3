"""Placing: values written over parts of a tensor, out of place, with gradients to both.

Functions of tensors made of their methods. Index values are checked as in `x[...]`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.dtype import bool_, int64
from picograd.engine import pending
from picograd.engine.followed import event
from picograd.engine.tracing import is_tracing
from picograd.errors import AxisError, DTypeError, ShapeError, ValueRangeError, check_least
from picograd.graph.shape import broadcast_shapes
from picograd.helpers import lying_along
from picograd.tensor.core.annotations import Scalar, Tensor, TensorLike
from picograd.tensor.core.arguments import need_tensor, selector
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.function import composed
from picograd.tensor.core.operands import as_axis
from picograd.tensor.core.recording import Recorded, apply, read, rewrite, wrap
from picograd.tensor.indexing import choosing, indexing, masking, selecting

REDUCES = ("prod", "mean", "amax", "amin")


@event  # what is read is still there when the result is entered
def written(x: Tensor, items: Any, value: Any) -> Tensor:
    """Compute the tensor after x[items] = value, which stays as it is."""
    tracks = x._tracks or (isinstance(value, Recorded) and value._tracks)
    return wrap(selecting.write(read(x), selector(items), read(value)), tracks and MODE.enabled)


def check_source(op: str, x: Tensor, src: Tensor, shape: tuple[int, ...]) -> None:
    """Raise ShapeError unless what is written has exactly the shape of its place."""
    need_tensor(op, x, src)
    if tuple(src.shape) != shape:
        text = f"source {tuple(src.shape)} does not fit the place of shape {shape}"
        raise ShapeError(op, text, "give it that shape")


@composed()
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Write one slice along an axis; the result is a copy.

    >>> x = picograd.Tensor([[1, 2], [3, 4]])
    >>> picograd.select_scatter(x, picograd.Tensor([8, 9]), 0, 1).tolist()
    [[1, 2], [8, 9]]
    """
    axis = as_axis(dim, input.ndim, "select_scatter")
    shape = (*input.shape[:axis], *input.shape[axis + 1 :])
    check_source("select_scatter", input, src, shape)
    return written(input, (*(slice(None),) * axis, index), src)


@composed()
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Write a range along an axis; the result is a copy.

    >>> x = picograd.Tensor([1, 2, 3, 4])
    >>> picograd.slice_scatter(x, picograd.Tensor([8, 9]), start=0, end=4, step=2).tolist()
    [8, 2, 9, 4]
    """
    axis = as_axis(dim, input.ndim, "slice_scatter")
    part = slice(start, end, step)
    count = len(range(*part.indices(input.shape[axis])))
    shape = list(input.shape)
    shape[axis] = count
    check_source("slice_scatter", input, src, tuple(shape))
    return written(input, (*(slice(None),) * axis, part), src)


@composed()
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Write a diagonal of two axes; the result is a copy.

    >>> x = picograd.Tensor([[1, 2], [3, 4]])
    >>> picograd.diagonal_scatter(x, picograd.Tensor([8, 9])).tolist()
    [[8, 2], [3, 9]]
    """
    place = input.diagonal(offset, dim1, dim2)
    check_source("diagonal_scatter", input, src, tuple(place.shape))
    first, second = as_axis(dim1, input.ndim, "dim1"), as_axis(dim2, input.ndim, "dim2")
    moved = input.movedim((first, second), (0, 1))
    rows = Recorded.kind.arange(place.shape[-1], device=input.device)
    items = (rows + max(-offset, 0), rows + max(offset, 0))
    result = written(moved, items, src.movedim(-1, 0))
    return result.movedim((0, 1), (first, second))


@composed()
@event
def index_put(
    input: Tensor, indices: Sequence[Tensor | None], values: TensorLike, accumulate: bool = False
) -> Tensor:
    """Write values at index tensors, one per axis (None: the whole axis); the result is a copy.

    With `accumulate` values are added, repeated places several times.

    >>> x, places = picograd.Tensor([0, 0, 0]), picograd.Tensor([2, 2])
    >>> picograd.index_put(x, (places,), picograd.Tensor([3, 4]), accumulate=True).tolist()
    [0, 0, 7]
    """
    if not isinstance(indices, (tuple, list)):
        fix = "pass (index,), or one index per axis"
        raise DTypeError("index_put", "indices is no tuple of tensors", fix)
    items = tuple(slice(None) if each is None else each for each in indices)
    if not accumulate:
        return written(input, items, values)
    is_tracked = isinstance(values, Recorded) and values._tracks
    tracks = input._tracks or is_tracked
    node = read(input)
    region = None
    if is_tracing():
        region = masking.region_of(node.shape, selector(items))
    if region is not None:
        value = indexing.value_node(node, read(values))
        total = selecting.write_where(node, region, value, is_sum=True)
        return wrap(total, tracks and MODE.enabled)
    found = selecting.read_items(node, selector(items), True)
    selection = indexing.parse(node.shape, found)
    total = indexing.put(node, selection, read(values), "sum")
    return wrap(total, tracks and MODE.enabled)


@composed()
def index_put_(
    input: Tensor, indices: Sequence[Tensor | None], values: TensorLike, accumulate: bool = False
) -> Tensor:
    """Write values at index tensors in place.

    >>> x = picograd.Tensor([1, 2, 3])
    >>> x.index_put_((picograd.Tensor([0]),), picograd.tensor(9)).tolist()
    [9, 2, 3]
    """
    return rewrite(input, "index_put", index_put(input, indices, values, accumulate))


@composed(in_place=True)
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Reduce slices of `source` along an axis into those that a 1-d index names.

    `reduce` is "prod", "mean", "amax" or "amin".

    >>> x, places = picograd.Tensor([1.0, 1.0]), picograd.Tensor([0, 0])
    >>> picograd.index_reduce(x, 0, places, picograd.Tensor([2.0, 3.0]), "prod").tolist()
    [6.0, 1.0]
    """
    op = "index_reduce"
    if reduce not in REDUCES:
        raise ValueRangeError(op, f"reduce={reduce!r}", 'use "prod", "mean", "amax" or "amin"')
    axis = as_axis(dim, input.ndim, op)
    if index.ndim > 1:
        text = f"index {tuple(index.shape)} is not 1-d"
        raise AxisError(op, text, "flatten it")
    slices = source.shape[axis] if source.ndim else 1
    if index.numel() != slices:
        text = f"index {tuple(index.shape)} does not fit source {tuple(source.shape)}"
        raise ShapeError(op, text, "give one slice per index")
    wide = index.reshape(lying_along(axis, source.ndim)).expand(*source.shape)
    return input.scatter_reduce(axis, wide, source, reduce, include_self=include_self)


def fill_diagonal(input: Tensor, fill_value: Scalar, wrap: bool = False) -> Tensor:
    """Write one number over the main diagonal; with `wrap`, of a tall matrix, again and again.

    >>> picograd.Tensor([[1, 2], [3, 4]]).fill_diagonal_(0).tolist()
    [[0, 2], [3, 0]]
    """
    is_cube = len(set(input.shape)) == 1
    if input.ndim < 2 or (input.ndim > 2 and not is_cube):
        text = f"{tuple(input.shape)} is neither a matrix nor a cube"
        raise ShapeError("fill_diagonal_", text, "pass a matrix, or equal sizes")
    return apply(selecting.fill_diagonal, input, fill_value, wrap)


@composed(function=False)
def fill_diagonal_(input: Tensor, fill_value: Scalar, wrap: bool = False) -> Tensor:
    """Write one number over the main diagonal, in place; see `fill_diagonal`.

    >>> picograd.Tensor.zeros(2, 2).fill_diagonal_(1.0).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return rewrite(input, "fill_diagonal", fill_diagonal(input, fill_value, wrap))


@composed()
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """List the positions of non-zero elements in a result of fixed length: (size, axes).

    Missing rows are `fill_value`; rows beyond `size` are dropped. Nothing is computed early, so
    it can be used inside `jit`.

    >>> picograd.nonzero_static(picograd.Tensor([0, 5, 7]), size=3).tolist()
    [[1], [2], [-1]]
    """
    op = "nonzero_static"
    if not isinstance(fill_value, int):
        text = f"fill_value must be an int, not {type(fill_value).__name__}"
        raise DTypeError(op, text, "positions are whole numbers")
    check_least(op, "size", size)
    flat = (input != 0).reshape(input.numel()) if input.dtype is not bool_ else input.reshape(-1)
    places = first_places(flat, size, input.numel())
    found, rest = [], places
    for length in reversed(input.shape):
        found.append(rest % max(length, 1))
        rest = rest // max(length, 1)
    if not found:
        return Recorded.kind.zeros(size, 0, dtype="int64", device=input.device)
    rows = Recorded.kind.stack(found[::-1], 1)
    return (places < input.numel()).reshape(size, 1).where(rows, fill_value)


def first_places(flags: Tensor, size: int, count: int) -> Tensor:
    """List the first `size` positions where a vector holds; `count` stands for none."""
    kind = Recorded.kind
    if not count or not size:
        return kind.full((size,), count, dtype="int64", device=flags.device)
    rank = flags.long().cumsum(0) - 1
    slot = flags.logical_and(rank < size).where(rank, size)
    base = kind.full((size + 1,), count, dtype="int64", device=flags.device)
    return base.scatter_reduce(0, slot, kind.arange(count, device=flags.device), "amin")[:size]


@composed()
def masked_select(
    input: Tensor, mask: Tensor, *, size: int | None = None, fill_value: Scalar = 0
) -> Tensor:
    """Take the elements where the mask holds, as a vector; computes the mask.

    With `size` the result has that length, padded with `fill_value` or cut off, and nothing is
    computed early, so it can be used inside `jit`.

    >>> x = picograd.Tensor([3, 4, 5])
    >>> picograd.masked_select(x, x > 3).tolist(), x.masked_select(x > 3, size=3).tolist()
    ([4, 5], [4, 5, 0])
    """
    if mask.dtype is not bool_:
        text = f"mask must be bool, got {mask.dtype.name}"
        raise DTypeError("masked_select", text, "compare it, or call .bool()")
    shape = broadcast_shapes(input.shape, mask.shape, op="masked_select")
    x, flags = (each if each.shape == shape else each.expand(*shape) for each in (input, mask))
    if size is None:
        return x[flags]
    count = x.numel()
    if not count:
        return Recorded.kind.full((size,), fill_value, dtype=x.dtype, device=x.device)
    places = first_places(flags.reshape(count), size, count)
    picked = x.reshape(count)[places.clamp(None, count - 1)]
    return (places < count).where(picked, fill_value)


@composed()
@pending.locked
def nonzero(
    input: Tensor, *, as_tuple: bool = False, size: int | None = None, fill_value: int = -1
) -> Any:
    """List the positions of non-zero elements, (count, axes) in int64; computes.

    `as_tuple` gives one vector per axis instead. With `size`, as `nonzero_static`.

    >>> x = picograd.Tensor([[0, 1], [2, 0]])
    >>> x.nonzero().tolist(), [each.tolist() for each in x.nonzero(as_tuple=True)]
    ([[0, 1], [1, 0]], [[0, 1], [1, 0]])
    """
    if size is not None:
        found = nonzero_static(input, size=size, fill_value=fill_value)
    elif (places := choosing.places(input)) is not None:
        if as_tuple:
            return tuple([wrap(choosing.memory_of(each, int64), False) for each in places])
        return wrap(choosing.memory_of(np.stack(places, 1), int64), False)
    else:
        found = wrap(selecting.nonzero(read(input)), False)
    if not as_tuple:
        return found
    if not input.ndim:
        return (found.reshape(found.shape[0], 0).sum(1),)
    return found.unbind(1)
