"""Reading and writing by index tensors: masks, range checks, and gather and scatter by axis.

An index out of range raises AxisError: at once, or where it is computed (`demands`). Until that is
known a read is clamped to the axis, and a write outside is left out.
A bool mask used for reading is computed first, since the shape of the result depends on it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from picograd.dtype import bool_, int32, int64
from picograd.engine import pending
from picograd.engine.backends import get_device
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import buffer_to_numpy, leaf, node_from_numpy
from picograd.engine.tracing import check_not_tracing, is_tracing
from picograd.errors import AxisError, IndexDTypeError, ShapeError, ValueRangeError
from picograd.graph import build, parts
from picograd.graph.build_composite import check_device
from picograd.graph.indexing import last_of_runs
from picograd.graph.node import Node
from picograd.graph.scanning import scan
from picograd.graph.shape import Shape, broadcast_shapes
from picograd.helpers import product, row_major
from picograd.number import GivenInt
from picograd.target import is_host
from picograd.tensor.core.demands import check_values, demand_index, demand_number, outside
from picograd.tensor.core.function import recorded
from picograd.tensor.core.known_values import known_values
from picograd.tensor.core.operands import Operand, as_axis, as_shape, broadcast_to, need_integer
from picograd.tensor.core.repeated import recorded_once, repeated
from picograd.tensor.indexing import indexing, masking, spans
from picograd.tensor.making import creation
from picograd.tensor.shaping import movement
from picograd.traced_number import TracedNumber

LONG_ROW = 16  # elements of a row that is counted faster than each of its places is divided
SMALL_MASK = 4096  # elements of a mask that the host looks at itself
NUMBERS_AND_RANGES = {int, GivenInt, slice, type(None), type(...)}  # nothing in them to check

Array = Any
MONOIDS = {None: None, "add": "sum", "sum": "sum", "multiply": "prod", "prod": "prod",
           "amax": "max", "amin": "min"}  # fmt: skip


def computed_values(node: Node) -> Array:
    """Compute a node and give its values."""
    known = known_values(node) if is_tracing() else None
    if known is not None:
        return known
    check_not_tracing("indexing with a bool mask")
    if leaf_buffer(node) is None:
        pending.compute([node])
    buffer = leaf_buffer(node)
    if buffer is None:
        raise ValueRangeError("getitem", "the mask was not computed", "call .realize() on it")
    return buffer_to_numpy(buffer, node.shape)


def checked(op: str, index: Node, size: int, axis: int, wraps: bool = True) -> Node:
    """Demand an index to be inside an axis to read from; what is not yet known is clamped."""
    if indexing.is_spread(index):
        return checked(op, index.inputs[0], size, axis, wraps).expand(index.shape)
    is_certain = demand_index(op, index, size, axis, wraps)
    return indexing.bounded(index, size, is_certain, wraps)


def placed(
    op: str, index: Node, size: int, axis: int, wraps: bool = True
) -> tuple[Node, Node | None]:
    """Demand an index to be inside an axis to write to: the index, and where it is.

    What is not yet known is clamped, and must not be written where it was not inside. Of several
    axes that is where it was changed: what the check stores would be read in columns, a byte of
    each sector, beside the index itself.
    """
    if indexing.is_spread(index):
        safe, inside = placed(op, index.inputs[0], size, axis, wraps)
        return safe.expand(index.shape), inside and inside.expand(index.shape)
    if demand_index(op, index, size, axis, wraps):
        return indexing.bounded(index, size, True, wraps), None
    safe = indexing.bounded(index, size, False, wraps)
    if index.rank > 1:
        wanted = indexing.bounded(index, size, True, wraps)
        return safe, safe.binary("equal", wanted)
    is_outside = outside(index, -size if wraps else 0, size)
    return safe, is_outside.binary("equal", False)


def host_index(op: str, values: Array, size: int, axis: int, device: str) -> Node:
    """Make an index node of host values, checked and wrapped there."""
    check_values(op, values, size, axis)
    wrapped = np.where(values < 0, values + size, values).astype(np.int64)
    return node_from_numpy(wrapped, int64, device)


def source_axes(node: Node, items: Sequence[Any]) -> list[int]:
    """Find the source axis each item starts at; masks cover several."""
    widths = [width(item) for item in items]
    hidden = max(len(node.shape) - sum(widths), 0)
    found, axis = [], 0
    for item, each in zip(items, widths):
        found.append(axis)
        axis += hidden if item is Ellipsis else each
    return found


def width(item: Any) -> int:
    """Count the source axes an item covers."""
    if item is Ellipsis or indexing.is_new(item) or isinstance(item, bool):
        return 0
    is_mask = isinstance(item, Node) and item.dtype is bool_
    is_mask = is_mask or (isinstance(item, np.ndarray) and item.dtype == bool)
    return len(item.shape) if is_mask else 1


def read_items(
    node: Node, items: Sequence[Any], writes: bool = False, failures: list[Node] | None = None
) -> list[Any]:
    """Turn arrays, lists, masks and spans into checked integer index nodes; the rest stays.

    `failures` gets a bool node for every span that is checked when the plan runs.
    """
    listed = [as_item(single_truth(item)) for item in items]
    result: list[Any] = []
    for item, axis in zip(listed, source_axes(node, listed)):
        size = node.shape[axis] if axis < len(node.shape) else 0
        if isinstance(item, bool):  # a mask of a new axis of one element
            places = node_from_numpy(np.zeros(int(item), np.int64), int64, node.device)
            result.append(indexing.NewAxis(places))
        elif isinstance(item, np.ndarray):
            result += array_items(node, item, axis, size)
        elif isinstance(item, Node) and item.dtype is bool_:
            indexing.check_mask(node.shape, item, axis)
            result += held_places(item)
        elif isinstance(item, indexing.Span):
            result.append(span_item(item, size, axis, failures))
        elif isinstance(item, Node) and axis < len(node.shape):
            need_integer("getitem", item, fix="call .long(), or .bool() if it is a mask")
            if writes:
                safe, inside = placed("getitem", item, size, axis)
                result.append(safe if inside is None else indexing.Places(safe, inside))
            else:
                result.append(checked("getitem", item, size, axis))
        else:
            result.append(item)
    return result


def span_item(span: indexing.Span, size: int, axis: int, failures: list[Node] | None) -> Any:
    """List the positions of a span; what leaves the axis is cut off where its start is known."""
    is_checked = not is_tracing() or known_values(span.start) is not None
    if is_checked:
        values = known_values(span.start)
        values = computed_values(span.start) if values is None else values
        first, length = int(values.reshape(-1)[0]), span.length
        last = first + length
        is_inside = 0 <= first <= last <= size or -size <= first <= last < 0
        if span.is_narrow:
            is_inside = movement.narrow_start(first, length, size) >= 0
        if not is_inside or not length:
            return slice(first, last)
    index, failed = spans.positions(span, size, axis, is_checked)
    if failed is not None and failures is not None:
        failures.append(failed)
    return index


def first_alone(node: Node, items: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
    """Split an index expression in which a span, or a number, meets other index tensors.

    x[pos, :, idx] -> x[pos][:, idx]: the first is a slice like any other, it leads no axes.
    """
    if sum(map(is_index, items)) < 2:
        return None
    is_mixed = any(is_index(item) and not aliasable(item) for item in items)
    for number, (item, axis) in enumerate(zip(items, source_axes(node, items))):
        if isinstance(item, indexing.Span) or (is_mixed and aliasable(item)):
            stays = [slice(None)] if isinstance(item, indexing.Span) else []
            rest = [*items[:number], *stays, *items[number + 1 :]]
            return [*[slice(None)] * axis, item], rest
    return None


def is_index(item: Any) -> bool:
    """Tell whether an item is no number, range, None or ...: it chooses by values of a tensor."""
    plain = item is None or isinstance(item, (int, np.integer, slice, type(...)))
    return not plain or isinstance(item, bool)


def aliasable(item: Any) -> bool:
    """Tell whether an item is a span or an integer node of no axes."""
    is_number = isinstance(item, Node) and not item.shape and item.dtype.is_integer
    return is_number or isinstance(item, indexing.Span)


def single_truth(item: Any) -> Any:
    """Turn a zero-dim mask into a Python bool."""
    if isinstance(item, Node) and item.dtype is bool_ and not item.shape:
        return bool(computed_values(item))
    is_truth = isinstance(item, (np.ndarray, np.generic)) and item.dtype == bool
    return bool(item) if is_truth and not item.shape else item


def as_item(item: Any) -> Any:
    """Turn a list, a tuple or an array-like index into an array."""
    if type(item) is TracedNumber:
        return item.item()
    is_list = isinstance(item, (list, tuple, range))
    if is_list or isinstance(item, np.ndarray) or hasattr(item, "__array__"):
        try:
            array = np.asarray(item)
        except ValueError:
            text = f"the rows of the index {item} differ in length"
            raise ShapeError("getitem", text, "make them equal") from None
        if array.dtype.kind == "f" and array.ndim:  # PyTorch reads lists of floats so
            array = array.astype(np.int64)
        if array.dtype.kind not in "biu":
            text = f"cannot index with {array.dtype} values"
            raise IndexDTypeError("getitem", text, "use whole numbers or bools")
        return array if array.ndim or array.dtype == bool else int(array)
    return item


def array_items(node: Node, array: Array, axis: int, size: int) -> list[Node]:
    """Make index nodes of a host array; a mask gives one per axis it covers."""
    if array.dtype != bool:
        return [host_index("getitem", array, size, axis, node.device)]
    if array.shape != node.shape[axis : axis + array.ndim]:
        text = f"mask of shape {array.shape} does not match axes of {node.shape} from {axis}"
        raise AxisError("getitem", text, "use a mask of the same sizes")
    places = np.nonzero(array)
    return [node_from_numpy(each.astype(np.int64), int64, node.device) for each in places]


def read(node: Node, items: Sequence[Any]) -> Node:
    """Compute x[items]; a view is made sooner than its recording would be found."""
    if (made := indexing.chosen(node, items)) is not None:
        return made
    if NUMBERS_AND_RANGES.issuperset(map(type, items)):
        return indexing.take(node, indexing.parse(node.shape, items))
    items = beside(node, items)
    looks = any(type(item) is Node and item.dtype is bool_ for item in items)
    return read_checked(node, items) if looks else read_plain(node, items)


def beside(node: Node, items: Sequence[Any]) -> Sequence[Any]:
    """Copy indices of the host to the device of what they choose from, as PyTorch does."""
    if is_host(node.device):
        return items
    return [
        build.copy(item, node.device) if type(item) is Node and is_host(item.device) else item
        for item in items
    ]


def read_checked(node: Node, items: Sequence[Any]) -> Node:
    """Compute x[items], where indices lie inside their axes."""
    split = first_alone(node, items)
    if split is not None:
        return read(read(node, split[0]), split[1])
    return indexing.take(node, indexing.parse(node.shape, read_items(node, items)))


read_plain = repeated(read_checked)


def write(node: Node, items: Sequence[Any], value: Operand) -> Node:
    """Compute the tensor after x[items] = value."""
    items = beside(node, items)
    if len(items) == 1 and isinstance(items[0], Node) and items[0].dtype is bool_:
        mask = items[0]
        indexing.check_mask(node.shape, mask, 0)
        source = indexing.value_node(node, value)
        trailing = node.shape[len(mask.shape) :]
        if len(source.shape) <= len(trailing) or source.size == 1:
            return indexing.put_mask(node, mask, indexing.fit_value(source, trailing or ()))
    region = masking.region_of(node.shape, items) if is_tracing() else None
    if region is not None:
        return write_where(node, region, indexing.value_node(node, value))
    split = first_alone(node, items)
    if split is not None:
        return write(node, split[0], write(read(node, split[0]), split[1], value))
    failures: list[Node] = []
    read_as = read_items(node, items, True, failures)
    selection = indexing.parse(node.shape, read_as)
    if failures:
        current = indexing.take(node, selection)
        wanted = indexing.fit_value(indexing.value_node(node, value), current.shape)
        value = broadcast_to(failures[0], current.shape).where(current, wanted)
    return indexing.put(node, selection, value)


def write_where(node: Node, region: masking.Region, value: Node, is_sum: bool = False) -> Node:
    """Compute the tensor after x[mask, ...] = value, or += value, of a mask that is not known."""
    before = read(node, region.items)
    after = masking.rows_of(region, before.shape, value)
    after = before + after if is_sum else after
    chosen = region.wide(before.shape).where(after, before)
    return write(node, region.items, chosen)


def filled(node: Node, value: Operand) -> Node:
    """Compute a tensor's next value where it is one number."""
    return indexing.fit_value(indexing.value_node(node, value), node.shape)


