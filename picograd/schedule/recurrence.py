"""Recurrences: schedule the body of a loop once, and say which memory each step uses.

A body's plan runs `length` times. Its arrays are bound to rows of the outer plan's slots: step t
reads or writes row `first + step * ((t + shift) & mask)`. So a slice of an x is a row of it, and a
constant always the same row; a carry alternates between two rows, or walks along the rows of its
history where somebody reads that. What no outcome depends on is left out of the body.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

from picograd.dtype import DType, int64, uint8
from picograd.errors import check
from picograd.graph.node import Node, is_cut, substituted, toposort
from picograd.graph.recurrence import Body, Recurrence, placeholder, steps_of
from picograd.graph.row import NUMBERS, POSITIONS, Role
from picograd.graph.starts import starts_of
from picograd.helpers import product, row_major
from picograd.schedule.arrange import Launch
from picograd.schedule.group import Facts, Group
from picograd.schedule.lower import Location
from picograd.schedule.plan import Binding, CopyStep, LoopStep, Plan, PlanSlot, RowCopy
from picograd.schedule.score_groups import Fusing
from picograd.schedule.views import settle

# what is in no memory before
MADE = (Role.ELEMENTWISE, Role.CONTRACT, Role.REDUCE, Role.ELIMINATION)


def visit_loop(fuser: Fusing, facts: Facts) -> Group:
    """Open the group of a loop, which reads rows from memory; its outcomes are the members."""
    kinds = [leaf.arg for leaf in facts.node.arg.body.leaves]
    facts.hops = tuple([count_hops(*each) for each in zip(facts.inputs, kinds)])
    given = facts.inputs
    facts.inputs = tuple([below(*each) for each in zip(given, facts.hops)])
    for kind, source, base in zip(kinds, given, facts.inputs):
        if not is_embedded(base, kind):
            fuser.store(base, "a loop reads it")
            base.is_row_major = True
            settle(source, base)
    facts.depth = max([base.depth for base in facts.inputs], default=0)
    return fuser.new_group("loop", facts.depth + 1, (), (), facts.node.device)


def is_embedded(base: Facts, kind: str) -> bool:
    """Tell whether the body computes an input itself, so that it need not be in memory."""
    if kind == "carry" or base.is_loaded:
        return False
    return base.node.op in NUMBERS or (base.node.op in POSITIONS and kind == "constant")


def count_hops(facts: Facts, kind: str) -> int:
    """Count the views between an input of a loop and what of it must lie in memory.

    A body applies the views of a constant itself; rows cut out of an array are read there.
    """
    if kind == "constant":
        return len(list(chain(facts, shows)))
    hops = list(chain(facts, keeps_rows))
    rows = product(facts.node.shape[1:]) if kind == "x" else facts.node.size
    base = below(facts, len(hops))
    is_whole = all(is_row_cut(each.node, rows) for each in hops if is_cut(each.node))
    if (is_whole and base.is_loaded) or (kind == "x" and base.node.op in NUMBERS):
        return len(hops)
    return len(list(chain(facts, keeps_bytes)))


def shows(node: Node) -> bool:
    """Tell whether a node is a view."""
    return node.row.view is not None


def keeps_bytes(node: Node) -> bool:
    """Tell whether a node has the elements of its input, in the same order."""
    return node.row.is_same_bytes


def keeps_rows(node: Node) -> bool:
    """Tell whether a node has elements of its input, in the same order."""
    return keeps_bytes(node) or is_cut(node)


def chain(facts: Facts, passes: Callable[[Node], bool]) -> "list[Facts]":
    """List the nodes of some kind down to the first that is in memory or of another kind."""
    found: list[Facts] = []
    while not facts.is_loaded and passes(facts.node):
        found.append(facts)
        facts = facts.inputs[0]
    return found


def below(facts: Facts, hops: int) -> Facts:
    """Walk down a chain of views."""
    for _ in range(hops):
        facts = facts.inputs[0]
    return facts


def same_bytes(facts: Facts) -> Facts:
    """Walk down views that change no bytes."""
    return below(facts, len(chain(facts, keeps_bytes)))


def views_above(node: Node, hops: int) -> list[Node]:
    """List the views above what lies in memory, the outermost first."""
    found = []
    for _ in range(hops):
        found.append(node)
        node = node.inputs[0]
    return found


def is_row_cut(node: Node, size: int) -> bool:
    """Tell whether a slice takes rows in order, and starts at a multiple of `size` elements."""
    source = node.inputs[0].shape
    if not source or node.arg[0][2] != 1 or starts_of(node):
        return False
    is_whole = all(each == (0, n, 1) for each, n in zip(node.arg[1:], source[1:]))
    return is_whole and node.arg[0][0] * product(source[1:]) % max(size, 1) == 0


def first_element(views: Sequence[Node]) -> int:
    """Find where the memory that views cut out begins, in elements."""
    cuts = [view for view in views if is_cut(view)]
    return sum(view.arg[0][0] * product(view.inputs[0].shape[1:]) for view in cuts)


def live_carries(body: Body, outcomes: Sequence[Node]) -> list[int]:
    """List the carries that outcomes depend on, through any number of steps."""
    numbers = {id(node): number for number, node in enumerate(body.carries)}
    live = {node.arg[1] for node in outcomes if node.arg[0] != "stack"}
    waiting = [body.order[node.arg[1]] for node in outcomes if node.arg[0] == "stack"]
    waiting += [body.order[body.nexts[number]] for number in live]
    while waiting:
        reached = toposort(waiting)
        found = {numbers[id(node)] for node in reached if id(node) in numbers} - live
        live |= found
        waiting = [body.order[body.nexts[number]] for number in found]
    return sorted(live)


def distinct(roots: Sequence[Node], name: Callable[[Node], Hashable]) -> list[Node]:
    """Ask for each root on its own: numbered, equal ones are not taken for one.

    One whose name no other has is stored in its place alone, and read there by what follows.
    """
    found = []
    names = Counter(map(name, roots))
    for number, root in enumerate(roots):
        is_alone = names[name(root)] == 1
        if is_alone and root.row.role in MADE and root.inputs:
            found.append(root)
            continue
        parts = (number, root.shape, root.dtype, root.device)
        found.append(Node("contiguous", (root,), *parts))
    return found


def kind_of(root: Node) -> Hashable:
    """Name a root so that equal ones have one name."""
    return root.op, root.shape, root.dtype


class Binder:
    """Binds the arrays of a body's plan to rows of the outer plan's slots."""

    def __init__(
        self,
        launch: Launch,
        locations: dict[int, Location],
        slots: list[PlanSlot],
        scalar_numbers: Mapping[tuple[int, DType], int],
    ) -> None:
        self.members: list[Facts] = list(launch.parts[0][0].members)
        self.loop: Facts = self.members[0].inputs[0]
        self.spec: Recurrence = self.loop.node.arg
        self.device: str = launch.device
        self.locations: dict[int, Location] = locations
        self.slots: list[PlanSlot] = slots
        count = steps_of(self.loop.node)
        self.count = -1 if count is None else scalar_numbers[id(count), int64]
        self.values: dict[int, Node] = {}  # what stands for a placeholder in the body
        self.bases: dict[int, Binding] = {}  # where a placeholder lies
        self.copies: tuple[list[RowCopy], list[RowCopy]] = [], []
        self.after: list[Binding] = []  # where the carries go

    def lower(self, schedule_body: Callable[[Sequence[Node]], Plan]) -> LoopStep:
        """Schedule the body and bind its arrays."""
        body = self.spec.body
        nodes = [member.node for member in self.members]
        live = live_carries(body, nodes)
        for number, leaf in enumerate(body.leaves):
            if leaf.arg != "carry":
                self.bind(number, leaf)
            elif number in live:
                self.carry(number)
        stacks = [member for member in self.members if member.node.arg[0] == "stack"]
        numbers = [body.nexts[number] for number in live]
        numbers += [member.node.arg[1] for member in stacks]
        roots = substituted([body.order[number] for number in numbers], self.values)
        plan = schedule_body(distinct(roots, id))
        if any(isinstance(step, CopyStep) for step in plan.steps):  # two roots are equal
            plan = schedule_body(distinct(roots, kind_of))
        found = [self.bases[id(leaf)] for leaf in plan.inputs]
        bindings = dict(enumerate(found))
        outputs = [*self.after, *(self.walk(self.slot_of(member)) for member in stacks)]
        bindings |= dict(zip(plan.outputs, outputs, strict=True))
        listed = tuple(sorted(bindings.items()))
        copies = tuple(self.copies[0]), tuple(self.copies[1])
        space, length = self.space(plan), self.spec.length
        return LoopStep(plan, length, listed, *copies, space, self.device, self.count)

    def slot_of(self, facts: Facts) -> int:
        """Find the slot of something in memory."""
        return self.locations[facts.number].slot

    def walk(self, slot: int, start: int = 0) -> Binding:
        """Bind one row a step, in the order of steps."""
        if self.spec.is_reverse:
            return Binding(slot, start + self.spec.length - 1, -1)
        return Binding(slot, start, 1)

    def bind(self, number: int, leaf: Node) -> None:
        """Bind an x or a constant; views of a constant go into the body."""
        base = self.loop.inputs[number]
        views = views_above(self.loop.node.inputs[number], self.loop.hops[number])
        if is_embedded(base, leaf.arg):
            value = base.node if leaf.arg == "constant" else leaf.const_like(base.node.arg)
        elif leaf.arg == "x":
            start = first_element(views) // max(leaf.size, 1)
            self.bases[id(leaf)] = self.walk(self.slot_of(base), start)
            return
        else:
            value = placeholder("constant", base.node.shape, leaf.dtype, leaf.device)
            self.bases[id(value)] = Binding(self.slot_of(base), 0, 0)
        for view in reversed(views if leaf.arg == "constant" else []):
            parts = (view.arg, view.shape, view.dtype, view.device)
            value = Node(view.op, (value,), *parts)
        self.values[id(leaf)] = value

    def carry(self, number: int) -> None:
        """Bind a carry to the rows of its history, or to two rows in turn."""
        leaf, length = self.spec.body.carries[number], self.spec.length
        wanted = self.outcomes_of(number)
        first, step, mask = 0, 1, 1
        if "history" in wanted:
            slot, mask = wanted["history"], -1
            first, step = (length, -1) if self.spec.is_reverse else (0, 1)
        else:
            slot = self.temporary(leaf.dtype, (2, *leaf.shape))
        self.bases[id(leaf)] = own = Binding(slot, first, step, mask, 0)
        self.after.append(Binding(slot, first, step, mask, 1))
        views = views_above(self.loop.node.inputs[number], self.loop.hops[number])
        source = self.slot_of(self.loop.inputs[number])
        start = first_element(views) // max(leaf.size, 1)
        self.copies[0].append(RowCopy(source, start, slot, first, leaf.size, own))
        if "carry" in wanted:
            last = own.row(length), wanted["carry"], 0
            self.copies[1].append(RowCopy(slot, *last, leaf.size, own))

    def outcomes_of(self, number: int) -> dict[str, int]:
        """Find the slots of what is wanted of a carry: its history, its last value."""
        found: dict[str, int] = {}
        for member in self.members:
            kind, carry = member.node.arg
            if kind != "stack" and carry == number:
                check(kind not in found, "an outcome of a loop stands twice in a plan", member.node)
                found[kind] = self.slot_of(member)
        return found

    def temporary(self, dtype: DType, shape: tuple[int, ...]) -> int:
        """Add a slot that lives while the loop runs."""
        parts = (dtype, product(shape), self.device, shape, row_major(shape))
        self.slots.append(PlanSlot("temporary", *parts))
        return len(self.slots) - 1

    def space(self, plan: Plan) -> int:
        """Add a slot for the temporaries of the body; -1 if it has none."""
        size = plan.arenas.get(self.device, 0)
        return -1 if not size else self.temporary(uint8, (size,))
