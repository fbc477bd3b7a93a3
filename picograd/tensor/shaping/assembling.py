"""Assembling tensors of other tensors on nodes: diagonals, products of sets, stacks and grids."""

import math
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from picograd.dtype import bool_, float64, int64
from picograd.engine import pending
from picograd.engine.followed import SCALING
from picograd.engine.tracing import is_tracing
from picograd.errors import (
    AxisError,
    DTypeError,
    ShapeError,
    ValueRangeError,
    check_known,
    check_least,
)
from picograd.graph import build, composites
from picograd.graph.build_composite import custom
from picograd.graph.complex_rules import conjugate
from picograd.graph.node import Node
from picograd.graph.room import check_host, check_pieces
from picograd.graph.scanning import scan
from picograd.graph.shape import broadcast_shapes, is_size, normalise_permutation
from picograd.helpers import product
from picograd.number import start_of
from picograd.target import is_host
from picograd.tensor.core.annotations import Scalar, Sizes
from picograd.tensor.core.function import recorded
from picograd.tensor.core.operands import (
    Operand,
    as_axis,
    as_sizes,
    broadcast_to,
    check_index,
    common_dtype,
    constant,
    floating,
    need_integer,
    need_rank,
    pair,
    promote_all,
    read_factor,
    read_scalar,
)
from picograd.tensor.core.repeated import recorded_once
from picograd.tensor.indexing import indexing, selecting
from picograd.tensor.linalg import products
from picograd.tensor.math import elementwise, transcendental
from picograd.tensor.reductions import reduce, sorting
from picograd.tensor.shaping import movement

MODE = "mm_for_euclid_dist"
FEW_ROWS = 25  # whose distances are taken one by one, as in PyTorch


