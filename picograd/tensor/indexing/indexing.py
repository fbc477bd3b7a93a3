"""Indexing on nodes: x[...] = basic slicing (views), then gather; writing is the way back.

An index expression is read into a `Selection`: a range per axis (steps may be negative), axes to
drop (ints), axes to add (None), and integer index tensors for some of the axes that are left.
"""

import operator
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from picograd.dtype import bool_, int64
from picograd.errors import AxisError, DTypeError, IndexDTypeError, ShapeError, ValueRangeError
from picograd.graph import build, parts
from picograd.graph.build_composite import check_device
from picograd.graph.node import Node
from picograd.graph.scanning import identity
from picograd.graph.shape import broadcast_shapes, is_size, range_size
from picograd.late_methods import dataclass
from picograd.number import GivenInt, given, index_of, is_given, size_of, start_of
from picograd.tensor.core.annotations import Shape
from picograd.tensor.core.function import recorded
from picograd.tensor.core.operands import (
    Operand,
    as_axis,
    broadcast_to,
    check_index,
    constant,
    need_integer,
    need_mask,
    nothing_of,
    read_scalar,
)
from picograd.tensor.core.repeated import repeated
from picograd.tensor.math import elementwise
from picograd.tensor.shaping import movement
from picograd.traced_number import SIZED, TracedNumber, value_of

ENDS = {type(None), int, GivenInt}


@dataclass(slots=True)
class Selection:
    """What an index expression selects.

    `ranges` has (start, stop, step) with step >= 1 per source axis; `flips` lists the axes read
    backwards. `shape` is the shape after ints and None have been applied; `indices` pairs an axis
    of that shape with the index node that replaces it. `inside` are bools like indices of places to
    write, false where there is no such place.
    """

    ranges: list[tuple[int, int, int]] = field(default_factory=list)
    flips: list[int] = field(default_factory=list)
    shape: list[int] = field(default_factory=list)
    indices: list[tuple[int, Node]] = field(default_factory=list)
    inside: list[Node] = field(default_factory=list)

    @property
    def axes(self) -> Shape:
        """Axes of the viewed tensor that index nodes replace."""
        return tuple(axis for axis, _ in self.indices)


@dataclass(slots=True)
class NewAxis:
    """A new axis of one element that an index node replaces: x[True] and x[False] make one."""

    index: Node


@dataclass(slots=True)
class Span:
    """A range of an axis that starts where an integer node says (`spans.py`)."""

    start: Any  # a node; a tensor where a view keeps it
    length: int
    is_narrow: bool = False  # a slice x[-1:0] is empty, narrow(0, -1, 1) is the last element


@dataclass(slots=True)
class Places:
    """An index of places to write, bounded, and a bool: false where it was outside its axis."""

    index: Node
    inside: Node


def parse(shape: Shape, items: Sequence[Any]) -> Selection:
    """Read an index expression of ints, slices, None, Ellipsis, integer nodes and new axes."""
    ellipses = [item for item in items if item is Ellipsis]
    used = len(items) - len(ellipses) - len([item for item in items if is_new(item)])
    if used > len(shape):
        text = f"{used} indices for {len(shape)} axes of {shape}"
        raise AxisError("getitem", text, "use at most one index per axis")
    selection, axis, rest = Selection(), 0, len(shape) - used
    for item in items if ellipses else [*items, Ellipsis]:
        if is_new(item):
            if item is not None:
                selection.indices.append((len(selection.shape), item.index))
            selection.shape.append(1)
        elif item is Ellipsis:
            for size in shape[axis : axis + rest]:
                add_slice(selection, slice(None), size)
            axis, rest = axis + rest, 0  # another one has no axes left
        else:
            add_item(selection, item, shape[axis])
            axis += 1
    return selection


