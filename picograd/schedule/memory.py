"""memory: place temporaries in one arena by their lifetimes, greedily by size.

A temporary lives from the step that writes it first to the step that reads it last. Large ones are
placed first, each at the lowest offset where nothing that lives at the same time is in the way.
"""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

from picograd.helpers import round_up

ALIGNMENT = 256  # bytes; what cudaMalloc guarantees, and several cache lines on a CPU


@dataclass(frozen=True, slots=True)
class Lifetime:
    """One temporary: its size and the first and last step that touch it."""

    nbytes: int
    first: int
    last: int


def place_temporaries(lifetimes: Sequence[Lifetime]) -> tuple[list[int], int]:
    """Find an offset for each temporary, and the size of the arena, in bytes.

    Each step keeps the sorted spans that are taken while it runs, so the work is proportional to
    the steps each temporary lives through, which is short for almost all of them.
    """
    offsets = [0] * len(lifetimes)
    taken: dict[int, list[tuple[int, int]]] = {}
    total = 0
    by_size = sorted(range(len(lifetimes)), key=lambda n: (-lifetimes[n].nbytes, n))
    for number in by_size:
        life = lifetimes[number]
        size = round_up(max(life.nbytes, 1), ALIGNMENT)
        steps = range(life.first, life.last + 1)
        spans = sorted({span for step in steps for span in taken.get(step, ())})
        offset = lowest_gap(spans, size)
        offsets[number] = offset
        total = max(total, offset + size)
        for step in steps:
            insort(taken.setdefault(step, []), (offset, offset + size))
    return offsets, total


def lowest_gap(spans: Sequence[tuple[int, int]], size: int) -> int:
    """Lowest offset with `size` free bytes between sorted, possibly overlapping spans."""
    offset = 0
    for start, stop in spans:
        if offset + size <= start:
            return offset
        offset = max(offset, stop)
    return offset
