"""What masks hide of kept scores is neither stored by their stream nor read by others."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from attention_forms import biased, with_gradients
from plan_support import check_plan

from picograd.schedule import schedule as stages
from picograd.schedule import score_boxes
from picograd.schedule.index import evaluate
from picograd.schedule.loop import walk
from picograd.schedule.plan import CopyStep
from picograd.schedule.schedule import schedule
from picograd.schedule.unread_scores import leave_unread
from picograd.target import cuda_target

HOPPER = cuda_target("sm_90a")
SHAPES = [(2, 3, 24, 8)] * 3


@pytest.fixture(autouse=True)
def gradients_of_float32(monkeypatch):
    """Let them stream: a GPU leaves them to products while there is memory."""
    monkeypatch.setattr(score_boxes, "FEW_BYTES", 0)


def computes_of(plan):
    return [c for kernel in plan.kernels for part in kernel.parts for c in part.computes]


def guards_in(kernel):
    every = [part for c in kernel.parts[0].computes for part in walk(c.body)]
    return [part for part in every if part.op == "guard"]


@pytest.mark.parametrize("window", [0, 9])
def test_runs_that_the_mask_hides_are_not_read(window):
    roots = with_gradients(partial(biased, window=window), *SHAPES, (3, 24, 24))
    plan = check_plan(roots, 4, 1e-4, HOPPER)
    (kept,) = (each for each in computes_of(plan) if each.seen)
    row, place = np.mgrid[:24, :24]
    is_shown = (place <= row) & (row < place + (window or 24))
    runs = is_shown.reshape(24, 3, 8).any(-1).repeat(8, -1)
    values = dict(zip(kept.axes[-2:], (row, place), strict=True))
    found = [evaluate(index, values, None) >= 0 for index, _, _ in kept.seen]
    assert np.array_equal(np.logical_and.reduce(found), runs)
    (guard,) = guards_in(plan.kernels[-1])
    assert len(guard.arg) == len(found)


@pytest.mark.parametrize("shape, size", [((2, 3, 24, 24), 24), ((3, 20, 20), 20)])
def test_what_is_wanted_whole_or_has_no_runs_is_stored_whole(shape, size):
    roots = with_gradients(biased, *[(2, 3, size, 8)] * 3, shape)
    plan = check_plan(roots, None, 1e-4, HOPPER)
    assert not any(each.seen for each in computes_of(plan))


def test_what_is_copied_is_stored_whole(monkeypatch):
    monkeypatch.setattr(stages, "leave_unread", lambda slots, steps: steps)
    plan = schedule(with_gradients(biased, *SHAPES, (3, 24, 24)), HOPPER)
    steps = list(plan.steps)
    found = leave_unread(plan.slots, steps)
    assert [new != old for new, old in zip(found, steps, strict=True)] == [False, True, False, True]
    (memory,) = set(steps[1].slots).intersection(steps[-1].slots)
    copied = [*steps, CopyStep(memory, 0)]
    assert leave_unread(plan.slots, copied) == copied
    held = [replace(each, kind="output") for each in plan.slots]
    assert leave_unread(held, steps) == steps
