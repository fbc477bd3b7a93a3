"""Where slices and pads begin: a position that a user gave is passed to the kernel at run time.

The position stays a number in the argument of its node, of the class GivenInt, so that shapes and
gradients see it; the key of a plan and the schedule see its identity. `x[i]` in a loop then is one
plan. How many elements there are is structure.
"""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.graph.node import Node, toposort
from picograd.number import GivenInt
from picograd.traced_number import plain as plain_number

MOVING = ("slice", "pad", "put")  # ops whose argument holds a start an axis


def starts_of(node: Node) -> list[GivenInt]:
    """List the positions of a slice or pad that a user gave."""
    if node.op == "slice":
        return [row[0] for row in node.arg if type(row[0]) is GivenInt]
    if node.op == "pad":
        return [low for low, _ in node.arg[0] if type(low) is GivenInt]
    if node.op == "put":
        rows = [row for op, arg in node.arg if op == "slice" for row in arg]
        return [row[0] for row in rows if type(row[0]) is GivenInt]
    return []


def fixed_graph(roots: Sequence[Node]) -> list[Node]:
    """Copy a graph with positions that are code: a loop's body has no arguments at run time."""
    return repositioned(roots, lambda node: plain(node.arg))


def moved(roots: Sequence[Node], position: Callable[[GivenInt], GivenInt]) -> list[Node]:
    """Copy a graph with other positions: ranges keep their lengths, pads what they add in all."""
    return repositioned(roots, lambda node: arg_at(node, position))


def repositioned(roots: Sequence[Node], arg_of: Callable[[Node], Any]) -> list[Node]:
    """Copy a graph with other arguments of what begins at positions."""
    done: dict[int, Node] = {}
    for node in toposort(roots, lambda node: node.realized is not None):
        copy = node
        if node.inputs and node.realized is None:
            inputs = [done[id(child)] for child in node.inputs]
            copy = node.with_inputs(tuple(inputs))
            if starts_of(node):
                arg = arg_of(node)
                copy = Node(copy.op, copy.inputs, arg, copy.shape, copy.dtype, copy.device)
        done[id(node)] = copy
    return [done[id(root)] for root in roots]


def plain(arg: Any) -> Any:
    """Give an argument whose positions are plain ints."""
    if isinstance(arg, tuple):
        return tuple([plain(part) for part in arg])
    if type(arg) is not GivenInt:
        return arg
    return int(arg) if arg.source is None else int(plain_number(arg.source))


def arg_at(node: Node, position: Callable[[GivenInt], GivenInt]) -> Any:
    """Give the argument of a slice, pad or put with other positions."""
    if node.op == "slice":
        return ranges_at(node.arg, position)
    if node.op == "put":
        found: list[Any] = []
        for op, arg in node.arg:
            if op == "slice":
                arg = ranges_at(arg, position)
            found.append((op, arg))
        return tuple(found)
    pads, fill = node.arg
    around = [pad_at(low, high, position) for low, high in pads]
    return tuple(around), fill


def ranges_at(ranges: Any, position: Callable[[GivenInt], GivenInt]) -> Any:
    """Move the ranges of a slice that begin at positions."""
    found: list[Any] = []
    for row in ranges:
        start, stop, step = row
        if type(start) is GivenInt:
            at = position(start)
            row = at, stop - int(start) + int(at), step
        found.append(row)
    return tuple(found)


def pad_at(low: Any, high: Any, position: Callable[[GivenInt], GivenInt]) -> Any:
    """Move what a pad puts around its operand."""
    if type(low) is not GivenInt:
        return low, high
    at = position(low)
    total = int(low) + int(high)
    return at, total - int(at)


def placed(node: Node, name: Callable[[GivenInt], Any]) -> Any:
    """Give the argument of a slice or pad with names for the positions that a user gave.

    A range then tells its length in the place of its end, and a pad how much it adds in all.
    """
    found: list[Any] = []
    if node.op == "slice":
        return placed_ranges(node.arg, name)
    if node.op == "put":
        for op, arg in node.arg:
            if op == "slice":
                arg = placed_ranges(arg, name)
            found.append((op, arg))
        return tuple(found)
    pads, fill = node.arg
    for low, high in pads:
        is_given = type(low) is GivenInt
        pair = (name(low), low + high) if is_given else (low, high)
        found.append(pair)
    return tuple(found), repr(fill)


def placed_ranges(ranges: Any, name: Callable[[GivenInt], Any]) -> Any:
    """Give the ranges of a slice with names for the positions that a user gave."""
    found: list[Any] = []
    for start, stop, step in ranges:
        row = start, stop, step
        if type(start) is GivenInt:
            row = name(start), stop - start, step
        found.append(row)
    return tuple(found)
