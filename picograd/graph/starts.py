"""Where slices and pads begin: a position that a user gave is passed to the kernel at run time.

The position stays a number in the argument of its node, of the class GivenInt, so that shapes and
gradients see it; the key of a plan and the schedule see its identity. `x[i]` in a loop then is one
plan. How many elements there are is structure.
"""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.graph.node import Node, toposort
from picograd.graph.row import MOVING
from picograd.late_methods import dataclass
from picograd.number import GivenInt
from picograd.traced_number import plain as plain_number

__all__ = ["MOVING", "fixed_graph", "moved", "placed", "starts_of"]


def starts_of(node: Node) -> list[GivenInt]:
    """List the positions in an argument that a user gave."""
    rule = node.row.starts
    return [] if rule is None else rule.found(node.arg)


@dataclass(frozen=True, slots=True)
class Change:
    """What stands for the parts of an argument that begin at positions."""

    range: Callable[[GivenInt, int, int], Any]
    pad: Callable[[GivenInt, int], Any]
    fill: Callable[[Any], Any] = lambda fill: fill


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

    return changed(node, Change(range_at, pad_at))


def placed(node: Node, name: Callable[[GivenInt], Any]) -> Any:
    """Give the argument of a slice, pad or put with names for the positions that a user gave.

    A range then tells its length in the place of its end, and a pad how much it adds in all.
    """

    def named_range(start: GivenInt, stop: int, step: int) -> Any:
        return name(start), stop - start, step

    return changed(node, Change(named_range, lambda low, high: (name(low), low + high), repr))


def changed(node: Node, change: Change) -> Any:
    """Give the argument of a slice, pad or put with what a change makes of its positions."""
    rule = node.row.starts
    return node.arg if rule is None else rule.changed(node.arg, change)
