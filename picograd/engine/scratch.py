"""scratch: workspaces of a plan's kernels lie in its arena, as temporaries of one step do.

What a CPU's kernel needs between its tasks, packed operands say, it needs while it runs. Most steps
of a plan leave room for that in the arena, which is as large as what lives at the fullest one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from picograd.code import Workspace
from picograd.dtype import uint8
from picograd.runtime.device import Executable, TapeLaunch
from picograd.schedule.in_place import lives_of
from picograd.schedule.memory import Lifetime, place_temporaries
from picograd.schedule.plan import KernelLaunch, Plan, PlanSlot, Step
from picograd.schedule.waits import find_waits
from picograd.target import is_host

LEAST = 1 << 16  # bytes of a launch: where it takes less, all launches share memory outside


def place_workspaces(plan: Plan, loaded: Mapping[tuple[str, int], Executable]) -> Plan:
    """Give launches of a CPU slots for workspaces that need not be zero, behind those they have."""
    slots, steps = list(plan.slots), list(plan.steps)
    devices = set()
    for number, step in enumerate(plan.steps):
        found = workspaces_of(step, loaded)
        if isinstance(step, KernelLaunch) and sum(each.bytes for each in found) >= LEAST:
            added = range(len(slots), len(slots) + len(found))
            steps[number] = replace(step, slots=(*step.slots, *added))
            slots += [space_slot(each.bytes, step.device) for each in found]
            devices.add(step.device)
    lives = lives_of(steps)
    for part, whole in plan.joined:
        lives[whole] = min(lives[whole][0], lives.pop(part)[0]), lives[whole][1]
    arenas = dict(plan.arenas)
    for device in sorted(devices):
        numbers = [n for n in lives if slots[n].kind == "temporary" and slots[n].device == device]
        lifetimes = [Lifetime(slots[n].nbytes, *lives[n]) for n in numbers]
        offsets, arenas[device] = place_temporaries(lifetimes)
        for number, offset in zip(numbers, offsets, strict=True):
            slots[number] = replace(slots[number], offset=offset)
        for part, whole in plan.joined:
            away = plan.slots[part].offset - plan.slots[whole].offset
            if slots[whole].device == device:
                slots[part] = replace(slots[part], offset=slots[whole].offset + away)
    return replace(plan, slots=tuple(slots), steps=tuple(steps), arenas=arenas)


def workspaces_of(step: Step, loaded: Mapping[tuple[str, int], Executable]) -> list[Workspace]:
    """List the workspaces of a launch on a CPU that need not be zero."""
    if not isinstance(step, KernelLaunch) or not is_host(step.device):
        return []
    code = loaded[step.device, id(step.kernel)].code
    return [each for each in code.workspaces if not each.is_zeroed]


def space_slot(nbytes: int, device: str) -> PlanSlot:
    """Make the slot of a workspace."""
    return PlanSlot("temporary", uint8, nbytes, device, (nbytes,), (1,))


def tape_launches(
    plan: Plan,
    launches: Sequence[KernelLaunch],
    loaded: Mapping[tuple[str, int], Executable],
    is_body: bool,
) -> list[TapeLaunch]:
    """Say what the launches of a tape run, and which others each waits for.

    For all before it in a loop's body, where arrays may be rows of one, and on a CPU.
    """
    waits: Sequence[tuple[int, ...] | None] = [None] * len(launches)
    if not is_body and not is_host(launches[0].device):
        waits = find_waits(plan.slots, launches)
    made = []
    for each, before in zip(launches, waits):
        spaces = len(each.slots) - len(each.kernel.slots)
        executable = loaded[each.device, id(each.kernel)]
        made.append(TapeLaunch(executable, each.slots, each.scalars, before, spaces))
    return made
