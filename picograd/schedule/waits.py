"""waits: which launches of a stretch must be done before which others begin.

A launch waits for those that write what it reads, and for those that touch what it writes, also
where temporaries that live at different times share memory. The rest may run beside it:

    a: x -> t      b: x -> u      c: t, u -> y        waits: (), (), (0, 1)

What a launch waits for by way of another is left out.
"""

from collections.abc import Sequence

from picograd.helpers import direct
from picograd.schedule.plan import KernelLaunch, PlanSlot


def find_waits(
    slots: Sequence[PlanSlot], launches: Sequence[KernelLaunch]
) -> list[tuple[int, ...]]:
    """List for each launch the numbers of those that it waits for."""
    touched = sorted({slot for launch in launches for slot in launch.slots})
    sharing = shared_memory(slots, touched)
    writer: dict[int, int] = {}  # the last launch that wrote a slot
    readers: dict[int, list[int]] = {}  # and those that read it since
    found: list[set[int]] = []
    for number, launch in enumerate(launches):
        waited: set[int] = set()
        roles = [(slot, each.role) for slot, each in zip(launch.slots, launch.kernel.slots)]
        for slot, role in roles:
            for other in sharing[slot]:
                waited.update([writer[other]] if other in writer else [])
                waited.update(readers.get(other, ()) if role != "in" else ())
        for slot, role in roles:
            if role == "in":
                readers.setdefault(slot, []).append(number)
            else:
                writer[slot], readers[slot] = number, []
        found.append(waited - {number})
    return direct(found)


def shared_memory(slots: Sequence[PlanSlot], touched: Sequence[int]) -> dict[int, list[int]]:
    """List for each slot those that share bytes with it, itself among them."""
    sharing = {slot: [slot] for slot in touched}
    placed = [slot for slot in touched if slots[slot].kind == "temporary" and slots[slot].nbytes]
    placed.sort(key=lambda slot: (slots[slot].device, slots[slot].offset))
    open_slots: list[int] = []
    for slot in placed:
        own = slots[slot]
        open_slots = [
            other
            for other in open_slots
            if slots[other].device == own.device
            and slots[other].offset + slots[other].nbytes > own.offset
        ]
        for other in open_slots:
            sharing[slot].append(other)
            sharing[other].append(slot)
        open_slots.append(slot)
    return sharing
