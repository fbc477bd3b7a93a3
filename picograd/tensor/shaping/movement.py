"""Movement on nodes: views, joining and splitting. Nothing here computes a value."""

import operator
from collections.abc import Sequence
from typing import Any, cast

from picograd.dtype import bool_
from picograd.errors import AxisError, DTypeError, ShapeError
from picograd.graph import build, composites
from picograd.graph.build_composite import custom
from picograd.graph.node import Node, ends_of
from picograd.graph.room import check_pieces, check_size, described
from picograd.graph.shape import infer_reshape
from picograd.helpers import ceil_div, product
from picograd.number import given, is_given, once_varied, start_of
from picograd.tensor.core.annotations import Scalar, Shape, Sizes
from picograd.tensor.core.function import recorded
from picograd.tensor.core.operands import (
    Axes,
    as_axes,
    as_axis,
    as_sizes,
    constant,
    need_rank,
    own_axis,
    promote_all,
)
from picograd.tensor.core.repeated import recorded_once, repeated
from picograd.tensor.math import elementwise

Pads = Sequence[tuple[int, int]]


def reshape(node: Node, sizes: Sequence[Any], op: str = "reshape") -> Node:
    """Give the same elements another shape; one size may be -1."""
    return node.reshape(infer_reshape(node.shape, as_sizes(sizes, op), op))


def view(node: Node, sizes: Sequence[Any]) -> Node:
    """Give the same elements another shape: to tensors a view."""
    return reshape(node, sizes, "view")


def permute(node: Node, axes: Sequence[Any]) -> Node:
    """Reorder the axes."""
    return build.permute(node, as_sizes(axes, "permute") if axes else ())


@recorded(in_place=True, view="if")
def transpose(x: Node, dim0: int = 0, dim1: int = 1) -> Node:
    """Swap two axes.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).transpose(0, 1).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    rank = len(x.shape)
    a, b = (as_axis(dim0, rank, "transpose"), as_axis(dim1, rank, "transpose"))
    if not rank:
        return x
    order = list(range(rank))
    order[a], order[b] = order[b], order[a]
    return x.permute(tuple(order))


@recorded("swapaxes", "swapdims", in_place=True, view="if")
def swap_axes(x: Node, axis0: int, axis1: int) -> Node:
    """Swap two axes.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).swapaxes(0, 1).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    return transpose(x, axis0, axis1)


def move_axis(node: Node, source: Any, target: Any) -> Node:
    """Move one axis to another position; the others keep their order."""
    rank = len(node.shape)
    a, b = as_axis(source, rank, "movedim"), as_axis(target, rank, "movedim")
    order = [axis for axis in range(rank) if axis != a]
    if rank:
        order.insert(b, a)
    return build.permute(node, tuple(order))


@repeated
def expand(node: Node, sizes: Sequence[Any]) -> Node:
    """Repeat axes of size 1 without copying; -1 keeps a size, new axes come on the left."""
    wanted = as_sizes(sizes, "expand")
    extra = len(wanted) - len(node.shape)
    if extra < 0:
        text = f"cannot expand {node.shape} to fewer axes {wanted}"
        raise ShapeError("expand", text, "give a size for every axis")
    padded = (1,) * extra + node.shape
    if any(size < 0 for size in wanted[:extra]) or any(size < -1 for size in wanted):
        text = f"an axis of {wanted} has a negative size"
        raise ShapeError("expand", text, "give new axes a size, and others one or -1")
    shape = tuple(b if a == -1 else a for a, b in zip(wanted, padded))
    return build.expand(build.reshape(node, padded), shape)


@recorded(in_place=True, view="if")
def squeeze(x: Node, dim: Axes = None) -> Node:
    """Drop axes of size 1: all of them, or those of the given axes that have size 1.

    >>> Tensor([[[1.0, 2.0]]]).squeeze().shape
    (2,)
    """
    axes = as_axes(dim, len(x.shape), "squeeze")
    shape = [size for at, size in enumerate(x.shape) if at not in axes or size != 1]
    return build.reshape(x, tuple(shape))


