"""Which plans ran, and the least time of each launch."""

import numpy as np

import picograd
from picograd import Tensor
from picograd.engine.recorder import count_launches, recorded
from picograd.engine.watch import PROFILES, RECORDERS


def test_runs_of_one_plan_are_counted_together(cpu_by_default):
    x = Tensor(np.ones((8, 8), np.float32)).realize()
    with recorded() as recorder:
        for _ in range(3):
            (x @ x).softmax(1).realize()
    (runs,) = recorder.runs.values()
    assert runs.count == 3 and len(runs.seconds) == len(runs.plan.steps) == 2
    assert all(second > 0 for second in runs.seconds)
    assert "test_recorder.py" in runs.origin
    assert not PROFILES and not RECORDERS


def test_jitted_functions_have_their_plan_though_it_was_made_before(cpu_by_default):
    @picograd.jit
    def double(x):
        return (x @ x) * 2.0

    x = Tensor(np.ones((8, 8), np.float32))
    double(x), double(x)
    with recorded() as recorder:
        double(x)
    (runs,) = recorder.runs.values()
    assert [step.kernel.hero for step in runs.plan.steps] == ["contract"]


def test_the_body_of_a_loop_counts_once(cpu_by_default):
    def step(carry, x):
        carry = (carry @ x).tanh()
        return carry, carry

    start, xs = Tensor(np.ones((4, 4), np.float32)), Tensor(np.ones((5, 4, 4), np.float32))
    with recorded() as recorder:
        picograd.scan(step, start, xs)[0].realize()
    runs = list(recorder.runs.values())[-1]
    assert len(runs.seconds) == count_launches(runs.plan) > 0
