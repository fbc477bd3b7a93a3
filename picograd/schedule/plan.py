"""Plan: what runs, in order, over numbered slots; the interface between schedule and engine.

    Plan       = slots, steps, inputs, scalars, outputs, arenas, reasons
    PlanSlot   = one array: an input (a leaf's buffer), an output (fresh memory) or a temporary
    Step       = KernelLaunch | CopyStep

Slots 0..len(inputs)-1 are the inputs: distinct leaf buffers in order of first appearance in a walk
over the graph, inputs first. Runtime scalars are numbered the same way. Inputs and outputs are
row-major; a temporary is stored in the order of its `strides`, at `offset` bytes in the arena of
its device. A root that is an assignment has its target's input slot as its output slot.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

from picograd.dtype import DType
from picograd.graph.node import Node
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


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """Run a kernel on plan slots (one per kernel slot) and plan scalars (one per kernel scalar)."""

    kernel: Kernel
    slots: tuple[int, ...]
    scalars: tuple[int, ...]
    device: str


@dataclass(frozen=True, slots=True)
class CopyStep:
    """Copy all elements of one slot to another, which may be on another device."""

    source: int
    target: int


Step = Union[KernelLaunch, CopyStep]


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

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels in order of launch."""
        return tuple(step.kernel for step in self.steps if isinstance(step, KernelLaunch))

    @property
    def peak_bytes(self) -> int:
        """Bytes of all arenas and outputs together: what running the plan allocates."""
        outputs = sum(slot.nbytes for slot in self.slots if slot.kind == "output")
        return outputs + sum(self.arenas.values())

    def __repr__(self) -> str:
        return format_plan(self)


def format_plan(plan: Plan) -> str:
    """Print a plan: its slots, its steps and the reasons of fusion."""
    lines = [f"plan: {len(plan.kernels)} kernels, {plan.peak_bytes} bytes"]
    for number, slot in enumerate(plan.slots):
        where = f" at {slot.offset}" if slot.offset >= 0 else ""
        lines.append(f"  p{number}: {slot.kind} {slot.dtype.name}{list(slot.shape)}{where}")
    for step in plan.steps:
        if isinstance(step, CopyStep):
            lines.append(f"  copy p{step.source} -> p{step.target}")
        else:
            slots = " ".join(f"p{s}" for s in step.slots)
            lines.append(f"  {step.kernel.name} ({step.kernel.hero}) {slots}")
    lines.append(f"  roots: {' '.join(f'p{s}' for s in plan.outputs)}")
    return "\n".join([*lines, *(f"  {reason}" for reason in plan.reasons)])
