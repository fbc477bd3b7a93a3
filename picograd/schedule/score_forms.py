"""score_forms: what keeps scores in memory for its form alone is written in another.

    softmax(q @ k) @ v               ->    softmax(q @ contiguous(k)) @ v
    sum(gradients of scores, all)    ->    sum(sum(gradients of scores, columns), the rest)

A GPU streams over scores where it has boxes of all that is streamed: rows that are beside one
another, and that begin at a place that is code. Channels before places, every other element and
`x[i]`, which begins at a number of the plan, are copied to such rows: a copy reads and writes an
operand once, scores in memory are as many times that as there are places to a column. What sums
scores over the batch too, as gradients of a learned scale, of one bias a head, or of queries that
all of a batch share, sums one side first.
"""

from collections.abc import Mapping, Sequence
from operator import is_

from picograd.graph.conv_depthwise import stored
from picograd.graph.node import Node
from picograd.graph.row import Role, ops_of
from picograd.schedule.group import Facts, Reasons
from picograd.schedule.score_boxes import (
    ALIGNMENT,
    Boxed,
    boxed_operands,
    has_columns,
    is_boxed,
    streams_of,
)
from picograd.schedule.score_sinks import Stream
from picograd.schedule.scores import EXPONENTIALS
from picograd.schedule.values import facts_of
from picograd.schedule.weighted_sums import replaced
from picograd.target import Target

CONTRACTIONS = ops_of(Role.CONTRACT)


def fit_streams(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Write anew what keeps a stream from being one; `order` lists inputs first."""
    if not any(node.op in EXPONENTIALS for node in order):
        return list(roots)
    facts, every = streamed(roots, order, target)
    streams = [each for each in every if not each.region.shared]  # with others than streams
    copies = copies_of(streams) if target.has_blocks else {}
    wide: dict[int, list[int]] = {}
    for stream in streams:
        wide |= stream.region.wide
    if not copies and not wide:
        return list(roots)
    operands = {sink.facts.number: sink.operand for each in streams for sink in each.sinks}
    new = {}
    for node in order:
        own = facts[id(node)]
        found = node
        if node.op in CONTRACTIONS and not own.is_source:
            found = with_copies(node, own, copies)
        is_plain = type(node) is Node and node.op == own.node.op  # else it says where sizes end
        if own.number in wide and is_plain:
            later = wide[own.number]
            found = summed_later(found, operands[own.number], later)
        if found is not node:
            new[id(node)] = found
    return replaced(roots, order, new)


def streamed(
    roots: Sequence[Node], order: Sequence[Node], target: Target
) -> tuple[dict[int, Facts], list[Stream]]:
    """Find what would stream over scores if it had the form that kernels want, and all facts."""
    facts = facts_of(order, roots)
    values = list(dict.fromkeys(facts.values()))
    wanted = {facts[id(root)] for root in roots}
    return facts, streams_of(values, wanted, target, Reasons(), can_be_boxed)


def copies_of(streams: Sequence[Stream]) -> dict[int, Node]:
    """Copy what no box can bring; by the numbers of operands."""
    copies: dict[int, Node] = {}
    for stream in streams:
        cuts: set[int] = set()
        for boxed in boxed_operands(stream):
            number = boxed.operand.number
            if not is_boxed(boxed, cuts) and number not in copies:
                copies[number] = copied(boxed)
    return copies


def can_be_boxed(boxed: Boxed, cuts: set[int]) -> bool:
    """Tell whether boxes can have an operand as it is, or a copy of it."""
    if is_boxed(boxed, cuts):
        return True
    columns = sum(boxed.near_sizes)
    row_bytes = columns * boxed.operand.node.dtype.itemsize
    return has_columns(boxed) and row_bytes % ALIGNMENT == 0


def copied(boxed: Boxed) -> Node:
    """Copy an operand to rows along its nearest dimension."""
    node = boxed.operand.node
    last = [*boxed.far, *boxed.near]
    rest = [label for label in boxed.labels if label not in last]
    order = [*rest, *last]
    return stored(node, tuple(map(boxed.labels.index, order)))


def with_copies(node: Node, facts: Facts, copies: Mapping[int, Node]) -> Node:
    """Multiply the copies of operands."""
    inputs = list(node.inputs)
    for place, source in enumerate(facts.inputs):
        inputs[place] = copies.get(source.number, inputs[place])
    is_same = all(map(is_, inputs, node.inputs))
    return node if is_same else node.with_inputs(tuple(inputs))


def summed_later(node: Node, operand: int, later: Sequence[int]) -> Node:
    """Sum a side of scores, then the other dimensions of theirs, `later`."""
    if node.op in CONTRACTIONS:
        *labels, out = node.arg
        own = labels[operand]
        kept = tuple([own[d] for d in later])
        first, second = node.inputs
        made = first.contract(second, (*labels, (*kept, *out)))
        return made.reduce("sum", tuple(range(len(kept))))
    monoid, axes = node.arg
    (source,) = node.inputs
    now = tuple([d for d in axes if d not in later])
    left = [d for d in range(source.rank) if d not in now]
    made = source.reduce(monoid, now)
    rest = map(left.index, later)
    return made.reduce(monoid, tuple(rest))
