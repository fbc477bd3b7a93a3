"""Bounds: how large each dynamic axis may grow before another plan is made for it.

A bound is a power of two, so that a size that grows to n meets log(n) of them. Where one size
follows from another, so does its bound:
64 rows of 3 elements are 192.
"""

from collections.abc import Mapping, Sequence

from picograd.graph.axes import Axes, memory_of
from picograd.graph.node import Node, is_cut
from picograd.graph.recurrence import stacked_inputs
from picograd.graph.row import Role
from picograd.graph.shape import conv_sizes, window_count
from picograd.helpers import product

LEAST = 8  # as a bound: smaller sizes share one plan
LEAST_STEPS = 64  # of a loop, which does not run beyond its steps
FAR = 4  # times: sizes further apart than this do not share a bound that a user gave
NEAR = 2  # nor those further apart than this one that was found

Bounds = dict[int, int]  # by class


def next_power(size: int) -> int:
    """Round up to a power of two."""
    return max(1 << (size - 1).bit_length(), LEAST)


def choose_bounds(
    axes: Axes, largest: Sequence[int], limits: Mapping[tuple[int, int], int]
) -> Bounds:
    """Choose the bounds of all plain dynamic classes; `largest` has the largest sizes seen.

    `limits` are those that a user gave, by memory and axis. A size far below its limit does not
    have it for a bound: the plan would not serve it.
    """
    bounds: Bounds = {}
    far = FAR if limits else NEAR
    wanted, steps = wanted_sizes(axes, largest, far), loop_classes(axes)

    def bound_of(found: int) -> int:
        return max(next_power(wanted[found]), LEAST_STEPS if found in steps else LEAST)

    for node in axes.order:  # rows of a history that was computed before
        is_history = is_cut(node) and axes.find(node, 0) in steps
        if is_history and axes.is_dynamic(node.inputs[0], 0):
            source = node.inputs[0]
            more = source.shape[0] - node.shape[0]
            bounds.setdefault(axes.find(source, 0), bound_of(axes.find(node, 0)) + more)
    for node in axes.order:
        if memory_of(node) is not None:
            for axis in axes.dynamic_axes(node):
                found = axes.find(node, axis)
                limit = limits.get((id(memory_of(node)), axis), 0)
                is_usable = limit and is_near({found: limit}, axes.sizes, FAR)
                bound = limit if is_usable else bound_of(found)
                bounds.setdefault(found, min(bound, limit or bound))
    for node in axes.order:
        rule = node.row.sizes
        if rule is not None and rule.natural is not None and memory_of(node) is None:
            for found, bound in rule.natural(axes, node, bounds):
                if bound >= wanted[found]:
                    bounds.setdefault(found, bound)
    for found in axes.dynamic:
        bounds.setdefault(found, bound_of(found))
    return {found: bound for found, bound in bounds.items() if found not in axes.parts}


def loop_classes(axes: Axes) -> set[int]:
    """List the classes of the axes along which loops step, and of rows cut from a history."""
    found = set()
    for node in axes.order:
        if node.row.role is Role.LOOP:
            found.update([axes.find(source, 0) for source in stacked_inputs(node)])
        elif is_cut(node) and node.inputs[0].row.role is Role.RESULT:
            found.add(axes.find(node, 0))
    return found


def wanted_sizes(axes: Axes, largest: Sequence[int], far: int) -> Bounds:
    """Find the size that a bound has to hold: the largest one seen, if that is not too far."""
    wanted: Bounds = {}
    for axis, (now, most) in enumerate(zip(axes.sizes, largest)):
        found = axes.root(axis)
        if found in axes.dynamic:
            wanted[found] = max(now, most) if most <= far * now else now
    return wanted


def fits(axes: Axes, bounds: Bounds) -> bool:
    """Tell whether bounds hold the present sizes, and not by far too much."""
    if bounds.keys() != axes.dynamic - axes.parts.keys():
        return False
    return holds(bounds, axes.sizes)


def holds(bounds: Bounds, sizes: Sequence[int]) -> bool:
    """Tell whether the sizes of classes are within their bounds, and not by far too small."""
    return is_near(bounds, sizes, FAR) and all(sizes[at] <= bounds[at] for at in bounds)


def is_near(bounds: Bounds, sizes: Sequence[int], far: int) -> bool:
    """Tell whether bounds are at most so many times the sizes, or twice that for other powers.

    The least bounds, of a loop and its history, are far from nothing.
    """
    least = LEAST_STEPS + LEAST
    return all(bound <= least or bound <= 2 * far * sizes[at] for at, bound in bounds.items())


# bounds that follow from others


def pad_bound(axes: Axes, node: Node, bounds: Bounds) -> list[tuple[int, int]]:
    """Add the pads."""
    found = []
    source = node.inputs[0]
    for axis, (low, high) in enumerate(node.arg[0]):
        bound = bounds.get(axes.find(source, axis))
        if bound is not None and axes.is_dynamic(node, axis):
            found.append((axes.find(node, axis), bound + low + high))
    return found


def reshape_bound(axes: Axes, node: Node, bounds: Bounds) -> list[tuple[int, int]]:
    """Multiply or divide by what is merged or split off."""
    found = []
    source = node.inputs[0]
    for ins, outs in axes.groups(node):
        bound = bounds.get(axes.find(source, ins[0])) if ins else None
        if bound is None or not axes.is_dynamic(node, outs[0]):
            continue
        rest = product(source.shape[axis] for axis in ins[1:])
        more = product(node.shape[axis] for axis in outs[1:])
        if not bound * rest % more:
            found.append((axes.find(node, outs[0]), bound * rest // more))
    return found


def window_bound(axes: Axes, node: Node, bounds: Bounds) -> list[tuple[int, int]]:
    """Count the windows."""
    found = []
    for axis, kernel, stride, gap in node.arg:
        bound = bounds.get(axes.find(node.inputs[0], axis))
        if bound is not None and axes.is_dynamic(node, axis):
            found.append((axes.find(node, axis), window_count(bound, kernel, stride, gap)))
    return found


def conv_bound(axes: Axes, node: Node, bounds: Bounds) -> list[tuple[int, int]]:
    """Apply the rule of sizes of a convolution."""
    x, weight = node.inputs
    spatial = range(3, len(x.shape))
    wide = [bounds.get(axes.find(x, axis), x.shape[axis]) for axis in spatial]
    sizes = conv_sizes(tuple(wide), weight.shape[3:], node.arg)
    found = []
    for axis, size in enumerate(sizes, 3):
        if axes.is_dynamic(node, axis) and not axes.is_dynamic(weight, axis):
            found.append((axes.find(node, axis), size))
    return found
