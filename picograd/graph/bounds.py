"""Bounds of integers that follow from how they are computed, without computing them.

    argmax along an axis of n     0 .. n - 1
    clamp(x, 0, 4)                0 .. 4
    (x < y).sum() of n            0 .. n
    arange(8) * 2 + 1             1 .. 15

An index within the bounds of its axis needs no look at its values. A look at a graph is bounded:
beyond `DEPTH` operations, or `NODES` in all, nothing is known.
"""

import operator
from collections.abc import Callable
from typing import Any

from picograd.helpers import product
from picograd.traced_number import TracedNumber

Bounds = tuple[int, int]
Node = Any  # graph.node.Node, which imports the rows that name these rules
Rule = Callable[[Node, "Look"], Bounds | None]
Look = Callable[[Node], Bounds | None]  # bounds of an input
DEPTH, NODES = 24, 200


def bounds(node: Node, known: Look = lambda node: None) -> Bounds | None:
    """Find (least, largest) of an integer or bool node; `known` may know those of leaves."""
    left = NODES

    def look(each: Node, depth: int) -> Bounds | None:
        nonlocal left
        left -= 1
        found = known(each)
        if found is not None or depth > DEPTH or left < 0:
            return found
        if not each.dtype.is_integer and each.dtype.kind != "bool":
            return None
        rule = each.row.bounds
        found = None if rule is None else rule(each, lambda child: look(child, depth + 1))
        return found if found is not None and fits(found, each) else whole(each)

    return look(node, 0)


def fits(found: Bounds, node: Node) -> bool:
    """Tell whether a dtype holds the bounds: else the numbers may have wrapped."""
    low, high = limits(node)
    return low <= found[0] and found[1] <= high


def limits(node: Node) -> Bounds:
    """Give the least and the largest number of a dtype."""
    bits, kind = node.dtype.bits, node.dtype.kind
    if kind == "bool":
        return 0, 1
    if kind == "uint":
        return 0, (1 << bits) - 1
    half = 1 << (bits - 1)
    return -half, half - 1


def whole(node: Node) -> Bounds | None:
    """Give the bounds of a narrow dtype."""
    return limits(node) if node.dtype.bits <= 32 else None


def constant_bounds(node: Node, look: Look) -> Bounds:
    """A constant is both of its bounds; of one that is traced, what compares them is noted."""
    value: Any = node.arg if type(node.arg) is TracedNumber else int(node.arg)
    return value, value


def position_bounds(node: Node, look: Look) -> Bounds:
    """A position along an axis."""
    return 0, max(node.shape[node.arg] - 1, 0)


def place_in_order(node: Node, look: Look) -> Bounds:
    """A position in the order of an axis."""
    return 0, max(node.shape[node.arg[0]] - 1, 0)


def place_of_extreme(node: Node, look: Look) -> Bounds:
    """The position of a largest element along an axis."""
    axis = node.arg[0] if isinstance(node.arg, tuple) else node.arg
    return 0, max(node.inputs[0].shape[axis] - 1, 0)


def same_element(node: Node, look: Look) -> Bounds | None:
    """An element of the first input."""
    return look(node.inputs[0])


def cast_bounds(node: Node, look: Look) -> Bounds | None:
    """A cast keeps the bounds of whole numbers it has room for (`fits`)."""
    source = node.inputs[0].dtype
    return look(node.inputs[0]) if source.is_integer or source.kind == "bool" else None


def padded_bounds(node: Node, look: Look) -> Bounds | None:
    """An element, or what fills the borders."""
    return union(look(node.inputs[0]), (int(node.arg[1]), int(node.arg[1])))


def reduced_bounds(node: Node, look: Look) -> Bounds | None:
    """The largest or smallest element is one of them; a sum is as many times one at most."""
    monoid, axes = node.arg[:2]
    source = node.inputs[0]
    count = product(source.shape[axis] for axis in axes)
    if monoid == "sum":
        found = look(source)
        return None if found is None else (count * found[0], count * found[1])
    return look(source) if monoid in ("max", "min") and count else None


