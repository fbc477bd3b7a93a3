"""Writing by index on nodes: fills, puts, scatters with a reduction; the input stays as it is."""

import operator

from picograd.dtype import category, int32, int64
from picograd.engine.tracing import is_tracing
from picograd.errors import AxisError, DTypeError, ShapeError, check_known
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.scanning import identity
from picograd.graph.shape import broadcast_shapes
from picograd.helpers import product
from picograd.tensor.core.annotations import Scalar, Tensor
from picograd.tensor.core.function import method_within, recorded
from picograd.tensor.core.known_values import known_values
from picograd.tensor.core.operands import (
    UNSET,
    Operand,
    as_axis,
    broadcast_to,
    constant,
    either,
    need_integer,
    need_mask,
)
from picograd.tensor.core.recording import apply
from picograd.tensor.core.repeated import recorded_once, repeated
from picograd.tensor.indexing import indexing, masking, selecting
from picograd.tensor.math import elementwise
from picograd.tensor.shaping import movement

REDUCTIONS = {"sum": "sum", "prod": "prod", "amax": "max", "amin": "min", "mean": "sum"}


@recorded(in_place=True)
def scatter(
    x: Node, dim: int, index: Node, src: Operand = UNSET, reduce: str | None = None, *,
    value: Operand = UNSET,
) -> Node:  # fmt: skip
    """Write out[i][index[i][j]] = src[i][j] (dim 1); reduce="add" or "multiply".

    `src` may be a number, which is also called `value`.

    >>> Tensor([1.0, 2.0, 3.0]).scatter(0, Tensor([2, 0]), Tensor([10.0, 20.0])).tolist()
    [20.0, 2.0, 10.0]
    """
    source: Operand = either("scatter", "src", src, "value", value, UNSET)
    if source is UNSET:
        raise DTypeError("scatter", "there is nothing to write", "pass src or value")
    return selecting.scatter("scatter", x, dim, index, source, reduce)


@recorded(in_place=True)
def scatter_add(x: Node, dim: int, index: Node, src: Node) -> Node:
    """Add src[i][j] to out[i][index[i][j]] (dim 1).

    >>> Tensor([1.0, 2.0, 3.0]).scatter_add(0, Tensor([0, 0]), Tensor([10.0, 20.0])).tolist()
    [31.0, 2.0, 3.0]
    """
    return selecting.scatter("scatter_add", x, dim, index, src, "add")


@recorded(in_place=True)
def index_add(x: Node, dim: int, index: Node, source: Node, *, alpha: Scalar = 1) -> Node:
    """Add slices of `source`, times alpha, along an axis at the positions of a 1-d index.

    >>> Tensor([1.0, 2.0, 3.0]).index_add(0, Tensor([0, 0]), Tensor([10.0, 20.0])).tolist()
    [31.0, 2.0, 3.0]
    """
    if alpha == 1:
        return selecting.index_add(x, dim, index, source)
    if isinstance(alpha, float) and source.dtype.is_integer:  # cut, as PyTorch does
        alpha = int(alpha)
    scaled = elementwise.arithmetic("mul", source, alpha)
    if category(scaled.dtype) > category(source.dtype):
        text = f"alpha={alpha!r} does not fit {source.dtype.name}"
        raise DTypeError("index_add", text, "pass an alpha of the source's kind")
    return selecting.index_add(x, dim, index, scaled)


