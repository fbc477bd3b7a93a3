"""recompute_apart: what waits where most memory is taken is made again by a kernel of its own.

    y = x @ w;  h = gelu(y)  ...  most memory is taken here  ...  dW = product(dh, h)
    y = x @ w;  h = gelu(y)  ...  ... h' = gelu(y);  dW = product(dh, h')

On a CPU a kernel more costs little, and arithmetic of an element little beside that of the products
around it. So each value that can be made of arrays that are there anyway is made again right before
who reads it late, as long as all that takes a small part of the plan's own time.
"""

from collections.abc import Sequence
from dataclasses import replace

from picograd.errors import internal
from picograd.graph.ops import OPS
from picograd.helpers import product
from picograd.schedule.cost import MULTIPLIED, OPERATION_BYTES, Machine, machine
from picograd.schedule.in_place import bytes_alive, slots_of
from picograd.schedule.loop import Compute, Kernel, Part, walk
from picograd.schedule.plan import KernelLaunch, PlanSlot, Step
from picograd.schedule.recompute import (
    Added,
    Draft,
    Recipe,
    are_left,
    candidates,
    find_recipe,
    recompute,
    renamed,
    slots_in,
)
from picograd.target import Target

ENOUGH = 16 << 20  # bytes at the peak: where less is taken, memory is not what is short
TIME = 32  # the part of a plan's time that is spent again, at most
ROUNDS = 4  # peaks that are looked at: what waits at one may be used at another
FEW = 256  # times a value fits into the peak, at most
GAIN = 0.95  # of the peak before: what is left must be less


def lower_peaks(slots: list[PlanSlot], steps: Sequence[Step], target: Target) -> list[Step]:
    """Make again what waits where most memory is taken: beside other work on a GPU, else apart."""
    return recompute(slots, steps) if target.has_blocks else recompute_apart(slots, steps, target)


def recompute_apart(slots: list[PlanSlot], steps: Sequence[Step], target: Target) -> list[Step]:
    """Give steps that need less memory at the peak; adds to `slots` what is made once more."""
    best, count = list(steps), len(slots)
    most = first = max(bytes_alive(slots, steps), default=0)
    if first < ENOUGH:
        return best
    made = machine(target)
    left = sum(step_time(slots, step, made) for step in steps) / TIME
    for _ in range(ROUNDS):
        found, left = lower_peak(slots, best, made, left)
        now = max(bytes_alive(slots, found))
        if now >= most:
            break
        best, most = found, now
    if most > first * GAIN:
        del slots[count:]
        return list(steps)
    return best


def lower_peak(
    slots: list[PlanSlot], steps: list[Step], made: Machine, left: float
) -> tuple[list[Step], float]:
    """Make again what waits at the peak, if that takes no longer than `left` nanoseconds."""
    alive = bytes_alive(slots, steps)
    most = max(alive)
    draft = Draft(slots, steps, alive.index(most))
    kept: set[int] = set()
    added: dict[int, list[Step]] = {}
    for number in candidates(draft, most // FEW):
        late = [step for step in draft.readers[number] if step > draft.peak]
        recipe = find_recipe(draft, number) if number not in kept else None
        is_plain = all(isinstance(draft.steps[step], KernelLaunch) for step in late)
        if recipe is None or not is_plain or not are_left(draft, recipe, late[0]):
            continue
        time = recipe_time(slots, recipe, made)
        if time > left:
            continue
        left -= time
        kept |= slots_in(recipe)
        draft.gone.add(number)
        slots.append(replace(slots[number]))
        added.setdefault(late[0], []).append(apart(recipe, slots, len(slots) - 1))
        for step in late:
            draft.steps[step] = renamed(draft.steps[step], number, len(slots) - 1)
    found: list[Step] = []
    for place, each in enumerate(draft.steps):
        found += [*added.get(place, ()), each]
    return found, left


def apart(recipe: Recipe, slots: Sequence[PlanSlot], target: int) -> KernelLaunch:
    """Write a kernel that makes a value, and stores it in a slot."""
    axes = recipe.compute.axes
    shape = "x".join(str(axis.size) for axis in axes)
    kernel = Kernel(f"map_again_{shape}", "map", (), (), (Part(axes, ()),))
    launch = KernelLaunch(kernel, (), (), slots[target].device)
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


def step_time(slots: Sequence[PlanSlot], step: Step, made: Machine) -> float:
    """Estimate the nanoseconds of a step: its arrays are passed once, or what it multiplies."""
    nbytes = sum(slots[slot].nbytes for slot in slots_of(step))
    multiplied = 0
    for part in step.kernel.parts if isinstance(step, KernelLaunch) else ():
        for compute in part.computes:
            if compute.reduce:
                multiplied += product(axis.size for axis in (*compute.axes, *compute.reduce))
    return max(nbytes / made.bandwidth, multiplied / MULTIPLIED / made.workers)