def running_bounds(node: Node, look: Look) -> Bounds | None:
    """A running extreme is an element; a running sum is one of up to all of an axis."""
    monoid, axis = node.arg
    found = look(node.inputs[0])
    if found is None or monoid not in ("sum", "max", "min"):
        return None
    low, high = found
    count = node.shape[axis] if monoid == "sum" else 1
    return min(low, count * low), max(high, count * high)


def where_bounds(node: Node, look: Look) -> Bounds | None:
    """One of two values; where(x < 0, 0, x) knows what x is there."""
    test, chosen, other = node.inputs
    found, rest = look(chosen), look(other)
    if test.op == "less":
        a, b = test.inputs
        if chosen is a:
            _, high = look(b) or limits(b)
            found = narrowed(found, a, (limits(a)[0], high - 1))
        if other is a:
            low, _ = look(b) or limits(b)
            rest = narrowed(rest, a, (low, limits(a)[1]))
        if other is b:
            _, high = look(a) or limits(a)
            rest = narrowed(rest, b, (limits(b)[0], high))
    return union(found, rest)


def narrowed(found: Bounds | None, node: Node, within: Bounds) -> Bounds:
    """Bounds of a node that lies within others too."""
    low, high = found or limits(node)
    return max(low, within[0]), min(high, within[1])


def union(a: Bounds | None, b: Bounds | None) -> Bounds | None:
    """Bounds of what lies in one of two."""
    return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))


def extreme(choose: Callable[[int, int], int]) -> Rule:
    """Make the rule of an extreme: a bound of one side may be one of the result."""

    def rule(node: Node, look: Look) -> Bounds | None:
        first, second = (look(child) or limits(child) for child in node.inputs)
        low = choose(first[0], second[0])
        high = choose(first[1], second[1])
        return low, high

    return rule


def arithmetic(function: Callable[[int, int], int]) -> Rule:
    """Make the rule of a sum, difference or product: it takes its extremes at corners."""

    def rule(node: Node, look: Look) -> Bounds | None:
        a, b = look(node.inputs[0]), look(node.inputs[1])
        return None if a is None or b is None else corners(function, a, b)

    return rule


def corners(function: Callable[[int, int], int], a: Bounds, b: Bounds) -> Bounds:
    """Bounds of a function whose extremes lie where both sides have theirs."""
    found = [function(x, y) for x in a for y in b]
    return min(found), max(found)


def mod_bounds(node: Node, look: Look) -> Bounds | None:
    """A remainder by a positive divisor is never negative and below it."""
    divisor = look(node.inputs[1])
    return (0, divisor[1] - 1) if divisor is not None and divisor[0] > 0 else None


def floordiv_bounds(node: Node, look: Look) -> Bounds | None:
    """A quotient by a positive divisor."""
    a, b = look(node.inputs[0]), look(node.inputs[1])
    if a is None or b is None or b[0] <= 0:
        return None
    return corners(operator.floordiv, a, b)


def shift_bounds(node: Node, look: Look) -> Bounds | None:
    """Bits moved down by a constant."""
    a, b = look(node.inputs[0]), look(node.inputs[1])
    if a is None or b is None or b[0] != b[1] or not 0 <= b[0] < node.dtype.bits:
        return None
    return a[0] >> b[0], a[1] >> b[0]


def common_bits_bounds(node: Node, look: Look) -> Bounds | None:
    """Bits that are in both sides too: no more than a side that is never negative."""
    sides = [look(child) for child in node.inputs]
    above = [each[1] for each in sides if each is not None and each[0] >= 0]
    return (0, min(above)) if above else None


def abs_bounds(node: Node, look: Look) -> Bounds | None:
    """An absolute value; that of the lowest number wraps."""
    found = look(node.inputs[0])
    if found is None:
        return None
    low = 0 if found[0] <= 0 <= found[1] else min(map(abs, found))
    return low, max(map(abs, found))
