"""schedule: from graph to plan. The stages, in order, are `STAGES`."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any

from picograd.dtype import DType, int64
from picograd.errors import internal
from picograd.graph.bounded import every_end
from picograd.graph.complex_numbers import has_complex, split_complex
from picograd.graph.expand import expand_composites
from picograd.graph.host_call import may_fail
from picograd.graph.node import Node
from picograd.graph.row import SCALARS, WRITES
from picograd.graph.starts import MOVING, fixed_graph, starts_of
from picograd.helpers import paused_collection, product, row_major
from picograd.late_methods import dataclass
from picograd.schedule.alike import Outline, Shared, outline_of, sketch_of
from picograd.schedule.arrange import Launch, arrange
from picograd.schedule.assemble import assemble
from picograd.schedule.chaining import chain_maps
from picograd.schedule.folding import fold_maps
from picograd.schedule.fuse import Fuser
from picograd.schedule.group import Facts, is_stored
from picograd.schedule.in_place import find_joins, lives_of, without, write_in_place
from picograd.schedule.loop import Kernel
from picograd.schedule.lower import KernelBuilder, Location, scalar_key
from picograd.schedule.memory import place_slots
from picograd.schedule.merge import merge_launches
from picograd.schedule.order import Order, order_of
from picograd.schedule.plan import (
    CopyStep,
    HostStep,
    KernelLaunch,
    Plan,
    PlanSlot,
    Step,
    hold_complex,
)
from picograd.schedule.race import has_race
from picograd.schedule.readers import find_readers
from picograd.schedule.rearranged import rearrange
from picograd.schedule.rebase import rebase
from picograd.schedule.recompute_apart import lower_peaks
from picograd.schedule.recurrence import Binder
from picograd.schedule.rewrites import REWRITES
from picograd.schedule.score_boxes import stream_scores
from picograd.schedule.score_ranges import find_ranges
from picograd.schedule.summed_pieces import sum_pieces
from picograd.schedule.unread_scores import leave_unread
from picograd.schedule.updates import aside_kernel
from picograd.schedule.values import facts_of, is_leaf, leaf_key, let_go
from picograd.schedule.verify import verify as verify_kernel
from picograd.schedule.views import is_window
from picograd.target import Target


@dataclass(eq=False, slots=True)
class Draft:
    """A plan in the making; each stage fills in its fields."""

    roots: list[Node]
    target: Target
    is_verified: bool
    fuser: Fuser
    order: Order = field(default_factory=Order)  # as recorded, inputs first
    facts: dict[int, Facts] = field(default_factory=dict)  # of each node, by identity
    values: list[Facts] = field(default_factory=list)  # each once
    inputs: list[Node] = field(default_factory=list)
    input_numbers: dict[int, int] = field(default_factory=dict)
    scalars: list[Node] = field(default_factory=list)
    scalar_numbers: dict[tuple[int, DType], int] = field(default_factory=dict)
    launches: list[Launch] = field(default_factory=list)
    slots: list[PlanSlot] = field(default_factory=list)
    locations: dict[int, Location] = field(default_factory=dict)
    targets: dict[int, int] = field(default_factory=dict)  # slots of what assignments write
    steps: list[Step] = field(default_factory=list)
    copies: list[CopyStep] = field(default_factory=list)
    bases: dict[int, int] = field(default_factory=dict)  # of updates of a copy: the slot copied
    outputs: list[int] = field(default_factory=list)
    arenas: dict[str, int] = field(default_factory=dict)
    joined: list[tuple[int, int]] = field(default_factory=list)  # a slot, and what it is a part of
    shared: dict[Any, Shared] = field(default_factory=dict)  # kernels by their outlines


def schedule(roots: Sequence[Node], target: Target, verify: bool = True) -> Plan:
    """Turn the graph under `roots` into a plan; `verify` checks every kernel built."""
    draft = Draft(list(roots), target, verify, Fuser(target))
    with paused_collection():
        for stage in STAGES:
            stage(draft)
    hold_complex(draft.slots, draft.outputs, roots)
    steps = (*draft.steps, *draft.copies)
    slots = tuple(draft.slots)
    inputs = tuple(draft.inputs)
    scalars = tuple(draft.scalars)
    outputs = tuple(draft.outputs)
    parts = slots, steps, inputs, scalars
    reasons = draft.fuser.reasons.told(draft.locations)
    let_go(draft.values)
    joined = tuple(draft.joined)
    return Plan(*parts, outputs, draft.arenas, *reasons, joined)


def number_inputs(draft: Draft) -> None:
    """Number leaf buffers and runtime scalars in order of first appearance.

    Complex numbers become pairs of real ones before.
    """
    draft.order = order_of(draft.roots)
    if has_complex(draft.order):
        draft.roots = split_complex(draft.roots, draft.order, is_leaf)
        draft.order = order_of(draft.roots)
    for node in draft.order:
        is_plain = node.inputs and node.realized is None and node.op not in MOVING
        if not is_plain or type(node) is not Node:
            number_input(draft, node)


def number_input(draft: Draft, node: Node) -> None:
    """Give a leaf its input slot, or a runtime scalar its number."""
    if is_leaf(node):
        key = leaf_key(node)
        if key not in draft.input_numbers:
            draft.input_numbers[key] = len(draft.inputs)
            draft.inputs.append(node)
            lies = node.shape, row_major(node.shape)
            slot = PlanSlot("input", node.dtype, node.size, node.device, *lies)
            draft.slots.append(slot)
    elif node.op in SCALARS:
        number_scalar(draft, node)
    elif node.op in MOVING:
        for start in starts_of(node):
            scalar = Node("scalar", (), start, (), int64, node.device)
            number_scalar(draft, scalar)
    for end in () if is_leaf(node) else every_end(node):
        number_scalar(draft, end.scalar)


def number_scalar(draft: Draft, node: Node) -> None:
    """Give a runtime scalar its number."""
    if scalar_key(node) not in draft.scalar_numbers:
        draft.scalar_numbers[scalar_key(node)] = len(draft.scalars)
        draft.scalars.append(node)


def fuse(draft: Draft) -> None:
    """Expand composites, find equal nodes, and group the rest."""
    roots, order = draft.roots, draft.order
    for rewrite in REWRITES:
        before, roots = roots, order.rewritten(rewrite, roots, draft.target)
        order = order if roots == before else order_of(roots)
    draft.facts = order.facts or facts_of(order, roots)
    found = [draft.facts[id(root)] for root in roots]
    draft.roots = [facts.node for facts in found]
    draft.values = list(dict.fromkeys(draft.facts.values()))  # inputs first, as the walk met them
    wanted = set(found)
    given = draft.values, wanted, draft.target, draft.fuser.reasons
    draft.values = stream_scores(order, *given)
    find_readers(draft.values, wanted)
    # with pixels side by side sums over windows of channels alone took 3.5 times as long
    draft.fuser.has_lone = any(f.is_multiplied and is_window(f.node) for f in draft.values)
    for facts in draft.values:
        draft.fuser.visit(facts)
        if facts in wanted:
            draft.fuser.store_root(facts)


def order_launches(draft: Draft) -> None:
    """Put groups into launches, in an order where everything is computed before it is read."""
    target = draft.target
    arranged = arrange(draft.fuser.groups, target)
    draft.launches = merge_launches(arranged, target)


def assign_slots(draft: Draft) -> None:
    """Give every stored member a slot: its target's, one of its own, or a temporary."""
    for facts in (f for f in draft.values if f.is_source):
        number = draft.input_numbers[leaf_key(facts.node)]
        draft.locations[facts.number] = Location(number, row_major(facts.node.shape))
    place_assigns(draft)
    for launch in draft.launches:
        for part in launch.parts:
            for member in (m for group in part for m in group.members):
                if is_stored(member) and member.number not in draft.locations:
                    add_slot(draft, member)


