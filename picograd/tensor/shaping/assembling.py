"""Assembling tensors of other tensors on nodes: diagonals, products of sets, stacks and grids."""

import math
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from picograd.errors import DTypeError, ShapeError, ValueRangeError
from picograd.graph import build
from picograd.graph.build_composite import custom
from picograd.graph.node import Node
from picograd.graph.room import check_host, check_pieces
from picograd.graph.shape import is_size, normalise_permutation
from picograd.helpers import product
from picograd.number import start_of
from picograd.tensor.core.annotations import Scalar
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
from picograd.tensor.indexing import selecting
from picograd.tensor.linalg import products
from picograd.tensor.math import elementwise, transcendental
from picograd.tensor.reductions import reduce
from picograd.tensor.shaping import movement


def diag_embed(node: Node, offset: int = 0, first: Any = -2, second: Any = -1) -> Node:
    """Write the last axis onto a diagonal of two new axes; the rest is zero."""
    need_rank("diag_embed", node, 1)
    rank = len(node.shape) + 1
    a, b = (as_axis(first, rank, "diag_embed"), as_axis(second, rank, "diag_embed"))
    if a == b:
        raise ShapeError("diag_embed", f"both axes are {a}", "name two different axes")
    size = node.shape[-1] + abs(offset)
    low, left = max(-offset, 0), max(offset, 0)
    pads = ((0, 0),) * (rank - 2) + ((low, size - low - node.shape[-1]),)
    column = build.pad(node, pads, movement.zero_of(node)).reshape((*node.shape[:-1], size, 1))
    square = column.expand((*node.shape[:-1], size, size))
    places = square.iota(rank - 1).binary("equal", square.iota(rank - 2) + (left - low))
    result = places.where(square, movement.zero_of(node))
    return move_last(result, a, b)


def move_last(node: Node, a: int, b: int) -> Node:
    """Bring the last two axes to the places `a` and `b`."""
    rank = len(node.shape)
    others = iter(range(rank - 2))
    order = [rank - 2 if at == a else rank - 1 if at == b else next(others) for at in range(rank)]
    return build.permute(node, tuple(order))


def diag(node: Node, offset: int = 0) -> Node:
    """Make a matrix of a vector, or take the diagonal of a matrix."""
    if len(node.shape) == 1:
        return diag_embed(node, offset)
    if len(node.shape) != 2:
        raise ShapeError("diag", f"input {node.shape} has more than 2 axes", "use .diagonal()")
    return movement.diagonal(node, offset, 0, 1)


def trace(node: Node) -> Node:
    """Sum the diagonal of a matrix."""
    if len(node.shape) != 2:
        raise ShapeError("trace", f"input {node.shape} is not a matrix", "use .diagonal().sum(-1)")
    return reduce.total("sum", movement.diagonal(node, 0, 0, 1), None, False, None)


def kron(a: Node, b: Node) -> Node:
    """Multiply every element of one tensor with the whole other one, as blocks."""
    rank = max(len(a.shape), len(b.shape))
    first = (1,) * (rank - len(a.shape)) + a.shape
    second = (1,) * (rank - len(b.shape)) + b.shape
    wide = a.reshape(tuple(size for each in first for size in (each, 1)))
    tall = b.reshape(tuple(size for each in second for size in (1, each)))
    blocks = elementwise.arithmetic("mul", wide, tall)
    return blocks.reshape(tuple(x * y for x, y in zip(first, second)))


def cross(a: Node, b: Node, axis: Any) -> Node:
    """Multiply vectors of three along an axis: the result is at right angles to both."""
    first, second = pair("cross", a, b)
    at = as_axis(axis, len(first.shape), "cross")
    if not first.shape or first.shape[at] != 3:
        raise ShapeError("cross", f"axis {axis} of {first.shape} is not 3", "name an axis of 3")

    def turned(node: Node, steps: int) -> Node:
        return movement.roll(node, -steps, at)

    forward = elementwise.arithmetic("mul", turned(first, 1), turned(second, 2))
    backward = elementwise.arithmetic("mul", turned(first, 2), turned(second, 1))
    return elementwise.arithmetic("sub", forward, backward)


def cdist(a: Node, b: Node, order: float) -> Node:
    """Measure the distance of each row of (..., P, M) from each of (..., R, M): (..., P, R)."""
    need_rank("cdist", a, 2)
    need_rank("cdist", b, 2)
    if a.shape[-1] != b.shape[-1]:
        text = f"rows of {a.shape} and {b.shape} differ in length"
        raise ShapeError("cdist", text, "make the last sizes equal")
    if not float(order) >= 0.0:
        raise ValueRangeError("cdist", f"p={order} is negative", "use 0 or more")
    rows, columns = movement.unsqueeze(a, -2), movement.unsqueeze(b, -3)
    return reduce.norm(elementwise.subtract(rows, columns), float(order), -1, False)


