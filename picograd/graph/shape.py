"""Shape rules: broadcasting, axes, reshape, windows and convolutions. Pure functions of sizes.

Functions that take what a user wrote raise ShapeError or AxisError under the name of the op the
user called; the others assume checked arguments.
"""

import functools
import itertools
from collections.abc import Iterable, Sequence

from picograd.errors import AxisError, ShapeError, class_of_index
from picograd.helpers import product, row_major
from picograd.late_methods import dataclass
from picograd.traced_number import SIZED, TracedNumber

Shape = tuple[int, ...]
Strides = tuple[int, ...]
Window = tuple[tuple[int, int, int, int], ...]  # (axis, kernel, stride, dilation) of each axis


@dataclass(frozen=True, slots=True)
class ConvSpec:
    """Sizes of a convolution, one entry per spatial axis; padding (lo, hi) may be negative."""

    stride: Shape
    padding: tuple[tuple[int, int], ...]
    input_dilation: Shape
    kernel_dilation: Shape


def is_shape(first: Shape, second: Shape) -> bool:
    """Tell whether two shapes are equal; of those of other ranks no size is asked."""
    if len(first) != len(second):
        return False
    return all(map(is_size, first, second)) if SIZED else first == second


def is_size(first: int, second: int) -> bool:
    """Tell whether two sizes are equal. A size that is followed is none of the plain ones.

    So nothing is asked of it, and a trace stands for it at 1 too: to repeat an axis of one element
    once, or to add it up, is right.
    """
    if SIZED:
        if type(first) is TracedNumber and type(second) is int and second == 1:
            return False
        if type(second) is TracedNumber and type(first) is int and first == 1:
            return False
    return first == second


def is_surely(first: Shape, second: Shape) -> bool:
    """Tell whether two shapes are equal whatever the sizes that are followed are; asks nothing."""
    if not SIZED:
        return first == second
    pairs = list(zip(first, second))
    traced = [a is b for a, b in pairs if TracedNumber in (type(a), type(b))]
    plain = [a == b for a, b in pairs if TracedNumber not in (type(a), type(b))]
    return len(first) == len(second) and all(traced) and all(plain)


def broadcast_shapes(*shapes: Shape, op: str = "broadcast") -> Shape:
    """Find the common shape: align on the right, sizes are equal or 1."""
    first = shapes[0] if shapes else ()
    if not SIZED and (common := common_shape(shapes)) is not None:
        return common
    if all(is_shape(shape, first) for shape in shapes):
        return first
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded):
        wide = [size for size in sizes if not is_size(size, 1)]
        if any(not is_size(size, wide[0]) for size in wide):
            wide = [size for size in wide if size != 1]
            if any(size != wide[0] for size in wide):
                listed = " and ".join(str(shape) for shape in shapes)
                raise ShapeError(
                    op,
                    f"shapes {listed} do not broadcast",
                    "make sizes equal or 1, counted from the right",
                )
        result.append(wide[0] if wide else 1)
    return tuple(result)


@functools.lru_cache(maxsize=1024)
def common_shape(shapes: tuple[Shape, ...]) -> Shape | None:
    """Find the common shape of those without sizes that are followed; None where there is none."""
    found: list[int] = []
    for sizes in itertools.zip_longest(*[shape[::-1] for shape in shapes], fillvalue=1):
        wide = {size for size in sizes if size != 1} or {1}
        if len(wide) > 1:
            return None
        found.append(wide.pop())
    return tuple(found[::-1])


def normalise_axis(axis: int, rank: int, op: str = "axis") -> int:
    """Turn a negative axis into a position; a scalar takes axis 0 or -1, as in PyTorch."""
    limit = max(rank, 1)
    if not -limit <= axis < limit:
        raise class_of_index(axis)(
            op,
            f"axis {axis} is out of range for {rank} axes",
            f"use an axis from {-limit} to {limit - 1}",
        )
    return axis % limit


