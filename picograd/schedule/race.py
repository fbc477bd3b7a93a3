"""has_race: does a kernel read, at one point, what it overwrites at another?"""

from picograd.schedule.index import Index
from picograd.schedule.loop import Kernel, Part, walk


def has_race(kernel: Kernel) -> bool:
    """Tell whether an in-place slot is read anywhere but at the very element being written.

    A compute that writes in place may read the old element itself; any other compute of its part
    may do so only before it, at the same index; other parts not at all.
    """
    both = {number for number, slot in enumerate(kernel.slots) if slot.role == "inout"}
    parts = kernel.parts
    if not both or any(part.scatter or part.along for part in parts):
        return False
    written: dict[int, tuple[int, Index]] = {}
    for number, part in enumerate(parts):
        for compute in part.computes:
            if compute.store and compute.store[0] in both:
                slot, index = compute.store
                written[slot] = (number, index)
    return any(part_races(part, number, written) for number, part in enumerate(parts))


def part_races(part: Part, number: int, written: dict[int, tuple[int, Index]]) -> bool:
    """Tell whether one part reads a slot written in place illegally."""
    done: set[int] = set()
    for compute in part.computes:
        for expr in walk(compute.body):
            if expr.op == "load" and expr.arg[0] in written:
                slot, index = expr.arg
                is_own = slot not in done and written[slot] == (number, index)
                if is_own and not compute.reduce:
                    continue
                if not are_apart(index, written[slot][1]):
                    return True
        if compute.store:
            done.add(compute.store[0])
    return False


def are_apart(a: Index, b: Index) -> bool:
    """Tell whether two indices are never equal, each at any point of its own.

    x[0] and x[1], of 4 columns: 0..3 and 4..7. x[:, 0] and x[:, 1]: 4 i and 4 j + 1.
    """
    if a.hi < b.lo or b.hi < a.lo:
        return True
    terms = *a.terms, *b.terms
    for step in {abs(factor) for _, factor in terms}:
        left, right = rest_of(a, step), rest_of(b, step)
        least = left.lo - right.hi
        most = left.hi - right.lo
        if most // step * step < least:  # no multiple of the step is among the differences
            return True
    return False


def rest_of(index: Index, step: int) -> Index:
    """Leave the multiples of a step out."""
    terms = [term for term in index.terms if term[1] % step]
    return Index(tuple(terms), index.const)
