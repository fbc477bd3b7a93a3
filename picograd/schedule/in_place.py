"""in_place: maps that write where they read, at the steps where most memory is taken.

    logits: t0 -> gradient of logits: t1          both live while a kernel makes t1 of t0
    logits: t0 -> gradient of logits: t0          one array, "inout" in the kernel

Where each element is made of the one at its own place, and nobody reads the old ones later, one
array does. The kernel is another one then, compiled by itself, so it is done for long arrays alone,
and only at steps that need more memory than all others could be brought down to.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from picograd.late_methods import dataclass
from picograd.schedule.loop import Expr, Kernel, Part, rewrite
from picograd.schedule.plan import CopyStep, KernelLaunch, PlanSlot, Step
from picograd.schedule.race import has_race

LEAST = 1 << 20  # bytes of an array that is worth a kernel of its own


def slots_of(step: Step) -> tuple[int, ...]:
    """List the slots that a step touches."""
    if isinstance(step, CopyStep):
        return step.source, step.target
    return step.slots


def lives_of(steps: Sequence[Step]) -> dict[int, tuple[int, int]]:
    """Find the first and the last step that touches each slot."""
    lives: dict[int, tuple[int, int]] = {}
    for number, step in enumerate(steps):
        for slot in slots_of(step):
            first, _ = lives.get(slot, (number, number))
            lives[slot] = first, number
    return lives


@dataclass(frozen=True, slots=True)
class Merge:
    """A launch that can write where it reads."""

    step: int
    launch: KernelLaunch  # of the kernel that has one array
    slots: tuple[int, int]  # of the plan: what it read, and what it writes
    nbytes: int


def write_in_place(slots: Sequence[PlanSlot], steps: Sequence[Step]) -> list[Step]:
    """Let maps write where they read, where that makes the arena smaller.

    Two arrays that become one live together at one step alone, so that no other step needs more.
    """
    found = {merge.step: merge for merge in merges(slots, steps)}
    alive = bytes_alive(slots, steps)
    left = alive.copy()
    for number, merge in found.items():
        left[number] -= merge.nbytes
    least = max(left, default=0)
    made = list(steps)
    moved: dict[int, int] = {}
    for number, merge in found.items():
        if alive[number] > least:
            source, target = merge.slots
            made[number] = merge.launch
            moved[source] = target
    return [moved_step(step, moved) for step in made]


def merges(slots: Sequence[PlanSlot], steps: Sequence[Step]) -> Iterator[Merge]:
    """Find the launches that can write where they read."""
    lives = lives_of(steps)
    others = {
        slot for step in steps if not isinstance(step, KernelLaunch) for slot in slots_of(step)
    }
    for number, step in enumerate(steps):
        if not isinstance(step, KernelLaunch) or step.kernel.hero != "map":
            continue
        dying, born = [], []
        for place, slot in enumerate(step.slots):
            first, last = lives[slot]
            if not is_long(slots[slot]):
                continue
            if first == number:
                born.append(place)
            elif last == number and slot not in others:
                dying.append(place)
        found = merge_of(step, dying, born)
        if found is not None:
            launch, pair = found
            yield Merge(number, launch, pair, slots[pair[0]].nbytes)


def is_long(slot: PlanSlot) -> bool:
    """Tell whether a slot is a temporary that is worth a kernel of its own."""
    return slot.kind == "temporary" and slot.nbytes >= LEAST


def bytes_alive(slots: Sequence[PlanSlot], steps: Sequence[Step]) -> list[int]:
    """Count the bytes of temporaries that live at each step."""
    changes = [0] * (len(steps) + 1)
    for slot, (first, last) in lives_of(steps).items():
        if slots[slot].kind == "temporary":
            nbytes = slots[slot].nbytes
            changes[first] += nbytes
            changes[last + 1] -= nbytes
    return list(accumulate(changes))[:-1]


def merge_of(
    step: KernelLaunch, dying: Sequence[int], born: Sequence[int]
) -> tuple[KernelLaunch, tuple[int, int]] | None:
    """Find two slots of the plan of which one would do, and the launch with one."""
    for source in dying:
        is_once = step.slots.count(step.slots[source]) == 1
        for target in born if is_once else ():
            kernel = merged_kernel(step.kernel, source, target)
            if kernel is not None:
                rest = [slot for n, slot in enumerate(step.slots) if n != source]
                launch = replace(step, kernel=kernel, slots=tuple(rest))
                return launch, (step.slots[source], step.slots[target])
    return None


def merged_kernel(kernel: Kernel, source: int, target: int) -> Kernel | None:
    """Let a kernel write to `target` where `source` was; None if it is read at other points."""
    read, written = kernel.slots[source], kernel.slots[target]
    fits = (read.role, read.dtype, read.size) == ("in", written.dtype, written.size)
    if not fits or written.role != "out":
        return None
    stores = 0
    for part in kernel.parts:
        if part.scatter is not None or part.along is not None:
            return None
        stored = [compute.store[0] for compute in part.computes if compute.store]
        stores += stored.count(target)
    if stores != 1:
        return None
    left = [n for n in range(len(kernel.slots)) if n != source]
    numbers = {old: new for new, old in enumerate(left)}
    numbers[source] = numbers[target]
    slots = [kernel.slots[n] for n in left]
    slots[numbers[target]] = replace(written, role="inout")
    parts = tuple(renumbered(part, numbers) for part in kernel.parts)
    merged = replace(kernel, slots=tuple(slots), parts=parts)
    return None if has_race(merged) else merged


def renumbered(part: Part, numbers: Mapping[int, int]) -> Part:
    """Give the slots of a part other numbers."""

    def load(expr: Expr) -> Expr | None:
        if expr.op != "load":
            return None
        slot, index = expr.arg
        return Expr("load", (), (numbers[slot], index), expr.dtype)

    computes = []
    for each in part.computes:
        body = rewrite(each.body, {}, load)
        store = each.store
        if store is not None:
            slot, index = store
            store = numbers[slot], index
        computes.append(replace(each, body=body, store=store))
    return replace(part, computes=tuple(computes))


def moved_step(step: Step, moved: Mapping[int, int]) -> Step:
    """Let a launch find arrays where they lie now; nothing else touches them."""
    if not isinstance(step, KernelLaunch):
        return step

    def place(slot: int) -> int:
        while slot in moved:
            slot = moved[slot]
        return slot

    return replace(step, slots=tuple(map(place, step.slots)))
