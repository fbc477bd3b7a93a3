"""pairs: elements that are always read with a neighbour, and so are loaded as vectors of two.

    add(s0[2 * i], s0[2 * i + 1])        one load of two elements, of which each is a lane

The parts of complex numbers lie so. Memory is asked half as often, and shared memory gives a warp
whole rows of its banks. An index of a pair is even but for a constant wherever its axes are.
"""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.codegen.tile import Accumulate, Assign, Step, Store, Tile, TilePart, steps_inside
from picograd.schedule.index import Index
from picograd.schedule.loop import Slot, walk

Pointer = int | str  # a slot of the kernel, or the name of a tile


def paired(
    part: TilePart,
    slots: Sequence[Slot],
    tiles: dict[str, Tile],
    place: Callable[[Tile, Sequence[Index]], Index],
) -> set[Pointer]:
    """Find the slots and shared tiles of which a part reads nothing but pairs."""
    found: dict[Pointer, set[Index]] = {}
    for expr in exprs_of(part.steps):
        for each in walk(expr):
            if each.op == "load":
                slot, index = each.arg
                if slots[slot].size % 2 == 0:
                    found.setdefault(slot, set()).add(index)
            elif each.op == "tile" and each.arg[0] in tiles:
                name, where = each.arg
                tile = tiles[name]
                if tile.space == "shared" and not tile.swizzle:
                    index = place(tile, where)
                    found.setdefault(name, set()).add(index)
    return {pointer for pointer, indices in found.items() if are_pairs(indices)}


def exprs_of(steps: Sequence[Step]) -> list[Any]:
    """List what steps compute."""
    found = []
    for step in steps:
        if isinstance(step, Assign | Accumulate | Store):
            found.append(step.expr)
        found += exprs_of(steps_inside(step))
    return found


def are_pairs(indices: set[Index]) -> bool:
    """Tell whether each index has its neighbour."""
    return all(is_even(index) and other_of(index) in indices for index in indices)


def is_even(index: Index) -> bool:
    """Tell whether an index is even but for its constant."""
    return all(factor % 2 == 0 for _, factor in index.terms)


def other_of(index: Index) -> Index:
    """Find the other one of a pair."""
    return index + (1 - 2 * (index.const % 2))
