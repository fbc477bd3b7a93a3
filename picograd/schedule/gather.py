"""gather: small maps whose readers come later run at one depth, where they share a kernel.

gradient 3, update 3, gradient 2, update 2, gradient 1, update 1, next step
gradient 3, gradient 2, gradient 1, updates 1 to 3, next step
"""

from picograd.helpers import product
from picograd.schedule.cost import is_small, machine
from picograd.schedule.group import Group
from picograd.schedule.write_order import reads_of
from picograd.target import Target

ARRAYS = 4  # that an element of an update is read from and written to, about


def gather(groups: list[Group], target: Target) -> None:
    """Move small maps to depths where they are together, none beyond what reads them.

    Every depth is passed once. What is ready waits until one of those that wait is needed: all of
    them run then, and what reads them is ready for the next depth.
    """
    last = last_depths(groups, target)
    moved = [group for group in groups if group.number in last]
    sources: dict[int, set[int]] = {}
    readers: dict[int, list[Group]] = {}
    ready: dict[int, list[Group]] = {}
    for group in moved:
        makers = [facts.group.number for facts in reads_of(group) if facts.group]
        found = sources[group.number] = {number for number in makers if number in last}
        for source in found:
            readers.setdefault(source, []).append(group)
        if not found:
            ready.setdefault(group.depth, []).append(group)
    waiting: list[Group] = []
    for depth in range(max(last.values(), default=-1) + 1):
        waiting += ready.pop(depth, ())
        if not any(last[group.number] == depth for group in waiting):
            continue
        for group in waiting:
            if len(waiting) > 1:
                group.depth = depth
            for reader in readers.get(group.number, ()):
                left = sources[reader.number]
                left.discard(group.number)
                reader.depth = max(reader.depth, group.depth + 1)
                if not left:
                    ready.setdefault(max(reader.depth, depth + 1), []).append(reader)
        waiting = []


def last_depths(groups: list[Group], target: Target) -> dict[int, int]:
    """Find the depths before those that read them, of small maps that anything reads."""
    made = machine(target)
    last: dict[int, int] = {}
    needed: dict[int, int] = {}
    for group in sorted(groups, key=lambda group: -group.depth):
        number, depth = group.number, group.depth
        is_light = group.kind == "map" and is_small(4 * ARRAYS * product(group.shape), made)
        if is_light and number in needed:
            depth = last[number] = needed[number]
        for facts in reads_of(group):
            if facts.group:
                source = facts.group.number
                needed[source] = min(needed.get(source, depth - 1), depth - 1)
    return last
