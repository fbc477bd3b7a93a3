"""both_sides: gradients of rows and of columns in one kernel, on a CPU.

    dq[i] = sum over j of ds[i, j] * k[j]          a stream over j, and
    dk[j] = sum over i of ds[i, j] * q[i]          one over i, which makes the same scores again

A task that has all rows and columns of a matrix adds a block of scores to the sums of both sides:
products of scores and exponentials are computed once. Tasks are as many as there are matrices then,
so that it is done where these keep the workers busy, and where the sums of a side have room.
"""

from collections.abc import Sequence
from itertools import combinations

from picograd.graph.row import Role
from picograd.helpers import ceil_div, product, reached
from picograd.schedule.group import Facts
from picograd.schedule.score_sinks import Stream, columns_of, is_product, row_sums

MOST_BYTES = 1 << 24  # of the sums of a side, in the memory of a worker
ITEMSIZE = 4  # of a sum


def join_sides(streams: Sequence[Stream], workers: int) -> list[Stream]:
    """Let streams over the two sides of a region share a kernel, where that takes less time."""
    gone: set[int] = set()  # by identity: what others have taken
    by_region: dict[int, list[Stream]] = {}
    for stream in filter(is_ready, streams):
        by_region.setdefault(id(stream.region), []).append(stream)
    for own in by_region.values():
        for pair in combinations(own, 2):
            first, second = sorted(pair, key=has_no_sums)
            if first.side == second.side or gone & {id(first), id(second)}:
                continue
            if can_join(first, second, workers):
                first.sinks += second.sinks
                gone.add(id(second))
    return [stream for stream in streams if id(stream) not in gone]


def can_join(first: Stream, second: Stream, workers: int) -> bool:
    """Tell whether streams over the sides of one region may share a kernel, and gain by it."""
    if not has_room(first, second) or not is_faster(first, second, workers):
        return False
    return not is_waiting(first, second) and not is_waiting(second, first)


def is_ready(stream: Stream) -> bool:
    """Tell whether a stream sums products alone, whose maxima and totals are known."""
    return stream.total is None and all(map(is_product, stream.sinks))


def has_no_sums(stream: Stream) -> bool:
    """Tell whether there are no sums of its rows that a stream could take before it begins."""
    return not any(row_sums(stream))


def is_waiting(stream: Stream, other: Stream) -> bool:
    """Tell whether a sink of a stream is made of one of another.

    Nodes are numbered after their inputs: what is older than all of the other's is not asked.
    """
    numbers = {sink.facts.number for sink in other.sinks}
    oldest = min(numbers)
    stack = [sink.facts for sink in stream.sinks]
    for facts in reached(stack):
        if facts.number in numbers:
            return True
        if not facts.is_source:
            stack += [source for source in facts.inputs if source.number >= oldest]
    return False


def has_room(first: Stream, second: Stream) -> bool:
    """Tell whether the sums of the other side fit the memory of a worker."""
    places = product(axis.size for axis in first.over)
    columns = sum(map(columns_of, second.sinks))
    nbytes = places * columns * ITEMSIZE
    return nbytes <= MOST_BYTES


def is_faster(first: Stream, second: Stream, workers: int) -> bool:
    """Tell whether products that are not made twice save more than idle workers cost."""
    once = sum(map(is_scored, first.region.members))
    sums = len(first.sinks) + len(second.sinks)
    around = set(first.rows) & set(second.rows)
    matrices = product(axis.size for axis in around)
    rounds = ceil_div(matrices, workers)
    together = rounds * workers * (once + sums)
    apart = matrices * (2 * once + sums)
    return together <= apart


def is_scored(facts: Facts) -> bool:
    """Tell whether a member of a region is a product."""
    return facts.node.row.role is Role.CONTRACT
