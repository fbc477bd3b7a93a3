"""Plan: what runs, in order, over numbered slots; the interface between schedule and engine.

    Plan       = slots, steps, inputs, scalars, outputs, arenas, reasons, causes
    PlanSlot   = one array: an input (a leaf's buffer), an output (fresh memory) or a temporary
    Step       = KernelLaunch | CopyStep | HostStep | LoopStep

Slots 0..len(inputs)-1 are the inputs: distinct leaf buffers in order of first appearance in a walk
over the graph, inputs first. Runtime scalars are numbered the same way. Inputs and outputs are
row-major; a temporary is stored in the order of its `strides`, at `offset` bytes in the arena of
its device. A root that is an assignment has its target's input slot as its output slot.

waits: which launches of a stretch must be done before which others begin.

A launch waits for those that write what it reads, and for those that touch what it writes, also
where temporaries that live at different times share memory. The rest may run beside it:

    a: x -> t      b: x -> u      c: t, u -> y        waits: (), (), (0, 1)

What a launch waits for by way of another is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Union

from picograd.dtype import DType
from picograd.graph.host_call import HostCall
from picograd.graph.node import Node
from picograd.helpers import direct, row_major
from picograd.late_methods import dataclass

if TYPE_CHECKING:  # a plan from disk runs without its kernels
    from picograd.schedule.loop import Kernel


@dataclass(frozen=True, slots=True)
class PlanSlot:
    """One array of a plan; `size` in elements, `strides` in elements per dimension of `shape`."""

    kind: str  # "input", "output" or "temporary"
    dtype: DType
    size: int
    device: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = -1  # in bytes, of a temporary

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return self.size * self.dtype.itemsize

    def at(self, offset: int) -> "PlanSlot":
        """Place it in memory."""
        known = self.kind, self.dtype, self.size, self.device, self.shape, self.strides
        return PlanSlot(*known, offset)


def hold_complex(slots: list[PlanSlot], outputs: Sequence[int], roots: Sequence[Node]) -> None:
    """Say which outputs hold complex numbers, though they were computed as pairs of real ones."""
    for number, root in zip(outputs, roots):
        if root.dtype.is_complex and slots[number].kind == "output":
            held = replace(slots[number], dtype=root.dtype, size=root.size)
            slots[number] = replace(held, shape=root.shape, strides=row_major(root.shape))


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """Run a kernel on plan slots (one per kernel slot) and plan scalars (one per kernel scalar)."""

    kernel: "Kernel"
    slots: tuple[int, ...]
    scalars: tuple[int, ...]
    device: str

    @property
    def outside(self) -> tuple[int, ...]:
        """The slots that have memory outside of blocks."""
        own = zip(self.slots, self.kernel.slots)  # behind those are workspaces
        shared = {slot for slot, each in own if each.role == "shared"}
        return tuple([slot for slot in self.slots if slot not in shared]) if shared else self.slots


@dataclass(frozen=True, slots=True)
class CopyStep:
    """Copy all elements of one slot to another, which may be on another device."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class HostStep:
    """Call a host function on whole slots, read in these shapes, when all before is done."""

    call: HostCall
    reads: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    target: int
    shape: tuple[int, ...]
    device: str

    @property
    def slots(self) -> tuple[int, ...]:
        """The slots touched."""
        return (*self.reads, self.target)


@dataclass(frozen=True, slots=True)
class Binding:
    """Which row of a slot an array of a loop's body is at step t: see `row`."""

    slot: int
    first: int
    step: int
    mask: int = -1
    shift: int = 0

    def row(self, t: int) -> int:
        """Find the row at step t; a row has as many elements as the body's array."""
        return self.first + self.step * ((t + self.shift) & self.mask)

    def first_of(self, missing: int) -> int:
        """Find the first row of a loop of fewer steps: rows that are counted down begin earlier."""
        return self.first - missing if self.step < 0 else self.first

    def shortened(self, missing: int) -> "Binding":
        """Give the binding in a loop of fewer steps."""
        return replace(self, first=self.first_of(missing))


@dataclass(frozen=True, slots=True)
class RowCopy:
    """Copy `size` elements from one row to another; rows have that size.

    `carry` says where the carry is that is copied, before the first step or after the last.
    """

    source: int
    source_row: int
    target: int
    target_row: int
    size: int
    carry: Binding