def chosen(node: Node, items: Sequence[Any]) -> Node | None:
    """View what whole numbers and ranges without a step choose, as `parse` and `take` do.

    None where these have to look.
    """
    shape = node.shape
    ranges: list[tuple[int, int, int]] = []
    cut: list[int] = []
    sizes: list[int] = []
    rest: Shape | None = None  # the axes of an ellipsis
    if SIZED:
        return None
    for item in items:
        if item is None:
            sizes.append(1)
        elif item is Ellipsis:
            used = len([each for each in items if each is not None]) - 1
            if rest is not None or used > len(shape):
                return None
            rest = shape[len(cut) : len(cut) + len(shape) - used]
            add_whole(ranges, cut, sizes, rest)
        elif len(cut) == len(shape) or (found := range_chosen(item, shape[len(cut)])) is None:
            return None
        else:
            ranges.append(found[0])
            cut.append(found[1])
            if type(item) is slice:
                sizes.append(found[1])
    if rest is None:
        add_whole(ranges, cut, sizes, shape[len(cut) :])
    node = node if tuple(cut) == shape else node.view("slice", tuple(ranges), tuple(cut))
    return node.reshape(tuple(sizes))


def add_whole(
    ranges: list[tuple[int, int, int]], cut: list[int], sizes: list[int], rest: Shape
) -> None:
    """Take some axes whole."""
    ranges += [(0, size, 1) for size in rest]
    cut += rest
    sizes += rest


def range_chosen(item: Any, size: int) -> tuple[tuple[int, int, int], int] | None:
    """Give the range that a number, or a range without a step, chooses of an axis, and its size.

    None for others, and where that is an error.
    """
    if type(item) is GivenInt:
        at = operator.index(item)
        if not -size <= at < size:
            return None
        if at < 0:
            at += size
            item = GivenInt(at)
        return (item if size != 1 else 0, at + 1, 1), 1
    if type(item) is not slice or not ENDS.issuperset((type(item.start), type(item.stop))):
        return None
    if item.step is not None:
        return None
    start, stop, _ = item.indices(size)
    count = stop - start
    if count <= 0:
        return (0, 0, 1), 0
    is_moving = count < size and item.start is not None and item.stop is not None
    return (start_of(start, item.start) if is_moving else start, stop, 1), count


def is_new(item: Any) -> bool:
    """Tell whether an item of an index expression adds an axis."""
    return item is None or isinstance(item, NewAxis)


def add_item(selection: Selection, item: Any, size: int) -> None:
    """Apply one index to the next source axis."""
    axis = len(selection.ranges)
    if isinstance(item, slice):
        add_slice(selection, item, size)
    elif isinstance(item, Places):
        selection.inside.append(item.inside)
        add_item(selection, item.index, size)
    elif isinstance(item, Node):
        need_integer("getitem", item)
        selection.indices.append((len(selection.shape), item))
        add_slice(selection, slice(None), size)
    else:
        try:
            position = check_index("getitem", index_of(item), size, axis)
        except TypeError:
            text = f"cannot index with {type(item).__name__}"
            fix = "use ints, slices, None, ..., or integer and bool tensors"
            raise IndexDTypeError("getitem", text, fix) from None
        start = operator.index(position) if is_size(size, 1) else start_of(position, item)
        selection.ranges.append((start, start + 1, 1))


def add_slice(selection: Selection, item: slice, size: int) -> None:
    """Apply a slice to the next source axis; a negative step is a flip of a positive one."""
    if item.start is None and item.stop is None and item.step is None:
        selection.ranges.append((0, size, 1))
        selection.shape.append(size)
        return
    try:
        start, stop, step = ends_of(item, size)
    except (TypeError, ValueError) as error:
        kind = DTypeError if isinstance(error, TypeError) else ValueRangeError
        fix = "use ints and a step that is not 0"
        raise kind("getitem", f"bad slice: {error}", fix) from None
    count = size_of(range_size(start, stop, step) if step > 0 else len(range(start, stop, step)))
    if step < 0:
        selection.flips.append(len(selection.ranges))
        start, stop, step = start + (count - 1) * step, start + 1, -step
    if item.start is not None and item.stop is not None and count < size:
        start = start_of(start, item.start)  # another start is another number, no other shape
    start = start if is_given(start) and type(start) is not TracedNumber else size_of(start)
    stop = start + (count - 1) * step + 1
    selection.ranges.append((start, stop, step) if count else (0, 0, 1))
    selection.shape.append(count)


def ends_of(item: slice, size: int) -> tuple[Any, Any, int]:
    """Read the ends of a slice on an axis; those that are traced as Python does `indices`."""
    ends = item.start, item.stop
    is_traced = any(type(end) is TracedNumber for end in (*ends, size))
    if not is_traced or item.step not in (None, 1):
        return item.indices(size)
    slice(*map(value_of, ends)).indices(value_of(size))  # raises for what is no int
    start = 0 if item.start is None else limited_end(item.start, size)
    return start, size if item.stop is None else limited_end(item.stop, size), 1