def fill_diagonal(node: Node, value: Operand, wraps: bool) -> Node:
    """Write a number over the main diagonal: elements in equal steps of the flattened tensor."""
    number = indexing.value_node(node, value)
    if number.shape:
        text = f"the value has shape {number.shape}"
        raise ShapeError("fill_diagonal_", text, "pass a number")
    step = sum(row_major(node.shape))
    end = node.size if wraps else min(step * min(node.shape), node.size)
    places = (0, len(range(0, end, step)) * step - step + 1 if end else 0, step)
    steps = (("reshape", (node.size,)), ("slice", (places,)))
    count = len(range(*places))
    return parts.put(node, broadcast_to(number, (count,)), steps)


@recorded()
def gather(x: Node, dim: int, index: Node) -> Node:
    """Read out[i][j] = self[i][index[i][j]] (dim 1); an index outside the axis is an error.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).gather(1, Tensor([[1], [0]])).tolist()
    [[2.0], [3.0]]
    """
    return read_along("gather", x, dim, index)


@repeated
def read_along(op: str, node: Node, axis: Any, index: Node) -> Node:
    """Read out[i][j] = x[i][index[i][j]] (axis 1)."""
    position = as_axis(axis, len(node.shape), op)
    need_integer(op, index)
    size = node.shape[position] if node.shape else 1
    wraps = op == "take_along_dim"
    safe = checked(op, index, size, position, wraps=wraps)
    return indexing.gather(op, node, axis, safe)


