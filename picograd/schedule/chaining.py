"""chaining: maps in turn that exchange elements within rows alone are one kernel.

    t0[r, a, b] = f(x[r, a, b])                     a row of t0 is made of one row of x,
    y[r, b, a] = g(t0[r, a, b], t0[r, a, b + 1])    and read for the same row of y

    for each block of rows: t0 in shared memory, wait, y

The steps of a Fourier transform are such maps. A map stays one where each element needs only the
one at its own place: fusion has seen to that. What is exchanged has no memory but in a block, so a
block must have room for it, and there must be enough blocks for all processors.

What only joins arrays is no map in the end (in_place.py).
On a GPU alone: the workers of a CPU do not share what is near them.
"""

from collections.abc import Sequence
from dataclasses import replace

from picograd.helpers import ceil_div, product
from picograd.schedule.block_cuts import blocks_of
from picograd.schedule.folding import Pair, pair_of, sizes_of, slots_in
from picograd.schedule.in_place import find_joins, lives_of, renumbered
from picograd.schedule.loop import Kernel, Part, dynamics_of, walk
from picograd.schedule.plan import KernelLaunch, PlanSlot, Step
from picograd.target import Target

POINTS = 512  # of a map in a block, if rows are shorter: as many as there are threads
GOOD = 32 << 10  # bytes that a block shares: several are on a processor at once
LITTLE = 2048  # the same where blocks are fewer than processors: launches take longer
MANY = 8  # points that read by one place: storing it costs less than their lines do
MOST = 8192  # the same of the longest rows: a thread has several in registers


def chain_maps(
    slots: Sequence[PlanSlot], steps: Sequence[Step], copies: Sequence[Step], target: Target
) -> list[Step]:
    """Let one kernel compute maps in turn, where rows allow it; see the module docstring."""
    if not target.has_blocks:
        return list(steps)
    found: list[Step] = []
    whole: list[Step] = []  # the same, with the parts of chains as they were before they were cut
    lives: dict[int, tuple[int, int]] = {}
    joins = {join.step for join in find_joins(slots, [*steps, *copies])}
    for number, step in enumerate(steps):
        found.append(step)
        whole.append(step)
        is_joined = number in joins or number - 1 in joins
        pair = None if is_joined or len(whole) < 2 else pair_of(*whole[-2:])
        if pair is None:
            continue
        lives = lives or lives_of([*steps, *copies])
        made = slots_in(pair.first, "out")
        shared = made & slots_in(pair.second, "in")
        lasting = False
        for slot in shared:
            _, last = lives[slot]
            lasting |= slots[slot].kind != "temporary" or last > number
        both = None if lasting else joined(pair, shared)
        parts = None if both is None else cut_parts(both.kernel, target)
        if both is not None and parts is not None:
            name = both.kernel.name.replace("map", "chain", 1)
            kernel = replace(both.kernel, name=name, hero="chain", parts=parts)
            if not is_crowded(found[-2], kernel):
                found[-2:] = [replace(both, kernel=kernel)]
                whole[-2:] = [both]
    return found


def is_crowded(before: Step, kernel: Kernel) -> bool:
    """Tell whether a longer chain has blocks that share more than is good, where they did not."""
    if not isinstance(before, KernelLaunch) or before.kernel.hero != "chain":
        return False
    least = max(GOOD, share_of(before.kernel))
    return share_of(kernel) > least


def share_of(kernel: Kernel) -> int:
    """Count the bytes of what a block of a chain shares."""
    block, column = kernel.parts[0].rows[:2]
    return shared_bytes(kernel) // (block.size * column.size)


def joined(pair: Pair, shared: set[int]) -> KernelLaunch | None:
    """Let one launch have the parts of both, which share some slots of the plan."""
    before, after = (
        [renumbered(part, pair.slots_of(launch)) for part in launch.kernel.parts]
        for launch in (pair.first, pair.second)
    )
    is_chain = any(own.role == "shared" for own in pair.first.kernel.slots)
    is_one = is_chain or len(before) == 1
    if not is_one or len(after) > 1:
        return None
    if pair.first.scalars or pair.second.scalars:
        return None
    slots = []
    for slot, own in pair.every():
        role = "shared" if slot in shared else own.role
        slots.append(replace(own, role=role))
    parts = (*before, *after)
    if not all(part.rows for part in parts):
        return None
    if reads_anywhere(after[0], product(sizes_of(before[-1]))):
        return None
    kernel = replace(pair.second.kernel, slots=tuple(slots), parts=parts)
    return replace(pair.first, kernel=kernel, slots=tuple(pair.numbers))


def reads_anywhere(part: Part, shared: int) -> bool:
    """Tell whether a map reads memory by what it reads, for many points of each that is shared.

    As it lies it does so within a plane at a time, which stays in the cache; a block of all planes
    reads a line of memory for each element.
    """
    if product(sizes_of(part)) < MANY * shared:
        return False
    for compute in part.computes:
        for expr in walk(compute.body):
            if expr.op != "load":
                continue
            _, place = expr.arg
            if any(True for _ in dynamics_of(place)):
                return True
    return False


def cut_parts(kernel: Kernel, target: Target) -> tuple[Part, ...] | None:
    """Cut the parts of a chain into what each block computes; None if no cut is good.

    There are enough blocks for all processors, or each has little to do; each has work for its
    threads, and what one shares leaves room for another.
    """
    points = max(product(sizes_of(part)) for part in kernel.parts)
    room = ceil_div(2 * shared_bytes(kernel), target.shared_bytes)
    room = max(room, ceil_div(points, MOST))
    many = max(room, target.multiprocessors)
    few = max(room, ceil_div(points, LITTLE))
    found = blocks_of(kernel, many, points // POINTS)
    if found is None and few < many:
        found = blocks_of(kernel, few, points // POINTS)
    return found


def shared_bytes(kernel: Kernel) -> int:
    """Count the bytes of what all blocks share: what maps share takes turns."""
    sizes: dict[tuple[int, str], int] = {}
    for part in kernel.parts:
        stored = dict.fromkeys(each.store[0] for each in part.computes if each.store)
        slots = [kernel.slots[number] for number in stored]
        shared = [slot for slot in slots if slot.role == "shared"]
        for number, slot in enumerate(shared):
            key = number, slot.dtype.name
            nbytes = slot.size * slot.dtype.itemsize
            sizes[key] = max(sizes.get(key, 0), nbytes)
    return sum(sizes.values())
