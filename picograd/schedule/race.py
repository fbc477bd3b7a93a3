"""has_race: does a kernel read, at one point, what it overwrites at another?"""

from picograd.schedule.index import Index
from picograd.schedule.loop import Kernel, Part, walk


def has_race(kernel: Kernel) -> bool:
    """Tell whether an in-place slot is read anywhere but at the very element being written.

    A compute that writes in place may read the old element itself; any other compute of its part
    may do so only before it, at the same index; other parts not at all.
    """
    both = {
        number for number, slot in enumerate(kernel.slots) if slot.role == "inout"
    }
    if not both or any(part.scatter or part.along for part in kernel.parts):
        return False
    written: dict[int, tuple[int, Index]] = {}
    for number, part in enumerate(kernel.parts):
        for compute in part.computes:
            if compute.store and compute.store[0] in both:
                written[compute.store[0]] = (number, compute.store[1])
    return any(
        part_races(part, number, written) for number, part in enumerate(kernel.parts)
    )


def part_races(
    part: Part, number: int, written: dict[int, tuple[int, Index]]
) -> bool:
    """Tell whether one part reads a slot written in place illegally."""
    done: set[int] = set()
    for compute in part.computes:
        for expr in walk(compute.body):
            if expr.op == "load" and expr.arg[0] in written:
                slot, index = expr.arg
                if (
                    slot in done
                    or written[slot] != (number, index)
                    or compute.reduce
                ):
                    return True
        if compute.store:
            done.add(compute.store[0])
    return False
