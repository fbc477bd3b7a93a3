"""What one device computes for another has a plan of its own."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine import backends, carried, pending
from picograd.engine import realize as engine
from picograd.engine.cache import remember
from picograd.engine.executable import CompiledPlan
from picograd.errors import DeviceError
from picograd.graph import build
from picograd.graph.node import Node, toposort
from picograd.runtime.cpu import CpuDevice


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Open a second host under a GPU's name: what one device computes is copied to the other."""
    monkeypatch.setattr(picograd.config, "device", "cpu")
    host, name = backends.known_host(), "cuda:7"
    device = CpuDevice(1, remember(host), described=host)
    device.name = device.pool.device = name
    backends.OPEN[name] = device
    yield name
    del backends.OPEN[name]


VIEWED = "copy", "detach", "reshape"  # no plan is needed for them


def planned(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """List the devices that each new plan computes on."""
    found: list[set[str]] = []
    make = engine.make_plan

    def noted(roots: Sequence[Node]) -> Any:
        order = (node for node in toposort(roots) if node.inputs and node.realized is None)
        found.append({node.device for node in order if node.op not in VIEWED})
        return make(roots)

    monkeypatch.setattr(engine, "make_plan", noted)
    return found


def test_what_another_device_reads_has_a_plan_of_its_own(
    far: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = planned(monkeypatch)
    x = Tensor.arange(12.0).reshape(3, 4)
    y = (x.to(far) @ x.to(far).T).softmax(-1)
    assert (y.cpu() * 2 + 1).numpy() == pytest.approx((x @ x.T).softmax(-1).numpy() * 2 + 1)
    scaled = y * (Tensor(3.0) * 0.25)  # a number of the host, which is not computed yet
    assert scaled.numpy() == pytest.approx(y.numpy() * 0.75)
    assert len(found) >= 4 and max(map(len, found)) == 1


def test_gradients_and_writes_on_two_devices(far: str) -> None:
    results = []
    for place in ("cpu", far):
        picograd.manual_seed(0)
        first, second = nn.Linear(4, 6), nn.Linear(6, 3).to(place)
        optimizer = nn.optim.Adam([*first.parameters(), *second.parameters()], lr=0.05)
        total, rows, losses = picograd.zeros(3), picograd.randn(8, 5, 4), []
        for row in rows:
            output = second(first(row).relu().to(place)).cpu()
            loss = nn.functional.mse_loss(output, row[:, :3])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            total += output.detach().sum(0).to(place, copy=True).cpu()
            losses.append(loss.item())
        results.append([*losses, *total.tolist(), second.weight.sum().item()])
    assert results[0] == pytest.approx(results[1], abs=1e-6)


def test_evaluating_a_network_with_statistics_behind_each_step(
    far: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picograd.config, "verify", 0)
    results = []
    for place in ("cpu", far):
        picograd.manual_seed(0)
        parts = nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)
        network = nn.Sequential(*parts).to(place)
        optimizer = nn.optim.Adam(network.parameters(), lr=0.01)
        found = []
        for row in np.random.default_rng(0).standard_normal((12, 5, 4), np.float32):
            x, y = Tensor(row).to(place), Tensor([0, 1, 2, 0, 1]).to(place)
            loss = nn.functional.cross_entropy(network(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
            right = network(x).argmax(1).cpu() == y.cpu()
            found.append(right.float().mean().item())
        results.append(found)
    assert results[0] == pytest.approx(results[1], abs=1e-6)


def test_numbers_of_the_host_scale_each_step(far: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picograd.config, "verify", 0)
    results = []
    for place in ("cpu", far):
        picograd.manual_seed(0)
        weight = picograd.randn(3, 3).to(place).requires_grad_()
        layer = nn.Linear(4, 3).to(place)
        optimizer = nn.optim.Adam(layer.parameters(), lr=0.1)
        scale, found = Tensor(1.0), []
        for row in np.random.default_rng(0).standard_normal((12, 5, 4), np.float32):
            scale = scale * 0.5 + float(row[0, 0])  # it is not computed before it is read
            loss = (weight * scale).tanh().sum() * (scale * 2)
            loss.backward()
            with picograd.no_grad():
                assert weight.grad is not None
                weight -= 0.1 * weight.grad * scale
                weight.grad = None
            found.append(loss.item())
            other = (Tensor(row[0]) * 2).sum()
            loss = (layer(Tensor(row).to(place)) * other).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        results.append(found)
    assert results[0] == pytest.approx(results[1], rel=1e-5, abs=1e-6)


def test_a_plan_is_for_the_device_that_computes_most(far: str) -> None:
    x = picograd.ones(2, 2, device=far)
    order = toposort([((x @ x).exp().sum(0).node).copy("cpu")])
    assert backends.target_for(order) == backends.get_device(far).target
    step = picograd.jit(lambda x: (x @ x).exp().sum(0).cpu())
    assert step(x).tolist() == pytest.approx([2 * np.exp(2.0)] * 2)


def test_a_network_moves_in_one_plan(far: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = planned(monkeypatch)
    network = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 7)).to(far)
    assert len([each for each in found if each]) <= 1  # and those of copies
    assert all(p.device == far for p in network.parameters())


def test_indices_of_the_host_choose_and_values_are_written_across_devices(far: str) -> None:
    x = Tensor.arange(12.0).reshape(3, 4)
    y, places, mask = x.to(far), Tensor([2, 0]), x > 5
    assert y[places].device == far and y[places].tolist() == x[places].tolist()
    assert y[mask].tolist() == x[mask].tolist() and y[:, places].tolist() == x[:, places].tolist()
    y[places], y[1] = 1.0, x[2]
    y[mask] = -1.0
    x[places], x[1] = 1.0, Tensor([8.0, 9, 10, 11])
    x[mask] = -1.0
    assert y.device == far and y.tolist() == x.tolist()
    x[0] = y[1]
    assert x.device == "cpu" and x[0].tolist() == y[1].tolist()
    with pytest.raises(DeviceError, match=r"^getitem: .* different devices: cpu and cuda:7"):
        x[places.to(far)]


def crossing_loop(place: str, is_indexed: bool) -> list[float]:
    """Write in place on a device what is read of the other, in each round."""
    picograd.manual_seed(0)
    a, b, weight = (picograd.rand(3, 3).to(place) for _ in range(3))
    host, scale, found = picograd.rand(3, 3), Tensor(1.0), []
    weight.requires_grad_()
    for turn in range(9):
        ((weight * scale).sum() * a.mean().detach()).backward()
        b[:, turn % 3] += host.to(place)[0]
        if a.sum() > 0:
            scale = scale + 0.01
        a, b = b, a
        a += host.to(place) * 0.1
        b[:, turn % 3] += host.to(place)[0]
        if is_indexed:
            order = (host[0].abs() * 10).long() % 3
            a, host = a[order], host[order]
            a[turn % 3] = scale
            found.append(b.cpu().sum().item())
    assert weight.grad is not None
    return [*found, *a.flatten().tolist(), *b.flatten().tolist(), *weight.grad.flatten().tolist()]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_writes_on_both_devices(
    far: str, monkeypatch: pytest.MonkeyPatch, is_indexed: bool
) -> None:
    monkeypatch.setattr(picograd.config, "verify", 0)
    results = [crossing_loop(place, is_indexed) for place in ("cpu", far)]
    assert results[0] == pytest.approx(results[1], rel=1e-5)


def test_what_is_in_memory_is_copied_without_a_plan(
    far: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[Any] = []
    launch = CompiledPlan.launch
    monkeypatch.setattr(
        CompiledPlan, "launch", lambda plan, *given: plans.append(plan) or launch(plan, *given)
    )
    x, labels = Tensor([1.0, 2.0]), Tensor.arange(3).realize()
    plans.clear()
    moved = x.to(far)
    assert labels.to(far).cpu().tolist() == [0, 1, 2] and not plans
    assert moved.device == far and moved.is_leaf and moved._node.op == "buffer"
    x.fill_(5.0)
    assert moved.tolist() == [1.0, 2.0], "it is what was there"
    assert x.to(far).tolist() == [5.0, 5.0], "what was written before is computed"
    (moved * 2.0).sum().backward()  # of leaves that did not ask, as where it was computed
    assert x.grad is None and moved.grad is not None
    weight = Tensor([3.0], requires_grad=True)
    (weight.to(far) * 2.0).sum().backward()
    assert weight.grad is not None and weight.grad.tolist() == [2.0]


def test_what_is_stored_ahead_leaves_writes_to_their_readers(
    far: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picograd.config, "verify", 0)

    def losses(place: str) -> list[float]:
        picograd.manual_seed(0)
        weight = picograd.rand(3).to(place).requires_grad_()
        x, scale, found = picograd.rand(3).to(place), Tensor(1.0), []
        for _ in range(2):
            loss = (weight * x * scale).tanh().sum()
            loss.backward()
            gradient = weight.grad
            weight.data.add_(gradient, alpha=-0.1)
            weight.grad = None
            found.append(loss.detach())
            scale.mul_(0.9)  # of the host: it waits where the other device computes
        return [float(each.detach().cpu().numpy().sum()) for each in [*found, weight]]

    wanted = losses("cpu")
    for _ in range(3):  # what was missed once is stored ahead from then on
        assert losses(far) == pytest.approx(wanted, abs=1e-6)


def test_what_another_device_computes_is_not_stored_ahead(far: str) -> None:
    x = Tensor([1.0, 2.0]).realize()
    waits = (x * 2.0)._node
    beyond = build.copy(waits, far) * 3.0
    assert carried.complete([waits, beyond], set(), {}) == [waits]


def test_a_write_that_waits_is_copied(far: str) -> None:
    x = Tensor([1.0, 2.0]).realize()
    x.detach().fill_(5.0)
    assert x.to(far).tolist() == [5.0, 5.0]


def test_what_was_moved_and_let_go_is_computed_again_where_it_was(
    far: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[set[str]] = []
    compute = pending.realize_roots

    def noted(roots: Sequence[Node], key: Any) -> Any:
        order = [node for node in key.order if node.inputs and node.realized is None]
        found.append({node.device for node in order if node.op not in VIEWED})
        return compute(roots, key)

    monkeypatch.setattr(pending, "realize_roots", noted)
    values = np.random.default_rng(0).random((4, 4), np.float32)
    slopes = []
    for place in ("cpu", far):
        leaf = Tensor(values, device=place, requires_grad=True)
        moved = (leaf * 2).sin().cpu()  # computed, and copied
        read = (moved.to(place) * leaf).exp().cpu()
        loss = (read * moved.cos()).sum()
        loss.item()
        loss.backward()
        slopes.append(leaf.grad.numpy())
    np.testing.assert_allclose(*slopes, 1e-6)
    assert max(map(len, found)) == 1
