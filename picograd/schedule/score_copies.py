"""score_copies: operands of scores that lie as no box can bring them are copied, if all else fits.

    softmax(q @ k) @ v        ->    softmax(q @ contiguous(k)) @ v

A GPU streams over scores where it has boxes of all that is streamed: rows that are beside one
another, and that begin at a place that is code. Channels before places, every other element and
`x[i]`, which begins at a number of the plan, are copied to such rows: a copy reads and writes an
operand once, scores in memory are as many times that as there are places to a column.
"""

from collections.abc import Sequence

from picograd.graph.node import Node
from picograd.graph.row import Role
from picograd.schedule.group import Reasons
from picograd.schedule.score_boxes import (
    ALIGNMENT,
    Boxed,
    boxed_operands,
    has_columns,
    is_boxed,
    streams_of,
)
from picograd.schedule.scores import EXPONENTIALS
from picograd.schedule.values import facts_of
from picograd.schedule.weighted_sums import replaced
from picograd.target import Target


def copy_operands(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Copy what keeps a stream from being one; `order` lists inputs first."""
    if not target.has_blocks or not any(node.op in EXPONENTIALS for node in order):
        return list(roots)
    facts = facts_of(order, roots)
    values = list(dict.fromkeys(facts.values()))
    wanted = {facts[id(root)] for root in roots}
    streams = streams_of(values, wanted, target, Reasons(), can_be_boxed)
    copies: dict[int, Node] = {}  # by the facts of what is copied
    for stream in streams:
        cuts: set[int] = set()
        for boxed in boxed_operands(stream):
            if not is_boxed(boxed, cuts):
                copies.setdefault(boxed.operand.number, copied(boxed))
    new = {}
    for node in order if copies else ():
        numbers = [facts[id(child)].number for child in node.inputs if id(child) in facts]
        if node.row.role is Role.CONTRACT and not copies.keys().isdisjoint(numbers):
            inputs = [copies.get(facts[id(child)].number, child) for child in node.inputs]
            new[id(node)] = node.with_inputs(tuple(inputs))
    return replaced(roots, order, new) if new else list(roots)


def can_be_boxed(boxed: Boxed, cuts: set[int]) -> bool:
    """Tell whether boxes can have an operand as it is, or a copy of it."""
    if is_boxed(boxed, cuts):
        return True
    row_bytes = sum(boxed.near_sizes) * boxed.operand.node.dtype.itemsize
    return has_columns(boxed) and row_bytes % ALIGNMENT == 0


def copied(boxed: Boxed) -> Node:
    """Copy an operand to rows along its nearest dimension."""
    node = boxed.operand.node
    last = [*boxed.far, *boxed.near]
    rest = [label for label in boxed.labels if label not in last]
    axes = tuple(map(boxed.labels.index, (*rest, *last)))
    turned = node.permute(axes)
    made = Node("contiguous", (turned,), None, turned.shape, node.dtype, node.device)
    back = map(axes.index, range(node.rank))
    return made.permute(tuple(back))
