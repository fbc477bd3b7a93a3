"""Updates take the plan of their writes, write in place, and leave what they cannot to writes."""

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.buffer import Overwritten
from picograd.engine import quick, update
from picograd.errors import GradientError, InternalError

VALUES = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)


@pytest.fixture
def runs(monkeypatch):
    """List the updates that ran: whether their plans were known."""
    quick.KNOWN.clear()
    found = []
    run, anew = quick.run, quick.run_anew

    def noted(updates, *others):
        if updates:
            found.append(True)
        return run(updates, *others)

    def noted_anew(updates, *others):
        if updates:
            found[-1] = False
        return anew(updates, *others)

    monkeypatch.setattr(quick, "run", noted)
    monkeypatch.setattr(quick, "run_anew", noted_anew)
    return found


def network(device, kind=nn.optim.Adam):
    picograd.manual_seed(0)
    layers = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))
    layers.to(device)
    return layers, kind(layers.parameters(), lr=0.1), Tensor(VALUES, device=device)


def train(layers, optimizer, x, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = layers(x).square().sum()
        loss.backward()
        optimizer.step()
    return [each.numpy() for each in layers.state_dict().values()], loss.item()


def test_later_steps_know_their_plan_and_compute_the_same(device, runs, monkeypatch):
    found = train(*network(device), 5)
    count = len(runs)
    assert runs[-2:] == [True, True]
    monkeypatch.setattr(update.Update, "can_write", lambda self: False)
    wanted = train(*network(device), 5)
    assert len(runs) == count
    for a, b in zip(found[0], wanted[0], strict=True):
        np.testing.assert_array_equal(a, b)
    assert found[1] == wanted[1]


def test_readers_recorded_before_see_the_old_value(device, runs):
    layers, optimizer, x = network(device, nn.optim.SGD)
    train(layers, optimizer, x, 3)
    weight = layers[0].weight
    before, reader = weight.numpy(), weight.detach() * 2
    train(layers, optimizer, x, 1)
    assert runs[-1] is False  # it computes the reader, too
    np.testing.assert_array_equal(reader.numpy(), before * 2)
    assert not np.array_equal(weight.numpy(), before)


def test_a_gradient_of_overwritten_values_is_refused(device):
    layers, optimizer, x = network(device, nn.optim.SGD)
    train(layers, optimizer, x, 3)
    loss = (layers[0].weight ** 2).sum()
    version = layers[0].weight._version
    train(layers, optimizer, x, 1)
    assert layers[0].weight._version == version + 1
    with pytest.raises(GradientError, match="version"):
        loss.backward()


def test_views_see_what_a_step_writes(device, runs):
    layers, optimizer, x = network(device, nn.optim.SGD)
    train(layers, optimizer, x, 3)
    count = len(runs)
    row = layers[0].weight.detach()[0]
    train(layers, optimizer, x, 2)
    assert len(runs) == count  # writes reach views, updates do not
    np.testing.assert_array_equal(row.numpy(), layers[0].weight.numpy()[0])
    del row
    train(layers, optimizer, x, 2)
    assert len(runs) == count + 2


def test_jitted_and_plain_steps_may_alternate(device):
    layers, optimizer, x = network(device)
    other = network(device)

    @picograd.jit
    def step():
        optimizer.zero_grad()
        loss = layers(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step()
        train(layers, optimizer, x, 2)
    for a, b in zip(train(*other, 9)[0], layers.state_dict().values(), strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-4, atol=1e-6)


def test_checks_compare_with_the_writes(device, runs):
    """The tests run with checks: a plan that was noted for another graph is found out."""
    layers, optimizer, x = network(device, nn.optim.SGD)
    train(layers, optimizer, x, 4)
    assert runs[-1]
    for known in quick.KNOWN.values():
        known.buffers.reverse()
    with pytest.raises(InternalError, match="other memory"):
        train(layers, optimizer, x, 1)


def test_a_leaf_of_state_that_nobody_else_has_stays(monkeypatch):
    monkeypatch.setattr(picograd.config, "verify", 0)
    layers, optimizer, x = network("cpu")
    train(layers, optimizer, x, 5)
    weight = next(layers.parameters())
    average = optimizer.state[weight]["exp_avg"]
    version, node = average._version, id(average._node)
    train(layers, optimizer, x, 1)
    assert (id(average._node), average._version) == (node, version + 1)
    held = average._node
    twice = average * 2.0  # reads it before the step
    wanted = average.numpy() * 2
    train(layers, optimizer, x, 1)
    assert average._node is not held and isinstance(held.arg, Overwritten)
    assert average._version == version + 2
    np.testing.assert_array_equal(twice.numpy(), wanted)
