"""score_boxes: which streams a GPU has a kernel for: operands that the copy engine brings in boxes.

On Hopper a stream is one product of 16-bit floats, softmax, and one product of its weights. What is
streamed lies in memory, its depth or columns next to one another, and rows at multiples of 16
bytes. Other dtypes, and 16-bit floats on other GPUs, read scores from memory; so do gradients of
float32 while scores are small.

score_forms: what keeps scores in memory for its form alone is written in another.

    softmax(q @ k) @ v               ->    softmax(q @ contiguous(k)) @ v
    sum(gradients of scores, all)    ->    sum(sum(gradients of scores, columns), the rest)

A GPU streams over scores where it has boxes of all that is streamed: rows that are beside one
another. Channels before places, and every other element, are copied to such rows: a copy reads and
writes an operand once, scores in memory are as many times that as there are places to a column.
What sums scores over the batch too, as gradients of a learned scale, of one bias a head, or of
queries that all of a batch share, sums one side first.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import is_

from picograd.graph.axes import NoRule
from picograd.graph.bounded import EndedNode
from picograd.graph.conv_forms import stored
from picograd.graph.node import Node
from picograd.graph.row import EXPONENTIALS, Role, ops_of
from picograd.helpers import product
from picograd.schedule.both_sides import join_sides
from picograd.schedule.cost import machine
from picograd.schedule.group import Facts, Reasons
from picograd.schedule.index import Indices
from picograd.schedule.joined_softmaxes import join_softmaxes
from picograd.schedule.order import Order
from picograd.schedule.score_circles import untangled
from picograd.schedule.score_operands import (
    ALIGNMENT,
    MOST_COLUMNS,
    Boxed,
    has_columns,
    has_pages,
    is_boxed,
)
from picograd.schedule.score_sinks import (
    Limits,
    Stream,
    base_of,
    columns_of,
    find_streams,
    is_kept,
    is_made,
    is_passing,
    is_product,
    is_sum,
    mark,
    ordered,
    outer_reads,
    sum_rows,
)
from picograd.schedule.scores import (
    LEAST_SIDE,
    Region,
    find_regions,
    lone_axis,
    openers,
    score_sizes,
)
from picograd.schedule.values import facts_of
from picograd.schedule.views import strip_views
from picograd.schedule.weighted_sums import replaced
from picograd.target import Target

# blocks share the places of few rows
GPU_LIMITS = Limits(least=1, most_columns=2 * MOST_COLUMNS, join=join_softmaxes)
MOST_TF32, LEAST_TF32 = 128, 64  # columns of operands, and rows, of gradients on tensor cores
CACHED_BYTES = 1 << 26  # of what is between two products, and costs little in memory
MOST_COST = 24  # operations between them, with those of gradients, that are not dear
FEW_BYTES = 1 << 31  # of scores: products of float32 are 1.2 to 3 times as fast, if memory allows


def stream_scores(
    order: Sequence[Node],
    values: Sequence[Facts],
    wanted: Collection[Facts],
    target: Target,
    reasons: Reasons,
) -> list[Facts]:
    """Mark what streams over scores that are nowhere in memory; gives the nodes in an order where
    all that a stream reads comes before it.

    Regions that are known of `order` are those of the same facts.
    """
    known = order.regions if isinstance(order, Order) else None
    regions = regions_of(values, wanted, target) if known is None else known
    for region in regions:
        region.be_strict()
    streams = streams_of(regions, values, target, reasons)
    if not streams:
        return list(values)
    sum_rows(values, streams)
    mark(streams, values, wanted)
    if target.has_blocks:
        box_operands(streams)
    return ordered(values, streams)


def regions_of(
    values: Sequence[Facts], wanted: Collection[Facts], target: Target, has_wide: bool = False
) -> list[Region]:
    """List the regions of scores among nodes, listed inputs first; see `find_regions`."""
    # All members of a region have as many elements: one with an exponential as that has.
    sizes = score_sizes([x.node for x in values if not x.is_source])
    return find_regions(values, wanted, limits_of(target).least, sizes, has_wide) if sizes else []


def streams_of(
    regions: Sequence[Region],
    values: Sequence[Facts],
    target: Target,
    reasons: Reasons,
    has_box: Callable[["Boxed", set[int]], bool] | None = None,
) -> list[Stream]:
    """List the streams that a target has kernels for, if `has_box` (`is_boxed`) of operands."""
    missing = partial(has_kernel, target=target, has_box=has_box or is_boxed)
    found = find_streams(regions, values, missing, reasons, limits_of(target))
    if found and target.packs_operands:
        found = join_sides(found, machine(target).workers)
    return untangled(found, values, reasons)


def has_scores(order: Sequence[Node], target: Target) -> bool:
    """Tell whether a product has the size of an exponential: no others are scores."""
    return any(openers(order, limits_of(target).least))


def limits_of(target: Target) -> Limits:
    """Give the limits of a target's kernels."""
    return GPU_LIMITS if target.has_blocks else Limits()


