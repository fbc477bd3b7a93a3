"""updates: find the assignments that need not write a whole array.

    assign(x, put(x, v, steps))             ->  assign(x, v)      Update(steps)
    assign(x, put(x, scatter(view, v, i)))  ->  assign(x, v, i)   Update(steps, "scatter", ...)

The first stores `v` over the elements that the view shows, the second scatters into the view; all
other elements of x stay where they are. `view` is what `steps` show of x. What follows decides how:
fuse orders such a write after what reads x as it was, and `place_assigns` gives it x's own memory,
or a copy of it where somebody reads the old values later.

Lowered, an assignment of parts is stores to some elements of an array.
"""

from typing import Any

from picograd.dtype import bool_
from picograd.graph.node import Node, Nodes, is_move, is_renaming
from picograd.graph.parts import Steps, shown
from picograd.graph.row import WRITES, Role
from picograd.graph.starts import MOVING, placed, starts_of
from picograd.helpers import reached, row_major
from picograd.late_methods import dataclass
from picograd.schedule.group import Facts
from picograd.schedule.index import Axis, Indices, axis_index, constant
from picograd.schedule.loop import Compute, Expr, Kernel, Part
from picograd.schedule.lower import KernelBuilder, Location, PartBuilder, flat_index
from picograd.schedule.normalize import normalize_part
from picograd.schedule.order import nodes_of
from picograd.schedule.viewindex import Position, plain_position, view_source
from picograd.target import Target


@dataclass(frozen=True, slots=True)
class Update:
    """The argument of an assignment that writes a view of its target, or scatters into it."""

    steps: Steps
    shape: tuple[int, ...]  # of the view
    op: str = ""
    arg: Any = None


def take_updates(roots: Nodes, order: Nodes, machine: Target) -> list[Node]:
    """Rewrite the assignments of updated values; the same nodes if there are none.

    `order` lists the nodes under the roots, inputs first, and not below realized ones.
    """
    if not any(map(may_update, nodes_of(order, WRITES))):
        return list(roots)
    writers: dict[int, int] = {}
    users = {id(root): 2 for root in roots}
    for node in order:
        for child in () if node.realized is not None else node.inputs:
            users[id(child)] = users.get(id(child), 0) + 1
        if node.op in WRITES and node.realized is None:
            target = id(node.inputs[0])
            writers[target] = writers.get(target, 0) + 1
    done: dict[int, Node] = {}
    for node in order:
        if node.realized is not None or not node.inputs:
            done[id(node)] = node
            continue
        is_alone = node.op in WRITES and writers[id(node.inputs[0])] == 1
        found = find_update(node, users) if is_alone else None
        taken = node.inputs if found is None else (node.inputs[0], *found[0])
        inputs = tuple([done[id(child)] for child in taken])
        done[id(node)] = (
            node.with_inputs(inputs) if found is None else updated(inputs, found[1], machine)
        )
    return [done[id(root)] for root in roots]


def may_update(node: Node) -> bool:
    """Tell whether an assignment may be one of a part, by what it assigns."""
    if node.realized is not None:
        return False
    value = node.inputs[1]
    return value.row.role is Role.PART or is_scatter(value) or is_move(value)


def is_scatter(node: Node) -> bool:
    """Tell whether a node writes by an index, in the form that was recorded."""
    return node.row.role is Role.SCATTER and node.row.may_expand


def find_update(node: Node, users: dict[int, int]) -> tuple[tuple[Node, ...], Update] | None:
    """Find what an assignment updates of its target: the inputs, and how; None if all of it."""
    target, value = node.inputs
    steps: Steps = ()
    best: tuple[Node, Steps] | None = None
    while value.realized is None:
        if value.row.role is Role.PART and is_view_of(value.inputs[0], target, steps):
            steps = (*steps, *value.arg)
            value = value.inputs[1]
            best = value, steps
        elif is_scatter(value) and is_view_of(value.inputs[0], target, steps):
            if users[id(value)] > 1 or not value.inputs[1].size:
                break
            return value.inputs[1:], Update(steps, value.shape, value.op, value.arg)
        elif is_move(value) and users[id(value)] == 1:
            back = value.row.view.inverse(value)  # type: ignore[union-attr,misc]
            steps = (*steps, (value.op, back))
            value = value.inputs[0]
        else:
            break
    return None if best is None else ((best[0],), Update(best[1], best[0].shape))


def updated(inputs: tuple[Node, ...], update: Update, machine: Target) -> Node:
    """Make the assignment; a scatter becomes what it is on the device."""
    target, *given = inputs
    if update.op:
        base = shown(target, update.steps)
        parts = (update.arg, base.shape, base.dtype, base.device)
        written = Node(update.op, (base, *given), *parts)
        made = written.row.expansion(written, machine)
        if made.row.role is Role.SCATTER:
            update = Update(update.steps, update.shape, made.op, made.arg)
            given = [apart(each, target) for each in made.inputs[1:]]
        elif update.steps:  # a value of every element: sums in bins, beside what is there
            given, update = [made], Update(update.steps, update.shape)
        else:
            return Node("assign", (target, made), None, target.shape, target.dtype, target.device)
    return Node("assign", (target, *given), update, target.shape, target.dtype, target.device)