@recorded(in_place=True, view="if")
def unsqueeze(x: Node, dim: int = 0) -> Node:
    """Insert an axis of size 1.

    >>> Tensor([1.0, 2.0]).unsqueeze(1).tolist()
    [[1.0], [2.0]]
    """
    position = as_axis(dim, len(x.shape) + 1, "unsqueeze")
    return x.reshape((*x.shape[:position], 1, *x.shape[position:]))


def is_one_axis(x: Any, start_dim: int = 0, end_dim: int = -1) -> bool:
    """Tell whether axes to merge are one, of a tensor."""
    rank = len(x.shape) if hasattr(x, "shape") else 0
    return any(start_dim in axis and end_dim in axis for axis in zip(range(rank), range(-rank, 0)))


@recorded(view="if", itself=is_one_axis)
def flatten(x: Node, start_dim: int = 0, end_dim: int = -1) -> Node:
    """Merge axes into one.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).flatten().tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    rank = len(x.shape)
    first, last = (as_axis(start_dim, rank, "flatten"), as_axis(end_dim, rank, "flatten"))
    if first > last:
        text = f"start axis {first} comes after end axis {last}"
        raise AxisError("flatten", text, "swap them")
    merged = product(x.shape[first : last + 1])
    return build.reshape(x, (*x.shape[:first], merged, *x.shape[last + 1 :]))


@recorded(view="if")
def unflatten(x: Node, dim: int, sizes: Sequence[int]) -> Node:
    """Split one axis into several.

    >>> Tensor([1.0, 2.0, 3.0, 4.0]).unflatten(0, (2, 2)).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    position = as_axis(dim, len(x.shape), "unflatten")
    if not x.shape:
        raise ShapeError("unflatten", "the tensor has no axes", "reshape it")
    wanted = as_sizes((sizes,), "unflatten")
    split_sizes = infer_reshape((x.shape[position],), wanted, "unflatten")
    shape = (*x.shape[:position], *split_sizes, *x.shape[position + 1 :])
    return build.reshape(x, shape)


def flip(node: Node, axes: Sequence[Any]) -> Node:
    """Reverse the order along axes."""
    listed = as_sizes(axes, "flip") if axes else ()
    return build.flip(node, as_axes(listed, len(node.shape), "flip"))


