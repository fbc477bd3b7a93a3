"""The rows of scans: running sums, products and extremes along an axis.

`scan` (arg = monoid, axis) is the op a user records. It expands to `scan_chunks` (arg = monoid,
axis, chunk), which starts anew at every multiple of `chunk`: from the identity, or from a second
input that holds one value a chunk. A long row becomes three steps, each parallel over chunks:

    totals = reduce(x by chunks);  start = exclusive scan(totals);  scan_chunks(x, start)

so that every element is read twice and written once, whatever the length: O(n). The order of
additions depends on the shape only. 16-bit floats accumulate in float32; sums, products and
logaddexp of float32 in float64, as a long row would lose every digit of its last elements.
"""

import math
from typing import Any

import numpy as np

from picograd.dtype import DType, accumulate_dtype, bool_, float32, float64
from picograd.graph.axes import link_same
from picograd.graph.batch_rules import second_next
from picograd.graph.bounds import running_bounds
from picograd.graph.factors import earlier, factors_before, padded, reverse
from picograd.graph.node import Gradients, Node
from picograd.graph.row import FACTOR, ORDERED, Op, Role, Sizes, table
from picograd.graph.shape import first_shape, is_size
from picograd.helpers import ceil_div, product, round_up
from picograd.target import Target

Array = Any
SCANS: dict[str, Any] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
    "logaddexp": np.logaddexp,
}  # fmt: skip
# (elements of a chunk, neighbouring columns of a task, tasks that keep the device busy)
CPU_CHUNKS = 65536, 1024, 16
CUDA_CHUNKS = (8192, 128, 528)  # 528: 4 blocks on each of the 132 processors of an H200
LEAST_CHUNK = 1024  # elements of a block of threads
LINE = 32  # elements of 4 bytes in a line of a GPU's cache: chunks begin there, to be read 16 bytes
# Columns have a thread each, which waits for every element: threads, and elements of one at least.
COLUMN_THREADS, LEAST_COLUMN = 1 << 17, 32


def scan(node: Node, monoid: str, axis: int) -> Node:
    """Combine every element with those before it along an axis; the axis is not negative."""
    if node.size == 0 or is_size(node.shape[axis], 1):
        return node
    return Node("scan", (node,), (monoid, axis), node.shape, node.dtype, node.device)


def reversed_scan(node: Node, monoid: str, axis: int) -> Node:
    """Combine every element with those after it."""
    return scan(node.flip((axis,)), monoid, axis).flip((axis,))


def scan_dtype(monoid: str, dtype: DType) -> DType:
    """Find the dtype a scan accumulates in."""
    is_long = dtype is float32 and monoid in ("sum", "prod", "logaddexp")
    return float64 if is_long else accumulate_dtype(dtype)


def identity(monoid: str, dtype: DType) -> Any:
    """Find the value that leaves the other operand of a monoid unchanged, as a Python number.

    The extremes of floats start from infinities, those of integers from the dtype's ends.
    """
    if monoid in ("sum", "prod"):
        start = 0 if monoid == "sum" else 1
        return dtype.numpy.type(start).item()
    if dtype.is_float:
        return math.inf if monoid == "min" else -math.inf
    if dtype is bool_:
        return monoid == "min"
    least, most = dtype.ends
    return least if monoid == "max" else most