def place_assigns(draft: Draft) -> None:
    """Let assignments write in place where nobody reads the old content later.

    The last one of a memory does, and those of a part with the one before it, so that what they
    leave is there already. Nor may a host call follow: one that raises must leave everything as it
    was.
    """
    assigns = [f for f in draft.values if f.node.op in WRITES and not f.is_source]
    final = {assign_target(draft, facts): facts for facts in assigns}
    bases = {x.target.number for x in assigns if x.is_update and x.target is not None}
    reads = Reads(draft)
    for facts in assigns:
        slot, number = assign_target(draft, facts), facts.number
        is_final = final[slot] is facts
        if facts.is_update:
            place_update(draft, facts, reads)
            place = draft.locations[number].slot
            if is_final and place != slot:
                draft.copies.append(CopyStep(place, slot))
        elif not is_final and number not in bases:
            continue
        elif reads.last(slot) <= reads.position(facts):
            draft.locations[number] = Location(slot, row_major(facts.node.shape))
            reads.follow(slot, facts)
        elif is_final:
            copy_later(draft, facts, slot)


def can_fail(launch: Launch) -> bool:
    """Tell whether a launch calls a host function that may raise: itself, or in a loop's body."""
    if launch.kind not in ("host", "loop"):
        return False
    node = launch.parts[0][0].members[0].node
    return may_fail([node if launch.kind == "host" else node.inputs[0]])