def streamed_nodes(roots: Sequence[Node], order: Sequence[Node], target: Target) -> set[int]:
    """Find what will stream over scores, by identity; `order` lists inputs first."""
    if not has_scores(order, target):
        return set()
    facts = facts_of(order, roots)
    values = list(dict.fromkeys(facts.values()))
    wanted = {facts[id(root)] for root in roots}
    stream_scores((), values, wanted, target, Reasons())
    found = {each for each in values if each.is_score or each.stream is not None}
    return {id(node) for node in order if facts[id(node)] in found}


def has_kernel(stream: Stream, target: Target, has_box: Callable[["Boxed", set[int]], bool]) -> str:
    """Say why a target has no kernel for a stream; nothing if it has one.

    Boxes are no kernel for sizes that vary: what lies beyond an end is in memory, and may be NaN.
    Raises NoRule then: each size gets a plan of its own.
    """
    if target.packs_operands:  # rows are in lanes: what is stored of all places lies across
        is_stored = any(map(is_kept, stream.sinks))
        return "what is stored of scores takes longer than scores in memory" if is_stored else ""
    if not (is_forward(stream) or is_known(stream)):
        return "it is no forward pass with a maximum, nor one whose maximum is known"
    if product(axis.size for axis in stream.over) < LEAST_SIDE:
        return "so few columns are faster as products of vectors"
    if is_faster_apart(stream):
        return "such products take no longer with scores in memory, which has room"
    cuts: set[int] = set()
    every_boxed = list(boxed_operands(stream))
    if not all(has_box(boxed, cuts) for boxed in every_boxed):
        return "an operand is no array of up to 256 floats that boxes can have"
    dtypes = {boxed.operand.node.dtype for boxed in every_boxed}
    if len(dtypes) > 1 or (max(x.bits for x in dtypes) < 32 and target.arch != "sm_90a"):
        return "the GPU has no kernel for its dtypes"
    is_wide = max(x.bits for x in dtypes) >= 32 and not has_tf32(stream, every_boxed, target)
    if is_wide and not is_forward(stream) and is_small(stream, FEW_BYTES):
        return "gradients of float32 are faster as products of scores in memory, which has room"
    every = (*stream.region.members, *(sink.facts for sink in stream.sinks))
    if any(type(each.node) is EndedNode for each in every):
        raise NoRule("attention, whose kernel is far faster for sizes of its own")
    return ""


def has_tf32(stream: Stream, every: Sequence["Boxed"], target: Target) -> bool:
    """Tell whether tensor cores may multiply float32: boxes of many rows, of narrow heads."""
    if not (target.tf32 and target.copies_boxes):
        return False
    sizes = [size for boxed in every for size in boxed.near_sizes]
    rows = stream.region.sides[1 - stream.side]
    count = product(axis.size for axis in rows)
    return max(sizes) <= MOST_TF32 and count > LEAST_TF32


