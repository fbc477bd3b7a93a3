"""arrange: turn groups into an ordered list of launches, and see who reads what.

Groups are ordered by depth, so every group runs after those it reads. Groups of maps nobody in the
plan reads sink to the last depth, where they share one kernel: the whole optimizer step.

gather: small maps whose readers come later run at one depth, where they share a kernel.

gradient 3, update 3, gradient 2, update 2, gradient 1, update 1, next step
gradient 3, gradient 2, gradient 1, updates 1 to 3, next step

early: large updates run as soon as they can, so that the gradients they read end.

    gradient 3, gradient 2, gradient 1, updates 1 to 3     three gradients live at once
    gradient 3, update 3, gradient 2, update 2, ...        one does

Small ones wait for one another and share a kernel. An update runs after all that read the memory it
writes; those that read what another of them writes, an optimizer's averages say, stay together. On
a GPU they wait for maps that run soon after, which they share a launch with.
"""

from dataclasses import field
from typing import Any

from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.schedule.column_sums import join_column_sums
from picograd.schedule.cost import is_small, machine
from picograd.schedule.group import GROUP_LIMIT, Facts, Group, Ties
from picograd.schedule.in_place import LEAST
from picograd.schedule.strands import mark_strands
from picograd.schedule.write_order import order_updates, overwritten, reads_of
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


LONG_UPDATE = 8 << 20  # bytes of an array whose update is long beside a launch of a GPU
LONE = ("host", "loop")  # kinds of groups that may fail: nothing is written before


def update_early(groups: list[Group], least_bytes: int, wait: int) -> None:
    """Move large updates up to behind what they read, and what reads what they write.

    They `wait` so many depths, at most, for other maps.
    """
    if any(group.kind in LONE for group in groups):
        return
    updates = {group.number: group for group in groups if is_large_update(group, least_bytes)}
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
    others = {g.depth for g in groups if g.kind == "map" and g.number not in updates}
    for number, group in updates.items():
        first = together[ties.head(number)]
        shared = (depth for depth in range(first, first + wait + 1) if depth in others)
        group.depth = min(group.depth, next(shared, first))


def ready(group: Group) -> int:
    """Find the depth from which all that a group reads is there."""
    makers = [facts.group for facts in reads_of(group) if facts.group]
    return max((maker.depth + 1 for maker in makers), default=0)


def is_large_update(group: Group, least: int) -> bool:
    """Tell whether all that a group of maps does is to write whole arrays in place, long ones."""
    if group.kind != "map" or group.has_readers:
        return False
    if any(each.is_update or each.overwrites < 0 for each in group.members):
        return False
    dtypes = [each.node.dtype for each in group.members]
    itemsize = max((dtype.itemsize for dtype in dtypes), default=0)
    return product(group.shape) * itemsize >= least


PART_LIMIT = 64  # parts of one kernel
ALIKE_LIMIT = 256  # and where those that are alike are written once
DELAY_LIMIT = 4  # depths a reduction or a long update may wait: what it reads stays in memory
FAMILY_LIMIT = 4  # groups that read a leaf, at most, for it to tie them together
LONG_FILL = 1 << 20  # elements of an array that should not lie there from the first step on
LARGE = 30  # operations of a map that makes a new part only in a launch within GROUP_LIMIT
# Operations of a launch on a GPU that has a map of `LONG_MAP` or more, transforms of patches: such
# maps compile in no less time apart.
LONG_MAP, LAUNCH_LIMIT = 64, 2000
# Elements of the maps of a launch, and what it is passed, from which it gains nothing by more: a
# block takes longer to find its own (GPT-2's Adam step of 62 maps a launch for 20: 897 us for 851).
LONG_LAUNCH, LONG_WORDS = 1 << 25, 150
WORD_LIMIT = 500  # pointers and scalars of one kernel: 4 KiB on CUDA, with some to spare


Outline = tuple[object, ...]


@dataclass(eq=False, slots=True)
class Launch:
    """One kernel to be: the groups of each part, and the leaves it reads."""

    kind: str
    depth: int
    device: str
    parts: list[list[Group]] = field(default_factory=list)
    families: dict[tuple[int, tuple[int, ...]], list[Group]] = field(default_factory=dict)
    leaves: set[int] = field(default_factory=set)
    contents: set[int] = field(default_factory=set)  # numbers of the assignments they read
    words: set[int] = field(default_factory=set)  # pointers and scalars, at most
    elements: int = 0
    operations: int = 0
    longest: int = 0  # operations of a group
    outlines: set[Outline] = field(default_factory=set)
    writes_once: bool = False  # parts that are alike (codegen/templates/members.py)


