"""early: large updates run as soon as they can, so that the gradients they read end.

    gradient 3, gradient 2, gradient 1, updates 1 to 3     three gradients live at once
    gradient 3, update 3, gradient 2, update 2, ...        one does

Small ones wait for one another and share a kernel. An update runs after all that read the memory it
writes; those that read what another of them writes, an optimizer's averages say, stay together.
"""

from picograd.helpers import product
from picograd.schedule.group import Group
from picograd.schedule.in_place import LEAST
from picograd.schedule.ties import Ties
from picograd.schedule.write_order import overwritten, reads_of

LONE = ("host", "loop")  # kinds of groups that may fail: nothing is written before


def update_early(groups: list[Group]) -> None:
    """Move large updates up to behind what they read, and what reads what they write."""
    if any(group.kind in LONE for group in groups):
        return
    updates = {group.number: group for group in groups if is_large_update(group)}
    writers: dict[int, list[Group]] = {}  # of each leaf
    for group in updates.values():
        for leaf in overwritten(group):
            writers.setdefault(leaf, []).append(group)
    least = dict.fromkeys(updates, 0)
    ties = Ties(least)
    for group in groups:
        for facts in reads_of(group):
            for writer in writers.get(facts.number, ()):
                number = writer.number
                if group.number in updates:
                    ties.tie(group.number, number)
                else:
                    least[number] = max(least[number], group.depth + 1)
    together: dict[int, int] = {}
    for number, group in updates.items():
        head = ties.head(number)
        depth = max(least[number], ready(group))
        together[head] = max(together.get(head, 0), depth)
    for number, group in updates.items():
        earliest = together[ties.head(number)]
        group.depth = min(group.depth, earliest)


def ready(group: Group) -> int:
    """Find the depth from which all that a group reads is there."""
    makers = [facts.group for facts in reads_of(group) if facts.group]
    return max((maker.depth + 1 for maker in makers), default=0)


def is_large_update(group: Group) -> bool:
    """Tell whether all that a group of maps does is to write whole arrays in place, long ones."""
    if group.kind != "map" or group.has_readers:
        return False
    if any(each.is_update or each.overwrites < 0 for each in group.members):
        return False
    dtypes = [each.node.dtype for each in group.members]
    itemsize = max((dtype.itemsize for dtype in dtypes), default=0)
    return product(group.shape) * itemsize >= LEAST