def is_small(stream: Stream, most: int) -> bool:
    """Tell whether scores take so many bytes of memory at most."""
    nodes = [seed.node for seed in seeds_of(stream)]
    return all(product(node.shape) * node.dtype.itemsize <= most for node in nodes)


def is_faster_apart(stream: Stream) -> bool:
    """Tell whether two products in turn, as of experts, are faster than their stream.

    Where what is between is no softmax and stays in the cache, memory costs little, and a stream
    computes what is dear for gradients once more. Runs of wide ones, whose launch has parts, came
    to no end (docs/records/0012-attention).
    """
    region = stream.region
    if stream.total is not None or is_softmax(region):
        return False
    if sum(map(columns_of, stream.sinks)) > MOST_COLUMNS:
        return True
    has_gradients = len({sink.side for sink in region.sinks}) > 1
    rows = [facts.node.row for facts in region.members]
    cost = sum(row.cost for row in rows if row.is_elementwise)
    return has_gradients and cost > MOST_COST and is_small(stream, CACHED_BYTES)


def is_softmax(region: Region) -> bool:
    """Tell whether exponentials of differences are in a region: known maxima are subtracted."""
    powers = [facts for facts in region.members if facts.node.op in EXPONENTIALS]
    less = [base_of(facts.inputs[0]) for facts in powers]
    return any(facts.node.row.factors == (1, -1) for facts in less)


def is_forward(stream: Stream) -> bool:
    """Tell whether a stream finds a maximum and a total, and multiplies weights once at most."""
    count = sum(is_product(sink) for sink in stream.sinks)
    made = sum(map(is_made, stream.sinks))
    found = 2 * (1 + stream.further) + count + made
    is_whole = stream.total is not None and len(stream.sinks) == found
    return is_whole and (stream.further > 0 or (count <= 1 and are_added(stream)))


def are_added(stream: Stream) -> bool:
    """Tell whether the products of scores are read as one sum alone, which has one tile."""
    seeds = seeds_of(stream)
    held = {facts.number: {facts.number} for facts in seeds}  # the products in each sum
    for facts in sorted(stream.region.members, key=lambda each: each.number):
        found = [held.get(base_of(each).number, set()) for each in facts.inputs]
        if facts.number in held or is_passing(facts) or not any(found):
            continue
        if facts.node.row.factors == (1, 1) and all(found):
            held[facts.number] = set().union(*found)
        elif any(0 < len(each) < len(seeds) for each in found):
            return False
    return True


def is_known(stream: Stream) -> bool:
    """Tell whether a stream sums products, and rows, whose maxima and totals are known."""
    is_sums = all(is_product(x) or is_sum(x) or is_kept(x) for x in stream.sinks)
    return stream.total is None and is_sums


def seeds_of(stream: Stream) -> list[Facts]:
    """List the products of scores that the sinks of a stream read."""
    found: dict[int, Facts] = {}
    for sink in stream.sinks:
        for facts in (sink.facts, *(reader for reader, _ in outer_reads(sink.facts, stream.at))):
            if is_seed(facts) and facts.number in stream.at:
                found[facts.number] = facts
    return list(found.values())


def boxed_operands(stream: Stream) -> Iterator[Boxed]:
    """Yield what a stream reads in boxes: what is streamed, and rows where there are maxima."""
    is_forward = stream.total is not None
    for seed in seeds_of(stream):
        *labels, out = seed.node.arg
        depth = set(labels[0]) - set(out)
        shared = set(labels[0]) & set(labels[1]) - depth
        streamed = streamed_operand(seed, stream)
        places = places_in(stream, out, stream.at[seed.number])
        for number in (streamed,) if is_forward else (0, 1):
            own = [label for label in out if label in labels[number] and label not in shared]
            far = places if number == streamed else tuple(own[-1:])
            yield Boxed(seed.inputs[number], labels[number], depth, shared, far, is_forward)
    for sink in filter(is_product, stream.sinks):
        number, node = 1 - sink.operand, sink.facts.node
        labels, out = node.arg[number], set(node.arg[2])
        others = node.arg[sink.operand]
        columns, shared = set(labels) - set(others), set(labels) & set(others) & out
        places = places_in(stream, others, stream.at[sink.facts.inputs[sink.operand].number])
        operand = sink.facts.inputs[number]
        yield Boxed(operand, labels, columns, shared, places, is_forward)


