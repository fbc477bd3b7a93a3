"""kept_scores: what others read of scores is asked for in memory, if it can be stored by a stream.

    bias.grad = sum(gradients of scores, batch)    ->    sum(contiguous(gradients of scores), batch)

A bias that has a value for every place, as a table of relative positions, has a gradient that no
sum over a side gives. The kernel that streams over these scores anyway, that of the gradients of
queries, stores them: one matrix leaves, and none is read, where scores in memory are read and
written by every step of a softmax and its gradient.

    cast(sum(kept, batch), bfloat16)    ->    cast(sum(kept as bfloat16, batch), bfloat16)

What only sums read whose results become bfloat16 is stored as bfloat16, as the products beside it
read it: all who sum it wait for memory. The sum itself has the digits that it had.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, repeat

from picograd.dtype import bfloat16
from picograd.graph.node import Node, toposort
from picograd.graph.row import SHOWING
from picograd.schedule.group import Facts
from picograd.schedule.order import Order
from picograd.schedule.score_boxes import fit_streams, has_scores, streamed
from picograd.schedule.score_sinks import Stream
from picograd.schedule.values import is_leaf
from picograd.schedule.weighted_sums import is_sum, replaced
from picograd.shared_parts import once_a_node
from picograd.target import Target


def fit_scores(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Ask for what others read of scores, then fit their streams; `order` lists inputs first."""
    if not has_scores(order, target):
        if isinstance(order, Order):
            order.regions = []
        return list(roots)
    return fit_streams(*keep_scores(roots, order, target), target)


def keep_scores(
    roots: Sequence[Node], order: Sequence[Node], target: Target
) -> tuple[Sequence[Node], Sequence[Node], Mapping[int, Facts], list[Stream]]:
    """Ask for what others read of scores in memory; gives the new roots and their order, too.

    With them go the facts of all, and what would stream over scores.
    """
    facts, streams = streamed(roots, order, target)
    found = roots, order, facts, streams
    shared = {
        number: each
        for stream in streams
        for number, each in stream.region.shared.items()
        if type(each.node) is Node  # else it says where sizes end
    }
    if not shared or target.packs_operands:  # a CPU stores none
        return found
    inside = set(chain.from_iterable(stream.at for stream in streams))
    inside.update(sink.facts.number for stream in streams for sink in stream.sinks)
    read_by = outer_readers(roots, order, facts, inside)
    made = {
        number: in_memory(each, is_rounded_later(number, read_by))
        for number, each in shared.items()
    }
    while made:
        changed = with_kept(roots, order, facts, made, inside)
        new_order = toposort(changed, is_leaf)
        new, streams = streamed(changed, new_order, target)
        stored = {sink.facts.number for stream in streams for sink in stream.sinks}
        fit = {
            number: each
            for number, each in made.items()
            if id(each) in new and new[id(each)].number in stored
        }
        if len(fit) == len(made):
            return changed, new_order, new, streams
        made = fit
    return found


def outer_readers(
    roots: Sequence[Node],
    order: Sequence[Node],
    facts: Mapping[int, Facts],
    inside: Collection[int],
) -> dict[int, list[Facts]]:
    """Map values to those who read them and are in no stream; what is wanted as it is to none."""
    found: dict[int, list[Facts]] = {}
    for own in dict.fromkeys(facts[id(node)] for node in order):
        if own.number in inside:
            continue
        for source in own.inputs:
            found.setdefault(source.number, []).append(own)
    for root in roots:
        number = facts[id(root)].number
        found[number] = []
    return found


@once_a_node
def is_rounded(facts: Facts, read_by: Mapping[int, Sequence[Facts]]) -> bool:
    """Tell whether a value ends in bfloat16 wherever sums, and what passes it on, take it."""
    node = facts.node
    if node.dtype is bfloat16:
        return node.row.keeps_value
    others = read_by.get(facts.number, ())
    is_through = is_sum(node) or node.op in SHOWING
    return is_through and bool(others) and all(is_rounded(each, read_by) for each in others)


def is_rounded_later(number: int, read_by: Mapping[int, Sequence[Facts]]) -> bool:
    """Tell whether only sums read a value, of which each is bfloat16 in the end."""
    every = read_by.get(number, ())
    sums = [each for each in every if is_sum(each.node)]
    return (
        bool(sums) and len(sums) == len(every) and all(is_rounded(each, read_by) for each in sums)
    )


def in_memory(facts: Facts, rounds: bool) -> Node:
    """Ask for a score in memory."""
    node = facts.node.cast(bfloat16) if rounds else facts.node
    return node.stored()


def with_kept(
    roots: Sequence[Node],
    order: Sequence[Node],
    facts: Mapping[int, Facts],
    made: Mapping[int, Node],
    inside: Collection[int],
) -> list[Node]:
    """Let all that is not inside read what is kept."""
    new: dict[int, Node] = {}
    for node in order:
        own = facts[id(node)]
        if own.is_source or own.number in inside:
            continue
        sources = map(facts.__getitem__, map(id, node.inputs))
        inputs = tuple(map(read_from, repeat(made), sources, node.inputs))
        if inputs != node.inputs:
            new[id(node)] = node.with_inputs(inputs)
    asked = [read_from(made, facts[id(root)], root) for root in roots]
    return replaced(asked, order, new)


def read_from(made: Mapping[int, Node], facts: Facts, node: Node) -> Node:
    """Read what is kept of a node, if it is."""
    kept = made.get(facts.number)
    return node if kept is None else kept.cast(node.dtype)
