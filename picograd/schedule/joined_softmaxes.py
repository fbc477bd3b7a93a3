"""joined_softmaxes: softmaxes whose weights are multiplied together share a stream.

    o = (softmax(s) - c * softmax(t)) @ v
 -> p = exp(s - max(s)) @ v;  r = exp(t - max(t)) @ v        both online, in one kernel
    o = p / sum(exp(s - max(s))) - c * (r / sum(exp(t - max(t))))

What is linear in several exponentials, by factors of one value a row, is known behind the stream.
"""

from dataclasses import field

from picograd.graph.row import Role
from picograd.late_methods import dataclass
from picograd.schedule.group import Facts
from picograd.schedule.index import axes_of
from picograd.schedule.score_sinks import (
    Matcher,
    Stream,
    Weight,
    base_of,
    columns_of,
    is_passing,
    is_product,
    shown,
)
from picograd.schedule.scores import CONTRACTIONS, Sink

MOST_JOINED = 256  # columns of the products of a stream of several softmaxes


@dataclass(eq=False, slots=True)
class Terms:
    """The softmaxes that weights are a sum of, and the nodes on the way to their exponentials."""

    weights: list[Weight] = field(default_factory=list)
    totals: list[Facts] = field(default_factory=list)
    path: set[int] = field(default_factory=set)


def join_softmaxes(matcher: Matcher) -> None:
    """Let products of weights that are a sum of softmaxes share the streams of these."""
    for stream in list(matcher.streams):
        for sink in [x for x in stream.sinks if is_product(x) and stream.total is None]:
            terms = terms_of(sink, matcher)
            found = streams_of(sink, terms, matcher) if terms is not None else []
            if terms is None or len(found) < 2 or not is_free(sink, terms, found, matcher):
                continue
            stream.sinks.remove(sink)
            sink.powers = tuple([weight.exponential for weight in terms.weights])
            first, *others = found
            for other in others:
                for each in other.sinks:
                    each.total = other.total
            first.sinks += [each for other in others for each in other.sinks]
            first.sinks.append(sink)
            first.further = len(others)
            left = [each for each in matcher.streams if each.sinks and each not in others]
            matcher.streams[:] = left


def terms_of(sink: Sink, matcher: Matcher) -> Terms | None:
    """Follow weights down to exponentials, by factors of one value a row; None if there are
    others."""
    region, terms = matcher.region, Terms()
    stack: list[tuple[Facts, Facts | None]] = [(sink.facts.inputs[sink.operand], None)]
    while stack:
        facts, total = stack.pop()
        row, terms.path = facts.node.row, terms.path | {facts.number}
        if row.is_exponential:
            weight = matcher.weight(facts)
            if weight is None or weight.peak is None or total is None:
                return None
            terms.weights.append(weight)
            terms.totals.append(total)
            terms.path |= weight.path
            continue
        inside = [n for n, x in enumerate(facts.inputs) if x.number in region.at]
        is_sum = len(row.factors) == len(inside) == 2
        if not (is_passing(facts) or is_sum):
            if len(inside) != 1 or inside[0] not in row.linear or len(facts.inputs) > 2:
                return None
            for other in facts.inputs[1 - inside[0] :][: len(facts.inputs) - 1]:
                if row.linear == (0,) and base_of(other).number in matcher.bits:
                    if total is not None:
                        return None
                    total = base_of(other)
                elif not is_of_row(other, facts, sink.side, matcher):
                    return None
        stack += [(facts.inputs[number], total) for number in inside]
    return terms


def is_of_row(facts: Facts, reader: Facts, side: int, matcher: Matcher) -> bool:
    """Tell whether what a member reads is the same at all places of a side."""
    region = matcher.region
    found = shown(facts, region.at[reader.number])
    if found is None:
        return False
    source, places = found
    is_number = source.node.row.role is Role.NUMBER
    return is_number or not any(region.sides[side] & set(axes_of(each)) for each in places)


def streams_of(sink: Sink, terms: Terms, matcher: Matcher) -> list[Stream]:
    """Find the streams of softmaxes, each of scores of its own; none if they cannot be joined."""
    seeds = [seeds_under(weight.exponential, matcher) for weight in terms.weights]
    every = set().union(*seeds)
    is_apart = all(len(each) == 1 for each in seeds) and len(every) == len(seeds)
    if not is_apart or columns_of(sink) * len(seeds) > MOST_JOINED:
        return []
    found = []
    for weight, total in zip(terms.weights, terms.totals, strict=True):
        for stream in matcher.streams:
            peak, *_ = (each.facts for each in stream.sinks)
            is_own = stream.total is total and peak is weight.peak
            products = stream.sinks[2:]
            is_fit = all(is_alike(each, sink) for each in products) and len(products) < 2
            if is_own and stream.side == sink.side and is_fit:
                found.append(stream)
    return found if len(found) == len(seeds) else []


def is_alike(sink: Sink, other: Sink) -> bool:
    """Tell whether two products are of the same values: the first is a part of the other."""
    values = [x.facts.inputs[1 - x.operand] for x in (sink, other) if is_product(x)]
    return len(values) == 2 and base_of(values[0]) is base_of(values[1])


def seeds_under(facts: Facts, matcher: Matcher) -> set[int]:
    """Number the products that an exponential is made of."""
    found, stack = set(), [facts]
    while stack:
        each = stack.pop()
        if each.node.op in CONTRACTIONS:
            found.add(each.number)
            continue
        stack += [x for x in each.inputs if x.number in matcher.region.at]
    return found


def is_free(sink: Sink, terms: Terms, streams: list[Stream], matcher: Matcher) -> bool:
    """Tell whether a product waits for the sinks of streams in its weights alone."""
    own = 0
    for stream in streams:
        for each in stream.sinks:
            own |= matcher.bits[each.facts.number]
    known = {*terms.totals, *(weight.peak for weight in terms.weights)}
    return matcher.is_free(sink, known, terms.path, own)