@recorded("take_along_dim")
def take_along(x: Node, indices: Node, dim: int | None = None) -> Node:
    """Read by index along an axis; the other axes broadcast.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).take_along_dim(Tensor([[1], [0]]), 1).tolist()
    [[2.0], [3.0]]
    """
    op = "take_along_dim"
    need_integer(op, indices)
    if dim is None:
        flat = x.reshape((x.size,))
        return read_along(op, flat, 0, indices.reshape((indices.size,)))
    position = need_axis(op, x, dim)
    if len(indices.shape) != len(x.shape):
        text = f"index {indices.shape} and tensor {x.shape} differ in number of axes"
        raise ShapeError(op, text, "give them the same number of axes")
    indices = checked(op, indices, x.shape[position], position)
    ours = [1 if at == position else size for at, size in enumerate(x.shape)]
    theirs = [1 if at == position else size for at, size in enumerate(indices.shape)]
    common = list(broadcast_shapes(tuple(ours), tuple(theirs), op=op))
    common[position] = x.shape[position]
    wide = broadcast_to(x, tuple(common), op)
    common[position] = indices.shape[position]
    return read_along(op, wide, position, broadcast_to(indices, tuple(common), op))


@recorded("argwhere")
def nonzero(x: Node) -> Node:
    """List the positions of the non-zero elements: (count, axes) in int64; computes.

    >>> Tensor([0.0, 5.0, 6.0]).argwhere().tolist()
    [[1], [2]]
    """
    if x.size < SMALL_MASK or is_host(x.device):
        values = computed_values(x)
        listed = places_of(values)
        places = np.stack(listed, 1) if listed else np.zeros((np.count_nonzero(values), 0))
        return node_from_numpy(places.astype(np.int64, copy=False), int64, x.device)
    mask = x.cast(bool_)
    if mask.rank == 1:
        (found,) = held(mask)
        return found.reshape((*found.shape, 1))
    (found,) = held(mask, lambda place: [movement.stack(unflattened(place, mask.shape), 1)])
    return found


