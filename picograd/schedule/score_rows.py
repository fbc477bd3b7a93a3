"""score_rows: what a stream reads one value a row of is summed in its own kernel.

    d[i] = sum(g[i] * o[i])          in the kernel of dq, which has the rows i; that of dk and dv
    dq   = (w * (g v^T - d)) k       reads d from memory, as it reads maxima and totals

Without that a kernel of its own would sum rows of the result and its gradient, of which the stream
brings one anyway.
"""

from collections.abc import Iterator, Sequence

from picograd.graph.row import Role
from picograd.helpers import product
from picograd.schedule.group import Facts
from picograd.schedule.index import Indices
from picograd.schedule.score_sinks import (
    Stream,
    base_of,
    is_sum_of,
    outer_reads,
    reads_of,
    waits_of,
)
from picograd.schedule.scores import Sink, lone_axis
from picograd.schedule.viewindex import view_source

MOST_BYTES = 512  # of a row that is summed: a fragment of registers


def sum_rows(values: Sequence[Facts], streams: Sequence[Stream]) -> None:
    """Make sums of rows sinks of the streams that read them, which know all else they read."""
    taken = {sink.facts.number for stream in streams for sink in stream.sinks}
    found: list[tuple[Stream, Sink]] = []
    ready = [stream for stream in streams if stream.total is None]
    for stream in ready:
        for sink in row_sums(stream):
            number = sink.facts.number
            if number not in taken:
                taken.add(number)
                found.append((stream, sink))
    bits = {sink.facts.number: 1 << n for n, (_, sink) in enumerate(found)}
    waits = waits_of(values, bits) if bits else {}
    for stream, sink in found:
        number = sink.facts.number
        rest = [x for x in reads_of(stream) if base_of(x) is not sink.facts]
        if not any(waits[x.number] & bits[number] for x in rest):
            stream.sinks.insert(0, sink)


def row_sums(stream: Stream) -> Iterator[Sink]:
    """Yield the sums that a stream reads one value a row of."""
    for sink in stream.sinks:
        for reader, source in outer_reads(sink.facts, stream.at):
            places = stream.at.get(reader.number)
            if places is None or reader.node.row.role is not Role.ELEMENTWISE:
                continue
            found = shown_sum(source, places)
            if found is not None and is_of_rows(*found, stream):
                facts, places = found
                yield Sink(facts, stream.side, 0, places=places)


def shown_sum(facts: Facts, places: Indices) -> tuple[Facts, Indices] | None:
    """Find the sum that views show, and which element of it they show at some places."""
    while not facts.is_source and facts.node.row.role is Role.VIEW:
        if not facts.node.row.is_showing or facts.node.row.is_shifting:
            return None
        places = view_source(facts.node, places)
        (facts,) = facts.inputs
    is_found = not facts.is_source and is_sum_of(facts)
    return (facts, places) if is_found else None


def is_of_rows(facts: Facts, places: Indices, stream: Stream) -> bool:
    """Tell whether there is a sum for every row, of no more columns than kernels hold."""
    itemsize = stream.sinks[0].facts.node.dtype.itemsize
    axes = [lone_axis(place) for place in places if place.terms]
    _, over = facts.node.arg
    shape = facts.inputs[0].node.shape
    columns = product(shape[d] for d in over)
    is_whole = set(axes) == set(stream.rows) and len(axes) == len(stream.rows)
    return is_whole and columns * itemsize <= MOST_BYTES
