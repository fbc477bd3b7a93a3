"""interpret_plan: run a whole plan with the kernel interpreter, the oracle of the engine."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.dtype import DType
from picograd.graph.host_call import run
from picograd.schedule.interpret import interpret
from picograd.schedule.plan import CopyStep, HostStep, LoopStep, Plan, RowCopy, Step

Array = Any


def interpret_plan(plan: Plan, inputs: Sequence[Array], scalars: Sequence[Any] = ()) -> list[Array]:
    """Run a plan on arrays, one per input slot, and return one array per root.

    Assignments write into the arrays given, if those are contiguous and of the slot's dtype.
    Temporaries share an arena per device as the plan says, so overlapping lifetimes show.
    """
    memory = allocate(plan, inputs)
    for step in plan.steps:
        run_step(step, memory, scalars)
    return [memory[number].reshape(plan.slots[number].shape) for number in plan.outputs]


def run_step(step: Step, memory: list[Array], scalars: Sequence[Any]) -> None:
    """Run one step on the arrays of the plan's slots."""
    if isinstance(step, CopyStep):
        memory[step.target][:] = memory[step.source]
    elif isinstance(step, HostStep):
        given = [memory[slot].reshape(shape) for slot, shape in zip(step.reads, step.shapes)]
        memory[step.target][:] = run(step.call, *given).reshape(-1)
    elif isinstance(step, LoopStep):
        run_loop(step, memory, step.missing(scalars))
    else:
        values = [scalars[number] for number in step.scalars]
        interpret(step.kernel, [memory[number] for number in step.slots], values)


def run_loop(step: LoopStep, memory: list[Array], missing: int) -> None:
    """Run the body of a loop on one row after the other; some steps may be missing."""
    for copy in step.copies_before(missing):
        copy_row(copy, memory)
    slots = step.body.slots
    held = allocate(step.body, [np.zeros(slot.shape) for slot in slots[: len(step.body.inputs)]])
    bindings = [(number, binding.shortened(missing)) for number, binding in step.bindings]
    for t in range(step.length - missing):
        for number, binding in bindings:
            size = slots[number].size
            start = binding.row(t) * size
            held[number] = memory[binding.slot][start : start + size]
        for inner in step.body.steps:
            run_step(inner, held, ())
    for copy in step.copies_after(missing):
        copy_row(copy, memory)


def copy_row(copy: RowCopy, memory: list[Array]) -> None:
    """Copy one row of a slot to another slot."""
    start, stop = copy.source_row * copy.size, (copy.source_row + 1) * copy.size
    at = copy.target_row * copy.size
    memory[copy.target][at : at + copy.size] = memory[copy.source][start:stop]


def allocate(plan: Plan, inputs: Sequence[Array]) -> list[Array]:
    """Give each slot a flat array: inputs as they are, temporaries as views of their arena.

    What NumPy holds in float32 has an arena of its own, as long in elements.
    """
    arenas: dict[tuple[str, DType | None], Array] = {}
    memory: list[Array] = []
    for number, slot in enumerate(plan.slots):
        dtype = slot.dtype.numpy
        if slot.kind == "input":
            memory.append(np.ascontiguousarray(inputs[number], dtype).reshape(-1))
        elif slot.offset >= 0:
            is_packed = dtype.itemsize == slot.dtype.itemsize
            key = slot.device, None if is_packed else slot.dtype
            held, unit = (np.uint8, 1) if is_packed else (dtype, slot.dtype.itemsize)
            if key not in arenas:
                arenas[key] = np.zeros(plan.arenas[slot.device] // unit, held)
            start, stop = slot.offset // unit, (slot.offset + slot.nbytes) // unit
            memory.append(arenas[key][start:stop].view(dtype))
        else:
            memory.append(np.zeros(slot.size, dtype))
    return memory
