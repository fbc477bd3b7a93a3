"""memory: place temporaries in one arena by their lifetimes, greedily by size.

A temporary lives from the step that writes it first to the step that reads it last. Large ones are
placed first, each at the lowest offset where nothing that lives at the same time is in the way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from picograd.helpers import round_up

Array = Any
ALIGNMENT = 256  # bytes; what cudaMalloc guarantees, and several cache lines on a CPU


@dataclass(frozen=True, slots=True)
class Lifetime:
    """One temporary: its size and the first and last step that touch it."""

    nbytes: int
    first: int
    last: int


def place_temporaries(lifetimes: Sequence[Lifetime]) -> tuple[list[int], int]:
    """Find an offset for each temporary, and the size of the arena, in bytes.

    The temporaries placed so far are kept as columns of an array, sorted by offset, so that one
    NumPy comparison finds those that live at the same time as the next one.
    """
    offsets = [0] * len(lifetimes)
    placed: Array = np.zeros((4, 0), np.int64)  # rows: offset, stop, first, last
    total = 0
    by_size = sorted(range(len(lifetimes)), key=lambda n: (-lifetimes[n].nbytes, n))
    for number in by_size:
        life = lifetimes[number]
        size = round_up(max(life.nbytes, 1), ALIGNMENT)
        is_in_the_way = (placed[2] <= life.last) & (placed[3] >= life.first)
        offset = lowest_gap(placed[:2, is_in_the_way], size)
        offsets[number] = offset
        total = max(total, offset + size)
        at = int(np.searchsorted(placed[0], offset))
        row = (offset, offset + size, life.first, life.last)
        placed = np.insert(placed, at, row, axis=1)
    return offsets, total


def lowest_gap(spans: Array, size: int) -> int:
    """Lowest offset with `size` free bytes between spans (starts, stops) sorted by start."""
    starts, stops = spans
    reach = np.concatenate(([0], np.maximum.accumulate(stops)))
    fits = np.flatnonzero(starts - reach[:-1] >= size)
    return int(reach[fits[0]] if len(fits) else reach[-1])
