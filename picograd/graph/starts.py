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

    def range_at(start: GivenInt, stop: int, step: int) -> Any:
        at = position(start)
        return at, stop - int(start) + int(at), step

    def pad_at(low: GivenInt, high: int) -> Any:
        at = position(low)
        return at, int(low) + int(high) - int(at)

    return rewritten(node, range_at, pad_at)


def placed(node: Node, name: Callable[[GivenInt], Any]) -> Any:
    """Give the argument of a slice, pad or put with names for the positions that a user gave.

    A range then tells its length in the place of its end, and a pad how much it adds in all.
    """

    def named_range(start: GivenInt, stop: int, step: int) -> Any:
        return name(start), stop - start, step

    found = rewritten(node, named_range, lambda low, high: (name(low), low + high))
    return (found[0], repr(found[1])) if node.op == "pad" else found


def rewritten(
    node: Node,
    range_of: Callable[[GivenInt, int, int], Any],
    pad_of: Callable[[GivenInt, int], Any],
) -> Any:
    """Give the argument of a slice, pad or put, where what begins at a position is given anew."""

    def ranges_of(ranges: Any) -> Any:
        return tuple([range_of(*row) if type(row[0]) is GivenInt else row for row in ranges])

    if node.op == "slice":
        return ranges_of(node.arg)
    if node.op == "put":
        return tuple([(op, ranges_of(arg) if op == "slice" else arg) for op, arg in node.arg])
    pads, fill = node.arg
    return tuple([pad_of(*pad) if type(pad[0]) is GivenInt else pad for pad in pads]), fill
