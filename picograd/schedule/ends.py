"""ends: where all that a kernel stores ends, as conditions on its axes."""

from collections.abc import Iterable

from picograd.graph.ends import End, ends_of
from picograd.schedule.group import FREE, Facts
from picograd.schedule.index import axes_of
from picograd.schedule.loop import Compute, Condition

Placed = tuple[int, End]  # a dimension of the domain, and an end along it


def place_ends(member: Facts) -> set[Placed]:
    """Say along which dimensions of its domain a member ends, and where."""
    labels = member.labels or ()
    axes = range(len(labels))
    ends = [end for end in ends_of(member.node) if end.axis in axes]
    found = [(labels[end.axis], end) for end in ends]
    return {(label, End(0, end.step, end.size, end.count)) for label, end in found if label != FREE}


def common_ends(stored: Iterable[Facts]) -> list[Placed]:
    """List the ends along dimensions that all members stored along them share."""
    members = [(set(member.labels or ()), place_ends(member)) for member in stored]
    every = dict.fromkeys(placed for _, own in members for placed in own)
    return [
        placed
        for placed in every
        if all(placed in own or placed[0] not in labels for labels, own in members)
    ]


def is_left_out(end: Condition, computes: Iterable[Compute]) -> bool:
    """Tell whether every reduction along the axes of an end has it as a guard."""
    axes = axes_of(end[0])
    for compute in computes:
        if not axes.isdisjoint(compute.reduce):
            body = compute.body
            if body.op != "guard" or end not in body.arg:
                return False
    return True