@method_within("functional")
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Write each index as a row with a single 1, in int64; -1 classes: the largest index + 1.

    The latter computes.

    >>> Tensor([0, 2]).one_hot(3).tolist()
    [[1, 0, 0], [0, 0, 1]]
    """
    given = operator.index(num_classes)  # of a tensor, too
    count = selecting.count_classes(input) if given == -1 else given
    return apply(selecting.mark_classes, input, count)


@recorded(in_place=True)
def index_fill(x: Node, dim: int, index: Node, value: Operand) -> Node:
    """Write one number over the slices that a 1-d index names.

    >>> Tensor([1.0, 2.0, 3.0]).index_fill(0, Tensor([2, 0]), 9).tolist()
    [9.0, 2.0, 9.0]
    """
    at = as_axis(dim, len(x.shape), "index_fill")
    rest = (*x.shape[:at], *x.shape[at + 1 :])
    number = indexing.value_node(x, value)
    if isinstance(value, Node) and x.rank:  # a place named twice counts once in its gradient
        line = build.const(0, (x.shape[at],), index.dtype, x.device)
        ones = build.const(1, (index.size,), index.dtype, x.device)
        named = write_slices("index_fill", line, 0, index, ones, None).binary("not_equal", 0)
        named = named.reshape((*(1,) * at, x.shape[at], *(1,) * (x.rank - at - 1)))
        return broadcast_to(named, x.shape).where(broadcast_to(number, x.shape), x)
    filled = broadcast_to(number, (index.size, *rest))
    return write_slices("index_fill", x, at, index, filled, None)


@recorded(in_place=True)
def index_copy(x: Node, dim: int, index: Node, source: Node) -> Node:
    """Write slices of `source` over the slices that a 1-d index names.

    >>> Tensor([1.0, 2.0, 3.0]).index_copy(0, Tensor([2, 0]), Tensor([10.0, 20.0])).tolist()
    [20.0, 2.0, 10.0]
    """
    at = as_axis(dim, len(x.shape), "index_copy")
    moved = movement.move_axis(source, at, 0) if source.shape else source.reshape((1,))
    return write_slices("index_copy", x, at, index, moved, None)


@repeated
def write_slices(
    op: str, node: Node, axis: int, index: Node, values: Node, monoid: str | None
) -> Node:
    """Write (count, *rest) over slices along an axis."""
    need_integer(op, index)
    if not node.shape:  # a number is one slice
        flat = values.reshape((values.size,))
        return write_slices(op, node.reshape((1,)), 0, index, flat, monoid).reshape(())
    if len(index.shape) > 1:
        raise AxisError(op, f"index {index.shape} is not 1-d", "flatten it")
    wanted = (index.size, *node.shape[:axis], *node.shape[axis + 1 :])
    if values.shape != wanted:
        text = f"values {values.shape} do not fit {node.shape} at {index.size} indices"
        raise ShapeError(op, text, "give one slice per index")
    wraps = op == "index_fill"
    flat = index.reshape((index.size,))
    safe, inside = selecting.placed(op, flat, node.shape[axis], axis, wraps)
    return indexing.store(node, values.cast(node.dtype), [safe], (axis,), monoid, inside)


@recorded_once()
def take(x: Node, index: Node) -> Node:
    """Read elements by their position in the flattened tensor.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).take(Tensor([3, 0])).tolist()
    [4.0, 1.0]
    """
    need_integer("take", index)
    flat = x.reshape((product(x.shape),))
    safe = selecting.checked("take", index, flat.size, 0)
    return flat.gather([safe], (0,))


@recorded_once(in_place=True)
def put(x: Node, index: Node, source: Node, accumulate: bool = False) -> Node:
    """Write elements by their position in the flattened tensor; or add to what is there.

    >>> Tensor([1.0, 2.0, 3.0]).put(Tensor([2, 0]), Tensor([10.0, 20.0])).tolist()
    [20.0, 2.0, 10.0]
    """
    need_integer("put", index)
    if index.size != source.size:
        text = f"{source.size} values for {index.size} indices"
        raise AxisError("put", text, "give one value per index")
    flat = x.reshape((product(x.shape),))
    places = index.reshape((index.size,))
    safe, inside = selecting.placed("put", places, flat.size, 0)
    values = source.cast(x.dtype).reshape((index.size,))
    monoid = "sum" if accumulate else None
    written = indexing.store(flat, values, [safe], (0,), monoid, inside)
    return written.reshape(x.shape)


@recorded_once(in_place=True)
def scatter_reduce(
    node: Node, dim: int, index: Node, src: Node, reduce: str, include_self: bool = True
) -> Node:
    """Reduce src[i][j] into out[i][index[i][j]] (dim 1): sum, prod, mean, amax, amin.

    Without `include_self` the places written to start empty instead of at their value.

    >>> Tensor([1.0, 2.0, 3.0]).scatter_reduce(0, Tensor([0, 0]), Tensor([10.0, 20.0]),
    ...     "amax").tolist()
    [20.0, 2.0, 3.0]
    """
    op = "scatter_reduce"
    check_known(op, "reduce", reduce, REDUCTIONS)
    if src.dtype is not node.dtype:
        text = f"source is {src.dtype.name} but the tensor is {node.dtype.name}"
        raise DTypeError(op, text, "cast the source")
    at = as_axis(dim, len(node.shape), op)
    need_integer(op, index)
    size = node.shape[at] if node.shape else 1
    safe, inside = selecting.placed(op, index, size, at, wraps=False)
    monoid = REDUCTIONS[reduce]
    is_mean, base = reduce == "mean", node
    if is_mean or not include_self:
        count = hits(node, at, safe, "sum" if is_mean else "max", inside)
    if not include_self:
        empty = node.const_like(identity(monoid, node.dtype))
        base = count.binary("not_equal", 0).where(empty, node)
    total = indexing.scatter(op, base, at, safe, src, monoid, inside)
    if not is_mean:
        return total
    count = count + 1 if include_self else elementwise.arithmetic("maximum", count, 1)
    if not node.dtype.is_differentiable:
        return total.binary("floordiv", count.cast(node.dtype))
    return total / count.cast(node.dtype)


def hits(node: Node, axis: int, index: Node, monoid: str, inside: Node | None) -> Node:
    """Count how often an index writes to each element, or by "max" whether it does.

    What an index repeats along another axis is looked at once.
    """
    shape, given = node.shape, index.shape
    if indexing.is_spread(index):
        few = index.inputs[0].shape
        for at in range(len(shape)):
            if at != axis and few[at] == 1 and given[at] == shape[at]:
                given, shape = (each[:at] + (1,) + each[at + 1 :] for each in (given, shape))
    first = tuple([(0, size, 1) for size in given])
    index, inside = index.slice(first), inside and inside.slice(first)
    op, dtype = "scatter_reduce", int32 if index.size < 1 << 31 else int64
    none = constant(op, 0, shape, dtype, node.device)
    one = constant(op, 1, given, dtype, node.device)
    count = indexing.scatter(op, none, axis, index, one, monoid, inside)
    return count.expand(node.shape)


@recorded(in_place=True)
def masked_scatter(x: Node, mask: Node, source: Node) -> Node:
    """Write the elements of `source`, in order, where the mask holds; computes the mask.

    >>> x = Tensor([1.0, 2.0, 3.0])
    >>> x.masked_scatter(x > 1.5, Tensor([8.0, 9.0])).tolist()
    [1.0, 8.0, 9.0]
    """
    need_mask("masked_scatter", mask)
    shape = broadcast_shapes(x.shape, mask.shape, op="masked_scatter")
    x, wide = broadcast_to(x, shape), broadcast_to(mask, shape)
    if is_tracing() and known_values(wide) is None:
        return masking.masked_scatter(x, wide, source)
    found = selecting.nonzero(wide.reshape((wide.size,)))
    places = found.reshape((found.shape[0],))
    if source.size < places.size:
        text = f"{source.size} values for {places.size} places"
        raise ShapeError("masked_scatter", text, "give at least one value per place")
    values = movement.cut(source.reshape((source.size,)), 0, 0, places.size).cast(x.dtype)
    flat = x.reshape((x.size,))
    return flat.scatter(values, [places], (0,), None).reshape(x.shape)