def arrange(groups: list[Group], target: Target) -> list[Launch]:
    """Order groups into launches; marks the members that must be stored."""
    groups = join_column_sums(groups, target)
    if target.has_blocks:
        groups = part_sums(groups)
    sink(groups)
    delay(groups)
    if target.has_blocks:
        gather(groups, target)
    order_updates(groups)
    update_early(groups, *((LONG_UPDATE, DELAY_LIMIT) if target.has_blocks else (LEAST, 0)))
    for group in groups:
        mark_reads(group)
    fill_late(groups)
    mark_strands(groups if target.has_blocks else [])
    launches: dict[tuple[object, ...], list[Launch]] = {}
    families = find_families(groups)
    put_writes_after_reads(groups, families)
    words: dict[int, set[int]] = {}
    for group in groups:
        words.setdefault(families[group.number], set()).update(group.words)
    for group in sorted(groups, key=lambda g: (g.depth, families[g.number], g.number)):
        key: tuple[object, ...] = (group.depth, group.kind, group.device, group.strand)
        if group.kind == "reduce":  # sums of whole arrays, of gradients say, are one launch
            key = (*key, group.shape, group.reduced) if group.kept else key
            key = (*key, group.number) if group.is_alone else key
        elif group.kind != "map":
            key = (*key, group.number)
        family = families[group.number]
        bucket = launches.setdefault(key, [])
        add_group(bucket, group, family, words.pop(family, set()), target)
    every = [launch for bucket in launches.values() for launch in bucket]
    found = sorted(every, key=lambda launch: launch.depth)
    for launch in found:
        launch.parts = [readers_first(part) for part in launch.parts]
    return found


def find_families(groups: list[Group]) -> dict[int, int]:
    """Number the family of every group: maps of one depth that read a leaf few others there read.

    An optimizer's writes to one parameter and its moments are a family. They belong in one kernel,
    or what the first writes has to be copied for the second to read.
    """
    readers: dict[tuple[int, int], list[int]] = {}
    for group in groups:
        is_update = any(member.is_update for member in group.members)
        if group.kind == "map" and not is_update:
            for leaf in group.leaves:
                readers.setdefault((leaf, group.depth), []).append(group.number)
    ties = Ties(group.number for group in groups)
    for numbers in readers.values():
        if len(numbers) <= FAMILY_LIMIT:
            for number in numbers[1:]:
                ties.tie(numbers[0], number)
    return {group.number: ties.head(group.number) for group in groups}


def put_writes_after_reads(groups: list[Group], families: dict[int, int]) -> None:
    """Move a write of what others read at its depth, a step count, one depth down.

    They are of other families, or of its own over another domain: a count of each parameter.
    """
    parts = {group.number: (families[group.number], group.shape) for group in groups}
    readers: dict[tuple[int, int], set[Any]] = {}
    for group in groups:
        for leaf in group.leaves:
            readers.setdefault((leaf, group.depth), set()).add(parts[group.number])
    last = max((group.depth for group in groups), default=0)
    for group in [group for group in groups if is_sink(group)]:
        own = {parts[group.number]}
        if any(readers.get((x, group.depth), own) != own for x in overwritten(group)):
            group.depth = last + 1


def readers_first(part: list[Group]) -> list[Group]:
    """Order the maps of a part so that what one overwrites has been read by the others.

    Of two that read what both overwrite, a velocity and what moves by it, that comes first whose
    value the other's is made of: it is computed once.
    """
    if part[0].kind != "map":
        return part
    readers: dict[int, int] = {}
    for group in part:
        for leaf in group.leaves:
            readers[leaf] = readers.get(leaf, 0) + 1

    def place(group: Group) -> tuple[int, int]:
        most = max((readers.get(leaf, 0) for leaf in overwritten(group)), default=0)
        values = [each.inputs[0].number for each in group.members if each.overwrites >= 0]
        return most, max(values, default=0)

    return sorted(part, key=place)


def sink(groups: list[Group]) -> None:
    """Move groups of maps without readers to the last depth, from where they may read more."""
    for group in groups:
        for facts in reads_of(group):
            if facts.group:
                facts.group.has_readers = True
    sinks: list[Group] = []
    last = 0
    for group in groups:
        if is_sink(group):
            sinks.append(group)
        else:
            last = max(last, group.depth)
    last += 1
    for group in sinks:
        group.depth = max(group.depth, last)


def fill_late(groups: list[Group]) -> None:
    """Fill long arrays that scatters write into just before they do, if that waits for nothing."""
    for group in groups:
        if product(group.shape) < LONG_FILL:
            continue
        targets = [member.group for member in group.members if member.group is not group]
        depths = [target.depth for target in targets if target is not None]
        if not depths or len(depths) < len(group.members) or group.leaves or group.contents:
            continue
        if not any(facts.group for facts in reads_of(group)):
            group.depth = max(group.depth, min(depths) - 1)


