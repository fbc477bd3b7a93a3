"""The rows of views: elements move, none is computed; and of `fold`, which adds windows up.

What a row needs beside its meaning: which dimensions stay (fusion), how it lies in memory and how
a write through it is taken back (in-place operations), what it does where sizes vary, and where
positions stand in its argument.
"""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from picograd.dtype import int64
from picograd.graph import batch_rules
from picograd.graph.axes import (
    compare_pad,
    compare_slice,
    derived_fold,
    derived_pad,
    derived_reshape,
    derived_slice,
    derived_window,
    link_expand,
    link_fold,
    link_pad,
    link_permute,
    link_reshape,
    link_same,
    link_slice,
    link_window,
    note_argument,
    note_slice,
)
from picograd.graph.bounded_rules import (
    bound_expand,
    bound_flip,
    bound_fold,
    bound_pad,
    bound_permute,
    bound_reshape,
    bound_slice,
    bound_window,
    pad_bound,
    reshape_bound,
    window_bound,
)
from picograd.graph.bounds import padded_bounds, same_element
from picograd.graph.node import Gradients, Node
from picograd.graph.row import ANY, Op, Role, Sizes, Starts, View, table
from picograd.graph.shape import (
    Shape,
    Strides,
    first_shape,
    fold_shape,
    given_shape,
    pad_shape,
    permute_shape,
    reshape_dimensions,
    reshaped_strides,
    slice_shape,
    window_shape,
)
from picograd.helpers import product
from picograd.number import GivenInt

Array = Any
Labels = tuple[int, ...]


def windows_of(node: Node, x: Array) -> Array:
    """Gather sliding windows with the kernel axes at the end."""
    for axis, kernel, stride, dilation in node.arg:
        rows = sliding_window_view(x, (kernel - 1) * dilation + 1, axis=axis)
        keep = (slice(None),) * axis + (slice(None, None, stride),)
        x = rows[keep][..., ::dilation]
    return x


def fold(node: Node, x: Array) -> Array:
    """Add every kernel position of the windows to where it was read."""
    windows, _ = node.arg
    out = np.zeros(node.shape, x.dtype)
    lead = x.ndim - len(windows)
    for position in np.ndindex(*x.shape[lead:]):
        where = [slice(None)] * lead
        for (axis, _, stride, gap), offset in zip(windows, position):
            start = offset * gap
            where[axis] = slice(start, start + (x.shape[axis] - 1) * stride + 1, stride)
        out[tuple(where)] += x[(slice(None),) * lead + position]
    return out


def pad(node: Node, x: Array) -> Array:
    """Put a border of the fill value around."""
    pads, fill = node.arg
    return np.pad(x, pads, constant_values=fill)


# gradients


def permute_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Permute back."""
    return (gradient.permute(tuple(int(axis) for axis in np.argsort(output.arg))),)


def expand_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Sum what was repeated."""
    sizes = zip(x.shape, output.shape)
    axes = tuple(axis for axis, (size, wide) in enumerate(sizes) if size != wide)
    return (gradient.reduce("sum", axes, keepdim=True),)


def slice_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Put the gradient back between zeros; steps spread it by folding windows of one."""
    windows, sizes, pads = [], [], []
    for axis, ((start, _, step), count) in enumerate(zip(output.arg, output.shape)):
        stride = step if count > 1 else 1
        spread = (count - 1) * stride + 1 if count else 0
        if stride > 1:
            windows.append((axis, 1, stride, 1))
            sizes.append(spread)
        pads.append((start, x.shape[axis] - start - spread))
    if windows:
        column = gradient.reshape((*gradient.shape, *(1 for _ in windows)))
        gradient = column.fold(tuple(windows), tuple(sizes))
    return (gradient.pad(tuple(pads)),)


def pad_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Cut the border off."""
    pads, _ = output.arg
    return (gradient.slice(tuple((lo, lo + size, 1) for (lo, _), size in zip(pads, x.shape))),)


