"""column_sums: sums over all rows join the kernel that works on these rows, on a GPU.

    m[i] = mean_j(x), ..., dx[i, j] = f(g, x, m)      one kernel: x and g are read once, each block
    dw[j] = sum_i g * (x - m), db[j] = sum_i g   ->   keeps its own sums in registers

So it is with the gradients of norms: a kernel of their own would read all of both arrays again.
"""

from collections.abc import Sequence

from picograd.dtype import accumulate_dtype, float32
from picograd.graph.row import Role
from picograd.helpers import product
from picograd.schedule.cost import takes_column_sums
from picograd.schedule.group import GROUP_LIMIT, MEMBER_LIMIT, Facts, Group
from picograd.schedule.views import innermost
from picograd.schedule.write_order import reads_of
from picograd.target import Target

COLUMN = "column"  # the level of a sum over all rows, and of what is computed of those
PLAIN = ("reduce", "row", "elem", COLUMN)


def join_column_sums(groups: Sequence[Group], target: Target) -> list[Group]:
    """Move sums over all rows to where these rows are worked on; list the groups that are left."""
    if not target.has_waiting_blocks:
        return list(groups)
    first = first_readers(groups)
    hosts: dict[tuple[object, ...], list[Group]] = {}
    for group in groups:
        if is_host(group):
            key = group.shape, group.device, group.inner
            hosts.setdefault(key, []).append(group)
    gone: set[int] = set()
    for group in groups if hosts else ():
        if not is_sums(group):
            continue
        key = group.shape, group.device, group.kept
        for host in hosts.get(key, ()):
            if may_join(group, host, first.get(group.number), target):
                join(group, host)
                gone.add(group.number)
                break
    return [group for group in groups if group.number not in gone]


def first_readers(groups: Sequence[Group]) -> dict[int, int]:
    """Find the least depth at which each group is read."""
    found: dict[int, int] = {}
    for group in groups:
        for facts in reads_of(group):
            if facts.group is not None:
                number = facts.group.number
                found[number] = min(found.get(number, group.depth), group.depth)
    return found


def is_host(group: Group) -> bool:
    """Tell whether a group works on rows again after it reduced them."""
    is_plain = all(m.level in PLAIN for m in group.members)
    return group.kind == "reduce" and group.is_row and is_plain and bool(group.kept)


def is_sums(group: Group) -> bool:
    """Tell whether a group is sums, and what is computed of them."""
    if group.kind != "reduce" or group.has_window or not group.kept:
        return False
    return all(is_sum(m) if m.level == "reduce" else m.level == "row" for m in group.members)


def is_sum(member: Facts) -> bool:
    """Tell whether a reduction is a sum in float32."""
    node = member.node
    is_float = accumulate_dtype(node.dtype) is float32
    return is_float and node.arg[0] == "sum"


def may_join(group: Group, host: Group, first: int | None, target: Target) -> bool:
    """Tell whether sums can be a part of the kernel of a host, and gain by it."""
    if group is host or (first is not None and first <= host.depth):
        return False
    operations = host.operations + group.operations
    members = len(host.members) + len(group.members)
    if operations > GROUP_LIMIT or members > MEMBER_LIMIT:
        return False
    reads, size = reads_of(group), product(host.shape)
    makers = [facts.group for facts in reads if facts.group is not None]
    if not size or any(each is not host and each.depth >= host.depth for each in makers):
        return False
    if waits_for_all(group, host):
        return False
    whole = {facts for facts in reads if facts.size == size}
    is_along = all(innermost(facts) in host.inner for facts in whole)
    if not is_along or not whole <= {*reads_of(host), *host.members}:
        return False
    nbytes = sum(facts.node.dtype.itemsize for facts in whole)
    count = len(sums_of(host, COLUMN)) + len(sums_of(group, "reduce"))
    rows = product(host.shape[d] for d in host.kept)
    return takes_column_sums(rows, size // rows, count, nbytes, target)


def waits_for_all(group: Group, host: Group) -> bool:
    """Tell whether sums are of what is known when all rows are done: `(x * p.sum(0)).sum(0)`."""
    seen = set[int]()
    stack = [facts for member in sums_of(group, "reduce") for facts in member.inputs]
    while stack:
        facts = stack.pop()
        if facts.group is group or (facts.group is host and facts.level == COLUMN):
            return True
        if facts.number not in seen and facts.group is None and not facts.is_source:
            stack += facts.inputs
        seen.add(facts.number)
    return False


def sums_of(group: Group, level: str) -> list[Facts]:
    """List the reductions of a group at a level."""
    members = [member for member in group.members if member.level == level]
    return [member for member in members if member.node.row.role is Role.REDUCE]


def join(group: Group, host: Group) -> None:
    """Make sums members of a host."""
    for member in group.members:
        member.level = COLUMN
        member.depth = host.depth
        member.group = host
    host.members += group.members
    host.operations += group.operations
    host.reads = (-1, [])