def is_sink(group: Group) -> bool:
    """Tell whether a group only computes what the user reads."""
    is_init = any(member.group is not group for member in group.members)
    return group.kind == "map" and not group.has_readers and not is_init


def delay(groups: list[Group]) -> None:
    """Move reductions down to others over the same domain, if nobody waits for them.

    This puts the gradients of a norm's weight and bias into one kernel.
    """
    needed: dict[int, int] = {}  # the least depth at which each value is read
    for group in groups:
        for facts in reads_of(group):
            needed[facts.number] = min(needed.get(facts.number, group.depth), group.depth)
    found: dict[tuple[object, ...], list[Group]] = {}
    for group in sorted((g for g in groups if g.kind == "reduce"), key=lambda g: -g.depth):
        bucket = found.setdefault((group.shape, group.reduced, group.device), [])
        for other in bucket[-4:]:
            if not group.depth < other.depth <= group.depth + DELAY_LIMIT:
                continue
            if is_free(group.members, other, needed) and shared_loads(group, other):
                group.depth = other.depth
                break
            for members in free_pieces(group, other, needed):
                move(members, group, other)
        bucket.append(group)


def is_free(members: list[Facts], other: Group, needed: dict[int, int]) -> bool:
    """Tell whether nobody reads members before, or where, another group runs."""
    return all(other.depth < needed.get(member.number, 1 << 60) for member in members)


def free_pieces(group: Group, other: Group, needed: dict[int, int]) -> list[list[Facts]]:
    """List members that share no large array with the rest, if another group reads theirs anyway.

    So it is with the sum of a gradient beside the statistics of the values before a norm.
    """
    if group.is_row or other.is_row:
        return []
    size, there = product(group.shape), large_loads(other)
    pieces: list[tuple[set[int], list[Facts]]] = []
    for member in group.members:
        loads, members = large_reads(member, size), [member]
        for each in [each for each in pieces if each[0] & loads]:
            pieces.remove(each)
            loads, members = each[0] | loads, each[1] + members
        pieces.append((loads, members))
    if len(pieces) == 1:
        return []
    return [m for loads, m in pieces if loads and loads <= there and is_free(m, other, needed)]


def part_sums(groups: list[Group]) -> list[Group]:
    """Let sums of whole arrays that have nothing in common be groups, and so parts, of their own.

    Blocks of one then run beside those of another, and parts that are alike are written once.
    """
    found = list(groups)
    number = max((group.number for group in groups), default=0)
    for group in groups:
        if group.kind != "reduce" or group.kept or len(group.members) == 1:
            continue
        group.members, *rest = tied_members(group)
        group.operations //= len(rest) + 1
        for members in rest:
            number += 1
            own = Group(number, "reduce", group.depth, group.shape, group.reduced, group.device)
            own.members, own.operations, own.work = members, group.operations, group.work
            own.is_streamed, own.has_window = group.is_streamed, group.has_window
            for member in members:
                member.group = own
            found.append(own)
    return found


def tied_members(group: Group) -> list[list[Facts]]:
    """List the members of a group, those together that read one another or an array both."""
    ties = Ties(member.number for member in group.members)
    first: dict[int, int] = {}  # that reads an array
    for member in group.members:
        waiting, seen = [*member.inputs], set[int]()
        while waiting:
            facts = waiting.pop()
            if facts.number in seen:
                continue
            seen.add(facts.number)
            if facts.group is group:
                ties.tie(member.number, facts.number)
            elif facts.is_source or facts.group is not None:
                ties.tie(member.number, first.setdefault(facts.number, member.number))
            else:
                waiting += facts.inputs
    found: dict[int, list[Facts]] = {}
    for member in group.members:
        found.setdefault(ties.head(member.number), []).append(member)
    return list(found.values())


def large_reads(member: Facts, size: int) -> set[int]:
    """Numbers of the arrays of so many elements that a member reads, or what it is made of."""
    found: set[int] = set()
    stack, seen = [member], {member.number}
    while stack:
        for facts in stack.pop().inputs:
            if facts.is_source or facts.group not in (None, member.group):
                found |= {facts.number} if facts.size >= size else set()
            elif facts.number not in seen:
                seen.add(facts.number)
                stack.append(facts)
    return found


def move(members: list[Facts], group: Group, other: Group) -> None:
    """Make members of one group those of another, if it has room."""
    operations = group.operations * len(members) // len(group.members)
    if other.operations + operations > GROUP_LIMIT:
        return
    for member in members:
        member.group, member.depth = other, other.depth
    group.members = [member for member in group.members if member not in members]
    other.members += members
    group.operations -= operations
    other.operations += operations
    group.reads = other.reads = (-1, [])


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