def read_pads(node: Node, padding: Any) -> list[tuple[int, int]]:
    """Read padding: PyTorch's flat list (last axis first), or (low, high) or None per axis."""
    rank = len(node.shape)
    if not isinstance(padding, (tuple, list)):
        fix = "give (low, high) of the last axis, then of the one before"
        raise DTypeError("pad", f"padding {padding!r} is no tuple", fix)
    if padding and all(each is None or isinstance(each, (tuple, list)) for each in padding):
        if len(padding) != rank:
            text = f"{len(padding)} pairs for {rank} axes"
            raise ShapeError("pad", text, "give one (low, high) pair per axis")
        return [(0, 0) if each is None else (int(each[0]), int(each[1])) for each in padding]
    flat = as_sizes((padding,), "pad")
    if len(flat) % 2 or len(flat) > 2 * rank:
        text = f"padding {flat} does not fit {rank} axes"
        raise ShapeError("pad", text, "give (low, high) of the last axis, then of the one before")
    pairs = [(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]
    return [(0, 0)] * (rank - len(pairs)) + pairs[::-1]


@repeated
def pad(node: Node, padding: Any, value: Scalar = 0) -> Node:
    """Add elements of one value around the axes; negative padding cuts off."""
    pads = read_pads(node, padding)
    return pad_constant(node, pads, value)


def pad_constant(node: Node, pads: Pads, value: Scalar) -> Node:
    """Pad by (low, high) pairs, one per axis."""
    if node.dtype.is_complex:
        both = zip(node.parts(), ends_of(value))
        real, imag = (pad_constant(part, pads, end) for part, end in both)
        return real.paired(imag)
    if any(low < 0 or high < 0 for low, high in pads):
        node = crop(node, [(max(-low, 0), max(-high, 0)) for low, high in pads])
        pads = [(max(low, 0), max(high, 0)) for low, high in pads]
    pads = [(once_varied(low, "pad", low + high), high) for low, high in pads]
    fill = constant("pad", given(value), (), node.dtype, node.device)
    if not is_given(fill.arg):
        return build.pad(node, tuple(pads), fill.arg)
    padded = build.pad(node, tuple(pads), 0)
    inside = build.pad(build.const(True, node.shape, bool_, node.device), tuple(pads), False)
    return build.elementwise("where", inside, padded, fill.broadcast_to(padded.shape))


def crop(node: Node, cuts: Pads) -> Node:
    """Cut (low, high) elements off the ends of each axis."""
    ranges = []
    for size, (low, high) in zip(node.shape, cuts):
        if low + high > size:
            text = f"cannot cut {low} + {high} elements off an axis of size {size}"
            raise ShapeError("pad", text, "use smaller negative padding")
        ranges.append((low, size - high, 1))
    return node.slice(tuple(ranges))


@recorded(function=False)
def shrink(x: Node, ranges: Sequence[Any]) -> Node:
    """Keep the elements from `start` up to `stop` of each axis: (start, stop), or None for all.

    >>> Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).shrink((None, (1, 3))).tolist()
    [[2.0, 3.0], [5.0, 6.0]]
    """
    if not isinstance(ranges, (tuple, list)) or len(ranges) != len(x.shape):
        text = f"{ranges!r} does not give one range for each of {len(x.shape)} axes"
        raise ShapeError("shrink", text, "give (start, stop) or None per axis")
    kept = []
    for size, each in zip(x.shape, ranges):
        start, stop = (0, size) if each is None else as_sizes((each,), "shrink")
        if not 0 <= start <= stop <= size:
            text = f"({start}, {stop}) is no part of an axis of size {size}"
            raise ShapeError("shrink", text, "use 0 <= start <= stop <= size")
        kept.append((start, stop, 1))
    return x.slice(tuple(kept))


@repeated
def pad_mode(node: Node, padding: Any, mode: str) -> Node:
    """Pad with the tensor's own elements: "reflect", "replicate" or "circular".

    Negative padding cuts off: first for "circular", which goes round what is left, else last.
    """
    pads = read_pads(node, padding)
    cuts = [(max(-low, 0), max(-high, 0)) for low, high in pads]
    is_cut = any(low or high for low, high in cuts)
    result = crop(node, cuts) if is_cut and mode == "circular" else node
    for axis, (low, high) in enumerate(pads):
        if low or high:
            result = pad_axis(result, axis, max(low, 0), max(high, 0), mode)
    return crop(result, cuts) if is_cut and mode != "circular" else result


def pad_axis(node: Node, axis: int, low: int, high: int, mode: str) -> Node:
    """Join the border pieces of one axis onto its ends."""
    size = node.shape[axis]
    limit = {"reflect": size - 1, "circular": size, "replicate": low + high}.get(mode)
    if limit is None:
        fix = "use constant, reflect, replicate or circular"
        raise ShapeError("pad", f"unknown mode {mode!r}", fix)
    if max(low, high) > limit or size == 0:
        text = f"padding ({low}, {high}) is too much for an axis of size {size}"
        raise ShapeError("pad", text, f"{mode} padding takes 0 to {limit}")
    pieces = [node]
    if low:
        pieces.insert(0, border(node, axis, low, mode, True))
    if high:
        pieces.append(border(node, axis, high, mode, False))
    return cat(pieces, axis)


def border(node: Node, axis: int, width: int, mode: str, is_low: bool) -> Node:
    """Cut the piece that pads one end of an axis."""
    size = node.shape[axis]
    if mode == "circular":
        start = size - width if is_low else 0
        return cut(node, axis, start, start + width)
    if mode == "reflect":
        start = 1 if is_low else size - 1 - width
        return build.flip(cut(node, axis, start, start + width), (axis,))
    start = 0 if is_low else size - 1
    edge = cut(node, axis, start, start + 1)
    return build.expand(edge, (*node.shape[:axis], width, *node.shape[axis + 1 :]))


def cut(node: Node, axis: int, start: int, stop: int, step: int = 1) -> Node:
    """Slice one axis; 0 <= start <= stop <= size."""
    ranges = [(0, size, 1) for size in node.shape]
    ranges[axis] = (start, stop, step)
    return node.slice(tuple(ranges))


@repeated
def repeat(node: Node, counts: Sequence[Any]) -> Node:
    """Tile the tensor: `counts` copies along each axis; new axes come on the left."""
    times = as_sizes(counts, "repeat")
    extra = len(times) - len(node.shape)
    if extra < 0 or any(each < 0 for each in times):
        text = f"counts {times} do not fit shape {node.shape}"
        raise ShapeError("repeat", text, "give one count of at least 0 per axis")
    shape = (1,) * extra + node.shape
    interleaved = tuple(size for each in shape for size in (1, each))
    wide = tuple(size for count, each in zip(times, shape) for size in (count, each))
    check_size("repeat", wide, node.dtype.itemsize)
    if all(1 in pair for pair in zip(times, shape)):
        return build.expand(node, tuple(map(operator.mul, times, shape)))
    result = build.expand(build.reshape(node, interleaved), wide)
    return build.reshape(result, tuple(count * size for count, size in zip(times, shape)))


def repeat_interleave(node: Node, count: int, axis: Any) -> Node:
    """Repeat each element `count` times in place; without an axis the tensor is flattened."""
    if axis is None:
        node, axis = build.reshape(node, (product(node.shape),)), 0
    if count < 0:
        raise ShapeError("repeat_interleave", f"{count} repeats are not possible", "use at least 0")
    position = own_axis(axis, len(node.shape), "repeat_interleave")
    before, size, after = (node.shape[:position], node.shape[position], node.shape[position + 1 :])
    shape = (*before, size, count, *after)
    check_size("repeat_interleave", shape, node.dtype.itemsize)
    wide = build.reshape(node, (*before, size, 1, *after))
    wide = build.expand(wide, shape)
    return build.reshape(wide, (*before, size * count, *after))


@recorded_once()
def roll(x: Node, shifts: Sizes, dims: Axes = None) -> Node:
    """Rotate elements along axes.

    >>> Tensor([1.0, 2.0, 3.0]).roll(1).tolist()
    [3.0, 1.0, 2.0]
    """
    if dims is None:
        flat = build.reshape(x, (product(x.shape),))
        return build.reshape(roll(flat, shifts, 0), x.shape)
    steps = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    listed = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(steps) != len(listed):
        text = f"{len(steps)} shifts for {len(listed)} axes"
        raise ShapeError("roll", text, "give one shift per axis")
    for step, axis in zip(steps, listed):
        position = own_axis(axis, len(x.shape), "roll")
        size = x.shape[position]
        split_at = once_varied(-step % size if size else 0, "roll", size)
        if is_given(split_at):  # all steps are one plan: a range of the axis twice
            start = start_of(split_at, split_at)
            x = cut(cat([x, x], position), position, start, start + size)
        elif split_at:
            parts = [cut(x, position, split_at, size), cut(x, position, 0, split_at)]
            x = cat(parts, position)
    return x


@repeated
def cat(nodes: Sequence[Node], axis: Any = 0) -> Node:
    """Join along an axis."""
    parts = promote_all("cat", nodes)
    # PyTorch lets an empty 1-d tensor stand for "nothing" beside tensors of any rank
    given = parts
    parts = [part for part in parts if part.shape != (0,)] or parts[:1]
    rank = len(parts[0].shape)
    if not rank:
        text = "zero-dim tensors cannot be joined"
        raise ShapeError("cat", text, "use picograd.stack")
    position = 0 if parts[0].shape == (0,) else as_axis(axis, rank, "cat")
    check_joinable(parts, position)
    joined = parts[0] if len(parts) == 1 else composites.join(parts, position)
    empty = [part for part in given if not part.size and part is not joined]
    return with_empty(joined, empty) if empty and joined.dtype.is_differentiable else joined


def with_empty(joined: Node, empty: Sequence[Node]) -> Node:
    """Let the gradient reach parts without elements, which a value is not computed from."""

    def vjp(g: Node, output: Node, joined: Node, *empty: Node) -> list[Node]:
        return [g, *(part.const_like(0) for part in empty)]

    return custom(joined, [joined, *empty], vjp)


def check_joinable(parts: Sequence[Node], axis: int) -> None:
    """Raise ShapeError unless shapes agree outside the joined axis."""
    first = parts[0].shape
    for part in parts[1:]:
        others = zip(first, part.shape)
        differs = any(a != b for at, (a, b) in enumerate(others) if at != axis)
        if len(part.shape) != len(first) or differs:
            text = f"shapes {first} and {part.shape} differ outside axis {axis}"
            raise ShapeError("cat", text, f"make all sizes but axis {axis} equal")


@repeated
def stack(nodes: Sequence[Node], axis: Any = 0) -> Node:
    """Join along a new axis; shapes must be equal."""
    parts = promote_all("stack", nodes)
    for part in parts[1:]:
        if part.shape != parts[0].shape:
            text = f"shapes {parts[0].shape} and {part.shape} differ"
            raise ShapeError("stack", text, "make all shapes equal")
    position = as_axis(axis, len(parts[0].shape) + 1, "stack")
    return cat([unsqueeze(part, position) for part in parts], position)


@recorded("split", "unsafe_split", pieces=True, also=(("split_size", "sizes"),))
def split(x: Node, sizes: Sizes, dim: int = 0) -> list[Node]:
    """Cut into pieces of one size, or of listed sizes.

    >>> [part.tolist() for part in Tensor([1.0, 2.0, 3.0]).split(2)]
    [[1.0, 2.0], [3.0]]
    """
    need_rank("split", x, 1)
    position = as_axis(dim, len(x.shape), "split")
    size = x.shape[position]
    if getattr(sizes, "ndim", 1) == 0:  # a number in a tensor
        sizes = operator.index(cast(Any, sizes))
    is_listed = not isinstance(sizes, int)
    if isinstance(sizes, int):
        if sizes < (1 if size else 0):
            raise ShapeError("split", f"piece size {sizes} is not positive", "use at least 1")
        check_pieces("split", size and size // sizes)
        sizes = [min(sizes, size - start) for start in range(0, size, sizes or 1)] or [0]
    sizes = as_sizes((sizes,), "split")
    if sum(sizes) != size or min(sizes, default=0) < 0:
        text = f"sizes {described(sizes)} do not add up to {size}"
        raise ShapeError("split", text, f"they must cover axis {position}")
    pieces, start = [], 0
    for number, each in enumerate(sizes):
        is_free = is_listed and type(start) is int and start > 0
        first = once_varied(start, "split", size, len(sizes), number) if is_free else start
        pieces.append(cut(x, position, first, start + each))
        start += each
    return pieces


def narrow(node: Node, axis: Any, start: int, length: int) -> Node:
    """Take `length` elements from `start` along an axis; a negative start counts from the end."""
    position = as_axis(axis, len(node.shape), "narrow")
    need_rank("narrow", node, 1)
    first = narrow_start(start, length, node.shape[position])
    length = operator.index(length)
    first = start_of(first, start) if length < node.shape[position] else operator.index(first)
    return cut(node, position, first, first + length)


def narrow_start(start: int, length: int, size: int) -> int:
    """Count a start that is negative from the end; AxisError where the range leaves the axis."""
    first = start + size if start < 0 else start
    if not 0 <= first <= first + length <= size or length < 0:
        text = f"{length} elements from {start} do not fit an axis of size {size}"
        raise AxisError("narrow", text, "stay inside the axis")
    return first


@recorded_once(pieces=True)
def unbind(x: Node, dim: int = 0) -> list[Node]:
    """Take an axis apart.

    >>> [row.tolist() for row in Tensor([[1.0, 2.0], [3.0, 4.0]]).unbind()]
    [[1.0, 2.0], [3.0, 4.0]]
    """
    if not x.shape:
        raise AxisError("unbind", "a zero-dim tensor has no axis", "call .reshape(1)")
    position = as_axis(dim, len(x.shape), "unbind")
    count = x.shape[position]
    check_pieces("unbind", count)
    rest = (*x.shape[:position], *x.shape[position + 1 :])
    pieces = [cut(x, position, at, at + 1) for at in range(count)]
    return [build.reshape(piece, rest) for piece in pieces]


@recorded("chunk", "unsafe_chunk", pieces=True)
def chunk(x: Node, chunks: int, dim: int = 0) -> list[Node]:
    """Cut into at most `chunks` equal pieces.

    >>> [part.tolist() for part in Tensor([1.0, 2.0, 3.0]).chunk(2)]
    [[1.0, 2.0], [3.0]]
    """
    need_rank("chunk", x, 1)
    as_sizes((chunks,), "chunk")
    if chunks <= 0:
        raise ShapeError("chunk", f"{chunks} chunks are not possible", "use at least 1")
    size = x.shape[as_axis(dim, len(x.shape), "chunk")]
    if not size:
        return [x] * chunks
    return split(x, max(ceil_div(size, chunks), 1), dim)


def triangle(node: Node, diagonal: int, is_lower: bool) -> Node:
    """Zero the elements above (`tril`) or below (`triu`) a diagonal of the last two axes."""
    op = "tril" if is_lower else "triu"
    need_rank(op, node, 2)
    rank = len(node.shape)
    rows = node.iota(rank - 2)
    columns = node.iota(rank - 1)
    edge = elementwise.arithmetic("add", rows, diagonal)
    low, high = (columns, edge) if is_lower else (edge, columns)
    is_kept = elementwise.compare("less_equal", low, high)
    if node.dtype is bool_:  # a mask of ones is one of positions, which attention can read
        return node.binary("logical_and", is_kept)
    return elementwise.where(is_kept, node, composites.zero_of(node))


@recorded(view="always")
def diagonal(x: Node, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Node:
    """Take a diagonal of two axes; it becomes the last axis.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).diagonal().tolist()
    [1.0, 4.0]
    """
    rank = len(x.shape)
    a, b = as_axis(dim1, rank, "diagonal"), as_axis(dim2, rank, "diagonal")
    others = [axis for axis in range(rank) if axis not in (a, b)]
    moved = build.permute(x, (*others, a, b))
    rows, columns = moved.shape[-2:]
    top, left = max(-offset, 0), max(offset, 0)
    size = max(min(rows - top, columns - left), 0)
    square = cut(cut(moved, rank - 2, top, top + size), rank - 1, left, left + size)
    return square_diagonal(square, size)


def square_diagonal(node: Node, size: int) -> Node:
    """Take the main diagonal: flatten n x n, append n zeros, keep column 0 of rows n + 1 long."""
    before: Shape = node.shape[:-2]
    flat = build.reshape(node, (*before, size * size))
    pads = ((0, 0),) * len(before) + ((0, size),)
    rows = build.reshape(build.pad(flat, pads, composites.zero_of(node)), (*before, size, size + 1))
    return build.reshape(cut(rows, len(before) + 1, 0, 1), (*before, size))


@recorded(function=False, view="always")
def unfold(x: Node, dimension: int, size: int, step: int) -> Node:
    """Slide windows along an axis.

    >>> Tensor([1.0, 2.0, 3.0]).unfold(0, 2, 1).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    position = as_axis(dimension, len(x.shape), "unfold")
    if not x.shape:  # PyTorch takes a number for a row of one
        one = unfold(x.reshape((1,)), dimension, size, step)
        return cut(one, 0, 0, 1).reshape((size,))
    length = x.shape[position]
    if not 0 <= size <= length or step <= 0:
        text = f"window {size} with step {step} does not fit an axis of {length}"
        raise ShapeError("unfold", text, "use 0 <= size <= length and step >= 1")
    if not size:
        windows = (*x.shape[:position], length // step + 1, *x.shape[position + 1 :], 0)
        return cut(x, position, 0, 0).reshape(windows)
    return x.window(((position, size, step, 1),))


@recorded_once(in_place=True)
def tril(x: Node, diagonal: int = 0) -> Node:
    """Zero the elements above a diagonal.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).tril().tolist()
    [[1.0, 0.0], [3.0, 4.0]]
    """
    return triangle(x, diagonal, True)


@recorded_once(in_place=True)
def triu(x: Node, diagonal: int = 0) -> Node:
    """Zero the elements below a diagonal.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).triu().tolist()
    [[1.0, 2.0], [0.0, 4.0]]
    """
    return triangle(x, diagonal, False)