def tile(node: Node, counts: Sequence[Any]) -> Node:
    """Repeat along axes; missing counts are 1."""
    times = as_sizes(counts, "tile")
    return movement.repeat(node, (1,) * (len(node.shape) - len(times)) + times)


def move_axes(node: Node, source: Any, target: Any) -> Node:
    """Move axes to other positions; the rest keeps its order."""
    if isinstance(source, int) and isinstance(target, int):
        return movement.move_axis(node, source, target)
    rank = len(node.shape)
    starts = [as_axis(axis, rank, "movedim") for axis in source]
    ends = [as_axis(axis, rank, "movedim") for axis in target]
    if len(starts) != len(ends) or len(set(starts)) < len(starts) or len(set(ends)) < len(ends):
        text = f"source {source} and destination {target} do not match"
        raise ShapeError("movedim", text, "name each axis once on both sides")
    others = iter([axis for axis in range(rank) if axis not in starts])
    order = [starts[ends.index(at)] if at in ends else next(others) for at in range(rank)]
    return build.permute(node, normalise_permutation(order, rank))


def repeat_each(node: Node, repeats: Node, axis: Any) -> Node:
    """Repeat each slice as often as a vector of counts says; the counts are computed."""
    need_integer("repeat_interleave", repeats, "repeats")
    if axis is None:
        node, axis = node.reshape((product(node.shape),)), 0
    at = as_axis(axis, len(node.shape), "repeat_interleave")
    counts = selecting.computed_values(repeats).reshape(-1)
    if counts.size not in (1, node.shape[at]) or (counts < 0).any():
        text = f"{counts.size} counts for an axis of size {node.shape[at]}"
        raise ShapeError("repeat_interleave", text, "give one count >= 0 per slice")
    check_host("repeat_interleave", int(counts.sum()) if counts.size > 1 else 0)
    places: Any = np.repeat(np.arange(node.shape[at]), counts)
    index = selecting.host_index("repeat_interleave", places, node.shape[at], at, node.device)
    return selecting.index_select(node, at, index)


def tensor_split(node: Node, places: Any, axis: Any) -> list[Node]:
    """Cut into a number of nearly equal pieces, or at the listed positions."""
    need_rank("tensor_split", node, 1)
    at = as_axis(axis, len(node.shape), "tensor_split")
    size = node.shape[at]
    if isinstance(places, int):
        if places < 1:
            raise ValueRangeError("tensor_split", f"{places} pieces", "use at least 1")
        check_pieces("tensor_split", places)
        short, extra = divmod(size, places)
        ends = [n * short + min(n, extra) for n in range(places + 1)]
    else:
        cuts = [min(n + size if n < 0 else n, size) for n in as_sizes((places,), "tensor_split")]
        ends = [0, *cuts, size]
    pairs = pairwise(ends)
    return [movement.cut(node, at, low, max(low, high)) for low, high in pairs]


def meshgrid(nodes: Sequence[Node], indexing: str) -> list[Node]:
    """Repeat vectors over the grid they span; "xy" swaps the first two axes."""
    if indexing not in ("ij", "xy"):
        raise ValueRangeError("meshgrid", f"indexing={indexing!r}", 'use "ij" or "xy"')
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
        rows.append(build.pad(part, ((0, 0), (start, width - end)), movement.zero_of(part)))
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


def rotate(node: Node, turns: int, axes: Sequence[int]) -> Node:
    """Rotate by quarter turns in the plane of two axes, from the first towards the second."""
    need_rank("rot90", node, 2)
    a, b = (as_axis(axis, len(node.shape), "rot90") for axis in axes)
    turns %= 4
    if turns == 2:
        return build.flip(node, (a, b))
    if turns == 1:
        return movement.transpose(build.flip(node, (b,)), a, b)
    return build.flip(movement.transpose(node, a, b), (b,)) if turns == 3 else node


def triangle_indices(
    rows: int, columns: int | None, offset: int, is_lower: bool
) -> "np.ndarray[Any, Any]":
    """List the (row, column) positions of a triangle, (2, count)."""
    op = "tril_indices" if is_lower else "triu_indices"
    rows, width = as_sizes((rows, rows if columns is None else columns), op)
    check_host(op, rows * width)
    find = np.tril_indices if is_lower else np.triu_indices
    return np.stack(find(rows, offset, width)).astype(np.int64)


