"""Parts: `put` writes a value over the elements that a view shows.

    out = put(base, value, steps)      out = base, and the view of out that `steps` make is `value`

A step is (op, argument) of a view that shows no element twice: slice, permute, reshape, flip. Where
the result is assigned to the base's own memory the scheduler stores the part alone
(schedule/updates.py); elsewhere the op expands to a choice between the value, spread to its places,
and the base.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from picograd.dtype import int64
from picograd.graph.node import Node
from picograd.graph.row import ANY, Op, table
from picograd.number import is_given

Array = Any
Gradients = tuple[Node | None, ...]
Step = tuple[str, Any]
Steps = tuple[Step, ...]
SHOW: dict[str, Callable[[Node, Any], Node]] = {
    "slice": Node.slice,
    "permute": Node.permute,
    "reshape": Node.reshape,
    "flip": Node.flip,
}


def shown(node: Node, steps: Steps) -> Node:
    """Record the view that steps make of a node."""
    for op, arg in steps:
        node = SHOW[op](node, arg)
    return node


def put(base: Node, value: Node, steps: Steps) -> Node:
    """Write a value of the view's shape; a view of all elements leaves nothing of the base."""
    if not value.size:
        return base
    if value.size == base.size:
        return taken_back(base, value, steps)
    return Node("put", (base, value), steps, base.shape, base.dtype, base.device)


def expand_put(node: Node) -> Node:
    """Choose between the value and the base."""
    base, value = node.inputs
    return taken_back(base, value, node.arg)


def taken_back(base: Node, value: Node, steps: Steps) -> Node:
    """Take the steps of a view back, the last first: the base after the value was written."""
    before = [base]
    for step in steps[:-1]:
        before.append(shown(before[-1], (step,)))
    for (op, arg), source in zip(reversed(steps), reversed(before)):
        value = BACK[op](source, arg, value)
    return value


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


def permute_back(source: Node, axes: Any, value: Node) -> Node:
    """Reorder the axes the other way."""
    return value.permute(tuple(sorted(range(len(axes)), key=lambda axis: axes[axis])))


def reshape_back(source: Node, shape: Any, value: Node) -> Node:
    """Give the elements the shape they had."""
    return value.reshape(source.shape)


def flip_back(source: Node, axes: Any, value: Node) -> Node:
    """Reverse the order once more."""
    return value.flip(axes)


BACK: dict[str, Callable[[Node, Any, Node], Node]] = {
    "slice": slice_back,
    "permute": permute_back,
    "reshape": reshape_back,
    "flip": flip_back,
}


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
    if is_given(start):
        number = Node("scalar", (), start, (), int64, node.device)
        position = position - number.broadcast_to(node.shape)
        first, last = 0, stop - start
    if start > 0 or is_given(start):
        before = position.const_like(first - 1)
        tests.append(before.binary("less", position))
    if stop < size or is_given(start):
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


def places(shape: tuple[int, ...], steps: Steps) -> Array:
    """List the positions in the flattened base that the view shows."""
    found: Array = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
    for op, arg in steps:
        if op == "slice":
            found = found[tuple(slice(*each) for each in arg)]
        elif op == "flip":
            found = np.flip(found, arg)
        else:
            found = found.reshape(arg) if op == "reshape" else found.transpose(arg)
    return found


def put_numpy(node: Node, base: Array, value: Array) -> Array:
    """Update a copy."""
    out = base.copy()
    out.reshape(-1)[places(base.shape, node.arg)] = value
    return out


def put_vjp(gradient: Node, output: Node, base: Node, value: Node) -> Gradients:
    """Split the gradient between the value and what it left of the base."""
    return put(gradient, value.const_like(0), output.arg), shown(gradient, output.arg)


PART_ROWS = table(Op("put", "index", 2, ANY, put_numpy, put_vjp, expand_put))
