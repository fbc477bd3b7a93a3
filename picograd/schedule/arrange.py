"""arrange: turn groups into an ordered list of launches, and see who reads what.

Groups are ordered by depth, so every group runs after those it reads. Groups of maps nobody in the
plan reads sink to the last depth, where they share one kernel: the whole optimizer step.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from picograd.schedule.group import GROUP_LIMIT, Facts, Group

PART_LIMIT = 64  # parts of one kernel
DELAY_LIMIT = 4  # depths a reduction may wait: what it reads stays in memory
SLOT_LIMIT = 400  # pointers of one kernel: 4 KiB of parameters on CUDA, with some to spare


@dataclass(eq=False, slots=True)
class Launch:
    """One kernel to be: the groups of each part, and the leaves it reads."""

    kind: str
    depth: int
    device: str
    parts: list[list[Group]] = field(default_factory=list)
    leaves: set[int] = field(default_factory=set)
    slots: int = 0  # at most: what parts share counts twice


def reads_of(group: Group) -> Iterator[Facts]:
    """Yield the leaves and members of earlier groups that a group loads."""
    seen: set[int] = set()
    stack: list[Facts] = []
    for member in group.members:
        stack += inputs_for(member, group)
    while stack:
        facts = stack.pop()
        if facts.number in seen:
            continue
        seen.add(facts.number)
        if facts.is_source or (facts.group and facts.group.depth < group.depth):
            yield facts
        elif facts.group is not group:
            stack += facts.inputs


def inputs_for(member: Facts, group: Group) -> tuple[Facts, ...]:
    """Inputs of a member that its group reads: a scatter's base is read where it is copied."""
    if member.node.op != "scatter":
        return member.inputs
    return member.inputs[1:] if member.group is group else member.inputs[:1]


def arrange(groups: list[Group]) -> list[Launch]:
    """Order groups into launches; marks the members that must be stored."""
    sink(groups)
    delay(groups)
    for group in groups:
        group.leaves, group.slots = mark_reads(group)
    launches: dict[tuple[object, ...], list[Launch]] = {}
    for group in sorted(groups, key=lambda g: (g.depth, g.number)):
        key: tuple[object, ...] = (group.depth, group.kind, group.device)
        if group.kind == "reduce":
            key = (*key, group.shape, group.reduced)
        elif group.kind != "map":
            key = (*key, group.number)
        add_group(launches.setdefault(key, []), group)
    return [launch for bucket in launches.values() for launch in bucket]


def sink(groups: list[Group]) -> None:
    """Move groups of maps without readers to the last depth."""
    for group in groups:
        for facts in reads_of(group):
            if facts.group:
                facts.group.has_readers = True
    sinks = [group for group in groups if is_sink(group)]
    others = [group for group in groups if not is_sink(group)]
    last = max((group.depth for group in others), default=0) + 1
    for group in sinks:
        group.depth = max(last, group.depth)


def is_sink(group: Group) -> bool:
    """Tell whether a group only computes what the user reads."""
    is_init = any(member.group is not group for member in group.members)
    return group.kind == "map" and not group.has_readers and not is_init


def delay(groups: list[Group]) -> None:
    """Move reductions down to others over the same domain, if nobody waits for them.

    This puts the gradients of a norm's weight and bias into one kernel.
    """
    needed: dict[int, int] = {}
    for group in groups:
        for facts in reads_of(group):
            if facts.group:
                number = facts.group.number
                needed[number] = min(needed.get(number, group.depth), group.depth)
    found: dict[tuple[object, ...], list[Group]] = {}
    for group in sorted((g for g in groups if g.kind == "reduce"), key=lambda g: -g.depth):
        bucket = found.setdefault((group.shape, group.reduced, group.device), [])
        for other in bucket[-4:]:
            is_near = group.depth < other.depth <= group.depth + DELAY_LIMIT
            is_free = other.depth < needed.get(group.number, 1 << 60)
            if is_near and is_free and shared_loads(group, other):
                group.depth = other.depth
                break
        bucket.append(group)


def shared_loads(group: Group, other: Group) -> bool:
    """Tell whether two groups of reductions read a large array both."""
    return not large_loads(group).isdisjoint(large_loads(other))


def large_loads(group: Group) -> set[int]:
    """Numbers of the arrays as large as its domain that a group of reductions reads."""
    found: set[int] = set()
    for member in group.members:
        for source in member.inputs:
            found |= source.loads
    return found


def mark_reads(group: Group) -> tuple[set[int], int]:
    """Mark what a group loads as stored; the leaves it reads, and how many slots it takes."""
    leaves: set[int] = set()
    slots = len(group.members)
    for facts in reads_of(group):
        facts.is_stored = True
        slots += 1
        if facts.is_source:
            leaves.add(facts.number)
    return leaves, slots


def add_group(bucket: list[Launch], group: Group) -> None:
    """Put a group in the last launch of its bucket: beside its like, or as a new part."""
    if bucket and bucket[-1].slots + group.slots <= SLOT_LIMIT:
        launch = bucket[-1]
        for part in launch.parts:
            is_like = part[0].shape == group.shape and group.kind in ("map", "reduce")
            if is_like and sum(g.operations for g in part) + group.operations <= GROUP_LIMIT:
                part.append(group)
                grow(launch, group)
                return
        if len(launch.parts) < PART_LIMIT:
            launch.parts.append([group])
            grow(launch, group)
            return
    launch = Launch(group.kind, group.depth, group.device, [[group]])
    grow(launch, group)
    bucket.append(launch)


def grow(launch: Launch, group: Group) -> None:
    """Account for a group that was added."""
    launch.leaves |= group.leaves
    launch.slots += group.slots
