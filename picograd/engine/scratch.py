"""scratch: workspaces of a plan's kernels lie in its arena, as temporaries of one step do.

What a kernel needs between its tasks, packed operands or parts of sums say, it needs while it
runs. Most steps of a plan leave room for that in the arena, which is as large as what lives at the
fullest one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from picograd.code import Workspace
from picograd.dtype import uint8
from picograd.runtime.device import Executable, TapeLaunch
from picograd.schedule.in_place import lives_of
from picograd.schedule.memory import place_slots
from picograd.schedule.plan import (
    KernelLaunch,
    LoopStep,
    Plan,
    PlanSlot,
    Step,
    find_waits,
    shared_memory,
)
from picograd.target import is_host

Loaded = Mapping[tuple[str, int], Executable]  # by device and kernel
# Bytes of a launch, on the host and elsewhere: where it takes less, all launches share memory
# outside. In an arena launches wait for those that had the memory before, so a GPU's are longer.
LEAST, LEAST_APART = 1 << 16, 1 << 20


def place_workspaces(plan: Plan, loaded: Loaded) -> Plan:
    """Give launches slots for workspaces that need not be zero, behind those they have.

    Temporaries of their device are placed once more; parts of an array stay where they are in it. A
    plan without temporaries stays without an arena, unless it is the host's.
    """
    slots = list(plan.slots)
    steps = list(plan.steps)
    devices = set()
    for number, step in enumerate(plan.steps):
        found = workspaces_of(step, loaded)
        nbytes = sum(each.bytes for each in found)
        if isinstance(step, KernelLaunch) and nbytes >= least(plan, step.device):
            added = range(len(slots), len(slots) + len(found))
            slots += [space_slot(each.bytes, step.device) for each in found]
            wider = *step.slots, *added
            steps[number] = replace(step, slots=wider)
            devices.add(step.device)
    lives = {}
    for number, life in lives_of(steps).items():
        if slots[number].device in devices:
            lives[number] = life
    parts = []
    for part, whole in plan.joined:
        if part in lives:
            away = slots[part].offset - slots[whole].offset
            parts.append((part, whole, away))
    arenas = {**plan.arenas, **place_slots(slots, lives, parts)}
    return replace(plan, slots=tuple(slots), steps=tuple(steps), arenas=arenas)


def least(plan: Plan, device: str) -> float:
    """Find how many bytes of workspaces are worth slots."""
    if is_host(device):
        return LEAST
    return LEAST_APART if plan.arenas.get(device) else math.inf


def workspaces_of(step: Step, loaded: Loaded) -> list[Workspace]:
    """List the workspaces of a launch that need not be zero."""
    if not isinstance(step, KernelLaunch):
        return []
    kernel = step.kernel
    executable = loaded[step.device, id(kernel)]
    code = executable.code
    return [each for each in code.workspaces if not each.is_zeroed]


def space_slot(nbytes: int, device: str) -> PlanSlot:
    """Make the slot of a workspace."""
    return PlanSlot("temporary", uint8, size=nbytes, device=device, shape=(nbytes,), strides=(1,))


def rows_of_one(plan: Plan, step: LoopStep) -> list[list[int]]:
    """List slots of a loop's body that lie in one array of the plan, or in arrays that overlap."""
    sharing = shared_memory(plan.slots, sorted({each.slot for _, each in step.bindings}))
    return [
        [number for number, binding in step.bindings if binding.slot in others]
        for others in sharing.values()
    ]


def tape_launches(
    plan: Plan, launches: Sequence[KernelLaunch], loaded: Loaded, rows: Sequence[Sequence[int]]
) -> list[TapeLaunch]:
    """Say what the launches of a tape run, and which others each waits for.

    For all before it on a CPU. Of a loop's body, `rows` lists slots that may be rows of one array.
    """
    waits: Sequence[tuple[int, ...] | None] = [None] * len(launches)
    if not is_host(launches[0].device):
        waits = find_waits(plan.slots, launches, rows)
    made = []
    for each, before in zip(launches, waits):
        spaces = len(each.slots) - len(each.kernel.slots)
        name = each.device, id(each.kernel)
        launch = TapeLaunch(loaded[name], each.slots, each.scalars, before, spaces)
        made.append(launch)
    return made