class Reads:
    """This class knows when the memory of a slot is read last, among the launches."""

    def __init__(self, draft: Draft) -> None:
        self.leaves: dict[int, int] = {}  # by slot: of what was there first
        self.contents: dict[int, int] = {}  # by assignment
        self.positions: dict[int, int] = {}
        self.inputs: int = len(draft.inputs)
        self.last_call: int = -1
        for number, launch in enumerate(draft.launches):
            if can_fail(launch):
                self.last_call = number
            for leaf in launch.leaves:
                self.leaves[draft.locations[leaf].slot] = number
            self.contents.update(dict.fromkeys(launch.contents, number))
            for part in launch.parts:
                self.positions.update((id(group), number) for group in part)
        for root in draft.roots:  # copied when all is done
            facts = draft.facts[id(root)]
            while not facts.is_loaded:
                facts = facts.inputs[0]
            if root.op not in WRITES:
                self.contents[facts.number] = len(draft.launches)

    def position(self, facts: Facts) -> int:
        """Number the launch of a member."""
        return self.positions[id(facts.group)]

    def last(self, slot: int) -> int:
        """Number the last launch that reads what a slot holds, or may need it left as it was."""
        read = self.leaves.get(slot, -1)
        return max(read, self.last_call) if slot < self.inputs else read

    def follow(self, slot: int, facts: Facts) -> None:
        """Let an assignment be what a slot holds from now on: it is written, then read."""
        read = self.contents.get(facts.number, -1)
        left = self.last(slot)
        written = self.position(facts) + 1
        self.leaves[slot] = max(left, read, written)


def place_update(draft: Draft, facts: Facts, reads: Reads) -> None:
    """Write a part where its base lies, or into a copy of it if the base is read later."""
    base = facts.target or internal("an update of nothing", facts.node)
    if base.number not in draft.locations:
        add_slot(draft, base)
        reads.follow(draft.locations[base.number].slot, base)
    held = draft.locations[base.number]
    if reads.last(held.slot) <= reads.position(facts):
        draft.locations[facts.number] = held
    else:
        draft.fuser.reasons.note_copy(facts)
        add_slot(draft, facts)
        draft.bases[facts.number] = held.slot
    reads.follow(draft.locations[facts.number].slot, facts)


def assign_target(draft: Draft, facts: Facts) -> int:
    """Input slot an assignment writes; what a chain of them writes is looked up once."""
    target = facts.node.inputs[0]
    chain: list[int] = []
    while not is_leaf(target) and id(target) not in draft.targets:
        chain.append(id(target))
        target = target.inputs[0]
    is_known = id(target) in draft.targets
    slot = draft.targets[id(target)] if is_known else draft.input_numbers[leaf_key(target)]
    draft.targets.update(dict.fromkeys(chain, slot))
    return slot


def copy_later(draft: Draft, facts: Facts, slot: int) -> None:
    """Write an assignment's value to a temporary, and copy it when all readers are done."""
    facts.is_row_major = True
    draft.fuser.reasons.note_copy(facts)
    add_slot(draft, facts)
    draft.copies.append(CopyStep(draft.locations[facts.number].slot, slot))


def add_slot(draft: Draft, facts: Facts) -> None:
    """Add an output or temporary slot for a member."""
    node = facts.node
    kind = "output" if facts.is_output else "temporary"
    is_plain = facts.is_output or facts.is_row_major or facts.order is None
    order = tuple(range(len(node.shape))) if is_plain else facts.order
    strides, step = [0] * len(node.shape), 1
    for d in reversed(order or ()):
        strides[d], step = step, step * node.shape[d]
    lies = node.shape, tuple(strides)
    slot = PlanSlot(kind, node.dtype, node.size, node.device, *lies)
    number = len(draft.slots)
    draft.locations[facts.number] = Location(number, tuple(strides))
    draft.slots.append(slot)


