"""unread_scores: what masks hide of scores that are kept in memory is neither stored nor read.

    s10[b, i, j] = where(j <= i, gradient, 0)        sum over b of s10[b, i, j]

    the same, nobody looks where i - j//8*8 < 0      sum over b of guard(0 <= i - j//8*8; s10[...])

Under a causal mask half of what is stored for the gradient of a bias is 0. Places are asked for in
runs of 8, which a thread reads at once: a run is read if the mask may show any of it.
"""

from collections.abc import Sequence
from dataclasses import replace

from picograd.errors import internal
from picograd.helpers import product, row_major
from picograd.schedule.in_place import slots_of
from picograd.schedule.index import Axis, Index, axes_of, axis_index, substitute, unflatten
from picograd.schedule.loop import Compute, Condition, Expr, Kernel, const, dynamics_of, rewrite
from picograd.schedule.plan import KernelLaunch, PlanSlot, Step
from picograd.schedule.score_masks import needed_where, weighing

RUN = 8  # places beside one another
READERS = "map", "reduce.row", "reduce.col", "reduce.all"  # which may guard what they load


def leave_unread(slots: Sequence[PlanSlot], steps: Sequence[Step]) -> list[Step]:
    """Let streams keep only what masks may show, where those who read it ask for no more."""
    launches = {n: step for n, step in enumerate(steps) if isinstance(step, KernelLaunch)}
    streams = {n: each for n, each in launches.items() if each.kernel.hero == "attention"}
    for number, launch in streams.items():
        kept = kept_in(launch.kernel)
        for compute in kept:
            slot, place = compute.store or internal("what is kept is stored", compute)
            memory = launch.slots[slot]
            others = [n for n, step in enumerate(steps) if memory in slots_of(step)]
            others.remove(number)
            held = slots[memory]
            are_readers = [is_reader(launches.get(n), memory) for n in others]
            is_ours = held.kind == "temporary" and all(are_readers)
            shown = shown_in(compute, place)
            axes = axes_in_order(place, held.size)
            if not (is_ours and shown and axes):
                continue
            own = launches[number]
            launches[number] = with_seen(own, compute, shown)
            for n in others:
                reader = launches[n]
                launches[n] = guarded(reader, memory, axes, shown)
    return [launches.get(n, step) for n, step in enumerate(steps)]


def kept_in(kernel: Kernel) -> list[Compute]:
    """List what a stream stores of every place."""
    computes = kernel.parts[-1].computes
    summed = [each.reduce for each in computes if each.reduce]
    over = set(summed[-1])
    stored = [each for each in computes if each.store and not each.reduce]
    return [each for each in stored if over.issubset(each.axes)]


def shown_in(compute: Compute, place: Index) -> list[Index]:
    """List indices of which one below 0 says that masks hide a whole run, whose places are 0."""
    nearest = [atom for atom, step in place.terms if step == 1]
    near = nearest[0] if len(nearest) == 1 else None
    if not isinstance(near, Axis) or near.size % RUN:
        return []
    first = axis_index(near) // RUN * RUN
    needed = [index for each in weighing(compute.body) for index in needed_where(each)]
    found: dict[Index, None] = {}
    for index in needed:
        steps = dict(index.terms)
        step = steps.get(near, 0)
        own = axis_index(near) * step
        rest = index - own
        if near in axes_of(rest) or any(dynamics_of(index)):
            continue
        further = RUN - 1 if step > 0 else 0
        most = substitute(index, {near: first + further})
        if most.lo < 0:
            found[most] = None
    return list(found)


def axes_in_order(place: Index, size: int) -> list[Axis]:
    """List the axes of a whole array, the one whose elements are farthest apart first."""
    terms = sorted(place.terms, key=lambda term: -term[1])
    axes = [atom for atom, _ in terms if isinstance(atom, Axis)]
    sizes = [axis.size for axis in axes]
    steps = [step for _, step in terms]
    is_whole = steps == list(row_major(sizes)) and product(sizes) == size
    return axes if is_whole and place.const == 0 else []


def is_reader(launch: KernelLaunch | None, memory: int) -> bool:
    """Tell whether a launch does no more than load elements of an array, which it may guard."""
    if launch is None or launch.kernel.hero not in READERS:
        return False
    kernel = launch.kernel
    more = [(part.scatter, part.along) for part in kernel.parts]
    is_plain = all(each == (None, None) for each in more)
    slots = zip(launch.slots, kernel.slots, strict=True)
    roles = {slot.role for number, slot in slots if number == memory}
    return is_plain and roles == {"in"}


def with_seen(launch: KernelLaunch, compute: Compute, shown: Sequence[Index]) -> KernelLaunch:
    """Say that nobody looks at what a stream keeps but where all of some indices are 0 or more."""
    seen = tests_of(shown)
    changed = replace(compute, seen=seen)
    *before, part = launch.kernel.parts
    computes = [changed if each is compute else each for each in part.computes]
    own = replace(part, computes=tuple(computes))
    kernel = replace(launch.kernel, parts=(*before, own))
    return replace(launch, kernel=kernel)


def tests_of(shown: Sequence[Index]) -> tuple[Condition, ...]:
    """Ask whether indices are all 0 or more."""
    found = []
    for index in shown:
        test = index, 0, index.hi
        found.append(test)
    return tuple(found)


def guarded(
    launch: KernelLaunch, memory: int, axes: Sequence[Axis], shown: Sequence[Index]
) -> KernelLaunch:
    """Load an array only where all of some indices are 0 or more; it is 0 elsewhere."""
    own = [n for n, number in enumerate(launch.slots) if number == memory]
    sizes = tuple([axis.size for axis in axes])

    def load(expr: Expr) -> Expr | None:
        if expr.op != "load":
            return None
        slot, index = expr.arg
        if slot not in own:
            return None
        places = unflatten(index, sizes)
        there = dict(zip(axes, places, strict=True))
        moved = [substitute(index, there) for index in shown]
        tests = tests_of(moved)
        dtype = expr.dtype
        zero = const(0, dtype)
        return Expr("guard", (expr, zero), tests, dtype)

    parts = []
    for part in launch.kernel.parts:
        computes = []
        for each in part.computes:
            body = rewrite(each.body, {}, load)
            changed = replace(each, body=body)
            computes.append(changed)
        new = replace(part, computes=tuple(computes))
        parts.append(new)
    kernel = replace(launch.kernel, parts=tuple(parts))
    return replace(launch, kernel=kernel)