def places_in(stream: Stream, labels: Sequence[int], at: Indices) -> tuple[int, ...]:
    """List the labels of what is streamed over, in the order of its places."""
    known = {lone_axis(index): label for label, index in zip(labels, at, strict=True)}
    return tuple(known[axis] for axis in stream.over if axis in known)


def is_seed(facts: Facts) -> bool:
    """Tell whether a node of a region is a product."""
    return facts.node.row.role is Role.CONTRACT


def box_operands(streams: Sequence[Stream]) -> None:
    """Tell what streams read in boxes: it has to be stored as it lies, or as pages do.

    A gather that some read as it lies, as gradients do, is stored for all.
    """
    every = [each for stream in streams for each in boxed_operands(stream)]
    whole = {strip_views(each.operand) for each in every if not has_pages(each)}
    for each in every:
        base = strip_views(each.operand)
        each.operand.is_boxed = True
        each.operand.has_pages = base.has_pages = base not in whole


def streamed_operand(seed: Facts, stream: Stream) -> int:
    """Find which operand of a product of scores is streamed."""
    labels_a, _, out = seed.node.arg
    side = stream.region.sides[stream.side]
    for name, index in zip(out, stream.at[seed.number], strict=True):
        if lone_axis(index) in side:
            return 0 if name in labels_a else 1
    return 1


CONTRACTIONS = ops_of(Role.CONTRACT)


def fit_streams(
    roots: Sequence[Node],
    order: Sequence[Node],
    facts: Mapping[int, Facts],
    every: Sequence[Stream],
    target: Target,
) -> list[Node]:
    """Write anew what keeps a stream from being one; `order` lists inputs first."""
    streams = [each for each in every if not each.region.shared]  # with others than streams
    copies: dict[int, Node] = {}
    if target.has_blocks:
        copies = copies_of(streams, shared_gathers(roots, facts, streams))
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
            found = summed_later(found, operands[own.number], wide[own.number])
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
    regions = regions_of(values, wanted, target, has_wide=True)
    if isinstance(order, Order):
        order.facts, order.regions = facts, regions
    return facts, streams_of(regions, values, target, Reasons(), can_be_boxed)


def copies_of(streams: Sequence[Stream], shared: Collection[Facts]) -> dict[int, Node]:
    """Copy what no box can bring; by the numbers of operands.

    What is gathered for others too is stored, and read as it lies there.
    """
    copies: dict[int, Node] = {}
    for stream in streams:
        cuts: set[int] = set()
        for boxed in boxed_operands(stream):
            number = boxed.operand.number
            has_pages = boxed.has_pages and strip_views(boxed.operand) not in shared
            if not is_boxed(replace(boxed, has_pages=has_pages), cuts) and number not in copies:
                copies[number] = copied(boxed)
    return copies


def shared_gathers(
    roots: Sequence[Node], facts: Mapping[int, Facts], streams: Sequence[Stream]
) -> set[Facts]:
    """Find what is gathered, and read by others than products of streams, or by the user."""
    products: set[int] = set()
    for stream in streams:
        products.update(seed.number for seed in seeds_of(stream))
        products.update(sink.facts.number for sink in stream.sinks)
    read = [facts[id(root)] for root in roots]
    for each in dict.fromkeys(facts.values()):
        if each.number not in products and each.node.row.view is None:
            read += each.inputs
    return set(map(strip_views, read))


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
    return made.reduce(monoid, tuple(map(left.index, later)))