def mark_reads(group: Group) -> None:
    """Mark what a group loads as stored; note what it reads, and what it is passed.

    An assignment that does not write in place has an array of its own, and blocks that share a
    reduction have two workspaces.
    """
    reads = reads_of(group)
    words = group.words
    words |= group.numbers
    words.update([facts.number for facts in reads])
    words.update([member.number for member in group.members])
    if group.kind == "reduce":
        words.add(-2 * group.number - 1)
        words.add(-2 * group.number - 2)
    for facts in reads:
        facts.is_stored = True
        if facts.is_source:
            group.leaves.add(facts.number)
        elif facts.target is not None:
            group.contents.add(facts.number)


def add_group(
    bucket: list[Launch], group: Group, family: int, family_words: set[int], target: Target
) -> None:
    """Put a group in the last launch of its bucket: beside its like, or as a new part.

    `family_words` is what the family takes that starts with this group, else nothing. Groups of one
    family and shape share a part, whatever its size: one may read what another overwrites.
    """
    words = group.words
    if len(words) < len(family_words) <= WORD_LIMIT // 2:
        words = family_words
    if bucket and has_words(bucket[-1], words):
        launch = bucket[-1]
        part = launch.families.get((family, group.shape)) or find_part(launch, group, target)
        has_room = len(launch.parts) < part_limit(target)
        if group.kind == "map" and group.operations > LARGE:  # equal kernels compile once
            limit = launch_limit(launch, group, target)
            has_room &= launch.operations + new_operations(launch, group) <= limit
        if part is None and has_room:
            part = []
            launch.parts.append(part)
        if part is not None:
            launch.families[family, group.shape] = part
            part.append(group)
            grow(launch, group)
            return
    first = [group]
    families = {(family, group.shape): first}
    launch = Launch(group.kind, group.depth, group.device, [first], families)
    launch.writes_once = target.has_blocks and group.kind in ("map", "reduce")
    grow(launch, group)
    bucket.append(launch)


def has_words(launch: Launch, words: set[int]) -> bool:
    """Tell whether a kernel may be passed so much more."""
    more = words - launch.words
    is_long = launch.kind == "map" and launch.elements > LONG_LAUNCH
    return len(launch.words) + len(more) <= (LONG_WORDS if is_long else WORD_LIMIT)


def part_limit(target: Target) -> int:
    """Number of parts that a kernel may have."""
    return ALIKE_LIMIT if target.has_blocks else PART_LIMIT


def launch_limit(launch: Launch, group: Group, target: Target) -> int:
    """Number of operations up to which a launch takes a map in."""
    longest = max(launch.longest, group.operations)
    is_long = target.has_blocks and longest >= LONG_MAP
    return LAUNCH_LIMIT if is_long else GROUP_LIMIT


def find_part(launch: Launch, group: Group, target: Target) -> list[Group] | None:
    """Find a part over the same domain with room for a group.

    Where blocks run side by side, maps and sums of whole arrays without a large array in common are
    parts of their own: those that are alike are written once then, an optimizer's step over many
    parameters say.
    """
    if group.kind not in ("map", "reduce"):
        return None
    is_apart = target.has_blocks and (group.kind == "map" or not group.kept)
    is_apart = is_apart and len(launch.parts) < part_limit(target)
    for part in launch.parts:
        if part[0].shape != group.shape:
            continue
        is_small = sum(g.operations for g in part) + group.operations <= GROUP_LIMIT
        if is_small and (not is_apart or any(shared_loads(group, other) for other in part)):
            return part
    return None


def grow(launch: Launch, group: Group) -> None:
    """Account for a group that was added."""
    launch.leaves |= group.leaves
    launch.contents |= group.contents
    launch.words |= group.words
    launch.elements += product(group.shape)
    launch.operations += new_operations(launch, group)
    launch.longest = max(launch.longest, group.operations)
    launch.outlines.add(outline_of(group))


def new_operations(launch: Launch, group: Group) -> int:
    """Count what a group adds to the text of a launch: nothing, if another in it is alike."""
    is_written = launch.writes_once and outline_of(group) in launch.outlines
    return 0 if is_written else group.operations


def outline_of(group: Group) -> Outline:
    """Tell what a group computes, whatever it reads: groups of one outline are alike mostly.

    Maps along whole arrays are alike in any size (codegen/templates/members.py).
    """
    shape = () if group.kind == "map" and group.is_flat else group.shape
    return shape, tuple([(each.node.op, each.node.dtype) for each in group.members])
