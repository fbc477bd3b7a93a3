"""write_order: what groups read, and writes of parts after what reads the memory as it was."""

from picograd.graph.row import SCALARS, VIEWS, Role
from picograd.schedule.group import Facts, Group

EVERY_DEPTH = -2  # where what a group reads does not depend on its depth


def reads_of(group: Group) -> list[Facts]:
    """List the leaves and members of earlier groups that a group loads, at its depth.

    They are the same at all depths where it computes no member of another group.
    """
    if group.reads[0] in (group.depth, EVERY_DEPTH):
        return group.reads[1]
    found: list[Facts] = []
    seen: set[int] = set()
    stack: list[Facts] = []
    depth, is_apart = group.depth, True
    for member in group.members:
        stack += inputs_for(member, group)
    while stack:
        facts = stack.pop()
        number, maker = facts.number, facts.group
        if number in seen:
            continue
        seen.add(number)
        if facts.is_source or (maker is not None and maker.depth < depth):
            found.append(facts)
        elif facts.node.op in SCALARS:
            group.numbers.add(number)
        elif maker is not group:
            stack += facts.inputs
            is_apart &= maker is None
            if group.is_flat and facts.node.op in VIEWS:
                group.is_flat = is_flat(facts)
    group.reads = EVERY_DEPTH if is_apart else depth, found
    return found


def is_flat(view: Facts) -> bool:
    """Tell whether a view reads elements in their order, or one for all."""
    row = view.node.row
    return row.is_same_bytes or view.inputs[0].size == 1


def inputs_for(member: Facts, group: Group) -> tuple[Facts, ...]:
    """Inputs of a member that its group reads: a scatter's base is read where it is copied.

    An assignment of a part needs the rest to be there.
    """
    if member.is_update and member.target is not None:
        return (*member.inputs, member.target)
    if member.node.row.role is not Role.SCATTER:
        return member.inputs
    return member.inputs[1:] if member.group is group else member.inputs[:1]


def overwritten(group: Group) -> set[int]:
    """Numbers of the leaves a group writes in place."""
    return {member.overwrites for member in group.members if member.overwrites >= 0}


def order_updates(groups: list[Group]) -> None:
    """Move assignments below what reads the contents that they change, where a part of them stays.

    Each contents of such a memory is read before the next is written. What reads two of them keeps
    its place: one is copied then (`place_assigns`).
    """
    members = [member for group in groups for member in group.members if member.target is not None]
    updated = {member.memory for member in members if member.is_update}
    if not updated:
        return
    needs: dict[int, set[int]] = {group.number: set() for group in groups}
    readers: dict[int, set[int]] = {}
    for group in groups:
        for facts in reads_of(group):
            readers.setdefault(facts.number, set()).add(group.number)
            if facts.group:
                needs[group.number].add(facts.group.number)
        for member in group.members:
            if member.group and member.group is not group:  # it copies the base of a scatter
                needs[member.group.number].add(group.number)
    earlier: dict[int, set[int]] = {}
    for member in members:
        if member.memory in updated and member.group and member.target:
            target = member.target
            number = member.group.number
            if target.group and target.group is not member.group:
                needs[number].add(target.group.number)
            earlier[number] = readers.get(target.number, set()) - {number}
    deepen(groups, needs, earlier)


def deepen(groups: list[Group], needs: dict[int, set[int]], earlier: dict[int, set[int]]) -> None:
    """Give each group a greater depth than those it needs, and than `earlier` ones if possible."""
    both = {number: found | earlier.get(number, set()) for number, found in needs.items()}
    order = ordered(both)
    if len(order) < len(both):
        placed = set(order)
        both = {n: both[n] if n in placed else found for n, found in needs.items()}
        order = ordered(both)
    by_number = {group.number: group for group in groups}
    for number in order:
        group = by_number[number]
        for each in both[number]:
            below = by_number[each].depth
            group.depth = max(group.depth, below + 1)


def ordered(needs: dict[int, set[int]]) -> list[int]:
    """List numbers after what they need; those of a cycle, and what needs them, are left out."""
    users: dict[int, list[int]] = {}
    missing = {number: len(found) for number, found in needs.items()}
    for number, found in needs.items():
        for each in found:
            users.setdefault(each, []).append(number)
    order = [number for number, count in missing.items() if not count]
    for number in order:
        for user in users.get(number, ()):
            missing[user] -= 1
            if not missing[user]:
                order.append(user)
    return order
