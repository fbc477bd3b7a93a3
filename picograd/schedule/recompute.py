"""recompute: what is read again long after it was made is made again, and not kept.

    h = gelu(x)  ...  most memory is taken here  ...  dx = g * slope(x);  dW = product(dh, h)

Both x and h are kept for the way back. But h is made of x, element by element, and the kernel of dx
reads x anyway: it stores h once more, and the first h ends before the peak. What reads h before
that kernel, and could as well run after it, moves. Operations are equal, so the bits are, where x
is what h was made of; a kernel that stored x in 16 bits may have made h of more digits of it.

A *recipe* is a value as an expression of arrays that are there later too; a *host* is a kernel
between the peak and who reads the value late, that has the arrays of a recipe at the same points.
Each value costs writing it once more, so no more than a share of the peak is saved so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from picograd.dtype import DType
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.schedule.canonical import SCALAR
from picograd.schedule.in_place import LEAST, bytes_alive, lives_of, renumbered, slots_of
from picograd.schedule.index import Axis, Index, constant, position_over, substitute, unflatten
from picograd.schedule.loop import (
    Compute,
    Expr,
    Kernel,
    Part,
    Slot,
    dynamic_children,
    rewrite,
    walk,
)
from picograd.schedule.plan import KernelLaunch, PlanSlot, Step
from picograd.shared_parts import once_a_node

FROM = 3 << 29  # bytes at the peak: where less is taken, memory is not what is short
SHARE = 4  # the part of the peak that is written once more, at most
FEW = 1024  # times a value fits into the peak, at most
WORTH = 0.95  # of the peak before: what is left must be less
OPERATIONS = 64  # of a recipe
NEAR = 16  # steps that a reader moves, at most
Place = tuple[int, Index]  # a slot, and an element of it


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a value is made, with slots and scalars of the plan."""

    compute: Compute
    store: Place
    scalars: tuple[tuple[int, DType], ...]
    large: frozenset[Place]  # arrays as long as the value, and where it reads them


@dataclass(slots=True)
class Draft:
    """The steps of a plan, and what changes in them."""

    slots: list[PlanSlot]
    steps: list[Step]
    peak: int  # the step where most memory is taken
    lives: dict[int, tuple[int, int]] = field(init=False)
    readers: dict[int, list[int]] = field(default_factory=dict)  # steps that touch a slot
    writers: dict[int, list[int]] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)  # steps, and the hosts they now follow
    hosts: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)  # slots that end before the peak now

    def first_write(self, slot: int) -> int:
        """Number the first step that writes a slot; behind all if none does."""
        return self.writers.get(slot, [len(self.steps)])[0]

    def __post_init__(self) -> None:
        self.lives = lives_of(self.steps)
        for number, step in enumerate(self.steps):
            for slot in dict.fromkeys(slots_of(step)):
                self.readers.setdefault(slot, []).append(number)
            for slot in written_by(step):
                self.writers.setdefault(slot, []).append(number)