def window_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Sum the windows back."""
    return (gradient.fold(output.arg, tuple(x.shape[window[0]] for window in output.arg)),)


# checks


def check_expand(node: Node) -> str:
    """Only axes of size 1 are repeated."""
    x = node.inputs[0].shape
    fits = len(x) == node.rank and all(a in (1, b) for a, b in zip(x, node.shape))
    return "" if fits else f"cannot expand {x}"


def check_reshape(node: Node) -> str:
    """The number of elements stays."""
    return "" if product(node.inputs[0].shape) == node.size else "the element count changes"


def check_permute(node: Node) -> str:
    """Every axis appears once."""
    return "" if sorted(node.arg) == list(range(node.inputs[0].rank)) else "not a permutation"


def check_slice(node: Node) -> str:
    """Ranges lie inside, with steps of at least 1."""
    x = node.inputs[0].shape
    fits = len(node.arg) == len(x) and all(
        0 <= start <= stop <= size and step >= 1 for (start, stop, step), size in zip(node.arg, x)
    )
    return "" if fits else f"ranges do not fit {x}"


# dimensions that stay


def whole_dimensions(node: Node) -> Labels:
    """Every dimension that keeps its size."""
    pairs = enumerate(zip(node.inputs[0].shape, node.shape, strict=True))
    return tuple(d if n == m else -1 for d, (n, m) in pairs)


def flip_dimensions(node: Node) -> Labels:
    """Every dimension that is not reversed."""
    return tuple(-1 if d in node.arg else d for d in range(len(node.shape)))


def window_dimensions(node: Node) -> Labels:
    """Every dimension without windows."""
    listed = {row[0] for row in node.arg}
    kept = tuple(-1 if d in listed else d for d in range(len(node.inputs[0].shape)))
    return kept + (-1,) * len(node.arg)


# how views lie in memory


def expand_strides(step: Node, strides: Strides) -> Strides:
    """Find the strides of repeated axes: 0."""
    sizes = zip(strides, step.inputs[0].shape, step.shape)
    return tuple(0 if size != wide else each for each, size, wide in sizes)


def window_strides(step: Node, strides: Strides) -> Strides:
    """Find the strides of windows: one axis counts them, a last one is within them."""
    moved = list(strides)
    for axis, _, stride, _ in step.arg:
        moved[axis] *= stride
    return (*moved, *(strides[axis] * gap for axis, _, _, gap in step.arg))


def no_strides(step: Node, strides: Strides) -> None:
    """Give no strides: where the step is no part of a view that always is one, it is a copy."""


def permute_strides(step: Node, strides: Strides) -> Strides:
    """Reorder the strides with the axes."""
    return tuple(strides[axis] for axis in step.arg)


def reshape_strides(step: Node, strides: Strides) -> Strides | None:
    """Cut the strides up for another shape, where that is no copy."""
    return reshaped_strides(step.inputs[0].shape, strides, step.shape)


def slice_strides(step: Node, strides: Strides) -> Strides:
    """Multiply the strides by the steps of ranges."""
    return tuple(each * part[2] for each, part in zip(strides, step.arg))


def slice_offset(step: Node, strides: Strides) -> int:
    """Count the elements before the first of a slice."""
    return sum(start * each for (start, _, _), each in zip(step.arg, strides))


# writes through views


def order_back(axes: Shape) -> Shape:
    """Give the order that takes an order of axes back."""
    return tuple(sorted(range(len(axes)), key=lambda axis: axes[axis]))


def slice_back(source: Node, ranges: Any, value: Node) -> Node:
    """Spread the value to its places, and choose it there.

    x[1:6:2] = [a b c] -> where([0 1 0 1 0 1 0], [0 a 0 b 0 c 0], x)
    """
    inside: Node | None = None
    for axis, (start, stop, step) in enumerate(ranges):
        value = spread(value, axis, start, step, source.shape[axis])
        mask = inside_range(source, axis, start, stop, step)
        if mask is not None:
            inside = mask if inside is None else inside.binary("logical_and", mask)
    return value if inside is None else inside.where(value, source)


def spread(value: Node, axis: int, start: int, step: int, size: int) -> Node:
    """Put the elements of an axis `step` apart from `start` on an axis of `size`, zeros between."""
    count = value.shape[axis]
    none = ((0, 0),) * len(value.shape)
    fill = 0.0 if value.dtype.is_float else {"bool": False}.get(value.dtype.kind, 0)
    if step > 1 and count > 1:
        before, after = value.shape[:axis], value.shape[axis + 1 :]
        pads = (*none[: axis + 1], (0, step - 1), *none[axis + 1 :])
        wide = value.reshape((*before, count, 1, *after)).pad(pads, 0)
        value = wide.reshape((*before, count * step, *after))
        kept = [(0, n, 1) for n in value.shape]
        kept[axis] = (0, (count - 1) * step + 1, 1)
        value = value.slice(tuple(kept))
    high = size - start - value.shape[axis]
    return value.pad((*none[:axis], (start, high), *none[axis + 1 :]), fill)


def inside_range(node: Node, axis: int, start: int, stop: int, step: int) -> Node | None:
    """Mark the positions of a range along an axis; None when it is the whole axis.

    A start that a user gave is read when the plan runs, so that all starts have one graph.
    """
    size = node.shape[axis]
    if (start, stop, step) == (0, size, 1):
        return None
    position, tests = node.iota(axis), []
    first, last = start, stop
    is_read = type(start) is GivenInt  # any other number that is traced is a size
    if is_read:
        number = Node("scalar", (), start, (), int64, node.device)
        position = position - number.broadcast_to(node.shape)
        first, last = 0, stop - start
    if is_read or start > 0:
        tests.append(position.const_like(first - 1).binary("less", position))
    if is_read or stop < size:
        tests.append(position.binary("less", last))
    if step > 1:
        turned = position + (step - first % step)
        turned = turned.binary("mod", step)
        tests.append(turned.binary("equal", 0))
    if not tests:
        return None
    mask = tests[0]
    for test in tests[1:]:
        mask = mask.binary("logical_and", test)
    return mask


# positions in arguments


def range_starts(ranges: Any) -> list[GivenInt]:
    """List where ranges begin that a user gave."""
    return [row[0] for row in ranges if type(row[0]) is GivenInt]


def pad_starts(arg: Any) -> list[GivenInt]:
    """List how far pads move their operand that a user gave."""
    return [low for low, _ in arg[0] if type(low) is GivenInt]


def changed_ranges(ranges: Any, change: Any) -> Any:
    """Give ranges of which those that begin at positions are others."""
    return tuple([change.range(*row) if type(row[0]) is GivenInt else row for row in ranges])


def changed_pads(arg: Any, change: Any) -> Any:
    """Give pads of which those that move by positions are others."""
    pads, fill = arg
    found = [change.pad(*pad) if type(pad[0]) is GivenInt else pad for pad in pads]
    return tuple(found), change.fill(fill)


# rows


def view(
    name: str,
    numpy: Any,
    vjp: Any,
    bounds: Any = same_element,
    is_showing: bool = True,
    **columns: Any,
) -> Op:
    """Make the row of a view: elements move, none is computed."""
    more = {"bounds": bounds, "is_showing": is_showing, **columns}
    return Op(name, Role.VIEW, 1, ANY, numpy, vjp, **more)


VIEW_ROWS = table(
    view(
        "reshape",
        lambda node, x: x.reshape(node.shape),
        lambda g, y, x: (g.reshape(x.shape),),
        shape=given_shape,
        check=check_reshape,
        batch_arg=batch_rules.whole_shape,
        dimensions=lambda node: reshape_dimensions(node.inputs[0].shape, node.shape),
        is_same_bytes=True,
        view=View(
            reshape_strides,
            show=Node.reshape,
            back=lambda source, shape, value: value.reshape(source.shape),
            inverse=lambda node: node.inputs[0].shape,
        ),
        sizes=Sizes(
            link_reshape,
            bound_reshape,
            derived=derived_reshape,
            natural=reshape_bound,
            is_regrouping=True,
        ),
    ),
    view(
        "permute",
        lambda node, x: x.transpose(node.arg),
        permute_vjp,
        shape=permute_shape,
        check=check_permute,
        batch_arg=batch_rules.next_order,
        dimensions=lambda node: tuple(node.arg),
        view=View(
            permute_strides,
            show=Node.permute,
            back=lambda source, axes, value: value.permute(order_back(axes)),
            inverse=lambda node: order_back(node.arg),
        ),
        sizes=Sizes(link_permute, bound_permute),
    ),
    view("expand", lambda node, x: np.broadcast_to(x, node.shape), expand_vjp, shape=given_shape,
        check=check_expand, batch_arg=batch_rules.whole_shape, dimensions=whole_dimensions,
        view=View(expand_strides), is_repeating=True, sizes=Sizes(link_expand, bound_expand)),
    view(
        "slice",
        lambda node, x: x[tuple(slice(*each) for each in node.arg)],
        slice_vjp,
        shape=lambda ranges, x: slice_shape(ranges),
        check=check_slice,
        batch_arg=batch_rules.next_ranges,
        dimensions=whole_dimensions,
        view=View(slice_strides, slice_offset, show=Node.slice, back=slice_back),
        is_shifting=True,
        sizes=Sizes(
            link_slice, bound_slice, derived=derived_slice, note=note_slice, compare=compare_slice
        ),
        starts=Starts(range_starts, changed_ranges),
    ),
    view("flip", lambda node, x: np.flip(x, node.arg), lambda g, y, x: (g.flip(y.arg),),
        shape=first_shape, batch_arg=batch_rules.next_axes, dimensions=flip_dimensions,
        view=View(no_strides, show=Node.flip, back=lambda source, axes, value: value.flip(axes)),
        is_shifting=True, sizes=Sizes(link_same, bound_flip)),
    view(
        "pad",
        pad,
        pad_vjp,
        shape=lambda arg, x: pad_shape(x, arg[0]),
        batch_arg=batch_rules.next_pads,
        dimensions=whole_dimensions,
        view=View(no_strides),
        is_shifting=True,
        sizes=Sizes(
            link_pad,
            bound_pad,
            derived=derived_pad,
            natural=pad_bound,
            note=note_argument,
            compare=compare_pad,
        ),
        starts=Starts(pad_starts, changed_pads),
        bounds=padded_bounds,
        is_showing=False,
    ),
    view("window", windows_of, window_vjp, shape=lambda windows, x: window_shape(x, windows),
        batch_arg=batch_rules.next_windows, dimensions=window_dimensions, view=View(window_strides),
        is_shifting=True,
        sizes=Sizes(link_window, bound_window, derived=derived_window, natural=window_bound)),
    Op("fold", Role.FOLD, 1, ANY, fold, lambda g, y, x: (g.window(y.arg[0]),),
        shape=lambda arg, x: fold_shape(x, *arg), batch_arg=batch_rules.first_windows_next,
        is_shifting=True, sizes=Sizes(link_fold, bound_fold, derived=derived_fold)),
)  # fmt: skip