def limited_end(end: Any, size: int) -> Any:
    """Count an end from the front, inside the axis."""
    end = index_of(end)
    if end < 0:
        end = end + size
        return end if end >= 0 else 0
    return end if end <= size else size


def view(node: Node, selection: Selection) -> Node:
    """Apply the part of a selection that needs no index tensors."""
    cut = node.slice(tuple(selection.ranges))
    if selection.flips:
        cut = cut.flip(tuple(selection.flips))
    return cut.reshape(tuple(selection.shape))


@repeated
def bounded(index: Node, size: int, is_checked: bool, wraps: bool = True) -> Node:
    """Let negative indices count from the end if `wraps`; if unchecked, clamp all to the axis."""
    index = index if index.dtype.bits >= 32 and index.dtype.kind == "int" else index.cast(int64)
    if wraps:
        index = index.binary("less", 0).where(index + size, index)
    if is_checked:
        return index
    return index.binary("maximum", 0).binary("minimum", max(size - 1, 0))


def take(node: Node, selection: Selection) -> Node:
    """Read x[selection]; the caller has bounded the index nodes."""
    viewed = view(node, selection)
    if not selection.indices:
        return viewed
    indices = common_indices(viewed, selection)
    return place_index(viewed.gather(indices, selection.axes), selection, len(indices[0].shape))


def common_indices(viewed: Node, selection: Selection) -> list[Node]:
    """Broadcast the index nodes together, in one integer dtype."""
    nodes = [node for _, node in selection.indices]
    for node in nodes:
        check_device("getitem", (viewed, node))
    shapes = [node.shape for node in nodes]
    try:
        shape = broadcast_shapes(*shapes, op="getitem")
    except ShapeError:
        text = "indices of shapes " + ", ".join(map(str, shapes)) + " do not broadcast"
        raise AxisError("getitem", text, "make sizes equal or 1") from None
    if any(node.dtype is not nodes[0].dtype for node in nodes):
        nodes = [node.cast(int64) for node in nodes]
    return [broadcast_to(node, shape) for node in nodes]


def index_place(selection: Selection) -> int:
    """Find where the index axes go: at the first indexed axis if those are adjacent, else first."""
    axes = selection.axes
    return axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0


def place_index(node: Node, selection: Selection, width: int) -> Node:
    """Move the leading index axes to their place: I + rest -> rest[:k] + I + rest[k:]."""
    place = index_place(selection)
    if not place:
        return node
    rest = [width + n for n in range(len(node.shape) - width)]
    return node.permute((*rest[:place], *range(width), *rest[place:]))


def lead_index(node: Node, selection: Selection, width: int) -> Node:
    """Undo `place_index`."""
    place = index_place(selection)
    if not place:
        return node
    rest = [n for n in range(len(node.shape)) if not place <= n < place + width]
    return node.permute((*range(place, place + width), *rest))


def put(node: Node, selection: Selection, value: Operand, monoid: str | None = None) -> Node:
    """Compute the tensor after x[selection] = value, or after reducing the value into it."""
    if not selection.indices:
        if monoid == "sum":
            value = elementwise.arithmetic("add", view(node, selection), value)
        if isinstance(value, Node):
            value = build.cast(value, node.dtype)
        return put_view(node, selection, value_node(node, value))
    viewed = view(node, selection)
    indices = common_indices(viewed, selection)
    width = len(indices[0].shape)
    rest = [size for axis, size in enumerate(viewed.shape) if axis not in selection.axes]
    place = index_place(selection)
    shape = (*rest[:place], *indices[0].shape, *rest[place:])
    values = fit_value(value_node(node, value), shape)
    leading = lead_index(values, selection, width)
    inside: Node | None = None
    for each in selection.inside:
        wide = broadcast_to(each, indices[0].shape)
        inside = wide if inside is None else inside.binary("logical_and", wide)
    written = store(viewed, leading, indices, selection.axes, monoid, inside)
    if is_whole(node, selection):
        return written.reshape(node.shape)
    return put_view(node, selection, written)