def places_of(values: Array) -> list[Array]:
    """List the positions of what is not zero in NumPy's memory, one int64 array an axis.

    Of rows each is counted, and its places are repeated as often: NumPy walks all axes for each
    element that it finds.
    """
    places = np.flatnonzero(values)
    if values.ndim < 2:
        return [places][: values.ndim]
    *lead, length = values.shape
    if length < LONG_ROW:
        return list(np.unravel_index(places, values.shape))
    counts = np.count_nonzero(values, axis=-1).reshape(-1)
    starts: Array = np.repeat(np.arange(0, values.size, length), counts)
    found: list[Array] = [np.repeat(each.reshape(-1), counts) for each in np.indices(lead)]
    return [*found, places - starts]


def held_places(mask: Node) -> list[Node]:
    """List the positions where a mask holds, one index an axis; computes the mask."""
    if mask.size < SMALL_MASK or is_host(mask.device):
        places = places_of(computed_values(mask))
        return [node_from_numpy(each, int64, mask.device) for each in places]
    return held(mask, lambda place: unflattened(place, mask.shape))


def held(
    mask: Node, made: Callable[[Node], list[Node]] = lambda found: [found], values: Any = None
) -> list[Node]:
    """Compute what is made of the places where a mask holds, or of `values` there; on a GPU.

    There is room for all, so that one plan serves whatever the mask holds, and the first rows are
    kept: only their number comes to the host. The element that a running count reaches first is
    the last of those with the same count before them. A mask in memory is no result: it
    would hide from machine code that it knows the plan.
    """
    size, target = mask.size, get_device(mask.device).target
    row = mask.reshape((size,)).cast(int32 if size < 1 << 31 else int64)
    running = scan(row, "sum", 0)
    values = row.iota(0) if values is None else values.reshape((size,))
    rows = made(last_of_runs(values, running - row, size + 1, target))
    last = running.slice(((size - 1, size, 1),))
    is_there = leaf_buffer(mask) is not None
    pending.compute([*[mask] * (not is_there), last, *rows])
    count = int(computed_values(last)[0])
    return [first_rows(each, count) for each in rows]


