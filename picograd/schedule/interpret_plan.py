"""interpret_plan: run a whole plan with the kernel interpreter: the oracle for engine and runtime."""

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
    arenas = {device: np.zeros(size, np.uint8) for device, size in plan.arenas.items()}
    memory: list[Array] = []
    for number, slot in enumerate(plan.slots):
        dtype = slot.dtype.numpy
        if slot.kind == "input":
            memory.append(np.ascontiguousarray(inputs[number], dtype).reshape(-1))
        elif slot.kind == "temporary" and slot.offset >= 0 and dtype.itemsize == slot.dtype.itemsize:
            raw = arenas[slot.device][slot.offset : slot.offset + slot.nbytes]
            memory.append(raw.view(dtype))
        else:
            memory.append(np.zeros(slot.size, dtype))
    for step in plan.steps:
        if isinstance(step, CopyStep):
            memory[step.target][:] = memory[step.source]
        else:
            values = [scalars[n] for n in step.scalars]
            interpret(step.kernel, [memory[n] for n in step.slots], values)
    shaped = zip(plan.outputs, strict=False)
    return [memory[n].reshape(plan.slots[n].shape) for (n,) in shaped]
