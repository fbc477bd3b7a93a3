"""Functions of the array API that move elements, look them up, sort, and find the distinct ones."""

from collections.abc import Sequence
from typing import NamedTuple

from picograd.array_api.elementwise import together
from picograd.array_api.reductions import sum as count
from picograd.errors import AxisError, ShapeError
from picograd.tensor.core.annotations import TensorLike
from picograd.tensor.core.operands import as_axis
from picograd.tensor.reductions import statistics
from picograd.tensor.shaping import joining
from picograd.tensor.tensor import Tensor

__all__ = [
    "argmax", "argmin", "argsort", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat",
    "count_nonzero", "expand_dims", "flip", "isin", "moveaxis", "nonzero", "permute_dims", "repeat",
    "reshape", "roll", "searchsorted", "sort", "squeeze", "stack", "take",
    "take_along_axis", "tile", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "unstack", "where",
]  # fmt: skip

Axes = int | tuple[int, ...] | None


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Give tensors their common shape."""
    return tuple(joining.broadcast_tensors(*arrays))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Find the common shape of tensors of some shapes."""
    return joining.broadcast_shapes(*shapes)


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """Repeat axes of size 1."""
    return x.expand(*shape) if shape else x.reshape(())


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Join tensors along an axis, or flattened."""
    listed = together(*arrays)
    if axis is None:
        return Tensor.cat([each.flatten() for each in listed], dim=0)
    return Tensor.cat(listed, dim=axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Join tensors along a new axis."""
    return Tensor.stack(together(*arrays), dim=axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Cut along an axis, which goes."""
    return x.unbind(axis)


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Add axes of size 1, at their places in the result."""
    places = (axis,) if isinstance(axis, int) else axis
    rank = x.ndim + len(places)
    wanted = sorted(as_axis(each, rank, "expand_dims") for each in places)
    if len(set(wanted)) < len(wanted):
        raise AxisError("expand_dims", f"axes {places} repeat", "name each once")
    for place in wanted:
        x = x.unsqueeze(place)
    return x


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Take axes of size 1 away; another size is an error."""
    for each in (axis,) if isinstance(axis, int) else axis:
        if x.shape[each] != 1:
            text = f"axis {each} of {tuple(x.shape)} is not of size 1"
            raise ShapeError("squeeze", text, "leave it out")
    return x.squeeze(axis)


def flip(x: Tensor, /, *, axis: Axes = None) -> Tensor:
    """Reverse the order along axes, all of them unless told otherwise."""
    chosen = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return x.flip(tuple(chosen)) if x.ndim else x.clone()


def isin(x1: TensorLike, x2: TensorLike, /, *, invert: bool = False) -> Tensor:
    """Tell which elements of x1 are elements of x2, or with `invert` are not."""
    return statistics.isin(*together(x1, x2), invert=invert)


def moveaxis(
    x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Tensor:
    """Move axes to other places."""
    return x.movedim(source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Reorder the axes."""
    return x.permute(axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Repeat each element."""
    if isinstance(repeats, Tensor) and not repeats.ndim:
        repeats = int(repeats)
    return x.repeat_interleave(repeats, dim=axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Read the elements in row-major order as another shape; `copy=True` in memory of its own."""
    found = x.reshape(shape) if copy is not False else x.view(shape)
    return found.clone() if copy else found


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: Axes = None) -> Tensor:
    """Move elements round along axes."""
    if isinstance(shift, int) and isinstance(axis, tuple):
        shift = (shift,) * len(axis)
    return x.roll(shift, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeat the whole tensor along axes."""
    return x.tile(repetitions)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Read elements along an axis."""
    at = (axis or 0) % x.ndim
    return x[(slice(None),) * at + (indices,)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Read an element for each index along an axis."""
    return x.take_along_dim(indices, axis)


def where(condition: Tensor, x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Choose from one tensor where a condition holds, else from another."""
    return condition.where(*together(x1, x2))


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Find the places of what is not 0: one tensor of indices an axis."""
    if not x.ndim:
        raise ShapeError("nonzero", "a zero-dim tensor has no places", "use reshape(x, (1,))")
    return x.nonzero(as_tuple=True)


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Count what is not 0."""
    return count((x != 0).cast("int64"), axis=axis, keepdims=keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Find where the largest element is."""
    return x.argmax(axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Find where the smallest element is."""
    return x.argmin(axis, keepdims)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Order the elements along an axis."""
    return x.sort(axis, descending, stable)[0]


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """Find the order of the elements along an axis."""
    return x.argsort(axis, descending, stable)


def searchsorted(
    x1: Tensor, x2: TensorLike, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Find the places of values in sorted ones."""
    ordered, values = together(x1, x2)
    return ordered.searchsorted(values, side=side, sorter=sorter)  # type: ignore[no-any-return]


class UniqueAll(NamedTuple):
    """This class is what `unique_all` gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """This class is what `unique_counts` gives."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """This class is what `unique_inverse` gives."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """Find the distinct values, where each is first, which one each element is, and how often."""
    flat = x.flatten()
    if not flat.numel():
        none = Tensor.zeros(0, dtype="int64", device=x.device)
        return UniqueAll(flat, none, none.reshape(x.shape), none)
    order = flat.argsort(stable=True)
    ordered = flat[order]
    is_new = (ordered[1:] != ordered[:-1]).cast("bool")
    is_new = Tensor.cat([Tensor.ones(1, dtype="bool", device=x.device), is_new])
    starts = is_new.nonzero().flatten()
    ends = Tensor.cat([starts[1:], Tensor.of([flat.numel()], device=x.device)])
    group = is_new.cast("int64").cumsum(0) - 1
    inverse = Tensor.zeros_like(order).scatter(0, order, group).reshape(x.shape)
    return UniqueAll(ordered[starts], order[starts], inverse, ends - starts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Find the distinct values and how often each is there."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Find the distinct values and which one each element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """Find the distinct values."""
    return unique_all(x).values