def store(
    base: Node,
    values: Node,
    indices: Sequence[Node],
    axes: Shape,
    monoid: str | None,
    inside: Node | None = None,
) -> Node:
    """Write values by index, or reduce them in; where `inside` is false the base stays."""
    if inside is None or monoid is None:
        return base.scatter(values, indices, axes, monoid, inside)
    ones = (1,) * (len(values.shape) - len(inside.shape))
    wide = broadcast_to(inside.reshape((*inside.shape, *ones)), values.shape)
    nothing = identity(monoid, values.dtype)
    if monoid == "sum" and values.dtype.is_differentiable:
        nothing = -0.0  # 0 would change it
    return base.scatter(wide.where(values, nothing), indices, axes, monoid)


def value_node(node: Node, value: Operand) -> Node:
    """Turn the assigned value into a node of the target's dtype, on its device."""
    if not isinstance(value, Node):
        number = given(read_scalar("setitem", value))
        return constant("setitem", number, (), node.dtype, node.device)
    return build.copy(value, node.device).cast(node.dtype)


def fit_value(value: Node, shape: Shape) -> Node:
    """Broadcast the assigned value to the selected shape."""
    sizes = value.shape
    while len(sizes) > len(shape) and sizes[0] == 1:
        sizes = sizes[1:]
    value = value.reshape(sizes)
    fits = len(sizes) <= len(shape)
    if not fits or any(a not in (1, b) for a, b in zip(sizes[::-1], shape[::-1])):
        text = f"value of shape {value.shape} does not fit the selected {shape}"
        raise ShapeError("setitem", text, "assign a value that broadcasts to it")
    return broadcast_to(value, shape)


def is_whole(node: Node, selection: Selection) -> bool:
    """Tell whether the ranges select every element in order.

    Sizes are asked first: where a part begins, which may be traced, then decides nothing.
    """
    pairs = zip(node.shape, selection.ranges)
    if selection.flips or any(range_size(*each) != size for size, each in pairs):
        return False
    return all(start == 0 and step == 1 for start, _, step in selection.ranges)


def put_view(node: Node, selection: Selection, value: Node) -> Node:
    """Write through a view: over the elements that ranges choose."""
    value = fit_value(value, tuple(selection.shape))
    steps: list[parts.Step] = []
    if not is_whole(node, selection):
        steps.append(("slice", tuple(selection.ranges)))
    if selection.flips:
        steps.append(("flip", tuple(selection.flips)))
    steps.append(("reshape", tuple(selection.shape)))
    return parts.put(node, value, tuple(steps))


def put_mask(node: Node, mask: Node, value: Node) -> Node:
    """Write a value that broadcasts over the trailing axes where a mask holds."""
    trailing = len(node.shape) - len(mask.shape)
    wide = mask.reshape((*mask.shape, *(1,) * trailing))
    values = fit_value(value, node.shape)
    return broadcast_to(wide, node.shape).where(values, node)


def check_mask(node_shape: Shape, mask: Node, axis: int) -> None:
    """Raise AxisError when a bool mask does not match the axes it selects from."""
    covered = node_shape[axis : axis + len(mask.shape)]
    if mask.dtype is bool_ and covered != mask.shape:
        text = f"mask of shape {mask.shape} does not match axes of shape {covered}"
        raise AxisError("getitem", text, "use a mask of the same sizes")


def is_spread(index: Node) -> bool:
    """Tell whether an index repeats a smaller one, which is all there is to look at."""
    return index.row.is_repeating and index.realized is None and index.size > 0


def along_axis(op: str, node: Node, axis: Any, index: Node) -> list[Node]:
    """Prepare an index along one axis: the others are indexed by their position.

    Not the last ones, if the index is the same along all of each: whole rows are meant.
    """
    need_integer(op, index)
    check_device(op, (node, index))
    if not node.shape or len(index.shape) != len(node.shape):
        if node.shape != index.shape:
            text = f"index {index.shape} and tensor {node.shape} differ in number of axes"
            raise ShapeError(op, text, "give them the same number of axes")
    position = as_axis(axis, len(node.shape), op)
    for at, (size, limit) in enumerate(zip(index.shape, node.shape)):
        if at != position and size > limit and index.size:
            text = f"index {index.shape} is larger than {node.shape} on axis {at}"
            raise ShapeError(op, text, f"only axis {position} may be larger")
    count = index.rank
    if is_spread(index):
        few, many, whole = index.inputs[0].shape, index.shape, node.shape
        while count - 1 > position and few[count - 1] == 1 and many[count - 1] == whole[count - 1]:
            count -= 1
    index = rows_of(index, count)
    indices = [index.iota(at, index.dtype) for at in range(count)]
    indices[position] = index
    return indices


