"""score_boxes: which streams a GPU has a kernel for: operands that the copy engine brings in boxes.

On Hopper a stream is one product of 16-bit floats, softmax, and one product of its weights. What is
streamed lies in memory, its depth or columns next to one another, and rows at multiples of 16
bytes. Gradients, other dtypes and other GPUs read scores from memory.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import partial

from picograd.graph.axes import NoRule
from picograd.graph.ends import EndedNode
from picograd.graph.row import Role
from picograd.graph.starts import starts_of
from picograd.helpers import row_major
from picograd.schedule.group import Facts, Reasons
from picograd.schedule.score_sinks import (
    Stream,
    find_streams,
    is_product,
    is_sum,
    mark,
    ordered,
    outer_reads,
)
from picograd.schedule.scores import lone_axis
from picograd.schedule.views import strip_views
from picograd.target import Target

LEAST_COLUMNS, MOST_COLUMNS = 8, 128  # of an operand: its registers beside those of the scores
ALIGNMENT = 16  # bytes


def stream_scores(
    values: Sequence[Facts], wanted: Collection[Facts], target: Target, reasons: Reasons
) -> list[Facts]:
    """Mark what streams over scores that are nowhere in memory; gives the nodes in an order where
    all that a stream reads comes before it."""
    missing = partial(has_kernel, target=target)
    streams = find_streams(values, wanted, missing, reasons)
    if not streams:
        return list(values)
    mark(streams, values, wanted)
    if target.has_blocks:
        box_operands(streams)
    return ordered(values, streams)


def has_kernel(stream: Stream, target: Target) -> str:
    """Say why a target has no kernel for a stream; nothing if it has one.

    Boxes are no kernel for sizes that vary: what lies beyond an end is in memory, and may be NaN.
    Raises NoRule then: each size gets a plan of its own.
    """
    if target.packs_operands:
        return ""
    if target.arch != "sm_90a" or not (is_forward(stream) or is_known(stream)):
        return "it is no forward pass with a maximum, or the GPU has no kernel for it"
    for operand, labels, near in boxed_operands(stream):
        if not is_boxed(operand, labels, near):
            return "an operand is no array of up to 128 16-bit floats that boxes can have"
    every = (*stream.region.members, *(sink.facts for sink in stream.sinks))
    if any(type(each.node) is EndedNode for each in every):
        raise NoRule("attention, whose kernel is far faster for sizes of its own")
    return ""


def is_forward(stream: Stream) -> bool:
    """Tell whether a stream finds a maximum and a total, and multiplies weights once at most."""
    count = sum(is_product(sink) for sink in stream.sinks)
    is_whole = stream.total is not None and len(stream.sinks) == 2 + count
    return is_whole and count <= 1 and len(seeds_of(stream)) == 1


def is_known(stream: Stream) -> bool:
    """Tell whether a stream sums products, and rows, whose maxima and totals are known."""
    is_sums = all(is_product(sink) or is_sum(sink) for sink in stream.sinks)
    return stream.total is None and is_sums


def seeds_of(stream: Stream) -> list[Facts]:
    """List the products of scores that the sinks of a stream read."""
    found: dict[int, Facts] = {}
    for sink in stream.sinks:
        for facts in (sink.facts, *(reader for reader, _ in outer_reads(sink.facts, stream.at))):
            if is_seed(facts) and facts.number in stream.at:
                found[facts.number] = facts
    return list(found.values())


Boxed = tuple[Facts, tuple[int, ...], set[int]]  # an operand, its labels, those next to one another


def boxed_operands(stream: Stream) -> Iterator[Boxed]:
    """Yield what a stream reads in boxes: what is streamed, and rows where there are maxima."""
    for seed in seeds_of(stream):
        depth = set(seed.node.arg[0]) - set(seed.node.arg[2])
        streamed = streamed_operand(seed, stream)
        for number in (streamed,) if stream.total is not None else (0, 1):
            yield seed.inputs[number], seed.node.arg[number], depth
    for sink in filter(is_product, stream.sinks):
        number, node = 1 - sink.operand, sink.facts.node
        columns = set(node.arg[number]) - set(node.arg[sink.operand])
        yield sink.facts.inputs[number], node.arg[number], columns


def is_seed(facts: Facts) -> bool:
    """Tell whether a node of a region is a product."""
    return facts.node.row.role is Role.CONTRACT


def box_operands(streams: Sequence[Stream]) -> None:
    """Tell what streams read in boxes: it has to be stored as it lies."""
    for stream in streams:
        for operand, _, _ in boxed_operands(stream):
            operand.is_boxed = True


def streamed_operand(seed: Facts, stream: Stream) -> int:
    """Find which operand of a product of scores is streamed."""
    labels_a, _, out = seed.node.arg
    side = stream.region.sides[stream.side]
    places = stream.at[seed.number]
    for name, index in zip(out, places, strict=True):
        if lone_axis(index) in side:
            return 0 if name in labels_a else 1
    return 1


def is_boxed(facts: Facts, labels: tuple[int, ...], near: set[int]) -> bool:
    """Tell whether an operand is an array whose dimension `near` is contiguous."""
    dtype = facts.node.dtype
    strides = memory_strides(facts)
    is_half = dtype.is_float and dtype.bits == 16
    if not is_half or strides is None or len(near) != 1:
        return False
    for label, size, step in zip(labels, facts.node.shape, strides, strict=True):
        if label in near:
            is_fit = step == 1 and LEAST_COLUMNS <= size <= MOST_COLUMNS
        else:
            is_fit = size == 1 or step * dtype.itemsize % ALIGNMENT == 0
        if not is_fit:
            return False
    return True


def memory_strides(facts: Facts) -> tuple[int, ...] | None:
    """Find the strides of views of an array that is stored row-major; None if they copy."""
    chain: list[Facts] = []
    base = strip_views(facts)
    while facts is not base:
        chain.append(facts)
        facts = facts.inputs[0]
    strides: tuple[int, ...] | None = row_major(base.node.shape)
    for each in reversed(chain):
        node, view = each.node, each.node.row.view
        if strides is None or view is None or starts_of(node):
            return None
        offset = 0 if view.offset is None else view.offset(node, strides)
        if offset * node.dtype.itemsize % ALIGNMENT:
            return None
        strides = view.strides(node, strides)
    return strides
