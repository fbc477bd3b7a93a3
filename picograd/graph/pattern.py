"""Patterns: nodes that were made together, as the steps of one recording, are told as one.

What `layer_norm` makes of tensors of some shape and dtype is the same each time but for what it
reads. So the node of its result says which steps it was made by, and over which nodes
(`Node.stamped`). Who walks a graph for a key (graph/gradient_formula.py, engine/small.py) notes

    the pattern, the numbers of the nodes that it reads

in the place of a row for each node, as long as these are as they were made (`made_with`). A pattern
is told by its identity: nodes that look alike and were made otherwise are told apart.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from picograd.graph.node import Node
from picograd.graph.row import NUMBERS, WRITES

FEWEST = 8
REALIZED, LEAF = attrgetter("realized"), attrgetter("leaf")


@dataclass(frozen=True, eq=False, slots=True)
class Pattern:
    """Steps over some nodes, the last of which is the result."""

    count: int  # of the nodes that they are over
    reads: tuple[int, ...]  # which of these are read
    ends: tuple[int, ...]  # steps that read nothing: constants
    numbers: tuple[int, ...]  # those of them that a user gave


Stamped = tuple[Pattern, list[Node], list[Node]]


def pattern_of(steps: Sequence[Any], count: int, result: int, given: Set[int]) -> Pattern | None:
    """Find the pattern of steps `op, places, ...` over some nodes, whose numbers come first.

    The arguments of some steps were `given`. None for a few steps, which are told as fast one by
    one, for what gives back something else than the last, for positions that were given, and where
    a `detach` reads one of the nodes: it may read other memory later.
    """
    is_last = result == count + len(steps) - 1
    if len(steps) < FEWEST or not is_last:
        return None
    read: set[int] = set()
    ends: list[int] = []
    for number, (op, places, *_) in enumerate(steps):
        if is_fleeting(op, places, count):
            return None
        if number in given and op not in NUMBERS:
            return None
        read.update(places)
        if not places:
            ends.append(number)
    outer = [place for place in sorted(read) if place < count]
    return Pattern(count, tuple(outer), tuple(ends), tuple(sorted(given)))


def is_fleeting(op: str, places: Sequence[int], count: int) -> bool:
    """Tell whether a step may read other memory later, or become memory."""
    return op in WRITES or (op == "detach" and places[0] < count)


def made_with(node: Node, is_new: Callable[[Sequence[Node]], bool]) -> Stamped | None:
    """Give the pattern of a result, the nodes that it is over, and what was made on the way.

    None if some of that is not new, has its value, or is a tensor's.
    """
    pattern, members = node.stamped
    made = members[pattern.count :]
    is_other = any(map(REALIZED, made)) or any(map(LEAF, made))
    if is_other or not is_new(made):
        return None
    return pattern, members, made
