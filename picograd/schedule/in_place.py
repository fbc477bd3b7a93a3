"""in_place: maps that write where they read, at the steps where most memory is taken.

    logits: t0 -> gradient of logits: t1          both live while a kernel makes t1 of t0
    logits: t0 -> gradient of logits: t0          one array, "inout" in the kernel

Where each element is made of the one at its own place, and nobody reads the old ones later, one
array does. The kernel is another one then, compiled by itself, so it is done for long arrays alone,
and only at steps that need more memory than all others could be brought down to.

joins: arrays that a map would only put one behind another are computed where they go.

    dq -> t0   dk -> t1   dv -> t2     t3[a, b] = (t0[b] if a = 0) + (t1[b] if a = 1) + ...
    dq -> t3[0]   dk -> t3[1]   dv -> t3[2]                       no map, and less memory

The gradients of slices of an array are such a sum: each is 0 but where its slice is. Temporaries
that nobody touches after the map are given the bytes of their place in its result. A zero keeps its
sign, which the sum would lose.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from picograd.dtype import bool_
from picograd.graph.ops import OPS
from picograd.graph.row import Role
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, constant, substitute
from picograd.schedule.loop import Expr, Kernel, Part, rewrite_all, walk_all
from picograd.schedule.memory import ALIGNMENT
from picograd.schedule.plan import CopyStep, KernelLaunch, PlanSlot, Step
from picograd.schedule.race import are_apart, has_race

LEAST = 1 << 20  # bytes of an array that is worth a kernel of its own


def slots_of(step: Step) -> tuple[int, ...]:
    """List the slots that a step touches."""
    if isinstance(step, KernelLaunch):
        return step.outside
    return (step.source, step.target) if isinstance(step, CopyStep) else step.slots


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
    computes = [each for part in step.kernel.parts for each in part.computes] if born else []
    loads = {e.arg for e in walk_all([each.body for each in computes]) if e.op == "load"}
    stores = [each.store for each in computes if each.store]
    for source in dying:
        is_once = step.slots.count(step.slots[source]) == 1
        read = {place for slot, place in loads if slot == source}
        for target in born if is_once else ():
            written = [place for slot, place in stores if slot == target]
            if any(a != b and not are_apart(a, b) for b in written for a in read):
                continue
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


def renumbered(part: Part, numbers: Mapping[int, int] | Sequence[int]) -> Part:
    """Give the slots of a part other numbers."""

    def load(expr: Expr) -> Expr | None:
        if expr.op != "load":
            return None
        slot, index = expr.arg
        return Expr("load", (), (numbers[slot], index), expr.dtype)

    computes = []
    bodies = rewrite_all([each.body for each in part.computes], {}, load)
    for each, body in zip(part.computes, bodies, strict=True):
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


Box = dict[Axis, range]
Place = tuple[int, int]  # a slot, and where it begins in the result, in elements
Term = tuple[Expr, Box]  # and where it is not 0


@dataclass(frozen=True, slots=True)
class Join:
    """A part of a launch that is not needed where its inputs, each in its place, are in `whole`."""

    step: int
    part: int
    whole: int
    places: tuple[Place, ...]


def find_joins(slots: Sequence[PlanSlot], steps: Sequence[Step]) -> list[Join]:
    """List the maps that only put temporaries one behind another: none of them is in two."""
    lives = lives_of(steps)
    taken: set[int] = set()
    found: list[Join] = []
    for number, step in enumerate(steps):
        if not isinstance(step, KernelLaunch) or step.kernel.hero != "map":
            continue
        for at, part in enumerate(step.kernel.parts):
            join = join_in(step, number, at)
            if join is None:
                continue
            touched = touched_by(step, part)
            others = [each for each in step.kernel.parts if each is not part]
            is_alone = all(touched.isdisjoint(touched_by(step, each)) for each in others)
            is_free = taken.isdisjoint(touched) and lives[join.whole][0] == number
            is_last = all(lives[slot][1] == number for slot, _ in join.places)
            is_fitting = all(map(is_plain, places_of(slots, join)))
            if is_free and is_last and is_alone and is_fitting:
                taken |= touched
                found.append(join)
    return found


def join_in(step: KernelLaunch, number: int, at: int) -> Join | None:
    """Read a part of a launch as a join, with the slots of the plan."""
    joined = join_of(step.kernel, step.kernel.parts[at])
    if joined is None:
        return None
    whole, begins = joined
    places = tuple((step.slots[n], begin) for n, begin in begins)
    return Join(number, at, step.slots[whole], places)


def touched_by(step: KernelLaunch, part: Part) -> set[int]:
    """List the slots of a plan that a part of a launch touches."""
    return {step.slots[place] for place in slots_touched([part])}


def slots_touched(parts: Sequence[Part]) -> set[int]:
    """List the slots of a kernel that parts read or write."""
    computes = [compute for part in parts for compute in part.computes]
    exprs = walk_all([each.body for each in computes])
    read = {expr.arg[0] for expr in exprs if expr.op == "load"}
    stored = {each.store[0] for each in computes if each.store}
    return read | stored


def without(steps: Sequence[Step], joins: Sequence[Join]) -> list[Step]:
    """Leave joins out of launches, and launches of nothing else."""
    gone = {(join.step, join.part) for join in joins}
    found: list[Step] = []
    for number, step in enumerate(steps):
        if not isinstance(step, KernelLaunch):
            found.append(step)
            continue
        every = step.kernel.parts
        kept = [part for at, part in enumerate(every) if (number, at) not in gone]
        if kept:
            found.append(step if len(kept) == len(every) else launch_of(step, kept))
    return found


def launch_of(launch: KernelLaunch, parts: Sequence[Part]) -> KernelLaunch:
    """Launch some of the parts of a kernel."""
    places = sorted(slots_touched(parts))
    numbers = {old: new for new, old in enumerate(places)}
    renamed = [renumbered(part, numbers) for part in parts]
    own = [launch.kernel.slots[place] for place in places]
    slots = [launch.slots[place] for place in places]
    kernel = replace(launch.kernel, slots=tuple(own), parts=tuple(renamed))
    return replace(launch, kernel=kernel, slots=tuple(slots))


def places_of(slots: Sequence[PlanSlot], join: Join) -> Iterator[tuple[PlanSlot, int]]:
    """Yield what a join touches, and where it begins in the result."""
    yield slots[join.whole], 0
    for slot, at in join.places:
        yield slots[slot], at


def is_plain(place: tuple[PlanSlot, int]) -> bool:
    """Tell whether a slot is a temporary that may begin there: a number may anywhere."""
    slot, at = place
    is_aligned = slot.size == 1 or at * slot.dtype.itemsize % ALIGNMENT == 0
    return slot.kind == "temporary" and is_aligned


def join_of(kernel: Kernel, part: Part) -> tuple[int, list[Place]] | None:
    """Read a map as a join: the slot that it writes, and the place of each that it reads."""
    if len(part.computes) != 1:
        return None
    (compute,) = part.computes
    if compute.store is None or compute.reduce or part.along is not None:
        return None
    whole, index = compute.store
    if kernel.slots[whole].dtype is not compute.body.dtype:
        return None
    everywhere = {axis: range(axis.size) for axis in compute.axes}
    terms = terms_of(compute.body, everywhere) or []
    places = []
    for term, box in terms:
        place = place_of(kernel, index, term, box)
        if place is not None:
            places.append(place)
    places.sort(key=lambda place: place[1])
    stop = 0
    for slot, at in places:
        if at != stop:
            return None
        stop += kernel.slots[slot].size
    count = len({slot for slot, _ in places})
    if count < 2 or not count == len(places) == len(terms):
        return None
    return (whole, places) if stop == kernel.slots[whole].size else None


def terms_of(expr: Expr, everywhere: Box) -> list[Term] | None:
    """List what a sum adds, or a choice by position takes, each with where it is not 0.

    None if it adds something twice, as no join does: `a, b = b, a + b` shares all of its sums, and
    60 of them are trillions of terms.
    """
    found: list[Term] = []
    seen: set[Expr] = set()
    waiting = [(expr, everywhere)]
    while waiting:
        each, box = waiting.pop()
        if each in seen:
            return None
        seen.add(each)
        inner = parts_of(each, box)
        if inner is None:
            found.append((each, box))
        else:
            waiting += inner
    return found


def parts_of(expr: Expr, box: Box) -> list[Term] | None:
    """List what an expression adds or chooses of, with where each is not 0; None if it does not."""
    row = OPS.get(expr.op)
    if row is not None and row.factors == (1, 1):
        return [(part, box) for part in expr.args]
    if expr.op == "guard":
        inside, outside = expr.args
        held = guarded_box(expr, box)
        return [(inside, held)] if held and is_zero(outside) else None
    is_choice = len(expr.args) == 3 and expr.args[0].dtype is bool_
    return chosen(expr, box) if is_choice else None


def place_of(kernel: Kernel, index: Index, load: Expr, box: Box) -> Place | None:
    """Find where the array that a term reads, all of it, lies in the result; None if it does not.

    The result is written once, so that elements that are a fixed distance away are read once.
    """
    if load.op != "load" or load.dtype is not kernel.slots[load.arg[0]].dtype:
        return None
    slot, read = load.arg
    fixed = {axis: constant(each[0]) for axis, each in box.items() if len(each) == 1}
    away = substitute(index - read, fixed)
    is_all = product(map(len, box.values())) == kernel.slots[slot].size
    return (slot, away.const) if is_all and not away.terms else None


def is_zero(expr: Expr) -> bool:
    """Tell whether an expression is the number 0."""
    row = OPS.get(expr.op)
    return row is not None and row.role is Role.NUMBER and expr.arg == 0


def guarded_box(guard: Expr, box: Box) -> Box:
    """Find the values of axes where a guard is no fill; nothing if it asks for more than ranges."""
    for index, lo, hi in guard.arg:
        box = within(box, index, lo, hi)
    return box


def chosen(choice: Expr, box: Box) -> list[Term] | None:
    """Tell where each of two expressions is taken; None if that is no question of one position."""
    test, first, second = choice.args
    row = OPS.get(test.op)
    if row is None or row.least is None:
        return None
    place, limit = test.args
    number = OPS.get(limit.op)
    if place.op != "index" or number is None or number.role is not Role.NUMBER:
        return None
    index: Index = place.arg
    last: int = limit.arg - row.least
    before = within(box, index, index.lo, last)
    after = within(box, index, last + 1, index.hi)
    if not before or not after:
        return None
    return [(first, before), (second, after)]


def within(box: Box, index: Index, lo: int, hi: int) -> Box:
    """Narrow a box to where a position along one axis is in a range; nothing if it is no such."""
    if len(index.terms) != 1:
        return {}
    ((axis, factor),) = index.terms
    if factor != 1 or not isinstance(axis, Axis):
        return {}
    held = box.get(axis)
    if held is None:
        return {}
    start = max(held.start, lo - index.const)
    stop = min(held.stop, hi - index.const + 1)
    return {**box, axis: range(start, stop)}
