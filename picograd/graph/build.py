"""Constructors of checked nodes: everything recorded on behalf of a user passes here.

Each function checks dtypes, shapes and devices and raises ShapeError, AxisError, DTypeError,
ValueRangeError or DeviceError at the user's line, under the name of the op the user called (`op`
or `name` where the caller may know a better one); then it calls the method of Node that builds.
Broadcasting and promotion are the caller's: elementwise inputs have one shape and one dtype.
Composites are built in graph/build_composite.py.
"""

import warnings
from collections.abc import Sequence
from functools import cache

from picograd.buffer import RuntimeScalar
from picograd.dtype import DType, bool_, float32, int64, uint32
from picograd.errors import DTypeError, ShapeError, ValueRangeError, no_data
from picograd.graph.build_composite import (
    argmax,
    argmin,
    batch_norm,
    batch_stats,
    check_device,
    check_dtype,
    check_same,
    cross_entropy,
    gelu,
    layer_norm,
    log_softmax,
    logsumexp,
    max_pool,
    mean,
    relu,
    sigmoid,
    silu,
    softmax,
    var,
)
from picograd.graph.node import Node, Number, constant
from picograd.graph.ops import OPS
from picograd.graph.random import HALF_BITS, SECOND_WORD, signed
from picograd.graph.row import NUMBERS, Role
from picograd.graph.shape import (
    ConvSpec,
    Shape,
    Window,
    broadcast_shapes,
    check_expand,
    conv_sizes,
    infer_reshape,
    is_size,
    normalise_axes,
    normalise_axis,
    normalise_permutation,
    window_count,
)

__all__ = [
    "argmax", "argmin", "assign", "batch_norm", "batch_stats", "binary", "bitcast", "cast",
    "const", "contiguous", "contract", "conv", "copy", "cross_entropy", "detach", "elementwise",
    "expand", "flip", "fold", "gelu", "iota", "layer_norm", "log_softmax", "logsumexp",
    "matmul", "max_pool", "mean", "pad", "permute", "random_bits", "relu", "reshape", "scalar",
    "sigmoid", "silu", "slice_", "softmax", "unary", "var", "where",
]  # fmt: skip

# leaves


def const(value: Number, shape: Shape, dtype: DType, device: str) -> Node:
    """Fill a shape with one value."""
    if dtype.is_integer and not isinstance(value, bool):
        signed = dtype.kind == "int"
        low = -(1 << (dtype.bits - 1)) if signed else 0
        if value != value or not low <= value < low + (1 << dtype.bits):
            raise ValueRangeError(
                "full", f"{value} does not fit in {dtype.name}", "use a wider dtype"
            )
    return constant(value, tuple(shape), dtype, device)


def iota(shape: Shape, axis: int, device: str, dtype: DType = int64) -> Node:
    """Number the positions along an axis: int64 or int32."""
    axis = normalise_axis(axis, len(shape), "arange")
    return Node("iota", (), axis, tuple(shape), dtype, device)


def scalar(value: RuntimeScalar, device: str, dtype: DType = float32) -> Node:
    """Read a number that may change from run to run without a new plan; shape ()."""
    return Node("scalar", (), value, (), dtype, device)


def random_bits(offset: Node, seed: Node | int, shape: Shape, is_second: bool = False) -> Node:
    """Draw uint32 bits: threefry2x32 with key `seed` at counters `offset` + flat index.

    They are the first word of each block, or the second.
    """
    if offset.shape != () or not offset.dtype.is_integer:
        raise ShapeError("random_bits", "the offset is not an integer scalar", "pass a scalar node")
    if isinstance(seed, int):
        seed = const(signed(seed), (), int64, offset.device)
    word = SECOND_WORD if is_second else None
    return Node("random_bits", (offset, seed), word, tuple(shape), uint32, offset.device)


def random_halves(first: Node, seed: Node, shape: Shape) -> Node:
    """Draw 16 bits an element, as uint32: of philox4x32, whose counters begin at `first`."""
    inputs = first, seed
    sizes = tuple(shape)
    return Node("random_bits", inputs, HALF_BITS, sizes, uint32, first.device)


# elementwise


