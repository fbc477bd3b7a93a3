"""Arranging: tensors split, joined and turned into other shapes, and grids made of vectors.

Functions of tensors made of their methods; nothing here computes a value.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.engine.followed import event
from picograd.errors import AxisError, GradientError, ShapeError, check_least
from picograd.graph import shape as shapes
from picograd.graph.room import ABSURD, check_host, check_size
from picograd.helpers import lying_along, product
from picograd.tensor.core import aliasing, recording
from picograd.tensor.core.annotations import DeviceLike, DTypeLike, Sizes, Tensor
from picograd.tensor.core.argument_kinds import read_whole
from picograd.tensor.core.arguments import from_host, need_tensor, need_tensors
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.function import composed
from picograd.tensor.core.operands import as_shape, need_integer
from picograd.tensor.core.recording import Recorded, apply, apply_all, read, showing, wrap
from picograd.tensor.core.sizes import Size
from picograd.tensor.shaping import assembling

SPELT_OUT = 16  # powers that are each a product of their own


def at_least(op: str, tensors: Any, rank: int) -> Any:
    """Add axes to one tensor, or to each of several."""
    if not tensors:
        return ()
    is_single = len(tensors) == 1 and isinstance(tensors[0], Recorded)
    listed = need_tensors(op, tensors)
    made = tuple(x if x.ndim >= rank else apply(assembling.with_rank, x, rank) for x in listed)
    return made[0] if is_single else made


@composed(method=False)
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Make a zero-dim tensor a vector of one; for several tensors a tuple.

    >>> picograd.atleast_1d(picograd.Tensor(2.0)).shape
    (1,)
    """
    return at_least("atleast_1d", tensors, 1)


@composed(method=False)
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Add leading axes until there are two; for several tensors a tuple.

    >>> picograd.atleast_2d(picograd.Tensor([1.0, 2.0])).shape
    (1, 2)
    """
    return at_least("atleast_2d", tensors, 2)


@composed(method=False)
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Add axes until there are three: (N,) -> (1, N, 1), (M, N) -> (M, N, 1).

    >>> picograd.atleast_3d(picograd.Tensor([1.0, 2.0])).shape
    (1, 2, 1)
    """
    return at_least("atleast_3d", tensors, 3)


@composed(method=False)
def broadcast_shapes(*sizes: Sizes) -> tuple[int, ...]:
    """Find the shape that all shapes broadcast to. ShapeError when there is none.

    >>> picograd.broadcast_shapes((2, 1), (3,), 1)
    (2, 3)
    """
    listed = [(each,) if isinstance(each, int) else tuple(each) for each in sizes]
    return Size(shapes.broadcast_shapes(*listed, op="broadcast_shapes") if listed else ())


