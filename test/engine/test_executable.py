"""CompiledPlan: runs again on other buffers; temporaries and outputs; copies between devices."""

import gc

import numpy as np
import pytest
from debug_tools import fresh_engine, small_network
from poison import poison

import picograd
from picograd import Tensor, nn
from picograd.config import config
from picograd.engine import debug
from picograd.engine.backends import get_device
from picograd.engine.executable import compile_plan, copy_buffer, scalar_values
from picograd.engine.plan_key import graph_key, leaf_buffer
from picograd.engine.realize import buffer_to_numpy, make_plan


def compiled(tensor):
    found = graph_key([tensor.node])
    return compile_plan(make_plan([tensor.node]), found), found


def numpy_network(x, w):
    rows = np.maximum(x @ w, 0)
    e = np.exp(rows - rows.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def test_one_plan_runs_on_many_buffers():
    plan, _ = compiled(small_network("cpu"))
    random = np.random.RandomState(0)
    for _ in range(3):
        x, w = random.randn(3, 4).astype(np.float32), random.randn(4, 5).astype(np.float32)
        leaves = [leaf_buffer(Tensor(a, device="cpu").realize().node) for a in (x, w)]
        (result,) = plan.run(leaves, [])
        np.testing.assert_allclose(buffer_to_numpy(result, (3, 5)), numpy_network(x, w), 1e-5)


def test_results_do_not_share_memory():
    plan, found = compiled(small_network("cpu"))
    first, second = (plan.run(found.buffers, [])[0] for _ in range(2))
    assert first.address != second.address


def looped(device, steps=5):
    """Two kernels a step: a sum over the carry, and what needs it."""
    x = Tensor(np.arange(1.0, 2 * steps + 1).reshape(steps, 2), device=device).float()
    w = Tensor([[0.5, 0.25], [0.125, 0.5]], device=device)
    step = lambda h, x: ((h @ w).relu() @ w + x, h)  # noqa: E731
    return picograd.scan(step, Tensor.zeros(1, 2, device=device), x.reshape(steps, 1, 2))[1]


def test_a_loop_runs_again_on_other_buffers():
    y = looped("cpu")
    plan, found = compiled(y)
    wanted = y.numpy()
    for _ in range(2):
        (result,) = plan.run(found.buffers, [])
        np.testing.assert_array_equal(buffer_to_numpy(result, (5, 1, 2)), wanted)


def test_a_watched_loop_counts_every_step(capsys):
    plain = looped("cpu").numpy()
    with config.override(debug=1):
        before = debug.TOTALS.launches
        watched = looped("cpu").numpy()
        assert debug.TOTALS.launches - before >= 10
    np.testing.assert_array_equal(watched, plain)
    assert "5 steps" in capsys.readouterr().err


def test_the_null_device_counts_the_launches_of_a_loop():
    device, counts = get_device("null"), []
    for steps in (5, 15):
        y = looped("null", steps)
        before = device.launches
        y.realize()
        counts.append(device.launches - before)
    assert counts[1] - counts[0] == 20


def test_results_get_the_blocks_that_they_had():
    x = Tensor.ones(5000, device="null").realize()
    nodes = [(x * number).node for number in (2.0, 3.0, 4.0)]
    found = graph_key(nodes)
    plan = compile_plan(make_plan(nodes), found)
    results = plan.run([leaf_buffer(x.node)], [])
    addresses = [each.address for each in results]
    for place in (1, 2, 0):
        results[place] = None
    results = plan.run([leaf_buffer(x.node)], [])
    assert [each.address for each in results] == addresses


@pytest.mark.parametrize("level", [0, 1])
def test_temporaries_are_given_back(level, capsys):
    device = get_device("cpu")
    plan, found = compiled(small_network("cpu"))
    gc.collect()  # what other tests left would be given back in between
    with config.override(debug=level):
        results = plan.run(found.buffers, [])
        before = device.memory_stats()["in_use"]
        for _ in range(10):
            results = plan.run(found.buffers, [])
        assert device.memory_stats()["in_use"] == before
    assert len(results) == 1
    capsys.readouterr()


def test_watched_runs_give_the_same_bits(capsys):
    plan, found = compiled(small_network("cpu"))
    values = []
    for level in (0, 1, 2):
        with config.override(debug=level):
            values.append(buffer_to_numpy(plan.run(found.buffers, [])[0], (3, 5)).tobytes())
    assert len(set(values)) == 1
    capsys.readouterr()


def test_copies_between_devices(capsys):
    source = Tensor([1.0, 2.0, 3.0], device="cpu")
    with fresh_engine(debug=2, cache=""):
        moved = (source + 1).to("null").realize()
    assert moved.device == "null"
    assert "copy      cpu -> null  12 B" in capsys.readouterr().err


def test_copy_on_one_device():
    device = get_device("cpu")
    source = leaf_buffer(Tensor([1.0, 2.0, 3.0], device="cpu").node)
    target = device.new_buffer(source.dtype, 3)
    copy_buffer(target, source)
    assert buffer_to_numpy(target, (3,)).tolist() == [1.0, 2.0, 3.0]


def test_scalars_are_read_at_each_run():
    class Scalar:
        value = 2.5

    assert scalar_values([Scalar(), Scalar()]) == [2.5, 2.5]


def branching(device):
    """Chains of kernels of their own, and one that reads all."""
    x, y = (Tensor(np.ones((48, 48), np.float32), device=device).realize() for _ in range(2))
    return (x @ x.tanh() @ x).softmax(1) + (y @ y.tanh() @ y).softmax(0) + y.cumsum(1)


def numpy_branching(x, y):
    def softmax(z, axis):
        e = np.exp(z - z.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    return softmax(x @ np.tanh(x) @ x, 1) + softmax(y @ np.tanh(y) @ y, 0) + np.cumsum(y, 1)


def tapes_of(plan):
    return [action.tape for action in plan.actions if hasattr(action, "tape")]


def test_a_plan_that_runs_repeatedly_follows_its_memory(device, monkeypatch):
    """On a GPU it is a graph from the fourth run on: arguments move, results are kept, or given up.

    All memory that it gets is poisoned.
    """
    plan, found = compiled(branching(device))
    owner = get_device(device)
    poison(monkeypatch, owner)
    random = np.random.RandomState(0)
    kept, leaves = [], list(found.buffers)
    for number in range(20):
        if number % 3 == 0:  # other memory for one argument, then the other
            values = random.randn(48, 48).astype(np.float32) / 8
            leaves[number % 2] = leaf_buffer(Tensor(values, device=device).realize().node)
        (result,) = plan.run(leaves, [])
        given = [buffer_to_numpy(each, (48, 48)) for each in leaves]
        wanted = numpy_branching(*given)
        np.testing.assert_allclose(buffer_to_numpy(result, (48, 48)), wanted, 1e-4, 1e-5)
        kept = [*kept, (result, wanted)] if number % 5 else []
        del result
    for result, wanted in kept:
        np.testing.assert_allclose(buffer_to_numpy(result, (48, 48)), wanted, 1e-4, 1e-5)
    if device != "cpu":
        graphs = [graph for tape in tapes_of(plan) for graph in tape.state.replays]
        assert any(len(graph.nodes) > 2 for graph in graphs)


def losses_of(images, device, wrap):
    """Losses of a small network over some batches, at rates that change."""
    picograd.manual_seed(0)
    layers = nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4)
    model = nn.Sequential(*layers).to(device)
    optimizer = nn.optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    step, y = wrap(step), Tensor([0, 1, 2, 3, 0, 1], device=device)
    found = []
    for number, each in enumerate(images):
        optimizer.param_groups[0]["lr"] = 0.01 + 0.001 * number
        found.append(step(Tensor(each, device=device), y))
    return [each.item() for each in found]


def test_a_step_that_is_jitted_equals_the_plain_one(device):
    """Adam's numbers move at every step, the rate is set anew, and images come in other memory."""
    random = np.random.RandomState(0)
    images = [random.randn(6, 1, 8, 8).astype(np.float32) for _ in range(10)]
    jitted, plain = (losses_of(images, device, wrap) for wrap in (picograd.jit, lambda f: f))
    np.testing.assert_allclose(jitted, plain, rtol=1e-4)


@pytest.mark.parametrize("device", ["cpu", "null"])
def test_launches_know_what_they_wait_for(device):
    """Those of a loop's body too, but not on a CPU, which runs one after the other."""
    plan, _ = compiled(branching(device))
    (tape,) = tapes_of(plan)
    waits = [launch.waits for launch in tape.launches]
    assert all(each is None for each in waits) if device == "cpu" else () in waits[1:]
    plan, _ = compiled(looped(device))
    (loop,) = [action for action in plan.actions if hasattr(action, "moves")]
    waits = [launch.waits for launch in loop.actions[0].tape.launches]
    assert all((each is None) == (device == "cpu") for each in waits)