def normalise_axes(axes: int | Iterable[int] | None, rank: int, op: str = "axis") -> Shape:
    """Sort and check axes; None means all of them."""
    if axes is None:
        return tuple(range(rank))
    listed = (axes,) if isinstance(axes, int) else tuple(axes)
    result = sorted(normalise_axis(axis, rank, op) for axis in listed)
    if len(set(result)) < len(result):
        raise AxisError(op, f"axes {listed} name one axis twice", "list each axis once")
    return tuple(result) if rank else ()


def normalise_permutation(axes: Sequence[int], rank: int, op: str = "permute") -> Shape:
    """Check that `axes` lists every axis once."""
    if len(axes) != rank:
        raise ShapeError(op, f"{tuple(axes)} does not order {rank} axes", "list every axis once")
    result: tuple[int, ...] = tuple(axes)
    if sorted(result) == list(range(rank)):
        return result
    if rank:
        result = tuple(normalise_axis(axis, rank, op) for axis in axes)
    if len(set(result)) != rank:
        raise ShapeError(op, f"{tuple(axes)} repeats an axis", "list every axis once")
    return result


def infer_reshape(shape: Shape, wanted: Sequence[int], op: str = "reshape") -> Shape:
    """Resolve one -1 and check that the number of elements stays."""
    count = product(shape)
    result = tuple(wanted)
    if not SIZED and (not result or min(result) >= 0) and product(result) == count:
        return result
    unknown = [axis for axis, size in enumerate(result) if size == -1]
    known = product(size for size in result if size != -1)
    if len(unknown) == 1 and known > 0 and count % known == 0:
        axis = unknown[0]
        result = (*result[:axis], count // known, *result[axis + 1 :])
    if product(result) != count or any(size < 0 for size in result):
        raise ShapeError(
            op,
            f"cannot reshape {shape} ({count} elements) to {tuple(wanted)}",
            "keep the number of elements, with at most one -1",
        )
    return result


def check_expand(shape: Shape, wanted: Shape, op: str = "expand") -> None:
    """Check that `shape` becomes `wanted` by repeating axes of size 1, and no new axes."""
    fits = len(shape) == len(wanted)
    if not fits or any(not is_size(a, b) and a != 1 for a, b in zip(shape, wanted)):
        raise ShapeError(
            op, f"cannot expand {shape} to {wanted}", "only axes of size 1 can be expanded"
        )


def first_shape(arg: object, shape: Shape, *others: Shape) -> Shape:
    """Shape of the first input."""
    return shape


def given_shape(arg: Shape, *shapes: Shape) -> Shape:
    """Shape that is the argument."""
    return arg


def equal_shape(arg: object, shape: Shape, *others: Shape) -> Shape:
    """Shape of all inputs; one of another shape breaks the rule."""
    return next((other for other in others if other != shape), shape)


def permute_shape(axes: Shape, shape: Shape) -> Shape:
    """Reorder the sizes."""
    return tuple([shape[axis] for axis in axes])


def reduce_shape(shape: Shape, axes: Shape, keepdim: bool = False) -> Shape:
    """Drop the reduced axes, or keep them with size 1."""
    if keepdim:
        return tuple([1 if axis in axes else size for axis, size in enumerate(shape)])
    kept = [size for axis, size in enumerate(shape) if axis not in axes]
    return tuple(kept)


def slice_shape(ranges: Iterable[tuple[int, int, int]]) -> Shape:
    """Sizes of `range(start, stop, step)` along each axis."""
    return tuple([range_size(*each) for each in ranges])


def range_size(start: int, stop: int, step: int) -> int:
    """Count `range(start, stop, step)`; step >= 1. A size that is traced stays so."""
    if step == 1:
        return max(stop - start, 0)
    count = -((start - stop) // step)
    return max(count, 0)


def pad_shape(shape: Shape, pads: Iterable[tuple[int, int]]) -> Shape:
    """Sizes with the padding added."""
    return tuple(lo + size + hi for size, (lo, hi) in zip(shape, pads))


def span(size: int, dilation: int) -> int:
    """Positions from the first to the last of `size` points `dilation` apart."""
    return (size - 1) * dilation + 1 if size else 0


def window_count(size: int, kernel: int, stride: int, dilation: int) -> int:
    """Number of windows that fit along an axis; 0 when none does."""
    return max((size - span(kernel, dilation)) // stride + 1, 0)


def window_shape(shape: Shape, windows: Window) -> Shape:
    """Each listed axis becomes its window count; kernel axes follow at the end."""
    sizes = list(shape)
    for axis, kernel, stride, dilation in windows:
        sizes[axis] = window_count(shape[axis], kernel, stride, dilation)
    return (*sizes, *(kernel for _, kernel, _, _ in windows))


def fold_shape(shape: Shape, windows: Window, sizes: Shape) -> Shape:
    """Undo `window_shape`: listed axes get their sizes back, kernel axes go."""
    result = list(shape[: len(shape) - len(windows)])
    for (axis, _, _, _), size in zip(windows, sizes):
        result[axis] = size
    return tuple(result)


def conv_sizes(sizes: Shape, kernel: Shape, spec: ConvSpec) -> Shape:
    """Spatial output sizes of a convolution."""
    return tuple(
        (span(n, spread) + lo + hi - span(k, gap)) // stride + 1
        for n, k, stride, (lo, hi), spread, gap in zip(
            sizes, kernel, spec.stride, spec.padding, spec.input_dilation, spec.kernel_dilation
        )
    )


def conv_shape(x: Shape, weight: Shape, spec: ConvSpec) -> Shape:
    """Shape of a convolution: rows, groups, output channels, places."""
    return (x[0], x[1], weight[1], *conv_sizes(x[3:], weight[3:], spec))


def contract_shape(a: Shape, b: Shape, labels: tuple[Shape, Shape, Shape]) -> Shape:
    """Sizes of the output labels of a contraction."""
    sizes = dict(zip(labels[0] + labels[1], a + b))
    return tuple(sizes[label] for label in labels[2])


def gather_shape(shape: Shape, index: Shape, axes: Shape) -> Shape:
    """Shape of the index, then the axes that are not indexed."""
    return index + reduce_shape(shape, axes)


def reshaped_strides(shape: Shape, strides: Strides, wanted: Shape) -> Strides | None:
    """Find the strides of a reshape without a copy: each stretch of equally spaced axes is cut up.

    (2, 3, 4) with strides (12, 4, 1) is one stretch; transposed to (3, 2, 4) it is three.
    """
    if not product(shape):
        return row_major(wanted)
    stretches = stretches_of(shape, strides)
    found: list[int] = []
    left = 1  # elements of the present stretch that the axes so far do not cover, from the right
    distance = 1
    for size in reversed(wanted):
        if left == 1 and size != 1:
            left, distance = stretches.pop()
        if left % size:
            return None
        found.append(distance)
        left //= size
        distance *= size
    return tuple(reversed(found))


def stretches_of(shape: Shape, strides: Strides) -> list[tuple[int, int]]:
    """List the stretches of equally spaced elements: how many, and how far apart."""
    found: list[tuple[int, int]] = []
    for size, step in zip(shape, strides):
        if size == 1:
            continue
        if found and found[-1][1] == step * size:
            count, _ = found.pop()
            size *= count
        found.append((size, step))
    return found


def reshape_dimensions(source: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...] | None:
    """Which source dimension each target dimension is (-1: new, of size 1), if only sizes of 1
    come and go; None for any other reshape."""
    wide = [d for d, n in enumerate(source) if n != 1]
    result: list[int] = []
    for n in target:
        if n == 1:
            result.append(-1)
            continue
        if not wide or source[wide[0]] != n:
            return None
        result.append(wide.pop(0))
    return None if wide else tuple(result)