def unary(op: str, node: Node, name: str | None = None) -> Node:
    """Apply an elementwise op with one input (not cast: see `cast`)."""
    rule = OPS[op].dtype_rule
    if node.dtype.kind not in rule.kinds:
        check_dtype(name or op, rule, (node,))
    return node.unary(op)


def binary(op: str, a: Node, b: Node, name: str | None = None) -> Node:
    """Apply an elementwise op to two nodes of one shape, dtype and device."""
    rule = OPS[op].dtype_rule
    if a.dtype is not b.dtype or a.dtype.kind not in rule.kinds:
        check_dtype(name or op, rule, (a, b))
    if a.shape != b.shape or a.device != b.device:
        check_same(name or op, (a, b))
    return a.binary(op, b)


def where(condition: Node, a: Node, b: Node) -> Node:
    """Choose `a` where the condition holds, else `b`; one shape, `a` and `b` of one dtype.

    What is never chosen stays an input, unless it is a constant: its gradient is zeros, not None.
    """
    if condition.dtype is not bool_:
        raise DTypeError("where", f"the condition is {condition.dtype.name}", "compare it first")
    check_dtype("where", OPS["where"].dtype_rule, (a, b))
    check_same("where", (condition, a, b))
    if condition.op in NUMBERS:
        dropped = b if condition.arg else a
        if dropped.op not in NUMBERS:
            inputs = condition, a, b
            return Node("where", inputs, None, a.shape, a.dtype, a.device)
    return condition.where(a, b)


def elementwise(op: str, *inputs: Node, name: str | None = None) -> Node:
    """Apply any elementwise row of the op table that has no argument."""
    if len(inputs) == 1:
        return unary(op, inputs[0], name)
    if len(inputs) == 2:
        return binary(op, inputs[0], inputs[1], name)
    first, *rest = inputs
    if first.dtype is bool_:
        return where(first, *rest)
    return first.multiply_add(*rest)


def cast(node: Node, dtype: DType) -> Node:
    """Convert the elements to a dtype that was asked for; an imaginary part is lost, and warns."""
    if node.dtype.is_complex and not (dtype.is_complex or dtype is bool_):
        text = f"{node.dtype.name} becomes {dtype.name} without its imaginary part: take .real"
        warnings.warn(text, stacklevel=4)
        node = node.parts()[0]
    return node.cast(dtype)


def bitcast(node: Node, dtype: DType) -> Node:
    """Read the same bits as another dtype of the same width."""
    if dtype.bits != node.dtype.bits or bool_ in (dtype, node.dtype):
        raise DTypeError(
            "bitcast",
            f"{node.dtype.name} and {dtype.name} differ in width or are bool",
            "use dtypes of one width",
        )
    if dtype is node.dtype:
        return node
    return Node("bitcast", (node,), dtype, node.shape, dtype, node.device)


# views


def reshape(node: Node, shape: Sequence[int], name: str = "reshape") -> Node:
    """Read the elements in row-major order as another shape; one size may be -1."""
    return node.reshape(infer_reshape(node.shape, shape, name))


def permute(node: Node, axes: Sequence[int], name: str = "permute") -> Node:
    """Reorder the axes."""
    return node.permute(normalise_permutation(axes, node.rank, name))


def expand(node: Node, shape: Sequence[int], name: str = "expand") -> Node:
    """Repeat axes of size 1; -1 keeps a size; new axes may be added on the left."""
    added = len(shape) - node.rank
    sizes = (1,) * added + node.shape
    kept = sizes[-len(shape) :]
    wanted = tuple(size if want == -1 else want for want, size in zip(shape, kept))
    given = sizes if added >= 0 else node.shape
    check_expand(given, wanted, name)
    return node.broadcast_to(wanted)


def slice_(node: Node, ranges: Sequence[tuple[int, int, int]], name: str = "slice") -> Node:
    """Take `range(start, stop, step)` of each axis; normalised, step >= 1."""
    if len(ranges) != node.rank:
        raise ShapeError(name, f"{len(ranges)} ranges for shape {node.shape}", "one range an axis")
    for (start, stop, step), size in zip(ranges, node.shape):
        if not (0 <= start <= size and 0 <= stop <= size and step >= 1):
            raise ValueRangeError(
                name, f"range {start}:{stop}:{step} does not fit size {size}", "normalise it first"
            )
    taken = tuple((start, max(start, stop), step) for start, stop, step in ranges)
    return node.slice(taken)


