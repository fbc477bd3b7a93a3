"""Where slices and pads begin: a position that a user gave is passed to the kernel at run time.

The position stays a number in the argument of its node, of the class GivenInt, so that shapes and
gradients see it; the key of a plan and the schedule see its identity. `x[i]` in a loop then is one
plan. How many elements there are is structure.
"""

from collections.abc import Callable
from typing import Any

from picograd.graph.node import Node
from picograd.number import GivenInt

MOVING = ("slice", "pad")  # ops whose argument holds a start an axis


def starts_of(node: Node) -> list[GivenInt]:
    """List the positions of a slice or pad that a user gave."""
    if node.op == "slice":
        return [row[0] for row in node.arg if type(row[0]) is GivenInt]
    if node.op == "pad":
        return [low for low, _ in node.arg[0] if type(low) is GivenInt]
    return []


def placed(node: Node, name: Callable[[GivenInt], Any]) -> Any:
    """Give the argument of a slice or pad with names for the positions that a user gave.

    A range then tells its length in the place of its end, and a pad how much it adds in all.
    """
    found: list[Any] = []
    if node.op == "slice":
        for start, stop, step in node.arg:
            is_given = type(start) is GivenInt
            row = start, stop, step
            if is_given:
                row = name(start), stop - start, step
            found.append(row)
        return tuple(found)
    pads, fill = node.arg
    for low, high in pads:
        is_given = type(low) is GivenInt
        pair = (name(low), low + high) if is_given else (low, high)
        found.append(pair)
    return tuple(found), repr(fill)
