"""kept_scores: what others read of scores is asked for in memory, if it can be stored by a stream.

    bias.grad = sum(gradients of scores, batch)    ->    sum(contiguous(gradients of scores), batch)

A bias that has a value for every place, as a table of relative positions, has a gradient that no
sum over a side gives. The kernel that streams over these scores anyway, that of the gradients of
queries, stores them: one matrix leaves, and none is read, where scores in memory are read and
written by every step of a softmax and its gradient.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from picograd.graph.node import Node, toposort
from picograd.schedule.group import Facts
from picograd.schedule.score_forms import streamed
from picograd.schedule.scores import EXPONENTIALS
from picograd.schedule.values import is_leaf
from picograd.schedule.weighted_sums import replaced
from picograd.target import Target


def keep_scores(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Ask for what others read of scores in memory; `order` lists inputs first."""
    if not any(node.op in EXPONENTIALS for node in order):
        return list(roots)
    facts, streams = streamed(roots, order, target)
    made: dict[int, Node] = {}
    for stream in streams:
        for number, each in stream.region.shared.items():
            if type(each.node) is Node:  # else it says where sizes end
                made.setdefault(number, copied(each))
    inside = set(chain.from_iterable(stream.at for stream in streams))
    inside.update(sink.facts.number for stream in streams for sink in stream.sinks)
    while made:
        changed = with_kept(roots, order, facts, made, inside)
        found, streams = streamed(changed, toposort(changed, is_leaf), target)
        stored = {sink.facts.number for stream in streams for sink in stream.sinks}
        fit = {
            number: each
            for number, each in made.items()
            if id(each) in found and found[id(each)].number in stored
        }
        if len(fit) == len(made):
            return changed
        made = fit
    return list(roots)


def copied(facts: Facts) -> Node:
    """Ask for a score in memory."""
    node = facts.node
    return Node("contiguous", (node,), None, node.shape, node.dtype, node.device)


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
        inputs = tuple([made.get(facts[id(child)].number, child) for child in node.inputs])
        if inputs != node.inputs:
            new[id(node)] = node.with_inputs(inputs)
    asked = [made.get(facts[id(root)].number, root) for root in roots]
    return replaced(asked, order, new)