def flip(node: Node, axes: int | Sequence[int], name: str = "flip") -> Node:
    """Reverse the order along some axes."""
    return node.flip(normalise_axes(axes, node.rank, name))


def pad(node: Node, pads: Sequence[tuple[int, int]], fill: Number = 0, name: str = "pad") -> Node:
    """Add `lo` and `hi` elements around each axis; negative ones cut elements off."""
    if len(pads) != node.rank:
        raise ShapeError(name, f"{len(pads)} pads for shape {node.shape}", "give (lo, hi) an axis")
    ranges = []
    for (lo, hi), size in zip(pads, node.shape):
        if lo + hi + size < 0:
            raise ShapeError(name, f"padding {(lo, hi)} cuts more than size {size}", "cut less")
        first = min(max(-lo, 0), size)
        stop = max(min(size + hi, size), 0)
        ranges.append((first, stop, 1))
    cut = slice_(node, ranges, name)
    added = tuple((max(lo, 0), max(hi, 0)) for lo, hi in pads)
    return cut.pad(added, fill)


def fold(node: Node, windows: Window, sizes: Shape, name: str = "fold") -> Node:
    """Sum windows back to axes of `sizes`: the adjoint of `window`."""
    kernels = node.shape[node.rank - len(windows) :]
    for (axis, kernel, stride, dilation), size, found in zip(windows, sizes, kernels):
        count = window_count(size, kernel, stride, dilation)
        if found != kernel or node.shape[axis] != count:
            raise ShapeError(
                name,
                f"{node.shape[axis]} windows of {found} do not tile size {size} in windows of "
                f"{kernel}",
                "give the arguments of the window",
            )
    return node.fold(tuple(windows), tuple(sizes))


# reductions, contractions, indexing


def contract(a: Node, b: Node, labels: tuple[Shape, Shape, Shape], name: str = "contract") -> Node:
    """Multiply and sum out the labels that are not in `labels[2]` (einsum with two operands)."""
    check_dtype(name, OPS["contract"].dtype_rule, (a, b))
    check_device(name, (a, b))
    sizes: dict[int, int] = {}
    for node, names in zip((a, b), labels):
        if len(names) != node.rank or len(set(names)) != len(names):
            raise ShapeError(name, f"labels {names} do not name {node.shape}", "one label an axis")
        for label, size in zip(names, node.shape):
            if sizes.setdefault(label, size) != size:
                raise ShapeError(
                    name,
                    f"inner sizes differ: {a.shape} @ {b.shape}",
                    "make them equal, or transpose one with .T",
                )
    result = labels[2]
    is_once = len(set(result)) == len(result)
    if not is_once or not sizes.keys() >= set(result):
        raise ShapeError(name, f"output labels {labels[2]} are not input labels", "list each once")
    return a.contract(b, labels)


def matmul(a: Node, b: Node, name: str = "matmul") -> Node:
    """Multiply (*B, M, K) @ (*B, K, N); 1-D operands as in NumPy; batch sizes broadcast."""
    if not a.shape or not b.shape:
        raise ShapeError(name, f"a scalar has no inner axis: {a.shape} @ {b.shape}", "use *")
    rows, columns = len(a.shape) > 1, len(b.shape) > 1
    inner = b.shape[-2] if columns else b.shape[0]
    if a.shape[-1] != inner:
        fix = "make them equal"
        if columns and a.shape[-1] == b.shape[-1]:
            fix = "transpose the second operand with .T"
        raise ShapeError(name, f"inner sizes differ: {a.shape} @ {b.shape}", fix)
    check_dtype(name, OPS["contract"].dtype_rule, (a, b))
    check_device(name, (a, b))
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2], op=name)
    if not batch:
        return a.contract(b, product_labels(0, (), (), rows, columns))
    left, left_names = squeezed_batch(a, batch, 1 + rows)
    right, right_names = squeezed_batch(b, batch, 1 + columns, left_names)
    labels = product_labels(len(batch), left_names, right_names, rows, columns)
    return left.contract(right, labels)


