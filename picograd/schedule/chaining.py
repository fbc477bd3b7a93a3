"""chaining: maps in turn that exchange elements within rows alone are one kernel.

    t0[r, a, b] = f(x[r, a, b])                     a row of t0 is made of one row of x,
    y[r, b, a] = g(t0[r, a, b], t0[r, a, b + 1])    and read for the same row of y

    for each block of rows: t0 in shared memory, wait, y

The steps of a Fourier transform are such maps. A map stays one where each element needs only the
one at its own place: fusion has seen to that. What is exchanged has no memory but in a block, so a
block must have room for it, and there must be enough blocks for all processors.

On a GPU alone: the workers of a CPU do not share what is near them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import gcd

from picograd.helpers import product
from picograd.schedule.folding import Pair, pair_of, piece_of, sizes_of, slots_in
from picograd.schedule.in_place import lives_of, renumbered
from picograd.schedule.index import Axis, Index, axes_of, axis_index
from picograd.schedule.loop import Kernel, Part, Slot, walk
from picograd.schedule.plan import KernelLaunch, PlanSlot, Step
from picograd.target import Target

POINTS = 512  # of a map in a block, if rows are shorter: as many as there are threads
MOST = 8192  # the same of the longest rows: a thread has several in registers


def chain_maps(
    slots: Sequence[PlanSlot], steps: Sequence[Step], copies: Sequence[Step], target: Target
) -> list[Step]:
    """Let one kernel compute maps in turn, where rows allow it; see the module docstring."""
    if not target.has_blocks:
        return list(steps)
    found: list[Step] = []
    lives: dict[int, tuple[int, int]] = {}
    for number, step in enumerate(steps):
        found.append(step)
        pair = chain_of(*found[-2:]) if len(found) > 1 else None
        if pair is None:
            continue
        lives = lives or lives_of([*steps, *copies])
        made = slots_in(pair.first, "out")
        shared = made & slots_in(pair.second, "in")
        lasting = [
            slot for slot in shared if slots[slot].kind != "temporary" or lives[slot][1] > number
        ]
        launch = None if lasting else chained(pair, shared, target)
        if launch is not None:
            found[-2:] = [launch]
    return found


def chain_of(first: Step, second: Step) -> Pair | None:
    """Pair a map, or a chain of maps, with a map that reads what it stores."""
    if isinstance(first, KernelLaunch) and first.kernel.hero == "chain":
        plain = replace(first.kernel, hero="map")
        first = replace(first, kernel=plain)
    return pair_of(first, second)


def chained(pair: Pair, shared: set[int], target: Target) -> KernelLaunch | None:
    """Compute both in one kernel that shares some slots of the plan; None if it can not."""
    before, after = (
        [renumbered(part, pair.slots_of(launch)) for part in launch.kernel.parts]
        for launch in (pair.first, pair.second)
    )
    is_chain = any(own.role == "shared" for own in pair.first.kernel.slots)
    if len(after) > 1 or (len(before) > 1 and not is_chain) or pair.first.scalars:
        return None
    slots = []
    for slot, own in pair.every():
        role = "shared" if slot in shared else own.role
        slots.append(replace(own, role=role))
    every = [*before, *after]
    for count in block_counts(every, slots, target):
        parts = [in_blocks(part, count) for part in every]
        if all(is_within(part, slots) for part in parts):
            name = pair.second.kernel.name.replace("map", "chain", 1)
            kernel = Kernel(name, "chain", tuple(slots), (), tuple(parts))
            numbers = tuple(pair.numbers)
            return replace(pair.first, kernel=kernel, slots=numbers)
    return None


def block_counts(parts: Sequence[Part], slots: Sequence[Slot], target: Target) -> list[int]:
    """List into how many blocks rows can be dealt that have work for their threads, most first.

    There are enough for all processors, and what one shares leaves room for another.
    """
    if not all(part.rows for part in parts):
        return []
    firsts = [part.rows[0].size for part in parts]
    rows = gcd(*firsts)
    points = max(product(sizes_of(part)) for part in parts)
    shared = [slot for slot in slots if slot.role == "shared"]
    nbytes = max(slot.size * slot.dtype.itemsize for slot in shared)
    room = nbytes * 2 // target.shared_bytes
    least = max(target.multiprocessors, room, points // MOST)
    most = min(rows, points // POINTS)
    counts = range(most, least - 1, -1)
    return [count for count in counts if rows % count == 0]


def in_blocks(part: Part, count: int) -> Part:
    """Cut the first axis of a part into an axis of blocks and what is left."""
    first, *rest = part.rows
    block = Axis("block", count)
    left = Axis(first.name, first.size // count)
    place = axis_index(block) * left.size + axis_index(left)
    there = {axis: axis_index(axis) for axis in rest}
    rows = (block, left, *rest)
    if left.size == 1 and rest:
        rows = (block, *rest)
        place = axis_index(block)
    there[first] = place
    computes = piece_of(part, rows, there, {}, 0)
    return replace(part, rows=rows, computes=tuple(computes))


def is_within(part: Part, slots: Sequence[Slot]) -> bool:
    """Tell whether a part touches, of what blocks share, the rows of its own block alone."""
    block = part.rows[0]
    for number, index in touched(part):
        slot = slots[number]
        if slot.role == "shared" and row_place(index, block, slot) is None:
            return False
    return True


def row_place(index: Index, block: Axis, slot: Slot) -> Index | None:
    """Find the place in a block's share of a slot; None if it may be in that of another."""
    size = slot.size // block.size
    inner = index - axis_index(block) * size
    if inner.lo < 0 or inner.hi >= size or block in axes_of(inner):
        return None
    return inner


def touched(part: Part) -> Iterator[tuple[int, Index]]:
    """Yield what a part loads and stores."""
    for compute in part.computes:
        for expr in walk(compute.body):
            if expr.op == "load":
                yield expr.arg
        if compute.store:
            yield compute.store