def lower(draft: Draft) -> None:
    """Lower every launch to a kernel."""
    sketches = Counter(map(sketch_of, draft.launches))
    for launch in draft.launches:
        if launch.kind == "copy":
            member = launch.parts[0][0].members[0]
            source = draft.locations[member.inputs[0].number].slot
            target = draft.locations[member.number].slot
            draft.steps.append(CopyStep(source, target))
            continue
        if launch.kind == "host":
            draft.steps.append(host_step(draft, launch))
            continue
        if launch.kind == "loop":
            binder = Binder(launch, draft.locations, draft.slots, draft.scalar_numbers)
            draft.steps.append(binder.lower(body_scheduler(draft)))
            continue
        members = [m for part in launch.parts for group in part for m in group.members]
        for member in members:
            if member.number in draft.bases:
                place = draft.locations[member.number].slot
                draft.steps.append(CopyStep(draft.bases[member.number], place))
        sketch = sketch_of(launch)
        is_lone = sketches[sketch] == 1
        lower_kernel(draft, launch, members, is_lone)


def lower_kernel(draft: Draft, launch: Launch, members: Sequence[Facts], is_lone: bool) -> None:
    """Lower a launch, unless one like it was lowered before: `is_lone` if none may be."""
    outline = Outline(draft.locations, draft.slots, draft.scalar_numbers)
    key = None if is_lone else outline_of(launch, outline)
    if key in draft.shared:
        draft.steps.append(draft.shared[key].launch(outline, launch.device))
        return
    aside: dict[int, Location] = {}
    builder = new_builder(draft, aside)
    kernel = assemble(launch, builder)
    if kernel is not None and has_race(kernel):
        aside = put_aside(draft, members)
        builder = new_builder(draft, aside)
        kernel = assemble(launch, builder)
    if kernel is not None:
        kernel = launch_kernel(draft, kernel, builder, launch.device)
        if key is not None and not aside:
            draft.shared[key] = outline.share(kernel, builder)
    for member in members:
        if member.number in aside:
            store_aside(draft, member, aside[member.number])


def launch_kernel(draft: Draft, kernel: Kernel, builder: KernelBuilder, device: str) -> Kernel:
    """Add the step that runs a kernel."""
    kernel = verify_kernel(kernel) if draft.is_verified else kernel
    slots = tuple(builder.slots)
    scalars = tuple(builder.scalars)
    draft.steps.append(KernelLaunch(kernel, slots, scalars, device))
    return kernel


def host_step(draft: Draft, launch: Launch) -> HostStep:
    """Say which slots a host call reads, and in which shapes; it writes one of its own."""
    member = launch.parts[0][0].members[0]
    node, inputs = member.node, member.node.inputs
    reads = tuple([draft.locations[source.number].slot for source in member.inputs])
    shapes = tuple([source.shape for source in inputs])
    target = draft.locations[member.number].slot
    return HostStep(node.arg, reads, shapes, target, node.shape, launch.device)


def body_scheduler(draft: Draft) -> Callable[[Sequence[Node]], Plan]:
    """Make a function that schedules the body of a loop for the same target."""

    def schedule_body(roots: Sequence[Node]) -> Plan:
        roots = fixed_graph(expand_composites(roots, target=draft.target))
        plan = schedule(roots, draft.target, draft.is_verified)
        draft.fuser.reasons.note_loop(plan.reasons)
        return plan

    return schedule_body


def new_builder(draft: Draft, aside: dict[int, Location]) -> KernelBuilder:
    """Start a kernel; some of its assignments may be put aside."""
    return KernelBuilder(draft.locations, draft.slots, draft.scalar_numbers, aside)


def put_aside(draft: Draft, members: Sequence[Facts]) -> dict[int, Location]:
    """Give the assignments of a launch temporaries: another point reads what they overwrite."""
    found: dict[int, Location] = {}
    for member in members:
        node = member.node
        if node.op not in WRITES:
            continue
        shape = node.arg.shape if member.is_update else node.shape
        draft.fuser.reasons.note_copy(member, "at another point")
        strides, size = row_major(shape), product(shape)
        found[member.number] = Location(len(draft.slots), strides)
        draft.slots.append(PlanSlot("temporary", node.dtype, size, node.device, shape, strides))
    return found