def tensordot(a: Node, b: Node, axes: Any) -> Node:
    """Contract axes of two tensors: the last `axes` with the first, or listed pairs."""
    if isinstance(axes, int):
        left = list(range(len(a.shape) - axes, len(a.shape)))
        right = list(range(axes))
    else:
        left, right = ([each] if isinstance(each, int) else list(each) for each in axes)
    first = [as_axis(axis, len(a.shape), "tensordot") for axis in left]
    second = [as_axis(axis, len(b.shape), "tensordot") for axis in right]
    if [a.shape[axis] for axis in first] != [b.shape[axis] for axis in second]:
        text = f"axes {left} of {a.shape} do not match axes {right} of {b.shape}"
        raise ShapeError("tensordot", text, "contract axes of equal sizes")
    count = len(a.shape)
    names = [count + axis for axis in range(len(b.shape))]
    for one, two in zip(first, second):
        names[two] = one
    labels_a = tuple(range(count))
    kept = tuple(n for n in (*labels_a, *names) if not (n in labels_a and n in names))
    x, y = pair_dtype(a, b)
    return build.contract(x, y, (labels_a, tuple(names), kept), "tensordot")


def pair_dtype(a: Node, b: Node) -> tuple[Node, Node]:
    """Promote two factors that keep their shapes."""
    x, y = promote_all("tensordot", [a, b])
    return x, y


def is_close(a: Node, b: Node, rtol: float, atol: float, equal_nan: bool) -> Node:
    """Test |a - b| <= atol + rtol |b|; infinities are close to themselves."""
    if not (rtol >= 0 and atol >= 0):
        text = f"rtol={rtol} or atol={atol} is negative"
        raise ValueRangeError("isclose", text, "use 0 or more")
    x, y = pair("isclose", a, b)
    same = x.binary("equal", y)
    if x.dtype.is_float:
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
    gap = elementwise.absolute(elementwise.subtract(x, y))
    limit = elementwise.divide(elementwise.absolute(y), 1.0)
    limit = elementwise.arithmetic("add", elementwise.arithmetic("mul", limit, rtol), atol)
    return elementwise.compare("less_equal", gap, limit)


def nan_to_num(node: Node, nan: float, high: float | None, low: float | None) -> Node:
    """Replace NaN and infinities by numbers: the largest finite ones unless given."""
    if not node.dtype.is_float:
        return node
    top = high if high is not None else largest(node)
    bottom = low if low is not None else -largest(node)
    result = node.unary("isnan").where(node.const_like(nan), node)
    result = node.binary("equal", math.inf).where(node.const_like(top), result)
    return node.binary("equal", -math.inf).where(node.const_like(bottom), result)


LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}


def largest(node: Node) -> float:
    """Find the largest finite number of a float dtype."""
    return LARGEST.get(node.dtype.name, float(np.finfo(np.float64).max))


RADIAN = math.pi / 180


def scaled(node: Node, factor: float) -> Node:
    """Multiply floats by a number."""
    return elementwise.arithmetic("mul", floating("mul", node), factor)


def fraction(node: Node) -> Node:
    """Compute x - trunc(x)."""
    return elementwise.subtract(node, elementwise.rounding("trunc", node))


def heaviside(node: Node, values: Operand) -> Node:
    """Compute 0 below 0, 1 above, and `values` at 0."""
    step = elementwise.compare("less", 0, node).cast(node.dtype)
    at_zero = elementwise.compare("equal", node, 0)
    return elementwise.where(at_zero, values, step)


def logit(node: Node, eps: float | None) -> Node:
    """Compute log(x / (1 - x)); with eps, x is limited to [eps, 1 - eps] first."""
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


def distance(a: Node, b: Operand, order: float) -> Node:
    """Compute the norm of a - b; 16-bit floats subtract in float32, and round once."""
    first, second = pair("dist", a, b, floating=True)
    gap = elementwise.subtract(first.accumulated(), second.accumulated())
    return reduce.norm(gap, order, None, False).cast(first.dtype)


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


def times(op: str, node: Node, factor: Scalar) -> Node:
    """Multiply by a number of the same kind; a bool stays where the number is not 0."""
    number = read_factor(op, factor, node.dtype)
    if node.dtype.kind == "bool":
        return node if number else node.const_like(0)
    return node if number == 1 else elementwise.arithmetic("mul", node, number)


