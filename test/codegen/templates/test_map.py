"""Elementwise kernels: a loop is cut where guards begin and end."""

import harness
import structured

from picograd.codegen.templates.map import build
from picograd.codegen.tile import Store
from picograd.schedule.loop import walk
from picograd.target import cuda_target


def test_joined_arrays_are_computed_each_in_its_own_loop() -> None:
    kernel = structured.joined().kernel
    (part,) = build(kernel, harness.TARGET).parts
    stores = [step for step in part.steps if isinstance(step, Store)]
    assert [step.dims[-1].size for step in stores] == [20, 18, 32]
    for step in stores:
        ops = [expr.op for expr in walk(step.expr)]
        assert "guard" not in ops and ops.count("exp") == 1
    assert len(build(kernel, cuda_target("sm_90a")).parts[0].steps) == 1


def test_short_pieces_stay_together() -> None:
    (part,) = build(structured.pad().kernel, harness.TARGET).parts
    assert len(part.steps) == 1
