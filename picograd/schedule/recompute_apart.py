"""recompute_apart: what waits where most memory is taken is made again right before it is read.

    y = x @ w;  h = gelu(y)  ...  most memory is taken here  ...  dW = product(dh, h)
    y = x @ w;  h = gelu(y)  ...  ... h' = gelu(y);  dW = product(dh, h')

On a CPU a kernel more costs little, and arithmetic of an element little beside that of products. A
value is made of arrays that are there anyway by a kernel of its own; or the kernel that made it
runs again, a convolution of few channels say. All that takes a small part of the plan's own time,
so what saves most bytes for it comes first. Bits stay what they were.

On a GPU a launch more is what costs: a value is one more part of a map or a reduction that runs
soon before its readers, and only if it stays in the cache until they do. So a kernel that made one
runs again beside its like, and before it what it read: weights of attention, and their scores.
Sums of a kernel that has more parts may have another order there.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from picograd.errors import internal
from picograd.graph.ops import OPS
from picograd.helpers import product
from picograd.schedule.arrange import PART_LIMIT, WORD_LIMIT
from picograd.schedule.canonical import SCALAR
from picograd.schedule.cost import (
    MULTIPLIED,
    MULTIPLIED_IN_BLOCKS,
    OPERATION_BYTES,
    Machine,
    machine,
)
from picograd.schedule.in_place import bytes_alive, join_of, renumbered, slots_of
from picograd.schedule.loop import Compute, Expr, Kernel, Part, dynamic_children, rewrite, walk
from picograd.schedule.merge import MERGED, PRODUCT_LIMIT
from picograd.schedule.plan import KernelLaunch, PlanSlot, Step
from picograd.schedule.recompute import (
    Added,
    Draft,
    Recipe,
    are_left,
    candidates,
    find_recipe,
    is_there,
    recompute,
    renamed,
    slots_in,
)
from picograd.target import Target

ENOUGH = 24 << 20  # bytes at the peak: where less is taken, memory is not what is short
ENOUGH_BESIDE = 64 << 20  # the same, on a GPU
HELD = 4 << 20  # bytes of a value that a GPU's cache still has when others read it
AHEAD = 4  # steps that a value is made before it is read there, at most
TIME = 19  # the part of a plan's time that is spent again, at most
TIME_BESIDE = 12  # the same, on a GPU
ROUNDS = 8  # peaks that are looked at: what waits at one may be used at another
FEW = 256  # times a value fits into the peak, at most
CHAIN = 2  # kernels that run again for one value there
AGAIN = "_again"  # what the name of a kernel ends in that makes a value beside its own
GAIN = 0.95  # of the peak before: what is left must be less
GAIN_BESIDE = 0.9  # the same, on a GPU


def lower_peaks(slots: list[PlanSlot], steps: Sequence[Step], target: Target) -> list[Step]:
    """Make again what waits where most memory is taken: beside other work on a GPU, else apart."""
    found = recompute(slots, steps) if target.has_blocks else steps
    return recompute_apart(slots, found, target)


def recompute_apart(slots: list[PlanSlot], steps: Sequence[Step], target: Target) -> list[Step]:
    """Give steps that need less memory at the peak; adds to `slots` what is made once more."""
    best, count = list(steps), len(slots)
    most = first = max(bytes_alive(slots, steps), default=0)
    is_beside = target.has_blocks
    if first < (ENOUGH_BESIDE if is_beside else ENOUGH):
        return best
    made = machine(target)
    if is_beside:  # tensor cores multiply for nothing
        passed = sum(step_time(slots, step, made, math.inf) for step in steps)
        left = (passed + len(steps) * made.launch) / TIME_BESIDE
    else:
        left = sum(step_time(slots, step, made) for step in steps) / TIME
    for _ in range(ROUNDS):
        known = len(slots)
        found, left = lower_peak(slots, best, made, left, is_beside)
        now = max(bytes_alive(slots, found))
        if now >= most:
            del slots[known:]
            break
        best, most = found, now
    if most > first * (GAIN_BESIDE if is_beside else GAIN):
        del slots[count:]
        return list(steps)
    return best


def lower_peak(
    slots: list[PlanSlot], steps: list[Step], made: Machine, left: float, is_beside: bool = False
) -> tuple[list[Step], float]:
    """Make again what waits at the peak, if that takes no longer than `left` nanoseconds.

    By formulas first; what can not be made so, by the kernel that made it, if that saves enough.
    """
    alive = bytes_alive(slots, steps)
    most = max(alive)
    peak = Peak(Draft(slots, list(steps), alive.index(most)), made, left, is_beside)
    waiting = candidates(peak.draft, most // FEW)
    for number in waiting:
        peak.try_formula(number)
    for number in sorted(waiting, key=peak.price_of) if is_beside else ():
        if number not in peak.draft.gone:
            peak.try_beside(number)
    if is_beside:
        return peak.draft.steps, peak.left
    makers: dict[int, list[int]] = {}
    for number in waiting:
        makers.setdefault(peak.draft.lives[number][0], []).append(number)
    for first in sorted(makers, key=lambda first: peak.price(first, makers[first])):
        peak.try_kernel(first, makers[first])
    return peak.steps(), peak.left


class Peak:
    """The step where most memory is taken, and what is made again behind it."""

    def __init__(self, draft: Draft, made: Machine, left: float, is_beside: bool = False) -> None:
        self.draft, self.made, self.left, self.is_beside = draft, made, left, is_beside
        self.added: dict[int, list[Step]] = {}  # before each step
        self.uses: dict[int, list[int]] = {}  # by slot: before which steps they read it

    def try_formula(self, number: int) -> None:
        """Write a kernel that makes a value of arrays that are there anyway."""
        draft = self.draft
        recipe, late = find_recipe(draft, number), self.late([number])
        if recipe is None or not late:
            return
        launch, host = apart(recipe, draft.slots, len(draft.slots)), None
        time = recipe_time(draft.slots, recipe, self.made)
        if self.is_beside:
            host, time = self.find_host(number, launch, late[0]), time - self.made.launch
        place = late[0] if host is None else host
        if time <= self.left and place >= 0 and are_left(draft, slots_in(recipe), place):
            self.add(launch, [number], slots_in(recipe), late, time, host)

    def find_host(self, number: int, step: KernelLaunch, late: int) -> int:
        """Find a launch behind the peak, soon before a step, for one of a value; else -1."""
        draft = self.draft
        if draft.slots[number].nbytes > HELD:
            return -1
        for place in range(late - 1, max(draft.peak, late - AHEAD - 1), -1):
            host = draft.steps[place]
            if isinstance(host, KernelLaunch) and host.device == step.device:
                if has_room(host.kernel, step.kernel):
                    return place
        return -1

    def try_beside(self, number: int) -> None:
        """Run the kernel again that made a value, as a part of another launch.

        So does, before it, the one that made what it reads, if that is not there any more.
        """
        draft, late = self.draft, self.late([number])
        wanted, place, time = number if late else -1, late[0] if late else 0, 0.0
        made: list[tuple[int, int, KernelLaunch]] = []  # values, their hosts and launches
        while wanted >= 0 and len(made) < CHAIN:
            step = draft.steps[draft.lives[wanted][0]]
            if not isinstance(step, KernelLaunch) or not is_lone(draft, wanted, step):
                return
            place = self.find_host(wanted, step, place)
            sources = set(step.slots) - {wanted}
            lost = [slot for slot in sources if not is_there(draft, slot)]
            if place < 0 or len(lost) > 1 or not are_left(draft, sources.difference(lost), place):
                return
            time += step_time(draft.slots, step, self.made, MULTIPLIED_IN_BLOCKS)
            made.append((wanted, place, step))
            wanted = lost[0] if lost else -1
        if wanted >= 0 or time > self.left:
            return
        names: dict[int, int] = {}
        for value, host, step in reversed(made):
            sources = set(step.slots) - {value, *names}
            names[value] = len(draft.slots)
            for old, new in names.items():
                step = renamed(step, old, new)
            users = late if value == number else ()
            self.add(step, [value], sources, users, time if users else 0.0, host)

    def try_kernel(self, first: int, numbers: Sequence[int]) -> None:
        """Run the kernel again that made some values."""
        draft, step = self.draft, self.draft.steps[first]
        values = [each for each in numbers if each not in draft.gone]
        late = self.late(values)
        if not late or not isinstance(step, KernelLaunch):
            return
        time = step_time(draft.slots, step, self.made)
        roles = [slot.role for slot in step.kernel.slots]
        sources = {slot for slot, role in zip(step.slots, roles) if role == "in"}
        is_there_all = all(is_there(draft, slot) for slot in sources)
        if time > self.left or "inout" in roles or not is_there_all:
            return
        if are_left(draft, sources, late[0]):
            outs = [slot for slot, role in zip(step.slots, roles) if role == "out"]
            others = [slot for slot in outs if slot not in values]
            if any(draft.writers[slot] != [first] for slot in others):
                return  # what is written later would be made as it was
            numbers = [*values, *others]
            new = {old: len(draft.slots) + place for place, old in enumerate(numbers)}
            launch = replace(step, slots=tuple([new.get(slot, slot) for slot in step.slots]))
            self.add(launch, numbers, sources, late, time)

    def late(self, numbers: Sequence[int]) -> list[int]:
        """List the steps behind the peak that read some values, or before which others do.

        The list is empty if one of them is no launch.
        """
        draft = self.draft
        found = {step for n in numbers for step in draft.readers[n] if step > draft.peak}
        is_plain = all(isinstance(draft.steps[step], KernelLaunch) for step in found)
        found.update(at for n in numbers for at in self.uses.get(n, ()))
        return sorted(found) if is_plain else []

    def add(
        self, launch: Step, numbers: Sequence[int], sources: set[int], late: Sequence[int],
        time: float, host: int | None = None,
    ) -> None:  # fmt: skip
        """Add a launch that makes values in new slots, before all who read them late.

        It takes the place of its host, if it has one.
        """
        draft = self.draft
        self.left -= time
        for source in sources:
            self.uses.setdefault(source, []).append(late[0] if host is None else host)
        for number in numbers:
            new = len(draft.slots)
            draft.slots.append(replace(draft.slots[number], kind="temporary"))
            draft.gone.add(number)
            for step in late:
                draft.steps[step] = renamed(draft.steps[step], number, new)
                others = self.added.get(step, ())
                self.added[step] = [renamed(each, number, new) for each in others]
        if host is None:
            self.added[late[0]] = [launch, *self.added.get(late[0], ())]
        else:
            draft.steps[host] = beside(draft.steps[host], launch)

    def price_of(self, number: int) -> float:
        """Estimate the same of one value."""
        return self.price(self.draft.lives[number][0], [number])

    def price(self, first: int, numbers: Sequence[int]) -> float:
        """Estimate the nanoseconds that a byte of some values takes to be made again."""
        draft = self.draft
        nbytes = sum(draft.slots[number].nbytes for number in numbers)
        rate = MULTIPLIED_IN_BLOCKS if self.is_beside else MULTIPLIED
        return step_time(draft.slots, draft.steps[first], self.made, rate) / nbytes

    def steps(self) -> list[Step]:
        """List the steps, with those that were added."""
        found: list[Step] = []
        for place, each in enumerate(self.draft.steps):
            found += [*self.added.get(place, ()), each]
        return found


def has_room(kernel: Kernel, other: Kernel) -> bool:
    """Tell whether a kernel has room for another: maps and reductions, or products of one dtype."""
    if other.hero == "contract":
        dtypes = {slot.dtype for slot in (*kernel.slots, *other.slots)}
        is_like = kernel.hero == other.hero and len(dtypes) == 1
        return is_like and 1 < len(kernel.parts) < PRODUCT_LIMIT
    is_plain = not any(part.scatter or part.along or part.ends for part in kernel.parts)
    is_short = len(kernel.parts) < PART_LIMIT and len(kernel.slots) < WORD_LIMIT // 2
    is_there = not any(join_of(kernel, part) for part in kernel.parts)  # those may not run at all
    kinds = {each.partition(".")[0] for each in (kernel.hero, other.hero)}
    return is_there and is_plain and is_short and kinds.issubset(MERGED)


def is_lone(draft: Draft, value: int, step: KernelLaunch) -> bool:
    """Tell whether a launch makes a value, and nothing else."""
    made = [slot for slot, each in zip(step.slots, step.kernel.slots) if each.role != "in"]
    parts = step.kernel.parts
    is_plain = not any(part.scatter or part.along or part.ends for part in parts)
    bodies = [compute.body for part in parts for compute in part.computes]
    is_plain &= not any(dynamic_children(expr) for body in bodies for expr in walk(body))
    is_once = draft.slots[value].kind == "temporary"
    is_once &= draft.writers[value] == [draft.lives[value][0]]
    return is_once and is_plain and made == [value] and step.slots.count(value) == 1


def beside(host: Step, step: Step) -> Step:
    """Make a launch part of another: its slots and scalars get other numbers."""
    if not isinstance(host, KernelLaunch) or not isinstance(step, KernelLaunch):
        return internal("only launches have parts", host)
    slots, own = list(host.slots), list(host.kernel.slots)
    for slot, each in zip(step.slots, step.kernel.slots, strict=True):
        if slot not in slots:
            slots.append(slot)
            own.append(each)
    numbers = {place: slots.index(slot) for place, slot in enumerate(step.slots)}
    count = len(host.scalars)

    def later(expr: Expr) -> Expr | None:
        is_scalar = expr.op == SCALAR
        return Expr(SCALAR, (), expr.arg + count, expr.dtype) if is_scalar else None

    parts = []
    for part in step.kernel.parts:
        moved = renumbered(part, numbers)
        bodies = [rewrite(compute.body, {}, later) for compute in moved.computes]
        pairs = zip(moved.computes, bodies, strict=True)
        parts.append(replace(moved, computes=tuple([replace(c, body=b) for c, b in pairs])))
    scalars = *host.kernel.scalars, *step.kernel.scalars
    name = host.kernel.name.removesuffix(AGAIN) + AGAIN
    hero = step.kernel.hero if host.kernel.hero == "map" else host.kernel.hero
    kernel = replace(host.kernel, name=name, hero=hero, slots=tuple(own))
    kernel = replace(kernel, parts=(*kernel.parts, *parts), scalars=scalars)
    numbers_of = (*host.scalars, *step.scalars)
    return replace(host, kernel=kernel, slots=tuple(slots), scalars=numbers_of)


def apart(recipe: Recipe, slots: Sequence[PlanSlot], target: int) -> KernelLaunch:
    """Write a kernel that makes a value, and stores it in a slot to be."""
    axes = recipe.compute.axes
    shape = "x".join(str(axis.size) for axis in axes)
    kernel = Kernel(f"map_again_{shape}", "map", (), (), (Part(axes, ()),))
    launch = KernelLaunch(kernel, (), (), slots[recipe.store[0]].device)
    found = Added(launch, recipe, recipe.compute).launch(0, slots, target)
    return found or internal("a kernel without slots reads the value", kernel)


def recipe_time(slots: Sequence[PlanSlot], recipe: Recipe, made: Machine) -> float:
    """Estimate the nanoseconds that making a value takes."""
    touched = [recipe.store[0], *slots_in(recipe)]
    nbytes = sum(slots[slot].nbytes for slot in touched)
    work = operations(recipe.compute) * slots[recipe.store[0]].size
    return (nbytes + work * OPERATION_BYTES) / made.bandwidth + made.launch


def operations(compute: Compute) -> int:
    """Count the weighted operations of an element."""
    return sum(OPS[expr.op].cost for expr in walk(compute.body) if expr.op in OPS)


def step_time(
    slots: Sequence[PlanSlot], step: Step, made: Machine, rate: float = MULTIPLIED
) -> float:
    """Estimate the nanoseconds of a step: its arrays are passed once, or what it multiplies."""
    nbytes = sum(slots[slot].nbytes for slot in slots_of(step))
    multiplied = 0
    for part in step.kernel.parts if isinstance(step, KernelLaunch) else ():
        for compute in part.computes:
            if compute.reduce:
                multiplied += product(axis.size for axis in (*compute.axes, *compute.reduce))
    return max(nbytes / made.bandwidth, multiplied / rate / made.workers)