def apart(node: Node, target: Node) -> Node:
    """Ask for a copy of an operand that is a view of the memory that is written."""
    below = node
    while below.row.view is not None and below.row.is_showing and below.realized is None:
        below = below.inputs[0]
    return node.stored() if memory_of(below) is memory_of(target) else node


def memory_of(node: Node) -> Node:
    """Find what a chain of assignments began with."""
    while node.op in WRITES and node.realized is None:
        node = node.inputs[0]
    return node


def is_view_of(node: Node, target: Node, steps: Steps) -> bool:
    """Tell whether a node is what steps show of a target."""
    wanted = shown(target, steps)
    while True:
        node, wanted = below_same(node), below_same(wanted)
        if wanted is target or node is target:
            return node is wanted
        is_same = (
            node.op == wanted.op
            and argument_of(node) == argument_of(wanted)
            and node.shape == wanted.shape
        )
        if node.realized is not None or not is_same or len(node.inputs) != 1:
            return False
        node, wanted = node.inputs[0], wanted.inputs[0]


def argument_of(node: Node) -> Any:
    """Give the argument of a view; positions that a user gave are told apart by identity."""
    is_moving = node.op in MOVING and starts_of(node)
    return placed(node, id) if is_moving else node.arg


def below_same(node: Node) -> Node:
    """Strip what keeps every element: detach, and a cast to the same dtype."""
    while node.realized is None and is_same(node):
        node = node.inputs[0]
    return node


def is_same(node: Node) -> bool:
    """Tell whether a node is its input, element by element, in the same memory or as a value."""
    row = node.row
    return not row.is_stored if row.role is Role.PASS else is_renaming(node)


def shown_source(
    shape: tuple[int, ...], steps: Steps, indices: Indices, position: Position = plain_position
) -> Indices:
    """Find the indices of an array's element from those of a view that steps make of it."""
    views: list[Node] = []
    for step in steps:
        before = Node("placeholder", (), None, shape, bool_, "cpu")
        view = shown(before, (step,))
        if view is not before:
            views.append(view)
            shape = view.shape
    for view in reversed(views):
        indices = view_source(view, indices, position)
    return indices


def values_before(facts: Facts, base: Facts, is_scatter: bool) -> list[Facts]:
    """List what a floating value reads that must be computed before the base is written to.

    All of it where a scatter writes its own memory, which it does in any order. Else the largest
    parts that read contents older than the base, and can run before the base was written.
    """
    found: list[Facts] = []
    stack = [facts]
    for each in reached(stack):
        loads = [load for load in loads_of(each) if load.memory == base.memory]
        if each.is_loaded or not loads:
            continue
        if is_scatter:
            found.append(each)
        elif base.group is None or all(load is base for load in loads):
            continue
        elif each.depth < base.group.depth:
            found.append(each)
        else:
            stack += each.inputs
    return found


def loads_of(facts: Facts) -> list[Facts]:
    """List what a floating value loads; its chains are bounded."""
    stack, found = [facts], []
    for each in reached(stack):
        if each.is_loaded:
            found.append(each)
        else:
            stack += each.inputs
    return found


def place_of(member: Facts, indices: Indices, position: Position) -> Indices:
    """Find the indices in an array of an element of what a member writes, which may be a part."""
    node = member.node
    if not member.is_update:
        return indices
    return shown_source(node.shape, node.arg.steps, indices, position)


def lower_update(member: Facts, part: PartBuilder, axes: tuple[Axis, ...], own: Indices) -> None:
    """Append the value of a part, stored where the part lies; or aside, as an array of its own."""
    part.bound = axes
    source, kernel = member.inputs[0], part.kernel
    body = part.value(source, own)
    aside = kernel.aside.get(member.number)
    place = kernel.locations[member.number] if aside is None else aside
    slot = kernel.slot(place.slot, body.dtype)
    kernel.stored.add(slot)
    at = own if aside is not None else place_of(member, own, part.position)
    index = flat_index(at, place.strides)
    part.computes.append(Compute(axes, (), None, body, body.dtype, (slot, index)))
    ref = Expr("ref", (), len(part.computes) - 1, body.dtype)
    part.available.setdefault(source.number, (own, ref))


def aside_kernel(member: Facts, source: Location, builder: KernelBuilder) -> Kernel:
    """Store a part whose value lies aside, in an array of its own."""
    shape, dtype = member.node.arg.shape, member.node.dtype
    axes = [Axis(f"a{d}", n) for d, n in enumerate(shape)]
    own = tuple(axis_index(axis) if axis.size != 1 else constant(0) for axis in axes)
    place = builder.locations[member.number]
    read, written = (builder.slot(source.slot, dtype), builder.slot(place.slot, dtype))
    builder.loaded.add(read)
    builder.stored.add(written)
    body = Expr("load", (), (read, flat_index(own, row_major(shape))), dtype)
    at = place_of(member, own, PartBuilder(builder, 0).position)
    store = (written, flat_index(at, place.strides))
    rows = tuple(axis for axis in axes if axis.size != 1)
    part = normalize_part(Part(rows, (Compute(rows, (), None, body, dtype, store),)))
    name = "_".join(["map", "put", "x".join(map(str, shape)) or "1"])
    scalars = tuple(dtype for _, dtype in builder.scalars.values())
    return Kernel(name, "map", builder.finish(), scalars, (part,))
