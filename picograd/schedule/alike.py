"""alike: launches that differ only in which arrays and numbers they name share one kernel.

    y = relu(x @ a + b);  z = relu(y @ c + d)      one kernel, lowered once and launched twice

An outline is what `assemble` reads of a launch: where its members sit in their domain, and the
operations below them down to what is in memory. Nodes, slots of the plan and runtime scalars are
numbers in it, in order of first appearance, so that launches with equal outlines have equal kernels
over the slots and scalars at the same places of `slots` and `scalars`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from picograd.dtype import DType, int64
from picograd.graph.bounded import End, EndedNode
from picograd.graph.node import Node
from picograd.graph.row import NUMBERS, SCALARS, Role
from picograd.graph.starts import MOVING, placed
from picograd.late_methods import dataclass
from picograd.number import GivenInt
from picograd.schedule.arrange import Launch
from picograd.schedule.assemble import head_of, in_order
from picograd.schedule.group import Facts, Group, is_stored
from picograd.schedule.loop import Kernel
from picograd.schedule.lower import KernelBuilder, Location, scalar_key
from picograd.schedule.plan import KernelLaunch, PlanSlot
from picograd.schedule.values import NAMING

Row = tuple[Any, ...]


@dataclass(slots=True)
class Shared:
    """A kernel, with the places of an outline that its slots and scalars are at."""

    kernel: Kernel
    slots: tuple[int, ...]
    scalars: tuple[int, ...]

    def launch(self, outline: "Outline", device: str) -> KernelLaunch:
        """Launch it on what a launch of the same outline names."""
        slots, scalars = list(outline.slots), list(outline.scalars)
        return KernelLaunch(
            self.kernel,
            tuple([slots[place] for place in self.slots]),
            tuple([scalars[place] for place in self.scalars]),
            device,
        )


class Outline:
    """What `assemble` reads of a launch; see the module docstring."""

    def __init__(
        self,
        locations: Mapping[int, Location],
        plan_slots: Sequence[PlanSlot],
        scalar_numbers: Mapping[tuple[int, DType], int],
    ) -> None:
        self.locations = locations
        self.plan_slots = plan_slots
        self.scalar_numbers = scalar_numbers
        self.rows: list[Any] = []
        # of nodes, by the depth of a part and the number of their facts: one may read, or compute
        # what it is made of, where another one does not
        self.numbers: dict[int, dict[int, int]] = {}
        self.count = 0
        self.slots: dict[int, int] = {}  # of the plan -> here
        self.scalars: dict[int, int] = {}

    def add_part(self, groups: Sequence[Group]) -> None:
        """Describe groups that share one iteration space."""
        group = groups[0]
        self.rows.append((group.kind, group.shape, group.reduced))
        for member in in_order(groups):
            number = self.node(member, group.depth)
            place = self.place(member) if is_stored(member) else None
            self.rows.append((number, member.level, member.labels, member.over, place))

    def node(self, facts: Facts, depth: int) -> int:
        """Number a node, after adding the rows of what it is made of."""
        numbers = self.numbers.setdefault(depth, {})
        waiting = [facts]
        while waiting:
            last = waiting[-1]
            if last.number in numbers:
                waiting.pop()
                continue
            node, sources = last.node, sources_of(last, depth)
            if sources is None:
                row: Row = "load", self.place(last), node.shape, node.dtype
            else:
                inputs = tuple([numbers.get(each.number, -1) for each in sources])
                if -1 in inputs:
                    waiting += sources[::-1]
                    continue
                row = node.op, inputs, self.argument(node), node.shape, node.dtype
            waiting.pop()
            self.rows.append(row)
            numbers[last.number] = self.count
            self.count += 1
        return numbers[facts.number]

    def place(self, facts: Facts) -> Row:
        """Say where a node lies in memory."""
        place = self.locations[facts.number]
        slot = self.plan_slots[place.slot]
        number = self.slots.setdefault(place.slot, len(self.slots))
        return number, place.strides, slot.size, slot.dtype

    def argument(self, node: Node) -> Any:
        """Give an argument as it tells kernels apart; 1 is not True, and 0.0 not -0.0."""
        arg = node.arg
        if type(node) is Node and node.op not in NAMING:
            return arg
        if node.op in NUMBERS:
            arg = type(arg), repr(arg)
        elif node.op in SCALARS:
            arg = self.scalar(scalar_key(node))
        elif node.op in MOVING:
            arg = placed(node, self.start)
        if type(node) is EndedNode:
            sources = [self.ends(ends) for ends in node.sources]
            return arg, self.ends(node.ends), tuple(sources)
        return arg

    def scalar(self, key: tuple[int, DType]) -> int:
        """Number a runtime scalar."""
        return self.scalars.setdefault(self.scalar_numbers[key], len(self.scalars))

    def start(self, start: GivenInt) -> tuple[str, int]:
        """Number where a slice begins, or how far a pad moves."""
        return "at", self.scalar((id(start), int64))

    def ends(self, ends: Sequence[End]) -> Row:
        """Describe where an array ends."""
        rows = []
        for end in ends:
            rows.append((end.axis, end.step, end.size, self.scalar((id(end.count), int64))))
        return tuple(rows)

    def share(self, kernel: Kernel, builder: KernelBuilder) -> Shared:
        """Keep the kernel of this launch for those of the same outline."""
        return Shared(
            kernel,
            tuple([self.slots[slot] for slot in builder.slots]),
            tuple([self.scalars[number] for number in builder.scalars]),
        )


def sources_of(facts: Facts, depth: int) -> Sequence[Facts] | None:
    """List what a node is made of in a part of some depth; None if it is loaded there."""
    group = facts.group
    if facts.is_source or (group is not None and group.depth < depth):
        return None
    is_later = group is not None and group.depth > depth
    is_base = is_later and facts.node.row.role is Role.SCATTER  # its updates are a later launch
    return facts.inputs[:1] if is_base else facts.inputs


def sketch_of(launch: Launch) -> Row:
    """Tell at little cost which launches may be alike: those of one sketch may."""
    parts = [
        (part[0].shape, part[0].reduced, sum(len(group.members) for group in part))
        for part in launch.parts
    ]
    return launch.kind, head_of(launch), tuple(parts)


def outline_of(launch: Launch, outline: Outline) -> Any:
    """Fill the outline of a launch: what comes back is equal for those that have equal kernels.

    None for a launch that writes a part of an array, whose places are not nodes.
    """
    outline.rows.append((launch.kind, head_of(launch)))
    for part in launch.parts:
        if any(member.is_update for group in part for member in group.members):
            return None
        outline.add_part(part)
    return tuple(outline.rows)
