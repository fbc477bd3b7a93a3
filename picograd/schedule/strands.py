"""strands: which maps may follow one another in one kernel of a GPU.

    a = rfft(x)    three maps, each stored, that read what the one before has stored
    b = rfft(k)    three others

Of one depth they would share launches, and no two launches of one array would be neighbours: none
could become a chain (chaining.py). So what exchanges elements is told apart by the arrays that it
is made of, its strand. What is made of both is a strand of its own, and tables are of none.
"""

from picograd.schedule.group import Group
from picograd.schedule.write_order import reads_of

Strand = frozenset[int]


def mark_strands(groups: list[Group]) -> None:
    """Give maps whose results were asked for, and which read such, the leaves they are made of."""
    made: dict[int, Strand] = {}  # of each group: the leaves of it, and of all it reads
    links: set[int] = set()
    for group in sorted(groups, key=lambda each: each.depth):
        below = [facts.group for facts in reads_of(group) if facts.group is not None]
        sources = [each for each in below if each is not group]
        leaves = [made.get(each.number, Strand()) for each in sources]
        made[group.number] = Strand(group.leaves).union(*leaves)
        if not is_asked(group):
            continue
        found = [each for each in sources if is_asked(each) and made.get(each.number)]
        if found:
            links.update(each.number for each in (group, *found))
    for group in groups:
        if group.number in links:
            group.strand = made[group.number]


def is_asked(group: Group) -> bool:
    """Tell whether a group is maps whose results were asked for in memory."""
    return group.kind == "map" and all(member.node.row.is_stored for member in group.members)

