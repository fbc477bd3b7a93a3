"""What the tests of attention in float32 share: shapes, and a plan run kernel by kernel."""

import numpy as np
from plan_support import VALUES

from picograd.graph.interpret import interpret
from picograd.schedule.interpret import interpret as interpret_kernel
from picograd.schedule.interpret_plan import allocate
from picograd.schedule.schedule import schedule


def shapes_of(rows, columns, depth, width):
    return (1, 2, rows, depth), (1, 2, columns, depth), (1, 2, columns, width)


def check(target, roots, run, count, most):
    """Run the attention kernels of a plan by `run`, the others as Loop IR, on poisoned memory."""
    plan = schedule(roots, target)
    memory = allocate(plan, [VALUES[node].copy() for node in plan.inputs])
    for step in plan.steps:
        is_stream = step.kernel.hero == "attention"
        (run if is_stream else interpret_kernel)(step.kernel, [memory[n] for n in step.slots])
    assert sum(kernel.hero == "attention" for kernel in plan.kernels) == count, plan.reasons
    for number, wanted in zip(plan.outputs, interpret(roots, values=VALUES), strict=True):
        found = memory[number].reshape(wanted.shape)
        assert np.linalg.norm(np.float64(found) - wanted) <= most * np.linalg.norm(wanted)