@dataclass(frozen=True, slots=True)
class LoopStep:
    """Run the plan of a body `length` times, on other rows of the outer plan's slots each time.

    `bindings` are pairs (slot of the body's plan, Binding) for all its inputs and outputs; its
    temporaries lie in the slot `space`. Rows are copied before the first step and after the last.
    Where the number of steps is known at run time only, it is the plan's scalar `count`, at most
    `length`.
    """

    body: "Plan"
    length: int
    bindings: tuple[tuple[int, Binding], ...]
    before: tuple[RowCopy, ...]
    after: tuple[RowCopy, ...]
    space: int
    device: str
    count: int = -1

    def missing(self, scalars: Sequence[int | float]) -> int:
        """Count the steps that are not there in this run."""
        return 0 if self.count < 0 else self.length - int(scalars[self.count])

    def copies_before(self, missing: int) -> list[RowCopy]:
        """List what is copied before the first step."""
        if not missing:
            return list(self.before)
        rows = [copy.carry.first_of(missing) for copy in self.before]
        return [replace(copy, target_row=row) for copy, row in zip(self.before, rows)]

    def copies_after(self, missing: int) -> list[RowCopy]:
        """List what is copied after the last step."""
        if not missing:
            return list(self.after)
        steps = self.length - missing
        rows = [copy.carry.shortened(missing).row(steps) for copy in self.after]
        return [replace(copy, source_row=row) for copy, row in zip(self.after, rows)]

    @property
    def reads(self) -> tuple[int, ...]:
        """The outer slots read, each once."""
        count = len(self.body.inputs)
        found = [copy.source for copy in self.before]
        found += [binding.slot for number, binding in self.bindings if number < count]
        return tuple(dict.fromkeys(found))

    @property
    def writes(self) -> tuple[int, ...]:
        """The outer slots written, each once."""
        count = len(self.body.inputs)
        found = [binding.slot for number, binding in self.bindings if number >= count]
        found += [copy.target for copy in (*self.before, *self.after)]
        return tuple(dict.fromkeys(found))

    @property
    def slots(self) -> tuple[int, ...]:
        """The outer slots touched."""
        space = (self.space,) if self.space >= 0 else ()
        return tuple(dict.fromkeys((*self.reads, *self.writes, *space)))


Step = Union[KernelLaunch, CopyStep, HostStep, LoopStep]


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of scheduling; see the module docstring."""

    slots: tuple[PlanSlot, ...]
    steps: tuple[Step, ...]
    inputs: tuple[Node, ...]  # one leaf node per input slot
    scalars: tuple[Node, ...]  # one scalar node per plan scalar
    outputs: tuple[int, ...]  # one slot per root
    arenas: Mapping[str, int]  # bytes of the temporaries' arena, per device
    reasons: tuple[str, ...]
    causes: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # by slot: why it is stored
    joined: tuple[tuple[int, int], ...] = ()  # a slot, and one that it is a part of by its offset

    @property
    def kernels(self) -> "tuple[Kernel, ...]":
        """The kernels in order of launch; those of a loop's body once."""
        return tuple(kernel for step in self.steps for kernel in kernels_of(step))

    @property
    def peak_bytes(self) -> int:
        """Bytes of all arenas and outputs together: what running the plan allocates."""
        outputs = sum(slot.nbytes for slot in self.slots if slot.kind == "output")
        return outputs + sum(self.arenas.values())

    def __repr__(self) -> str:
        return format_plan(self)


def kernels_of(step: Step) -> "tuple[Kernel, ...]":
    """List the kernels of a step."""
    if isinstance(step, LoopStep):
        return step.body.kernels
    return (step.kernel,) if isinstance(step, KernelLaunch) else ()