def matrix_product(a: Node, b: Node) -> Node:
    """Multiply matrices (M, K) @ (K, N) that were seen to fit: `matmul`, shorter."""
    shape = a.shape[0], b.shape[1]
    return Node("contract", (a, b), MATRICES, shape, a.dtype, a.device)


@cache
def product_labels(
    count: int, left: Shape, right: Shape, has_rows: bool, has_columns: bool
) -> tuple[Shape, Shape, Shape]:
    """Name the axes of a matrix product: `count` batch axes, of which each factor has some."""
    rows = (count,) * has_rows
    columns = (count + 1,) * has_columns
    shared = (count + 2,)
    kept = tuple(sorted({*left, *right}))
    return left + rows + shared, right + shared + columns, kept + rows + columns


MATRICES = product_labels(0, (), (), True, True)


def squeezed_batch(node: Node, batch: Shape, kept: int, known: Shape = ()) -> tuple[Node, Shape]:
    """Drop batch axes of size 1, which broadcast by absence; also give the labels left.

    Where the product has such an axis one operand keeps it: that which comes first, whose labels
    are `known`. So the product needs no other shape, by which its readers would be apart from it.
    """
    own = node.shape[: node.rank - kept]
    first = len(batch) - len(own)
    labels = []
    for n, size in enumerate(own):
        is_apart = is_size(size, 1) and first + n in known
        if is_size(size, batch[first + n]) and not is_apart:
            labels.append(first + n)
    sizes = tuple([own[label - first] for label in labels])
    return node.reshape(sizes + node.shape[node.rank - kept :]), tuple(labels)


def conv(x: Node, weight: Node, spec: ConvSpec, name: str = "conv") -> Node:
    """Correlate x (N, G, C, *S) with weight (G, O, C, *K) -> (N, G, O, *S')."""
    check_dtype(name, OPS["conv"].dtype_rule, (x, weight))
    check_device(name, (x, weight))
    if x.rank != weight.rank or x.rank < 3 or x.rank - 3 != len(spec.stride):
        raise ShapeError(name, f"ranks of {x.shape} and {weight.shape} differ", "match the axes")
    if (x.shape[1], x.shape[2]) != (weight.shape[0], weight.shape[2]):
        raise ShapeError(
            name,
            f"input channels differ: input {x.shape}, weight {weight.shape}",
            "make groups x channels equal",
        )
    found = conv_sizes(x.shape[3:], weight.shape[3:], spec)
    if any(size < 1 for size in found):
        raise ShapeError(
            name,
            f"kernel {weight.shape[3:]} does not fit input {x.shape[3:]} padded by {spec.padding}",
            "pad the input or use a smaller kernel",
        )
    return x.conv(weight, spec)


# effects


def copy(node: Node, device: str) -> Node:
    """Move to another device. Raises NoDataError for values that are nowhere."""
    if node.device == "meta" != device:
        raise no_data("copy")
    return node.copy(device)


def contiguous(node: Node) -> Node:
    """Ask for a row-major buffer of its own."""
    if node.row.is_stored:
        return node
    return effect("contiguous", node)


def detach(node: Node) -> Node:
    """Stop gradients."""
    return effect("detach", node)


def effect(op: str, node: Node) -> Node:
    """Wrap a node in an op that keeps its value."""
    return Node(op, (node,), None, node.shape, node.dtype, node.device)


def assign(target: Node, value: Node) -> Node:
    """Write `value` in place over the storage of `target`; the node is the next version."""
    if target.row.role not in (Role.MEMORY, Role.WRITE) and target.realized is None:
        raise ValueRangeError("assign", f"the target is a {target.op}", "realize it first")
    is_same = target.shape == value.shape and target.device == value.device
    if not is_same or target.dtype is not value.dtype:
        check_dtype("assign", OPS["assign"].dtype_rule, (target, value))
        check_same("assign", (target, value))
    return Node("assign", (target, value), None, target.shape, target.dtype, target.device)