def chunk_of(shape: tuple[int, ...], axis: int, target: Target) -> int:
    """Choose how many elements one task scans: all of them if there are rows enough."""
    size = shape[axis]
    chunk, columns, tasks = CUDA_CHUNKS if target.has_blocks else CPU_CHUNKS
    inner = product(shape[axis + 1 :])
    if target.has_blocks and inner > 1:
        chunk = max(LEAST_COLUMN, product(shape) // COLUMN_THREADS)
        columns, tasks = 1, COLUMN_THREADS
    lanes = min(inner, columns)
    rows = product(shape) // size
    if size < 2 * chunk or rows // lanes >= tasks:
        return size
    if target.has_blocks and inner == 1:  # shorter ones rather than processors without work
        chunk = min(chunk, max(product(shape) // tasks, LEAST_CHUNK))
    even = ceil_div(size, ceil_div(size, chunk))
    is_row = target.has_blocks and inner == 1
    return min(round_up(even, LINE), size) if is_row else even


def expand_scan(node: Node, target: Target) -> Node:
    """Scan in one step, or in the three of the module docstring."""
    x, (monoid, axis) = node.inputs[0], node.arg
    chunk = chunk_of(node.shape, axis, target)
    inputs: tuple[Node, ...] = (x,)
    if chunk < node.shape[axis]:
        inputs = (x, chunk_starts(x, monoid, axis, chunk))
    arg = (monoid, axis, chunk)
    return Node("scan_chunks", inputs, arg, node.shape, node.dtype, node.device)


def chunk_starts(x: Node, monoid: str, axis: int, chunk: int) -> Node:
    """Combine everything before each chunk."""
    x = x.cast(scan_dtype(monoid, x.dtype))
    fill, size = identity(monoid, x.dtype), x.shape[axis]
    count = ceil_div(size, chunk)
    whole = padded(x, axis, 0, count * chunk - size, fill)
    rows = whole.reshape((*x.shape[:axis], count, chunk, *x.shape[axis + 1 :]))
    if monoid == "logaddexp":
        totals = Node("logsumexp", (rows,), axis + 1, reduced(rows, axis + 1), x.dtype, x.device)
    else:
        totals = rows.reduce(monoid, (axis + 1,))
    ranges = tuple((0, n - (d == axis), 1) for d, n in enumerate(totals.shape))
    return scan(padded(totals.slice(ranges), axis, 1, 0, fill), monoid, axis)


def reduced(node: Node, axis: int) -> tuple[int, ...]:
    """Give the shape without one axis."""
    return (*node.shape[:axis], *node.shape[axis + 1 :])


def scan_chunks(node: Node, x: Array, start: Array | None = None) -> Array:
    """Scan every chunk, after its start value."""
    monoid, axis, chunk = node.arg
    wide = scan_dtype(monoid, node.dtype).numpy if x.dtype != np.float64 else x.dtype
    out = np.empty(node.shape, wide)
    turned, rows = (np.moveaxis(out, axis, 0), np.moveaxis(x, axis, 0).astype(wide))
    for number, first in enumerate(range(0, len(rows), chunk)):
        part = rows[first : first + chunk]
        if start is not None:
            before = np.moveaxis(start, axis, 0)[number : number + 1]
            part = np.concatenate([before.astype(wide), part])
        found = SCANS[monoid].accumulate(part, axis=0, dtype=wide)
        turned[first : first + chunk] = found[int(start is not None) :]
    return out


# gradients


def scan_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Scan the gradient from the end; an extremum's goes to where it was found last."""
    monoid, axis = output.arg
    if monoid == "sum":
        return (reversed_scan(gradient, "sum", axis),)
    if monoid == "prod":
        return (running_gradient(gradient, output, x, axis),)
    if monoid == "logaddexp":
        return (log_gradient(gradient, output, x, axis),)
    indices = tuple(
        extremum_index(x, output, axis) if d == axis else x.iota(d) for d in range(x.rank)
    )
    return (x.const_like(0).scatter(gradient, indices, tuple(range(x.rank)), "sum"),)


def extremum_index(x: Node, output: Node, axis: int) -> Node:
    """Find where a running extremum comes from: the last such place, or the last NaN."""
    is_found = x.binary("equal", output)
    if x.dtype.is_float:
        is_found = is_found.binary("logical_or", x.unary("isnan"))
    return scan(is_found.where(x.iota(axis), 0), "max", axis)


def running_gradient(gradient: Node, output: Node, x: Node, axis: int) -> Node:
    """Multiply each gradient of a running product by the other factors, and add up."""
    inputs, arg = (gradient, output, x), ("prod", axis)
    return Node("cumprod_gradient", inputs, arg, x.shape, x.dtype, x.device)


def divided_running(node: Node) -> Node:
    """Divide by the factor; what follows the first zero gets nothing.

    Before the first zero: (sum of g y from here on) / x. At it: the same sum of g y', where y' is
    the product with that zero replaced by 1.
    """
    (gradient, output, x), (_, axis) = node.inputs, node.arg
    is_zero = x.binary("equal", 0)
    zeros = scan(is_zero.cast(x.iota(axis).dtype), "sum", axis)
    is_first = is_zero.binary("logical_and", zeros.binary("equal", 1))
    is_before = zeros.binary("equal", 0)
    others = scan(is_first.where(1, x), "prod", axis)
    before = reversed_scan((gradient * output).accumulated(), "sum", axis)
    at_first = reversed_scan((gradient * others).accumulated(), "sum", axis)
    before = before / is_before.where(x, 1).accumulated()
    return is_before.where(before, is_first.where(at_first, 0)).cast(x.dtype)


def multiplied_running(node: Node) -> Node:
    """Multiply what is before a factor by r = g + (the next factor) (the next r).

    From the end on r is the value of maps r -> sum + slope r, composed of ever more of them.
    """
    (gradient, _, x), (_, axis) = (each.accumulated() for each in node.inputs), node.arg
    sums, step = reverse(gradient, axis), 1
    slopes = earlier(reverse(x, axis), axis, 1, 0)
    while step < x.shape[axis]:
        sums = sums + slopes * earlier(sums, axis, step, 0)
        slopes, step = slopes * earlier(slopes, axis, step, 0), 2 * step
    return (factors_before(x, axis) * reverse(sums, axis)).cast(node.dtype)


def log_gradient(gradient: Node, output: Node, x: Node, axis: int) -> Node:
    """Sum g exp(x - y) over what follows, in logarithms: y may be far below what follows it.

    Gradients of either sign have a sum of their own. Where y is -inf nothing flows.
    """
    total: Node | None = None
    is_finite = output.binary("not_equal", -math.inf)
    for sign in (1.0, -1.0):
        amount = gradient * sign
        is_held = is_finite.binary("logical_and", amount.const_like(0).binary("less", amount))
        share = is_held.where(amount, 1).unary("log") - is_held.where(output, 0)
        share = is_held.where(share, -math.inf)
        part = (reversed_scan(share, "logaddexp", axis) + x).unary("exp") * sign
        total = part if total is None else total + part
    return total if total is not None else gradient


def bound_scan(graph: Any, node: Node) -> Node:
    """Scan on: an element depends on those before it."""
    graph.need_plain(node, node.arg[1])
    return graph.same(node, graph.inputs(node))


SCAN_ROWS = table(
    Op("scan", Role.COMPOSITE, 1, ORDERED, None, scan_vjp, expand_on=expand_scan, shape=first_shape,
        batch_arg=second_next, sizes=Sizes(link_same, bound_scan), bounds=running_bounds),
    Op("cumprod_gradient", Role.COMPOSITE, 3, FACTOR, None, expand=divided_running,
        exact=multiplied_running, shape=lambda arg, gradient, output, x: x, batch_arg=second_next),
    Op("scan_chunks", Role.SCAN, -1, ORDERED, scan_chunks, hero="scan", shape=first_shape,
        data=(0, 1), batch_arg=second_next, sizes=Sizes(link_same)),
)  # fmt: skip