def rows_of(index: Node, count: int) -> Node:
    """Take what an index is for each row, the elements of all but its first axes."""
    lead = index.shape[:count]
    ends = (*lead, *(1,) * (index.rank - count))
    return index.slice(tuple((0, size, 1) for size in ends)).reshape(lead)


def gather(op: str, node: Node, axis: Any, index: Node) -> Node:
    """Read out[i][j] = x[i][index[i][j]] (axis 1); the index may be smaller on other axes."""
    if len(node.shape) + len(index.shape) <= 1:  # PyTorch takes a number for a row of one
        row = gather(op, node.reshape((node.size,)), axis, index.reshape((index.size,)))
        return row.reshape(index.shape)
    if not index.size:  # PyTorch looks no further either
        need_integer(op, index)
        return nothing_of(node, index.shape)
    indices = along_axis(op, node, axis, index)
    return node.gather(indices, tuple(range(len(indices))))


def index_select(node: Node, axis: Any, index: Node) -> Node:
    """Take whole slices along an axis, in the order of a 1-d index."""
    need_integer("index_select", index)
    check_device("index_select", (node, index))
    position = as_axis(axis, len(node.shape), "index_select")
    if len(index.shape) > 1:
        raise AxisError("index_select", f"index {index.shape} is not 1-d", "flatten it")
    flat = index.reshape((index.size,))
    return movement.move_axis(node.gather([flat], (position,)), 0, position)


def scatter(
    op: str,
    node: Node,
    axis: Any,
    index: Node,
    source: Node,
    monoid: str | None,
    inside: Node | None = None,
) -> Node:
    """Write out[i][index[i][j]] monoid= source[i][j] (axis 1); None overwrites."""
    if node.dtype.is_complex and monoid not in (None, "sum"):
        text = f"{monoid} of {node.dtype.name} numbers at one place is not defined"
        raise DTypeError(op, text, "take .real, .imag or .abs()")
    axes = [len(each.shape) for each in (node, index, source)]
    if min(axes[:2]) == 0 and max(axes) <= 1:  # a number is a row of one
        row, index = node.reshape((node.size,)), index.reshape((index.size,))
        inside = None if inside is None else inside.reshape((index.size,))
        flat = source.reshape((source.size,))
        return scatter(op, row, axis, index, flat, monoid, inside).reshape(node.shape)
    if not index.size:
        need_integer(op, index)
        return node
    indices = along_axis(op, node, axis, index)
    if len(source.shape) != len(index.shape):
        text = f"index {index.shape} and source {source.shape} differ in number of axes"
        raise ShapeError(op, text, "give them the same shape")
    if any(a > b for a, b in zip(index.shape, source.shape)):
        text = f"index {index.shape} is larger than source {source.shape}"
        raise ShapeError(op, text, "give one source element per index")
    if source.dtype is not node.dtype:
        text = f"source is {source.dtype.name} but the tensor is {node.dtype.name}"
        raise DTypeError(op, text, "cast the source")
    used = source.slice(tuple((0, size, 1) for size in index.shape))
    inside = inside and rows_of(inside, len(indices))
    return store(node, used, indices, tuple(range(len(indices))), monoid, inside)


@recorded(in_place=True)
def masked_fill(x: Node, mask: Node, value: Operand) -> Node:
    """Replace elements where the mask holds; the mask broadcasts, the dtype stays.

    >>> x = Tensor([1.0, 2.0, 3.0])
    >>> x.masked_fill(x > 1.5, 0).tolist()
    [1.0, 0.0, 0.0]
    """
    need_mask("masked_fill", mask)
    if isinstance(value, Node) and value.shape:
        problem = f"value has shape {value.shape}"
        raise ShapeError("masked_fill", problem, "pass a number, or use picograd.where")
    return elementwise.where(mask, value_node(x, value), x)