def store_aside(draft: Draft, member: Facts, place: Location) -> None:
    """Copy what was put aside to where it belongs, now that all have read what was there."""
    if not member.is_update:
        draft.steps.append(CopyStep(place.slot, draft.locations[member.number].slot))
        return
    builder = new_builder(draft, {})
    launch_kernel(draft, aside_kernel(member, place, builder), builder, member.node.device)


def range_masks(draft: Draft) -> None:
    """Find which places streams see through masks of numbers in memory, before they run.

    What masks hide of what streams keep is left out.
    """
    before, draft.steps = draft.steps, find_ranges(draft.slots, draft.steps, draft.target)
    draft.steps = leave_unread(draft.slots, draft.steps)
    verify_new(draft, before, draft.steps)


def place_outputs(draft: Draft) -> None:
    """Find each root's slot; a root that is a leaf, or is another root too, is copied."""
    taken: set[int] = set()
    for root in draft.roots:
        facts, is_assign = draft.facts[id(root)], root.op in WRITES
        if is_assign:
            draft.outputs.append(assign_target(draft, facts))
            continue
        while not facts.is_loaded:
            facts = facts.inputs[0]
        number = draft.locations[facts.number].slot
        if draft.slots[number].kind != "output" or number in taken:
            number = copy_output(draft, root, number, facts.is_source)
        taken.add(number)
        draft.outputs.append(number)
        # The slot has the shape of the node below; the root may be a reshape of it.
        strides = row_major(root.shape)
        draft.slots[number] = replace(draft.slots[number], shape=root.shape, strides=strides)


def copy_output(draft: Draft, root: Node, source: int, is_leaf: bool) -> int:
    """Add an output slot that is a copy of another slot; a leaf is copied before it is changed."""
    place = root.dtype, root.size, root.device, root.shape, row_major(root.shape)
    draft.slots.append(PlanSlot("output", *place))
    step = CopyStep(source, len(draft.slots) - 1)
    (draft.steps if is_leaf else draft.copies).insert(0, step)
    return step.target


def share_memory(draft: Draft) -> None:
    """Make again what waits at the peak; let maps write where they read, where most is taken."""
    folded = fold_maps(draft.slots, draft.steps, draft.copies, draft.target)
    folded = sum_pieces(draft.slots, folded, draft.copies, draft.target)
    folded = chain_maps(draft.slots, folded, draft.copies, draft.target)
    every = [*rearrange(draft.slots, folded, draft.copies, draft.target), *draft.copies]
    steps = write_in_place(draft.slots, lower_peaks(draft.slots, every, draft.target))
    verify_new(draft, draft.steps, steps)
    draft.steps = steps[: len(steps) - len(draft.copies)]


def verify_new(draft: Draft, old: Sequence[Step], new: Sequence[Step]) -> None:
    """Verify the kernels that a pass over all steps made, if they are to be."""
    known = {id(step.kernel) for step in old if isinstance(step, KernelLaunch)}
    for step in new if draft.is_verified else ():
        if isinstance(step, KernelLaunch) and id(step.kernel) not in known:
            verify_kernel(step.kernel)


def place_memory(draft: Draft) -> None:
    """Place temporaries in the arena of their device, some of them in the result of a join."""
    every = (*draft.steps, *draft.copies)
    joins = find_joins(draft.slots, every)
    draft.steps = without(draft.steps, joins)
    lives = lives_of(every)  # with the joins: what lies in a result is there until it is read
    draft.steps, parts = rebase(draft.slots, draft.steps)
    for slot, whole, _ in parts:
        lives[slot] = lives[whole]
    for join in joins:
        for slot, at in join.places:
            parts.append((slot, join.whole, at * draft.slots[slot].dtype.itemsize))
    draft.joined += [(slot, whole) for slot, whole, _ in parts]
    draft.arenas |= place_slots(draft.slots, lives, parts)


STAGES: tuple[Callable[[Draft], None], ...] = (
    number_inputs,
    fuse,
    order_launches,
    assign_slots,
    lower,
    range_masks,
    place_outputs,
    share_memory,
    place_memory,
)