@composed(method=False)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Join as columns along axis 1; vectors and numbers become columns first.

    >>> picograd.column_stack([picograd.Tensor([1, 2]), picograd.Tensor([3, 4])]).tolist()
    [[1, 3], [2, 4]]
    """
    parts = need_tensors("column_stack", (tensors,))
    return Recorded.kind.cat([x.reshape(x.numel(), 1) if x.ndim < 2 else x for x in parts], 1)


def split_at_axis(op: str, x: Tensor, places: Sizes, axis: int, least: int) -> tuple[Tensor, ...]:
    """Cut along an axis into equal pieces, or at positions."""
    need_tensor(op, x)
    if x.ndim < least:
        raise ShapeError(op, f"{x.shape} has fewer than {least} axes", "add axes first")
    if isinstance(places, int) and (places < 1 or x.shape[axis] % places):
        text = f"{places} pieces do not divide an axis of size {x.shape[axis]}"
        raise ShapeError(op, text, "use tensor_split")
    return x.tensor_split(places, axis)


@composed()
def hsplit(input: Tensor, indices_or_sections: Sizes) -> tuple[Tensor, ...]:
    """Cut into columns: along axis 1, or axis 0 of a vector.

    >>> [part.tolist() for part in picograd.hsplit(picograd.Tensor([[1, 2], [3, 4]]), 2)]
    [[[1], [3]], [[2], [4]]]
    """
    return split_at_axis("hsplit", input, indices_or_sections, min(1, input.ndim - 1), 1)


@composed()
def vsplit(input: Tensor, indices_or_sections: Sizes) -> tuple[Tensor, ...]:
    """Cut into rows: along axis 0 of at least two.

    >>> [part.tolist() for part in picograd.vsplit(picograd.Tensor([[1, 2], [3, 4]]), 2)]
    [[[1, 2]], [[3, 4]]]
    """
    return split_at_axis("vsplit", input, indices_or_sections, 0, 2)


@composed()
def dsplit(input: Tensor, indices_or_sections: Sizes) -> tuple[Tensor, ...]:
    """Cut along axis 2 of at least three.

    >>> [part.shape for part in picograd.dsplit(picograd.Tensor.zeros(1, 2, 4), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return split_at_axis("dsplit", input, indices_or_sections, 2, 3)


@composed("split_with_sizes", "unsafe_split_with_sizes")
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Cut along an axis into pieces of listed sizes.

    >>> [x.tolist() for x in picograd.split_with_sizes(picograd.Tensor([1, 2, 3]), [1, 2])]
    [[1], [2, 3]]
    """
    return input.split(list(split_sizes), dim)


@composed(method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """List all choices of one element from each vector, (count, vectors), the last fastest.

    >>> picograd.cartesian_prod(picograd.Tensor([1, 2]), picograd.Tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    vectors = need_tensors("cartesian_prod", tensors)
    if any(x.ndim != 1 for x in vectors):
        shown = [tuple(x.shape) for x in vectors]
        raise ShapeError("cartesian_prod", f"shapes {shown} are not all 1-d", "flatten them")
    if len(vectors) == 1:
        return vectors[0]
    sizes = [x.numel() for x in vectors]
    check_size("cartesian_prod", (*sizes, len(sizes)), vectors[0].itemsize)
    columns = []
    for at, x in enumerate(vectors):
        wide = x.reshape(lying_along(at, len(sizes))).expand(*sizes)
        columns.append(wide.reshape(product(sizes)))
    return Recorded.kind.stack(columns, 1)


@composed(method=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """List the choices of r elements of a vector, (count, r), in order.

    >>> picograd.combinations(picograd.Tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    if input.ndim != 1 or r < 0:
        text = f"input {tuple(input.shape)} and r={r}"
        raise ShapeError("combinations", text, "pass a vector and r >= 0")
    n = input.numel()
    count = choices(n + r - 1 if with_replacement and n else n, r)
    check_host("combinations", count * r)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    if not count or not r:
        return input[:0].reshape(0) if not r else input[:0].reshape(0, 1).repeat(1, r)
    numbers = itertools.chain.from_iterable(choose(range(n), r))
    return input[from_host(np.fromiter(numbers, np.int64, count * r).reshape(count, r), input)]


def choices(n: int, r: int) -> int:
    """Count the ways to choose r of n; it stops where they are more than anything holds."""
    count = 1
    for step in range(min(r, n - r)):
        count = count * (n - step) // (step + 1)
        if count >= ABSURD:
            break
    return count if r <= n else 0


@composed(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """List the powers of each element of a vector: (n,) -> (n, N), the highest power first.

    >>> picograd.vander(picograd.Tensor([2, 3]), 3).tolist()
    [[4, 2, 1], [9, 3, 1]]
    """
    if x.ndim != 1:
        raise ShapeError("vander", f"input {tuple(x.shape)} is not 1-d", "pass a vector")
    powers = powers_of(x, x.shape[0] if N is None else N)
    return powers if increasing else powers.flip(-1)


def powers_of(x: Tensor, count: int) -> Tensor:
    """List x ** 0, x ** 1, ... along a new last axis, by running products."""
    check_least("vander", "N", count)
    x = x if x.dtype.is_differentiable else x.long()
    column = x.reshape(*x.shape, 1)
    ones = column.detach().new_ones(column.shape)
    if count < 2:
        return ones.expand(*x.shape, count) if count else ones.narrow(-1, 0, 0)
    check_size("vander", (*x.shape, count), x.itemsize)
    if count > SPELT_OUT:
        factors = Recorded.kind.cat([ones, column.expand(*x.shape, count - 1)], -1)
        return factors.cumprod(-1)
    powers = [ones]
    for _ in range(count - 1):
        powers.append(powers[-1] * column)
    return Recorded.kind.cat(powers, -1)


@composed()
def adjoint(input: Tensor) -> Tensor:
    """Swap the last two axes, and conjugate: for real numbers `mT`.

    >>> picograd.adjoint(picograd.Tensor([[1, 2]])).tolist()
    [[1], [2]]
    """
    return input.mT.conj()


@composed()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Write all elements onto a diagonal of a matrix.

    >>> picograd.diagflat(picograd.Tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    return input.reshape(input.numel()).diag(offset)


@composed(method=False)
def unravel_index(indices: Tensor, shape: Sizes) -> tuple[Tensor, ...]:
    """Turn positions in a flattened tensor into one index tensor per axis.

    >>> [x.tolist() for x in picograd.unravel_index(picograd.Tensor([5]), (2, 3))]
    [[1], [2]]
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    need_integer("unravel_index", indices.node)
    if min(sizes, default=0) < 0:
        raise ShapeError("unravel_index", f"{sizes} has a negative size", "use 0 or more")
    found, rest = [], indices.long()
    for size in reversed(sizes):
        found.append(rest % size)
        rest = rest // size
    return tuple(found[::-1])


@composed(function=False)
def sum_to_size(input: Tensor, *size: Sizes) -> Tensor:
    """Sum the axes that broadcasting `size` to this shape would repeat.

    >>> picograd.Tensor([[1, 2], [3, 4]]).sum_to_size(1, 2).tolist()
    [[4, 6]]
    """
    size = read_whole(size)
    wanted = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    extra = input.ndim - len(wanted)
    pairs = list(zip(input.shape[max(extra, 0) :], wanted))
    if extra < 0 or any(b not in (1, a) for a, b in pairs):
        text = f"{tuple(input.shape)} is no broadcast of {wanted}"
        raise ShapeError("sum_to_size", text, "give a shape that broadcasts to it")
    axes = [*range(extra), *(extra + n for n, (a, b) in enumerate(pairs) if b == 1 and a != 1)]
    if not wanted:
        return input.sum()
    return (input.sum(tuple(axes)) if axes else input).reshape(*wanted)


@composed(in_place=True, view="always")
def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Read the memory that a tensor shows at offset + sum(index * stride): a view.

    Offsets count from where that memory starts, and all counts elements of this dtype: parts of
    complex numbers lie two apart. Left out, the offset is the first element shown. A copy, as of
    most reshapes of what is transposed, has memory of its own.

    >>> picograd.as_strided(picograd.Tensor([1, 2, 3]), (2, 2), (1, 1)).tolist()
    [[1, 2], [2, 3]]
    """
    memory, start = recording.memory_of(input)
    offset = start if storage_offset is None else storage_offset
    if len(size) != len(stride) or any(each < 0 for each in (*size, *stride, offset)):
        text = f"size {tuple(size)} and stride {tuple(stride)} do not fit"
        raise ShapeError("as_strided", text, "give one stride >= 0 per size")
    shape = as_shape((size,), "as_strided")
    last = offset + sum((n - 1) * step for n, step in zip(shape, stride))
    if input.requires_grad and not memory.requires_grad:
        if not input.is_contiguous() or offset < start or last >= start + input.numel():
            text = "gradients of a part of memory do not reach what lies around it"
            raise GradientError("as_strided", text, "call .clone() on it first, or .detach()")
        memory, offset, last = input, offset - start, last - start
    if product(shape) and last >= memory.numel():
        text = f"position {last} is beyond {memory.numel()} elements"
        raise AxisError("as_strided", text, "use smaller sizes or strides")
    return apply(aliasing.strided, memory, shape, tuple(stride), offset)


@event  # what is read is still there when the results are entered
def several_of(function: Any, tensors: Any, *options: Any) -> tuple[Tensor, ...]:
    """Record an operation that turns several tensors into several."""
    listed = (
        list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    )
    nodes = function([read(each) for each in listed], *options)
    tracks = MODE.enabled and any(each.requires_grad for each in listed)
    return tuple(wrap(node, tracks and node.dtype.is_differentiable) for node in nodes)


@composed()
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
    """Repeat vectors over the grid they span; indexing="xy" swaps the first two axes.

    >>> x, y = picograd.Tensor([1, 2]).meshgrid(picograd.Tensor([3, 4]))
    >>> x.tolist(), y.tolist()
    ([[1, 1], [2, 2]], [[3, 4], [3, 4]])
    """
    return several_of(assembling.meshgrid, need_tensors("meshgrid", tensors), indexing)


@composed(method=False)
def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Repeat tensors to their common shape: views of them, and themselves where they have it.

    >>> x, y = picograd.broadcast_tensors(Tensor([1.0, 2.0]), Tensor([[3.0], [4.0]]))
    >>> x.tolist(), y.tolist()
    ([[1.0, 2.0], [1.0, 2.0]], [[3.0, 3.0], [4.0, 4.0]])
    """
    listed = need_tensors("broadcast_tensors", tensors)
    shape = shapes.broadcast_shapes(*(each.shape for each in listed), op="broadcast_tensors")
    return tuple(each if each.shape == shape else each.expand(shape) for each in listed)


@composed(method=False)
def block_diag(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """Put matrices on the diagonal of a larger one.

    >>> picograd.block_diag(Tensor([[1.0]]), Tensor([[2.0, 3.0]])).tolist()
    [[1.0, 0.0, 0.0], [0.0, 2.0, 3.0]]
    """
    if not tensors:
        return Recorded.kind.zeros((1, 0))
    return apply_all(assembling.block_diag, tensors)


@composed("vstack", "row_stack", method=False)
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join along axis 0 after making everything at least 2-d.

    >>> picograd.vstack([Tensor([1.0, 2.0]), Tensor([3.0, 4.0])]).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return apply_all(assembling.stack_along, tensors, 2, 0)


@composed(method=False)
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join along axis 1, or along axis 0 for vectors.

    >>> picograd.hstack([Tensor([1.0, 2.0]), Tensor([3.0])]).tolist()
    [1.0, 2.0, 3.0]
    """
    return apply_all(assembling.stack_along, tensors, 1, 1)


@composed(method=False)
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join along axis 2 after making everything at least 3-d.

    >>> picograd.dstack([Tensor([1.0, 2.0]), Tensor([3.0, 4.0])]).tolist()
    [[[1.0, 3.0], [2.0, 4.0]]]
    """
    return apply_all(assembling.stack_along, tensors, 3, 2)


@composed(method=False)
def tril_indices(
    row: int,
    col: int | None = None,
    offset: int = 0,
    device: DeviceLike | None = None,
    dtype: DTypeLike = "int64",
) -> Tensor:
    """List the positions of a lower triangle, (2, count) in int64.

    >>> picograd.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return Recorded.kind.of(assembling.triangle_indices(row, col, offset, True), dtype, device)


@composed(method=False)
def triu_indices(
    row: int,
    col: int | None = None,
    offset: int = 0,
    device: DeviceLike | None = None,
    dtype: DTypeLike = "int64",
) -> Tensor:
    """List the positions of an upper triangle, (2, count) in int64.

    >>> picograd.triu_indices(2, 2).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    return Recorded.kind.of(assembling.triangle_indices(row, col, offset, False), dtype, device)


showing(assembling.with_rank, always=(aliasing.strided,))