def format_step(step: Step) -> list[str]:
    """Print a step; a loop with its body, whose slots are b0, b1, ..."""
    if isinstance(step, CopyStep):
        return [f"  copy p{step.source} -> p{step.target}"]
    if isinstance(step, KernelLaunch):
        slots = " ".join(f"p{s}" for s in step.slots)
        return [f"  {step.kernel.name} ({step.kernel.hero}) {slots}"]
    if isinstance(step, HostStep):
        slots = " ".join(f"p{s}" for s in step.reads)
        return [f"  host {step.call} {slots} -> p{step.target}"]
    most = "" if step.count < 0 else "at most "
    lines = [f"  loop of {most}{step.length} steps"]
    lines += [f"    first {format_copy(copy)}" for copy in step.before]
    for number, binding in step.bindings:
        lines.append(f"    b{number}: p{binding.slot}[{format_row(binding)}]")
    for inner in step.body.steps:
        lines += [f"  {line.replace(' p', ' b')}" for line in format_step(inner)]
    lines += [f"    last {format_copy(copy)}" for copy in step.after]
    return lines


def format_copy(copy: RowCopy) -> str:
    """Print the copy of one row."""
    return f"p{copy.source}[{copy.source_row}] -> p{copy.target}[{copy.target_row}]"


def format_row(binding: Binding) -> str:
    """Print which row a step uses, as a formula of t."""
    if not binding.step:
        return str(binding.first)
    time = f"t + {binding.shift}" if binding.shift else "t"
    if binding.mask >= 0:
        return f"({time}) % {binding.mask + 1}"
    return f"{binding.first} - ({time})" if binding.step < 0 else f"{time} + {binding.first}"


def format_plan(plan: Plan) -> str:
    """Print a plan: its slots, its steps and the reasons of fusion."""
    lines = [f"plan: {len(plan.kernels)} kernels, {plan.peak_bytes} bytes"]
    for number, slot in enumerate(plan.slots):
        where = f" at {slot.offset}" if slot.offset >= 0 else ""
        lines.append(f"  p{number}: {slot.kind} {slot.dtype.name}{list(slot.shape)}{where}")
    for step in plan.steps:
        lines += format_step(step)
    lines.append(f"  roots: {' '.join(f'p{s}' for s in plan.outputs)}")
    return "\n".join([*lines, *(f"  {reason}" for reason in plan.reasons)])


def find_waits(
    slots: Sequence[PlanSlot], launches: Sequence[KernelLaunch], rows: Sequence[Sequence[int]] = ()
) -> list[tuple[int, ...]]:
    """List for each launch the numbers of those that it waits for.

    Of a loop's body, `rows` lists slots that may be rows of one array.
    """
    touched = sorted({slot for launch in launches for slot in launch.slots})
    sharing = shared_memory(slots, touched)
    for group in rows:
        for slot in group:
            sharing[slot] = [*sharing.get(slot, ()), *group]
    writer: dict[int, int] = {}  # the last launch that wrote a slot
    readers: dict[int, list[int]] = {}  # and those that read it since
    found: list[set[int]] = []
    for number, launch in enumerate(launches):
        waited: set[int] = set()
        own = [each.role for each in launch.kernel.slots]
        spaces = ["out"] * (len(launch.slots) - len(own))  # it writes its workspaces
        every = zip(launch.slots, own + spaces)
        roles = [(slot, role) for slot, role in every if role != "shared"]
        for slot, role in roles:
            for other in sharing[slot]:
                waited.update([writer[other]] if other in writer else [])
                waited.update(readers.get(other, ()) if role != "in" else ())
        for slot, role in roles:
            if role == "in":
                readers.setdefault(slot, []).append(number)
            else:
                writer[slot], readers[slot] = number, []
        found.append(waited - {number})
    return direct(found)


def shared_memory(slots: Sequence[PlanSlot], touched: Sequence[int]) -> dict[int, list[int]]:
    """List for each slot those that share bytes with it, itself among them."""
    sharing = {slot: [slot] for slot in touched}
    placed = [slot for slot in touched if slots[slot].kind == "temporary" and slots[slot].nbytes]
    placed.sort(key=lambda slot: (slots[slot].device, slots[slot].offset))
    open_slots: list[int] = []
    for slot in placed:
        own = slots[slot]
        open_slots = [
            other
            for other in open_slots
            if slots[other].device == own.device
            and slots[other].offset + slots[other].nbytes > own.offset
        ]
        for other in open_slots:
            sharing[slot].append(other)
            sharing[other].append(slot)
        open_slots.append(slot)
    return sharing
