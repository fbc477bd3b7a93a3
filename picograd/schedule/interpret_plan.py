"""interpret_plan: run a whole plan with the kernel interpreter, the oracle of the engine."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.schedule.interpret import interpret
from picograd.schedule.plan import CopyStep, Plan

Array = Any


def interpret_plan(plan: Plan, inputs: Sequence[Array], scalars: Sequence[Any] = ()) -> list[Array]:
    """Run a plan on arrays, one per input slot, and return one array per root.

    Assignments write into the arrays given, if those are contiguous and of the slot's dtype.
    Temporaries share an arena per device as the plan says, so overlapping lifetimes show.
    """
    memory = allocate(plan, inputs)
    for step in plan.steps:
        if isinstance(step, CopyStep):
            memory[step.target][:] = memory[step.source]
        else:
            values = [scalars[number] for number in step.scalars]
            slots = [memory[number] for number in step.slots]
            interpret(step.kernel, slots, values)
    return [memory[number].reshape(plan.slots[number].shape) for number in plan.outputs]


def allocate(plan: Plan, inputs: Sequence[Array]) -> list[Array]:
    """Give each slot a flat array: inputs as they are, temporaries as views of their arena."""
    arenas: dict[str, Array] = {}
    for device, size in plan.arenas.items():
        arenas[device] = np.zeros(size, np.uint8)
    memory: list[Array] = []
    for number, slot in enumerate(plan.slots):
        dtype = slot.dtype.numpy
        is_packed = dtype.itemsize == slot.dtype.itemsize  # bfloat16 is held in float32
        if slot.kind == "input":
            array = np.ascontiguousarray(inputs[number], dtype)
            memory.append(array.reshape(-1))
        elif slot.offset >= 0 and is_packed:
            stop = slot.offset + slot.nbytes
            memory.append(arenas[slot.device][slot.offset : stop].view(dtype))
        else:
            memory.append(np.zeros(slot.size, dtype))
    return memory