@recorded()
def diag_embed(x: Node, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Node:
    """Write the last axis onto a diagonal of two new axes; the rest is zero.

    >>> Tensor([1.0, 2.0]).diag_embed().tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    need_rank("diag_embed", x, 1)
    rank = len(x.shape) + 1
    a, b = (as_axis(dim1, rank, "diag_embed"), as_axis(dim2, rank, "diag_embed"))
    if a == b:
        raise ShapeError("diag_embed", f"both axes are {a}", "name two different axes")
    size = x.shape[-1] + abs(offset)
    low, left = max(-offset, 0), max(offset, 0)
    pads = ((0, 0),) * (rank - 2) + ((low, size - low - x.shape[-1]),)
    column = build.pad(x, pads, composites.zero_of(x)).reshape((*x.shape[:-1], size, 1))
    square = column.expand((*x.shape[:-1], size, size))
    places = square.iota(rank - 1).binary("equal", square.iota(rank - 2) + (left - low))
    result = places.where(square, composites.zero_of(x))
    return move_last(result, a, b)


def move_last(node: Node, a: int, b: int) -> Node:
    """Bring the last two axes to the places `a` and `b`."""
    rank = len(node.shape)
    others = iter(range(rank - 2))
    order = [rank - 2 if at == a else rank - 1 if at == b else next(others) for at in range(rank)]
    return build.permute(node, tuple(order))


@recorded()
def diag(x: Node, diagonal: int = 0) -> Node:
    """Make a matrix of a vector, or take the diagonal of a matrix.

    >>> Tensor([1.0, 2.0]).diag().tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    if len(x.shape) == 1:
        return diag_embed(x, diagonal)
    if len(x.shape) != 2:
        raise ShapeError("diag", f"input {x.shape} has more than 2 axes", "use .diagonal()")
    return movement.diagonal(x, diagonal, 0, 1)


@recorded()
def trace(x: Node) -> Node:
    """Sum the diagonal of a matrix.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).trace().item()
    5.0
    """
    if len(x.shape) != 2:
        raise ShapeError("trace", f"input {x.shape} is not a matrix", "use .diagonal().sum(-1)")
    return reduce.total("sum", movement.diagonal(x, 0, 0, 1), None, False, None)


@recorded()
def kron(a: Node, other: Node) -> Node:
    """Multiply every element of one tensor with the whole other one, as blocks.

    >>> Tensor([[1.0, 2.0]]).kron(Tensor([[1.0, 10.0]])).tolist()
    [[1.0, 10.0, 2.0, 20.0]]
    """
    rank = max(len(a.shape), len(other.shape))
    first = (1,) * (rank - len(a.shape)) + a.shape
    second = (1,) * (rank - len(other.shape)) + other.shape
    wide = a.reshape(tuple(size for each in first for size in (each, 1)))
    tall = other.reshape(tuple(size for each in second for size in (1, each)))
    blocks = elementwise.arithmetic("mul", wide, tall)
    return blocks.reshape(tuple(x * y for x, y in zip(first, second)))


@recorded()
def cross(x: Node, other: Node, dim: int | None = None) -> Node:
    """Multiply vectors of three: the result is at right angles to both.

    Without `dim` they lie along the first axis of 3, as in PyTorch.

    >>> Tensor([1.0, 0.0, 0.0]).cross(Tensor([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    first, second = pair("cross", x, other)
    if dim is None:
        dim = next((axis for axis, size in enumerate(first.shape) if size == 3), -1)
    at = as_axis(dim, len(first.shape), "cross")
    for node in (x, other):
        below = at - len(first.shape)  # counted from the end, where both have it
        if not first.shape or -below > node.rank or node.shape[below] != 3:
            problem = f"axis {dim} of {x.shape} and {other.shape} is not 3"
            raise ShapeError("cross", problem, "name an axis of 3")

    def turned(node: Node, steps: int) -> Node:
        return movement.roll(node, -steps, at)

    forward = elementwise.arithmetic("mul", turned(first, 1), turned(second, 2))
    backward = elementwise.arithmetic("mul", turned(first, 2), turned(second, 1))
    return elementwise.arithmetic("sub", forward, backward)


@recorded_once()
def cdist(x: Node, other: Node, p: float = 2.0, compute_mode: str | None = None) -> Node:
    """Measure the distance of each row of (..., P, M) from each of (..., R, M): (..., P, R).

    Euclidean distances of more than 25 rows are made of products, as in PyTorch: small distances of
    large rows lose digits, which the mode "donot_use_mm_for_euclid_dist" keeps.

    >>> Tensor([[0.0, 0.0]]).cdist(Tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    need_rank("cdist", x, 2)
    need_rank("cdist", other, 2)
    if x.shape[-1] != other.shape[-1]:
        text = f"rows of {x.shape} and {other.shape} differ in length"
        raise ShapeError("cdist", text, "make the last sizes equal")
    if not float(p) >= 0.0:
        raise ValueRangeError("cdist", f"p={p} is negative", "use 0 or more")
    by_products, directly = f"use_{MODE}", f"donot_use_{MODE}"
    modes = (None, f"{by_products}_if_necessary", by_products, directly)
    check_known("cdist", "compute_mode", compute_mode, modes)
    is_large = max(x.shape[-2], other.shape[-2]) > FEW_ROWS and compute_mode != directly
    is_plain = p == 2 and x.size and other.size and x.dtype.is_float and other.dtype.is_float
    if is_plain and (is_large or compute_mode == by_products):
        return euclidean(*promote_all("cdist", [x, other]))
    rows, columns = movement.unsqueeze(x, -2), movement.unsqueeze(other, -3)
    return reduce.norm(elementwise.subtract(rows, columns), float(p), -1, False)


def euclidean(x: Node, other: Node) -> Node:
    """Measure distances by |a - b|^2 = |a|^2 + |b|^2 - 2 a.b; their gradients are products, too."""
    batch = broadcast_shapes(x.shape[:-2], other.shape[:-2], op="cdist")
    x, other = (broadcast_to(each, (*batch, *each.shape[-2:])) for each in (x, other))
    wide, columns = x.accumulated(), swap_last(other.accumulated())
    product = products.matmul(wide, columns)
    sizes = (wide * wide).reduce("sum", (x.rank - 1,), True)
    sizes = broadcast_to(sizes, product.shape)
    others = broadcast_to((columns * columns).reduce("sum", (x.rank - 2,), True), product.shape)
    square = (sizes - product * 2 + others).binary("maximum", 0)
    return custom(square.unary("sqrt").cast(x.dtype), (x, other), euclidean_vjp)


def euclidean_vjp(g: Node, result: Node, x: Node, other: Node) -> tuple[Node, Node]:
    """Weigh the differences of rows by g / distance; where that is 0 they have none."""
    is_zero = result.binary("equal", 0)
    weights = is_zero.where(0, g / is_zero.where(1, result))
    found = []
    for rows, columns, each in ((x, other, weights), (other, x, swap_last(weights))):
        total = broadcast_to(each.reduce("sum", (each.rank - 1,), True), rows.shape)
        found.append(rows * total - products.matmul(each, columns))
    return found[0], found[1]


def swap_last(node: Node) -> Node:
    """Transpose matrices."""
    return movement.transpose(node, -2, -1)


def tile(node: Node, counts: Sequence[Any]) -> Node:
    """Repeat along axes; missing counts are 1."""
    times = as_sizes(counts, "tile")
    return movement.repeat(node, (1,) * (len(node.shape) - len(times)) + times)


@recorded()
def fliplr(x: Node) -> Node:
    """Reverse the columns.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).fliplr().tolist()
    [[2.0, 1.0], [4.0, 3.0]]
    """
    return movement.flip(x, (1,))


@recorded()
def flipud(x: Node) -> Node:
    """Reverse the rows.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).flipud().tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """
    need_rank("flipud", x, 1)
    return movement.flip(x, (0,))


@recorded("movedim", "moveaxis", view="if")
def move_axes(x: Node, source: Sizes, destination: Sizes) -> Node:
    """Move axes to other positions; the rest keeps its order.

    >>> Tensor([[[1.0, 2.0]]]).movedim(2, 0).shape
    (2, 1, 1)
    """
    if isinstance(source, int) and isinstance(destination, int):
        return movement.move_axis(x, source, destination)
    rank, listed = len(x.shape), cast(tuple[Sequence[int], Sequence[int]], (source, destination))
    starts, ends = ([as_axis(axis, rank, "movedim") for axis in axes] for axes in listed)
    if len(starts) != len(ends) or len(set(starts)) < len(starts) or len(set(ends)) < len(ends):
        text = f"source {source} and destination {destination} do not match"
        raise ShapeError("movedim", text, "name each axis once on both sides")
    others = iter([axis for axis in range(rank) if axis not in starts])
    order = [starts[ends.index(at)] if at in ends else next(others) for at in range(rank)]
    return build.permute(x, normalise_permutation(order, rank))


def repeat_each(node: Node, repeats: Node, axis: Any) -> Node:
    """Repeat each slice as often as a vector of counts says; the counts are computed."""
    need_integer("repeat_interleave", repeats, "repeats")
    if axis is None:
        node, axis = node.reshape((product(node.shape),)), 0
    at = as_axis(axis, len(node.shape), "repeat_interleave")
    is_few = is_host(repeats.device) or repeats.size < selecting.SMALL_MASK
    is_there = repeats.shape == (node.shape[at],) and repeats.device == node.device
    if is_there and not is_few and not is_tracing():
        index = repeated_places(repeats.cast(int64))
        return indexing.index_select(node, at, index)
    counts = selecting.computed_values(repeats).reshape(-1)
    if counts.size not in (1, node.shape[at]) or (counts < 0).any():
        text = f"{counts.size} counts for an axis of size {node.shape[at]}"
        raise ShapeError("repeat_interleave", text, "give one count >= 0 per slice")
    check_host("repeat_interleave", int(counts.sum()) if counts.size > 1 else 0)
    places: Any = np.repeat(np.arange(node.shape[at]), counts.astype(np.int64))
    index = selecting.host_index("repeat_interleave", places, node.shape[at], at, node.device)
    return selecting.index_select(node, at, index)


def repeated_places(counts: Node) -> Node:
    """List each position as often as a count says, on the device; the host learns how many."""
    ends = scan(counts, "sum", 0)
    last = ends.slice(((counts.size - 1, counts.size, 1),))
    least = counts.reduce("min", (0,)).reshape((1,))
    facts = composites.join([last, least], 0)
    pending.compute([ends, facts])
    total, lowest = map(int, selecting.computed_values(facts))
    if lowest < 0:
        text = f"the lowest of {counts.size} counts is {lowest}"
        raise ShapeError("repeat_interleave", text, "give one count >= 0 per slice")
    place = Node("iota", (), 0, (total,), int64, counts.device)
    return sorting.search(ends, place, True).stored()


@recorded(pieces=True)
def tensor_split(x: Node, indices_or_sections: Sizes | Node, dim: int = 0) -> list[Node]:
    """Cut into a number of nearly equal pieces, or at the listed positions.

    >>> [part.tolist() for part in Tensor([1.0, 2.0, 3.0]).tensor_split(2)]
    [[1.0, 2.0], [3.0]]
    """
    need_rank("tensor_split", x, 1)
    at = as_axis(dim, len(x.shape), "tensor_split")
    size = x.shape[at]
    if getattr(indices_or_sections, "ndim", 1) == 0:  # a number in a tensor
        indices_or_sections = operator.index(cast(Any, indices_or_sections))
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1:
            raise ValueRangeError("tensor_split", f"{indices_or_sections} pieces", "use at least 1")
        check_pieces("tensor_split", indices_or_sections)
        short, extra = divmod(size, indices_or_sections)
        ends = [n * short + min(n, extra) for n in range(indices_or_sections + 1)]
    else:
        cuts = [
            min(max(n + size, 0) if n < 0 else n, size)
            for n in as_sizes((indices_or_sections,), "tensor_split")
        ]
        ends = [0, *cuts, size]
    pairs = pairwise(ends)
    return [movement.cut(x, at, low, max(low, high)) for low, high in pairs]


def meshgrid(nodes: Sequence[Node], indexing: str) -> list[Node]:
    """Repeat vectors over the grid they span; "xy" swaps the first two axes."""
    check_known("meshgrid", "indexing", indexing, ("ij", "xy"))
    nodes = promote_all("meshgrid", nodes)
    for node in nodes:
        if node.rank > 1:
            text = f"takes vectors, not a tensor of shape {node.shape}"
            raise ShapeError("meshgrid", text, "flatten it first")
    flat = [node.reshape((node.size,)) for node in nodes]
    is_swapped = indexing == "xy" and len(flat) > 1
    order = [1, 0, *range(2, len(flat))] if is_swapped else list(range(len(flat)))
    shape = tuple(flat[axis].size for axis in order)
    result = []
    for number, node in enumerate(flat):
        sizes = [1] * len(flat)
        sizes[order.index(number)] = node.size
        result.append(build.expand(node.reshape(tuple(sizes)), shape))
    return result


def block_diag(nodes: Sequence[Node]) -> Node:
    """Put matrices on the diagonal of a larger one."""
    parts = [node.reshape((1,) * (2 - len(node.shape)) + node.shape) for node in nodes]
    parts = promote_all("block_diag", parts)
    width = sum(part.shape[1] for part in parts)
    rows, start = [], 0
    for part in parts:
        end = start + part.shape[1]
        rows.append(build.pad(part, ((0, 0), (start, width - end)), composites.zero_of(part)))
        start = end
    return movement.cat(rows, 0)


def with_rank(node: Node, rank: int) -> Node:
    """Add axes as NumPy's atleast_1d, 2d, 3d do."""
    shape = node.shape
    if len(shape) >= rank:
        return node
    if rank == 3 and len(shape) == 2:
        return node.reshape((*shape, 1))
    if rank == 3 and len(shape) == 1:
        return node.reshape((1, *shape, 1))
    return node.reshape((1,) * (rank - len(shape)) + shape)


def stack_along(nodes: Sequence[Node], rank: int, axis: int) -> Node:
    """Join along an axis after adding axes: vstack, hstack, dstack."""
    parts = [with_rank(node, rank) for node in nodes]
    return movement.cat(parts, min(axis, len(parts[0].shape) - 1) if parts else axis)


@recorded("rot90")
def rotate(x: Node, k: int = 1, dims: Sequence[int] = (0, 1)) -> Node:
    """Rotate by quarter turns in the plane of two axes.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).rot90().tolist()
    [[2.0, 4.0], [1.0, 3.0]]
    """
    need_rank("rot90", x, 2)
    a, b = (as_axis(axis, len(x.shape), "rot90") for axis in dims)
    if a == b:
        raise AxisError("rot90", f"dims={dims} name one axis", "name the two axes of a plane")
    k %= 4
    if k == 2:
        return build.flip(x, (a, b))
    if k == 1:
        return movement.transpose(build.flip(x, (b,)), a, b)
    return build.flip(movement.transpose(x, a, b), (b,)) if k == 3 else x


def triangle_indices(
    rows: int, columns: int | None, offset: int, is_lower: bool
) -> "np.ndarray[Any, Any]":
    """List the (row, column) positions of a triangle, (2, count)."""
    op = "tril_indices" if is_lower else "triu_indices"
    rows, width = as_sizes((rows, rows if columns is None else columns), op)
    check_least(op, "row", rows)
    check_least(op, "col", width)
    check_host(op, rows * width)
    find = np.tril_indices if is_lower else np.triu_indices
    return np.stack(find(rows, offset, width)).astype(np.int64)


@recorded()
def inner(x: Node, other: Node) -> Node:
    """Sum the products of the last axes; with a number, multiply.

    >>> Tensor([1.0, 2.0, 3.0]).inner(Tensor([1.0, 1.0, 2.0])).item()
    9.0
    """
    if not x.shape or not other.shape:
        return elementwise.arithmetic("mul", x, other)
    return tensordot(x, other, ([-1], [-1]))


@recorded()
def tensordot(a: Node, other: Node, dims: int | Sequence[Sequence[int]] = 2) -> Node:
    """Contract the last axes with the first of other, or listed pairs.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).tensordot(Tensor([[1.0, 0.0], [0.0, 1.0]]), 2).item()
    5.0
    """
    if isinstance(dims, int):
        left: list[Any] = list(range(len(a.shape) - dims, len(a.shape)))
        right: list[Any] = list(range(dims))
    else:
        left, right = ([each] if isinstance(each, int) else list(each) for each in dims)
    first = [as_axis(axis, len(a.shape), "tensordot") for axis in left]
    second = [as_axis(axis, len(other.shape), "tensordot") for axis in right]
    pairs = [(a.shape[one], other.shape[two]) for one, two in zip(first, second)]
    if len(first) != len(second) or any(x != y and 1 not in (x, y) for x, y in pairs):
        text = f"axes {left} of {a.shape} do not match axes {right} of {other.shape}"
        raise ShapeError("tensordot", text, "contract axes of equal sizes")
    count = len(a.shape)
    names = [count + axis for axis in range(len(other.shape))]
    for one, two in zip(first, second):
        names[two] = one
    labels_a = tuple(range(count))
    kept = tuple(n for n in (*labels_a, *names) if not (n in labels_a and n in names))
    x, y = promote_all("tensordot", [a, other])
    if any(one != two for one, two in pairs):  # an axis of size 1 meets every element
        longest = [max(pair) for pair in pairs]
        x, y = stretched(x, first, longest), stretched(y, second, longest)
    return build.contract(x, y, (labels_a, tuple(names), kept), "tensordot")


def stretched(x: Node, axes: list[int], sizes: list[int]) -> Node:
    """Broadcast some axes of size 1."""
    shape = list(x.shape)
    for axis, size in zip(axes, sizes):
        shape[axis] = size
    return broadcast_to(x, tuple(shape))


@recorded("isclose")
def is_close(
    a: Node, other: Node, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Node:
    """Test |self - other| <= atol + rtol |other| for each element.

    >>> Tensor([1.0, 2.0]).isclose(Tensor([1.0 + 1e-7, 2.1])).tolist()
    [True, False]
    """
    if not (rtol >= 0 and atol >= 0):
        text = f"rtol={rtol} or atol={atol} is negative"
        raise ValueRangeError("isclose", text, "use 0 or more")
    x, y = pair("isclose", a, other)
    same = x.binary("equal", y)
    if x.dtype.is_differentiable:
        both = elementwise.is_finite(x).binary("logical_and", elementwise.is_finite(y))
        gap = (x - y).unary("abs")
        near = gap.binary("less_equal", y.unary("abs") * rtol + atol)
        same = same.binary("logical_or", near.binary("logical_and", both))
        if equal_nan:
            nans = x.unary("isnan").binary("logical_and", y.unary("isnan"))
            same = same.binary("logical_or", nans)
        return same
    if not x.dtype.is_integer:
        return same
    a, b = x.cast(float64), y.cast(float64)  # where no difference wraps
    near = (a - b).unary("abs").binary("less_equal", b.unary("abs") * rtol + atol)
    return same.binary("logical_or", near)


@recorded(in_place=True)
def nan_to_num(
    x: Node, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Node:
    """Replace NaN and infinities by numbers: the largest finite ones unless given.

    >>> Tensor([1.0, float("nan"), 3.0]).nan_to_num(0.0).tolist()
    [1.0, 0.0, 3.0]
    """
    if x.dtype.is_complex:
        real, imag = (nan_to_num(part, nan, posinf, neginf) for part in x.parts())
        return real.paired(imag)
    if not x.dtype.is_float:
        return x
    top = posinf if posinf is not None else largest(x)
    bottom = neginf if neginf is not None else -largest(x)
    result = x.unary("isnan").where(x.const_like(nan), x)
    result = x.binary("equal", math.inf).where(x.const_like(top), result)
    return x.binary("equal", -math.inf).where(x.const_like(bottom), result)


LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}


def largest(node: Node) -> float:
    """Find the largest finite number of a float dtype."""
    return LARGEST.get(node.dtype.name, float(np.finfo(np.float64).max))


@recorded(in_place=True)
def deg2rad(x: Node) -> Node:
    """Turn degrees into radians.

    >>> Tensor([0.0, 90.0, 180.0]).deg2rad().tolist()
    [0.0, 1.5707..., 3.1415...]
    """
    return elementwise.arithmetic("mul", floating("mul", x), math.pi / 180)


@recorded(in_place=True)
def rad2deg(x: Node) -> Node:
    """Turn radians into degrees.

    >>> Tensor([0.0, 1.0, 2.0]).rad2deg().tolist()
    [0.0, 57.2957..., 114.5915...]
    """
    return elementwise.arithmetic("mul", floating("mul", x), 180 / math.pi)


@recorded("frac", in_place=True)
def fraction(x: Node) -> Node:
    """Compute x - trunc(x).

    >>> Tensor([-1.5, 0.25, 2.0]).frac().tolist()
    [-0.5, 0.25, 0.0]
    """
    return elementwise.subtract(x, elementwise.rounding("trunc", x))


@recorded(in_place=True)
def heaviside(x: Node, values: Operand) -> Node:
    """Compute 0 below 0, 1 above, and `values` at 0.

    >>> Tensor([-1.0, 0.0, 2.0]).heaviside(Tensor([0.5, 0.5, 0.5])).tolist()
    [0.0, 0.5, 1.0]
    """
    step = elementwise.compare("less", 0, x).cast(x.dtype)
    at_zero = elementwise.compare("equal", x, 0)
    return elementwise.where(at_zero, values, step)


@recorded(in_place=True)
def logit(node: Node, eps: float | None = None) -> Node:
    """Compute log(x / (1 - x)); with eps, x is limited to [eps, 1 - eps] first.

    >>> Tensor([0.25, 0.5, 0.75]).logit().tolist()
    [-1.0986..., 0.0, 1.0986...]
    """
    x = floating("logit", node)
    bounded = x if eps is None else elementwise.clamp(x, eps, 1 - eps)
    value = transcendental.logit_value(bounded.accumulated()).cast(x.dtype)
    low = 0.0 if eps is None else eps
    outside = math.nan if eps is None else 0.0

    def vjp(g: Node, y: Node, x: Node) -> tuple[Node]:
        inside = x.const_like(low).binary("less_equal", x)
        inside = inside.binary("logical_and", x.binary("less_equal", 1 - low))
        return (inside.where(g / (x * (1 - x)), outside),)

    return custom(value, (x,), vjp)


@recorded("dist")
def distance(x: Node, other: Operand, p: float = 2) -> Node:
    """Compute the norm of the difference.

    >>> Tensor([0.0, 0.0]).dist(Tensor([3.0, 4.0])).item()
    5.0
    """
    first, second = pair("dist", x, other, floating=True)
    gap = elementwise.subtract(first.accumulated(), second.accumulated())
    return reduce.norm(gap, p, None, False).cast(first.dtype.real)


def weighted_sum(op: str, a: Node, factors: Sequence[Node], first: Scalar, second: Scalar) -> Node:
    """Compute first * a + second * the product of the factors, in their common dtype throughout.

    16-bit floats are computed in float32 and rounded once.
    """
    dtype = common_dtype([a, *factors])
    left, *parts = (build.cast(each, dtype).accumulated() for each in (a, *factors))
    if len(parts) == 2:
        parts = [elementwise.arithmetic("mul", *parts)]
    left, right = times(op, left, first), times(op, parts[0], second)
    return elementwise.arithmetic("add", left, right).cast(dtype)


def times(op: str, node: Node, factor: Operand) -> Node:
    """Multiply by a number, which integers cut to a whole one; a bool stays where it is not 0."""
    if isinstance(factor, Node) and not factor.shape:
        return elementwise.arithmetic("mul", node, factor.cast(node.dtype))
    if isinstance(factor, float) and node.dtype.is_integer:  # as PyTorch does
        factor = int(factor)
    number = read_factor(op, factor, node.dtype)
    if node.dtype.kind == "bool":
        return node if number else node.const_like(0)
    return node if number == 1 else elementwise.arithmetic("mul", node, number)


@recorded(in_place=True)
def addcmul(x: Node, tensor1: Operand, tensor2: Operand, value: Scalar = 1) -> Node:
    """Compute self + value * tensor1 * tensor2.

    >>> Tensor([1.0, 1.0]).addcmul(Tensor([4.0, 6.0]), Tensor([2.0, 3.0]), value=0.5).tolist()
    [5.0, 10.0]
    """
    return weighted_sum("addcmul", x, factors_of("addcmul", x, tensor1, tensor2), 1, value)


@recorded(in_place=True)
def addcdiv(x: Node, tensor1: Operand, tensor2: Operand, value: Scalar = 1) -> Node:
    """Compute self + value * tensor1 / tensor2.

    >>> Tensor([1.0, 1.0]).addcdiv(Tensor([4.0, 6.0]), Tensor([2.0, 3.0]), value=0.5).tolist()
    [2.0, 2.0]
    """
    op = "addcdiv"
    tensor1, tensor2 = factors_of(op, x, tensor1, tensor2)
    dtype = common_dtype([x, tensor1, tensor2])
    if not (tensor1.dtype.is_differentiable or tensor2.dtype.is_differentiable):
        text = f"divides integers, {tensor1.dtype.name} by {tensor2.dtype.name}"
        raise DTypeError(op, text, "call .float() on one of them")
    parts = (build.cast(each, dtype).accumulated() for each in (tensor1, tensor2))
    ratio = times(op, elementwise.divide(*parts), value)
    total = elementwise.arithmetic("add", build.cast(x, dtype).accumulated(), ratio)
    return total.cast(dtype)


SCALING.update((addcmul, addcdiv))


def factors_of(op: str, a: Node, b: Operand, c: Operand) -> tuple[Node, Node]:
    """Make nodes of two factors, of which numbers take the dtype of the others."""
    nodes = [each for each in (a, b, c) if isinstance(each, Node)]
    dtype, device = common_dtype(nodes), a.device
    first, second = (
        each if isinstance(each, Node) else constant(op, read_scalar(op, each), (), dtype, device)
        for each in (b, c)
    )
    return first, second


@recorded(in_place=True)
def addr(x: Node, vec1: Node, vec2: Node, beta: Scalar = 1, alpha: Scalar = 1) -> Node:
    """Compute beta * self + alpha * outer(vec1, vec2).

    >>> Tensor([[1.0, 1.0], [1.0, 1.0]]).addr(Tensor([1.0, 2.0]), Tensor([3.0, 4.0])).tolist()
    [[4.0, 5.0], [7.0, 9.0]]
    """
    products.need_axes("addr", vec1, 1)
    products.need_axes("addr", vec2, 1)
    rows, columns = vec1.reshape((vec1.shape[0], 1)), vec2.reshape((1, vec2.shape[0]))
    shape = (vec1.shape[0], vec2.shape[0])
    numbers = (each for each in (beta, alpha) if not isinstance(each, Node))
    for factor in numbers:  # PyTorch cuts those of addmm, and refuses these
        read_factor("addr", factor, common_dtype([x, vec1, vec2]))
    wide = broadcast_to(unread(x) if beta == 0 else x, shape, "addr")
    return weighted_sum("addr", wide, [rows, columns], beta, alpha)


def unread(base: Node) -> Node:
    """Put zeros in the place of what a factor of 0 lets be: its gradient is zeros, not None."""
    zeros = base.const_like(0)
    return build.where(zeros.cast(bool_), base, zeros)


def addbmm(a: Node, b: Node, c: Node, beta: Scalar, alpha: Scalar) -> Node:
    """Compute beta * a + alpha * the sum of b @ c over the batch."""
    if (len(b.shape), len(c.shape)) != (3, 3):
        text = f"{b.shape} and {c.shape} are not stacks of matrices"
        raise ShapeError("addbmm", text, "pass (B, N, M) and (B, M, P)")
    product_ = products.matmul(b, c).reduce("sum", (0,))
    wide = broadcast_to(unread(a) if beta == 0 else a, product_.shape, "addbmm")
    return weighted_sum("addbmm", wide, [product_], beta, alpha)


def add_product(op: str, base: Node, a: Node, b: Node, beta: Scalar, alpha: Scalar) -> Node:
    """Compute beta * base + alpha * (a @ b); with beta = 0 the base is not read."""
    ranks = {"addmm": (2, 2), "addmv": (2, 1), "baddbmm": (3, 3)}[op]
    if (len(a.shape), len(b.shape)) != ranks:
        text = f"operands {a.shape} and {b.shape} need {ranks[0]} and {ranks[1]} axes"
        raise ShapeError(op, text, "reshape them")
    product_ = products.matmul(a, b)
    wide = broadcast_to(unread(base) if beta == 0 else base, product_.shape, op)
    return weighted_sum(op, wide, [product_], beta, alpha)


@recorded("mv")
def matrix_vector(x: Node, vec: Node) -> Node:
    """Multiply a matrix with a vector.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).mv(Tensor([1.0, 1.0])).tolist()
    [3.0, 7.0]
    """
    if len(x.shape) != 2 or len(vec.shape) != 1:
        raise ShapeError("mv", f"{x.shape} and {vec.shape}", "pass a matrix and a vector")
    return products.matmul(x, vec)


@recorded("vdot")
def vector_dot(x: Node, other: Node) -> Node:
    """Sum the products of two vectors; a complex first one is conjugated.

    >>> Tensor([1.0, 2.0, 3.0]).vdot(Tensor([1.0, 1.0, 2.0])).item()
    9.0
    """
    if len(x.shape) != 1 or len(other.shape) != 1:
        raise ShapeError("vdot", f"{x.shape} and {other.shape}", "pass two vectors")
    first = conjugate(x) if x.dtype.is_complex else x
    return products.matmul(first, other)


def select(node: Node, axis: Any, index: int) -> Node:
    """Take one slice along an axis; a negative index counts from the end."""
    need_rank("select", node, 1)
    at = as_axis(axis, len(node.shape), "select")
    place = check_index("select", index, node.shape[at], at)
    first = operator.index(place) if is_size(node.shape[at], 1) else start_of(place, index)
    return movement.cut(node, at, first, first + 1).reshape(
        (*node.shape[:at], *node.shape[at + 1 :])
    )


@recorded(in_place=True)
def addmm(x: Node, mat1: Node, mat2: Node, *, beta: Scalar = 1, alpha: Scalar = 1) -> Node:
    """Compute beta * self + alpha * (mat1 @ mat2).

    >>> Tensor([1.0, 1.0]).addmm(Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([[1.0, 0.0], [0.0,
    ...     1.0]])).tolist()
    [[2.0, 3.0], [4.0, 5.0]]
    """
    return add_product("addmm", x, mat1, mat2, beta, alpha)


@recorded(in_place=True)
def addmv(x: Node, mat: Node, vec: Node, *, beta: Scalar = 1, alpha: Scalar = 1) -> Node:
    """Compute beta * self + alpha * (mat @ vec).

    >>> Tensor([1.0, 1.0]).addmv(Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([1.0, 1.0])).tolist()
    [4.0, 8.0]
    """
    return add_product("addmv", x, mat, vec, beta, alpha)


@recorded(in_place=True)
def baddbmm(x: Node, batch1: Node, batch2: Node, *, beta: Scalar = 1, alpha: Scalar = 1) -> Node:
    """Compute beta * self + alpha * (batch1 @ batch2).

    >>> Tensor([[[1.0]]]).baddbmm(Tensor([[[1.0, 2.0]]]), Tensor([[[3.0], [4.0]]])).tolist()
    [[[12.0]]]
    """
    return add_product("baddbmm", x, batch1, batch2, beta, alpha)
