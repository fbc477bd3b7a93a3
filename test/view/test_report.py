"""Plans as plain data."""

import json

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine.backends import get_device
from picograd.schedule.schedule import schedule
from picograd.view.report import Run, SeenPlan, edges_of, loaded_run


def plan_of(*tensors):
    return picograd.plan(*tensors).plan


def seen(*tensors):
    return SeenPlan(plan_of(*tensors), {"cpu": get_device("cpu").target}, "a plan")


@pytest.fixture
def network(cpu_by_default):
    x = Tensor(np.ones((3, 4), np.float32))
    w = Tensor(np.ones((4, 5), np.float32))
    return (x @ w).relu().softmax(1)


def test_steps_arrays_and_edges(network):
    data = seen(network).describe()
    assert [step["kind"] for step in data["steps"]] == ["contract", "reduce.row"]
    assert [slot["kind"] for slot in data["slots"]] == ["input", "input", "temporary", "output"]
    assert data["edges"] == [
        ("p0", "s0", 0), ("p1", "s0", 1), ("s0", "s1", 2), ("s1", "o3", 3),
    ]  # fmt: skip
    middle = data["slots"][2]
    assert (middle["first"], middle["last"]) == (0, 1)
    assert data["kernels"][0]["flops"] == 2 * 3 * 4 * 5
    assert data["runs"] == 0 and data["steps"][0]["seconds"] is None


def test_a_reason_is_told_of_the_array_that_it_left_in_memory(cpu_by_default):
    x = Tensor(np.ones((8, 8), np.float32))
    product = x @ x
    data = seen((product.softmax(1)).sum(0).softmax(0)).describe()
    told = [reason for slot in data["slots"] for reason in slot["reasons"]]
    assert told and set(told) <= set(data["reasons"])
    assert not any(slot["reasons"] for slot in data["slots"] if slot["kind"] == "input")


def test_what_is_written_twice_has_an_edge_from_the_writer_before(cpu_by_default):
    x = Tensor(np.ones(4, np.float32)).realize()
    y = x.exp()
    x.assign(x * 2)
    plan = schedule([y.node, x.node], get_device("cpu").target)
    ends = [(start, end) for start, end, _ in edges_of(plan)]
    assert ("p0", "s0") in ends and not any(end == "p0" for _, end in ends)


def test_loops_name_the_kernels_of_their_bodies(cpu_by_default):
    def step(carry, x):
        carry = (carry @ x).tanh()
        return carry, carry

    start, xs = Tensor(np.ones((4, 4), np.float32)), Tensor(np.ones((5, 4, 4), np.float32))
    data = seen(picograd.scan(step, start, xs)[0]).describe()
    (loop,) = [each for each in data["steps"] if each["kind"] == "loop"]
    assert loop["title"] == "loop of 5 steps" and loop["kernels"]


def test_stages_of_a_kernel(network):
    run = Run("run", [seen(network)])
    stages = run.stages(0, 0)
    titles = [stage["title"].partition(":")[0] for stage in stages]
    assert titles == ["Loop IR", "Tile IR", "Program", "Source", "Machine code"]
    assert stages[2]["path"] == "picograd/codegen/linearize_cpu.py"
    assert run.stages(0, 0) is stages
    for place in ((0, 9), (9, 0), (0, -1)):
        with pytest.raises(IndexError):
            run.stages(*place)


def test_a_run_goes_through_a_file(network):
    run = Run("before", [seen(network)])
    text = json.dumps(run.everything())
    again = loaded_run("after", json.loads(text))
    assert again.title == "after" and again.stages(0, 1) == run.stages(0, 1)
    assert again.data["plans"] == json.loads(json.dumps(run.data["plans"]))
    with pytest.raises(LookupError):
        loaded_run("x", {**json.loads(text), "picograd run": 2})