def recompute(slots: list[PlanSlot], steps: Sequence[Step]) -> list[Step]:
    """Give steps that need less memory at the peak; adds to `slots` what is made once more."""
    alive = bytes_alive(slots, steps)
    most = max(alive, default=0)
    if most < FROM:
        return list(steps)
    draft, count = Draft(slots, list(steps), alive.index(most)), len(slots)
    left = most // SHARE
    for number in candidates(draft, max(LEAST, most // FEW)):
        if slots[number].nbytes <= left and make_again(draft, number):
            left -= slots[number].nbytes
    found = in_order(draft)
    if max(bytes_alive(slots, found)) > most * WORTH:
        del slots[count:]
        return list(steps)
    return found


def candidates(draft: Draft, least: int) -> list[int]:
    """List the temporaries of at least so many bytes that wait at the peak, long ones first."""
    found = []
    for number, (first, last) in draft.lives.items():
        slot = draft.slots[number]
        is_long = slot.nbytes >= least
        if slot.kind != "temporary" or not is_long or not first < draft.peak < last:
            continue
        is_once = draft.writers.get(number) == [first]
        if is_once and draft.peak not in draft.readers[number]:
            found.append(number)
    return sorted(found, key=lambda n: -draft.slots[n].nbytes)


def make_again(draft: Draft, number: int) -> bool:
    """Let a host store a value again for those who read it late; tells whether one can."""
    late = [step for step in draft.readers[number] if step > draft.peak]
    recipe = find_recipe(draft, number)
    if recipe is None or not all(isinstance(draft.steps[n], KernelLaunch) for n in late):
        return False
    for host in near_hosts(draft, recipe, late):
        before = [step for step in late if step < host]
        if any(not can_follow(draft, step, host) for step in before):
            continue
        others = [step for step in late if step != host]
        made = hosted(draft, host, recipe, len(draft.slots) if others else -1)
        if made is None:
            continue
        if others:
            draft.slots.append(replace(draft.slots[number]))
        draft.steps[host] = made
        draft.hosts.add(host)
        draft.gone.add(number)
        for slot in slots_in(recipe):
            draft.readers[slot] = sorted({*draft.readers[slot], host})
        for step in before:
            draft.moved[step] = max(host, draft.moved.get(step, 0))
        for step in others:
            draft.steps[step] = renamed(draft.steps[step], number, len(draft.slots) - 1)
        return True
    return False


def find_recipe(draft: Draft, number: int) -> Recipe | None:
    """Express a value by arrays that are there when it is read late; None if it can not be."""
    step = draft.steps[draft.lives[number][0]]
    if not isinstance(step, KernelLaunch) or step.slots.count(number) != 1:
        return None
    part, compute = maker_of(step.kernel, step.slots.index(number))
    if part is None or compute is None or compute.store is None:
        return None
    index = compute.store[1]
    body = unfolded(compute.body, draft, step, part)
    if body is None or index != position_over(compute.axes):
        return None
    nodes = walk(body)
    large = set()
    for slot, at in loads_in(body):
        if draft.slots[slot].size >= draft.slots[number].size:
            large.add((slot, at))
    if not large or len(nodes) > OPERATIONS or any(map(dynamic_children, nodes)):
        return None
    made = replace(compute, body=body)
    scalars = zip(step.scalars, step.kernel.scalars, strict=True)
    return Recipe(made, (number, index), tuple(scalars), frozenset(large))


def maker_of(kernel: Kernel, slot: int) -> tuple[Part | None, Compute | None]:
    """Find the map that stores a slot, and its part."""
    for part in kernel.parts:
        for compute in part.computes:
            if compute.store is not None and compute.store[0] == slot:
                is_map = not compute.reduce and not part.ends
                is_map &= compute.dtype is kernel.slots[slot].dtype
                return (part, compute) if is_map else (None, None)
    return None, None


def loads_in(body: Expr) -> Iterator[Place]:
    """List what an expression reads: a slot, and where."""
    for expr in walk(body):
        if expr.op == "load":
            yield expr.arg


def load(slot: int, index: Index, dtype: DType) -> Expr:
    """Make a load."""
    return Expr("load", (), (slot, index), dtype)


@once_a_node
def unfolded(body: Expr, draft: Draft, step: KernelLaunch, part: Part) -> Expr | None:
    """Put what a body refers to in its place: from memory if it is there, else computed."""
    is_lost = False

    def known(expr: Expr) -> Expr | None:
        nonlocal is_lost
        if expr.op == "load":
            slot, index = expr.arg
            is_lost |= not is_there(draft, step.slots[slot])
            return load(step.slots[slot], index, expr.dtype)
        if expr.op == "ref":
            made = part.computes[expr.arg]
            if made.store is not None:
                slot, index = made.store
                if is_there(draft, step.slots[slot]):
                    return load(step.slots[slot], index, expr.dtype)
            inner = None if made.reduce else unfolded(made.body, draft, step, part)
            is_lost |= inner is None
            return inner
        is_lost |= expr.op == "element"
        return None

    found = rewrite(body, {}, known)
    return None if is_lost else found


def is_there(draft: Draft, slot: int) -> bool:
    """Tell whether an array has its contents after the peak too, before all that are written."""
    if draft.slots[slot].kind == "temporary":
        writers = draft.writers.get(slot, ())
        is_once = len(writers) == 1 and slot not in draft.gone
        return is_once and draft.lives[slot][1] > draft.peak
    return draft.slots[slot].kind == "input" and draft.first_write(slot) > draft.peak


def near_hosts(draft: Draft, recipe: Recipe, late: Sequence[int]) -> list[int]:
    """List the launches after the peak that read the arrays of a recipe, nearest readers first.

    One that reads the value itself may read what it is made of instead, if that is one array.
    """
    lists = [draft.readers[slot] for slot, _ in recipe.large]
    common = set(lists[0]).intersection(*lists[1:])
    if len(lists) == 1:
        common.update(late)
    found = [n for n in common if n > draft.peak and n not in draft.moved]
    return sorted(found, key=lambda n: (abs(n - late[0]), n))


def can_follow(draft: Draft, number: int, host: int) -> bool:
    """Tell whether a step could as well run behind a later one."""
    step = draft.steps[number]
    if host - number > NEAR or number in draft.hosts:
        return False
    touched, written = set(slots_of(step)), set(written_by(step))
    for other in draft.steps[number + 1 : host + 1]:
        if not written.isdisjoint(slots_of(other)) or not touched.isdisjoint(written_by(other)):
            return False
    return True


def hosted(draft: Draft, host: int, recipe: Recipe, target: int) -> KernelLaunch | None:
    """Let a launch make a value, and store it in a slot unless that is -1; None if it can not."""
    step = draft.steps[host]
    if not isinstance(step, KernelLaunch) or not are_left(draft, slots_in(recipe), host):
        return None
    size = draft.slots[recipe.store[0]].size
    for place, part in enumerate(step.kernel.parts):
        loads = loads_of(step, part)
        for compute in reversed(part.computes):
            if part.ends or not is_whole(step.kernel, compute, size):
                continue
            added = Added(step, recipe, compute)
            new = added.large - loads
            if not new or (len(new) == 1 and added.store in loads):
                return added.launch(place, draft.slots, target)
    return None


def is_whole(kernel: Kernel, compute: Compute, size: int) -> bool:
    """Tell whether a compute stores each element of an array of some size."""
    if compute.reduce or compute.store is None:
        return False
    points = product(axis.size for axis in compute.axes)
    return points == size and kernel.slots[compute.store[0]].size == size


def are_left(draft: Draft, slots: set[int], host: int) -> bool:
    """Tell whether arrays are there when a host runs."""
    for slot in slots:
        if draft.slots[slot].kind == "temporary":
            last = draft.lives[slot][1]
        else:
            last = draft.first_write(slot) - 1
        if last < host:
            return False
    return True


def slots_in(recipe: Recipe) -> set[int]:
    """List the slots that a recipe reads."""
    return {slot for slot, _ in loads_in(recipe.compute.body)}


def loads_of(step: KernelLaunch, part: Part) -> set[Place]:
    """List what a part reads, with the slots of the plan."""
    found = set()
    for compute in part.computes:
        for slot, index in loads_in(compute.body):
            found.add((step.slots[slot], index))
    return found


class Added:
    """This class adds a recipe to a launch: its axes, slots and scalars become those there."""

    step: KernelLaunch
    recipe: Recipe
    moved: dict[Axis, Index]

    def __init__(self, step: KernelLaunch, recipe: Recipe, beside: Compute) -> None:
        self.step, self.recipe, self.beside = step, recipe, beside
        axes = recipe.compute.axes
        at = beside.store[1] if beside.store else constant(0)
        sizes = tuple([axis.size for axis in axes])
        self.moved = dict(zip(axes, unflatten(at, sizes), strict=True))
        self.store = self.place(recipe.store)
        self.large = set(map(self.place, recipe.large))
        self.plan_slots = list(step.slots)
        self.scalars = list(step.scalars)
        self.slots = list(step.kernel.slots)
        self.dtypes = list(step.kernel.scalars)

    def place(self, place: Place) -> Place:
        """Say where something is along the axes of the launch."""
        return place[0], substitute(place[1], self.moved)

    def launch(self, place: int, slots: Sequence[PlanSlot], target: int) -> KernelLaunch | None:
        """Give the launch that stores the value too, and reads it nowhere; None if it does."""
        (value, index), kernel = self.store, self.step.kernel
        body = rewrite(self.recipe.compute.body, self.moved, lambda expr: self.own(expr, slots))
        part = self.without(kernel.parts[place], value, index, body)
        if target >= 0:
            made = replace(self.recipe.compute, axes=self.beside.axes, body=body)
            made = replace(made, store=(len(self.slots), index))
            part = replace(part, computes=(*part.computes, made))
            self.slots.append(Slot(slots[value].dtype, slots[value].size, "out"))
            self.plan_slots.append(target)
        parts = list(kernel.parts)
        parts[place] = part
        if value in self.plan_slots:
            gone = self.plan_slots.index(value)
            if any(reads_slot(each, gone) for each in parts):
                return None
            numbers = {n: n - (n > gone) for n in range(len(self.slots))}
            parts = [renumbered(each, numbers) for each in parts]
            del self.plan_slots[gone]
            del self.slots[gone]
        kernel = replace(kernel, slots=tuple(self.slots), parts=tuple(parts))
        kernel = replace(kernel, scalars=tuple(self.dtypes))
        places = tuple(self.plan_slots), tuple(self.scalars)
        return KernelLaunch(kernel, *places, self.step.device)

    def own(self, expr: Expr, slots: Sequence[PlanSlot]) -> Expr | None:
        """Let a load or a scalar of the plan be one of the kernel."""
        if expr.op == "load":
            slot, index = expr.arg
            if slot not in self.plan_slots:
                self.plan_slots.append(slot)
                self.slots.append(Slot(slots[slot].dtype, slots[slot].size, "in"))
            return load(self.plan_slots.index(slot), index, expr.dtype)
        if expr.op == SCALAR:
            number, dtype = self.recipe.scalars[expr.arg]
            if number not in self.scalars:
                self.scalars.append(number)
                self.dtypes.append(dtype)
            return Expr(SCALAR, (), self.scalars.index(number), expr.dtype)
        return None

    def without(self, part: Part, value: int, index: Index, body: Expr) -> Part:
        """Let the computes of a part use the value itself where they read it."""

        def known(expr: Expr) -> Expr | None:
            is_value = expr.op == "load" and self.plan_slots[expr.arg[0]] == value
            return body if is_value and expr.arg[1] == index else None

        if value not in self.plan_slots:
            return part
        changed = []
        for compute in part.computes:
            changed.append(replace(compute, body=rewrite(compute.body, {}, known)))
        return replace(part, computes=tuple(changed))


def reads_slot(part: Part, slot: int) -> bool:
    """Tell whether a part reads a slot."""
    if part.scatter or part.along:
        return True
    for compute in part.computes:
        if any(found == slot for found, _ in loads_in(compute.body)):
            return True
    return False


def in_order(draft: Draft) -> list[Step]:
    """List the steps, those that moved behind their hosts."""
    behind: dict[int, list[Step]] = {}
    for number, host in sorted(draft.moved.items()):
        behind.setdefault(host, []).append(draft.steps[number])
    found = []
    for number, step in enumerate(draft.steps):
        if number not in draft.moved:
            found.append(step)
        found += behind.get(number, ())
    return found


def written_by(step: Step) -> Iterator[int]:
    """List the slots that a step writes."""
    if isinstance(step, KernelLaunch):
        for slot, number in zip(step.kernel.slots, step.slots):
            if slot.role in ("out", "inout"):
                yield number
    else:
        yield from slots_of(step)


def renamed(step: Step, old: int, new: int) -> Step:
    """Let a launch read another slot."""
    if not isinstance(step, KernelLaunch):
        return step
    slots = [new if slot == old else slot for slot in step.slots]
    return replace(step, slots=tuple(slots))
