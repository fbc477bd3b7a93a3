"""strands: which maps may follow one another in one kernel of a GPU.

    a = rfft(x)    three maps, each stored, that read what the one before has stored
    b = rfft(k)    three others

Of one depth they would share launches, and no two launches of one array would be neighbours: none
could become a chain (chaining.py). So maps that exchange elements are told apart by what they are
made of, their strand: what is made of two strands is one of its own, and tables are of none.
"""

from collections.abc import Hashable

from picograd.schedule.group import Group
from picograd.schedule.write_order import reads_of

LEAST = 3  # maps that read one another: two share launches
MOST_RESULTS = 4  # of a map: one that stores more, as Winograd's transforms do, shares launches


def mark_strands(groups: list[Group]) -> None:
    """Number the strands of maps whose results were asked for, and which read one another."""
    numbers: dict[Hashable, int] = {}
    strands: dict[int, int] = {}  # of each group of such maps; 0: of none
    depths: dict[int, int] = {}  # how many maps of its strand are on the way to it
    chains: dict[int, list[Group]] = {}  # what has been found of each strand
    for group in sorted(groups, key=lambda each: each.depth):
        if not is_asked(group):
            continue
        found: set[int] = set()
        links: list[Group] = []
        for leaf in group.leaves:
            key = "leaf", leaf
            found.add(numbers.setdefault(key, len(numbers) + 1))
        for facts in reads_of(group):
            source = facts.group
            if source is None or source is group:
                continue
            if source.number not in strands:
                key = "group", source.number
                found.add(numbers.setdefault(key, len(numbers) + 1))
            elif strands[source.number]:
                found.add(strands[source.number])
                links.append(source)
        strand = max(found, default=0)
        if len(found) > 1:
            strand = numbers.setdefault(frozenset(found), len(numbers) + 1)
        strands[group.number] = strand
        below = [depths[each.number] for each in links if strands[each.number] == strand]
        chains.setdefault(strand, []).append(group)
        depths[group.number] = 1 + max(below, default=0)
    for strand, members in chains.items():
        if max(depths[each.number] for each in members) >= LEAST:
            for each in members:
                each.strand = strand


def is_asked(group: Group) -> bool:
    """Tell whether a group is a map whose few results were asked for in memory."""
    if len(group.members) > MOST_RESULTS:
        return False
    return group.kind == "map" and all(member.node.row.is_stored for member in group.members)