def first_rows(node: Node, count: int) -> Node:
    """Name the first rows of what was computed; they are copied where most of the memory is not."""
    buffer: Any = leaf_buffer(node)
    shape = (count, *node.shape[1:])
    kept = buffer.resized(product(shape))
    if 2 * kept.count < buffer.count:
        device, whole = get_device(node.device), kept
        kept = device.new_buffer(buffer.dtype, whole.count, buffer.origin)
        device.copy(kept, whole)
    return leaf(kept, shape)


def unflattened(place: Node, shape: Shape) -> list[Node]:
    """Split positions in row-major order into one index an axis."""
    indices: list[Node] = []
    for size in reversed(shape):
        indices.insert(0, place.binary("mod", size))
        place = place.binary("floordiv", size)
    return indices


def count_classes(index: Any) -> int:
    """Count the classes up to the largest index of a tensor; computes. Raises for an empty one."""
    if not index.numel():
        text = "an empty tensor does not say how many classes there are"
        raise ShapeError("one_hot", text, "pass num_classes")
    return int(index.max().item()) + 1


@repeated
def mark_classes(index: Node, count: int) -> Node:
    """Mark the position each index names along a new last axis."""
    need_integer("one_hot", index)
    (count,) = as_shape((count,), "one_hot")
    demand_number("one_hot", index, count)
    return creation.one_hot(index, count)


def need_axis(op: str, node: Node, axis: Any) -> int:
    """Find a position along an axis, which a number has not."""
    if not node.shape:
        raise ShapeError(op, "a zero-dim tensor has no axis", "reshape it to (1,)")
    return as_axis(axis, len(node.shape), op)


@repeated
def rows(op: str, table: Node, index: Node) -> Node:
    """Read rows of a table (N, D) by an index of any shape."""
    is_certain = demand_number(op, index, table.shape[0], "rows")
    return table.gather([indexing.bounded(index, table.shape[0], is_certain, False)], (0,))


@recorded_once()
def index_select(x: Node, dim: int, index: Node) -> Node:
    """Take slices along an axis in the order of an index.

    >>> Tensor([1.0, 2.0, 3.0]).index_select(0, Tensor([2, 0])).tolist()
    [3.0, 1.0]
    """
    if not x.shape and index.size == 1:  # PyTorch takes a number for a row of one
        return index_select(x.reshape((1,)), dim, index).reshape(())
    position = need_axis("index_select", x, dim)
    need_integer("index_select", index)
    size = x.shape[position]
    index = checked("index_select", index, size, position, wraps=False)
    return indexing.index_select(x, position, index)


@repeated
def scatter(
    op: str, node: Node, axis: Any, index: Node, source: Operand, reduction: str | None
) -> Node:
    """Write out[i][index[i][j]] = source[i][j] (axis 1), or reduce into it."""
    if reduction not in MONOIDS:
        text = f"unknown reduce={reduction!r}"
        raise ValueRangeError(op, text, 'use None, "add", "multiply", "amax" or "amin"')
    position = as_axis(axis, len(node.shape), op)
    need_integer(op, index)
    size = node.shape[position] if node.shape else 1
    index, inside = placed(op, index, size, position, wraps=False)
    if not isinstance(source, Node):
        source = broadcast_to(indexing.value_node(node, source), index.shape, op)
    return indexing.scatter(op, node, position, index, source, MONOIDS[reduction], inside)


@repeated
def index_add(node: Node, axis: Any, index: Node, source: Node) -> Node:
    """Add slices of `source` along an axis at the positions of a 1-d index."""
    op = "index_add"
    if not node.shape and not source.shape:
        return index_add(node.reshape((1,)), axis, index, source.reshape((1,))).reshape(())
    position = need_axis(op, node, axis)
    need_integer(op, index)
    check_device(op, (node, source))
    if len(index.shape) > 1:
        raise AxisError(op, f"index {index.shape} is not 1-d", "flatten it")
    index = index.reshape((index.size,))
    index, inside = placed(op, index, node.shape[position], position, wraps=False)
    moved = movement.move_axis(source.cast(node.dtype), position, 0)
    wanted = (product(index.shape), *node.shape[:position], *node.shape[position + 1 :])
    if moved.shape != wanted:
        text = f"source {source.shape} does not fit tensor {node.shape} at {index.size} indices"
        raise ShapeError(op, text, "give one slice per index")
    return indexing.store(node, moved, [index], (position,), "sum", inside)