def addcmul(a: Node, b: Operand, c: Operand, value: Scalar) -> Node:
    """Compute a + value b c; a number among the factors takes the dtype of its neighbours."""
    return weighted_sum("addcmul", a, factors_of("addcmul", a, b, c), 1, value)


def addcdiv(a: Node, b: Operand, c: Operand, value: Scalar) -> Node:
    """Compute a + value b / c; DTypeError for integers b and c, as PyTorch."""
    op = "addcdiv"
    b, c = factors_of(op, a, b, c)
    dtype = common_dtype([a, b, c])
    if not (b.dtype.is_float or c.dtype.is_float):
        text = f"divides integers, {b.dtype.name} by {c.dtype.name}"
        raise DTypeError(op, text, "call .float() on one of them")
    parts = (build.cast(each, dtype).accumulated() for each in (b, c))
    ratio = times(op, elementwise.divide(*parts), value)
    total = elementwise.arithmetic("add", build.cast(a, dtype).accumulated(), ratio)
    return total.cast(dtype)


def factors_of(op: str, a: Node, b: Operand, c: Operand) -> tuple[Node, Node]:
    """Make nodes of two factors, of which numbers take the dtype of the others."""
    nodes = [each for each in (a, b, c) if isinstance(each, Node)]
    dtype, device = common_dtype(nodes), a.device
    first, second = (
        each if isinstance(each, Node) else constant(op, read_scalar(op, each), (), dtype, device)
        for each in (b, c)
    )
    return first, second


def addr(a: Node, b: Node, c: Node, beta: Scalar, alpha: Scalar) -> Node:
    """Compute beta * a + alpha * outer(b, c); with beta = 0 the base is not read."""
    products.need_axes("addr", b, 1)
    products.need_axes("addr", c, 1)
    rows, columns = b.reshape((b.shape[0], 1)), c.reshape((1, c.shape[0]))
    shape = (b.shape[0], c.shape[0])
    wide = broadcast_to(a.const_like(0) if beta == 0 else a, shape, "addr")
    return weighted_sum("addr", wide, [rows, columns], beta, alpha)


def addbmm(a: Node, b: Node, c: Node, beta: Scalar, alpha: Scalar) -> Node:
    """Compute beta * a + alpha * the sum of b @ c over the batch."""
    if (len(b.shape), len(c.shape)) != (3, 3):
        text = f"{b.shape} and {c.shape} are not stacks of matrices"
        raise ShapeError("addbmm", text, "pass (B, N, M) and (B, M, P)")
    product_ = products.matmul(b, c).reduce("sum", (0,))
    wide = broadcast_to(a.const_like(0) if beta == 0 else a, product_.shape, "addbmm")
    return weighted_sum("addbmm", wide, [product_], beta, alpha)


def add_product(op: str, base: Node, a: Node, b: Node, beta: Scalar, alpha: Scalar) -> Node:
    """Compute beta * base + alpha * (a @ b); with beta = 0 the base is not read."""
    ranks = {"addmm": (2, 2), "addmv": (2, 1), "baddbmm": (3, 3)}[op]
    if (len(a.shape), len(b.shape)) != ranks:
        text = f"operands {a.shape} and {b.shape} need {ranks[0]} and {ranks[1]} axes"
        raise ShapeError(op, text, "reshape them")
    product_ = products.matmul(a, b)
    wide = broadcast_to(base.const_like(0) if beta == 0 else base, product_.shape, op)
    return weighted_sum(op, wide, [product_], beta, alpha)


def matrix_vector(a: Node, b: Node) -> Node:
    """Multiply a matrix with a vector."""
    if len(a.shape) != 2 or len(b.shape) != 1:
        raise ShapeError("mv", f"{a.shape} and {b.shape}", "pass a matrix and a vector")
    return products.matmul(a, b)


def vector_dot(a: Node, b: Node) -> Node:
    """Sum the products of two vectors."""
    if len(a.shape) != 1 or len(b.shape) != 1:
        raise ShapeError("vdot", f"{a.shape} and {b.shape}", "pass two vectors")
    return products.matmul(a, b)


def select(node: Node, axis: Any, index: int) -> Node:
    """Take one slice along an axis; a negative index counts from the end."""
    need_rank("select", node, 1)
    at = as_axis(axis, len(node.shape), "select")
    place = check_index("select", index, node.shape[at], at)
    first = operator.index(place) if is_size(node.shape[at], 1) else start_of(place, index)
    return movement.cut(node, at, first, first + 1).reshape(
        (*node.shape[:at], *node.shape[at + 1 :])
    )
