"""Patterns: nodes that were made together, as the steps of one recording, are told as one.

What `layer_norm` makes of tensors of some shape and dtype is the same each time but for what it
reads. So the node of its result says which steps it was made by, and over which nodes
(`Node.stamped`). Who walks a graph for a key (graph/gradient_formula.py) notes

    the pattern, the numbers of the nodes that it reads

in the place of a row for each node, as long as these are as they were made (`made_with`). A pattern
is told by its identity: nodes that look alike and were made otherwise are told apart.
"""

from collections.abc import Callable, Sequence, Set
from operator import attrgetter, itemgetter
from typing import Any

from picograd.dtype import DType
from picograd.graph.node import Node
from picograd.graph.row import NUMBERS, WRITES
from picograd.graph.shape import Shape
from picograd.late_methods import dataclass

FEWEST = 8
REALIZED, LEAF = attrgetter("realized"), attrgetter("leaf")


@dataclass(frozen=True, eq=False, slots=True)
class Pattern:
    """Steps over some nodes, the last of which is the result."""

    count: int  # of the nodes that they are over
    reads: tuple[int, ...]  # which of these are read
    ends: tuple[int, ...]  # steps that read nothing: constants
    numbers: tuple[int, ...]  # those of them that a user gave


Several = Callable[[list[Node]], tuple[Node, ...]]
# op; the number of the node that is read, or what takes several of a list; arg and what follows
Reader = tuple[str, int, Several | None, Any, Shape, DType, str]

Stamped = tuple[Pattern, list[Node], list[Node]]


def pattern_of(
    steps: Sequence[Any], count: int, results: Sequence[int], given: Set[int]
) -> Pattern | None:
    """Find the pattern of steps `op, places, ...` over some nodes, whose numbers come first.

    It is that of the first result: what is made of others follows. The arguments of some steps were
    `given`. None for a few steps, which are told as fast one by one, where another result is made
    on the way, for positions that were given, and where a `detach` reads one of the nodes: it may
    read other memory later.
    """
    steps = steps[: results[0] - count + 1] if results else ()
    if len(steps) < FEWEST or min(results) < results[0]:
        return None
    given = {number for number in given if number < len(steps)}
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


def reader(
    op: str, places: Sequence[int], arg: Any, shape: Shape, dtype: DType, device: str
) -> Reader:
    """Write a step so that what it reads is taken from a list of nodes by code that is not Python.

    A step is taken thousands of times.
    """
    rest = arg, shape, dtype, device
    if len(places) == 1:
        return op, places[0], None, *rest
    several: Any = itemgetter(*places) if places else nothing
    return op, 0, several, *rest


def nothing(nodes: list[Node]) -> tuple[Node, ...]:
    """Give what a constant reads."""
    return ()


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
