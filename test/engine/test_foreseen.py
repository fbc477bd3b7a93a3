"""Steps of optimizers are foreseen where they are those of before, and are what a walk finds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine import foreseen, pending
from picograd.errors import InternalError
from picograd.nn import functional as F

STEPS = 8
Loop = Callable[[nn.Module, Any, int], Any]


def network() -> tuple[nn.Module, Any]:
    layers = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 3))
    drawn = np.random.default_rng(3)
    for parameter in layers.parameters():
        values = drawn.standard_normal(parameter.shape).astype(np.float32)
        parameter.data = Tensor(values).realize()
    return layers, nn.optim.Adam(layers.parameters(), lr=0.05)


def batch(number: int, size: int = 5) -> tuple[Tensor, Tensor]:
    drawn = np.random.default_rng(number)
    x = drawn.standard_normal((size, 4)).astype(np.float32)
    return Tensor(x).realize(), Tensor(drawn.integers(0, 3, size)).realize()


def loss_of(model: nn.Module, number: int, size: int = 5) -> Tensor:
    x, y = batch(number, size)
    return F.cross_entropy(model(x), y)


def plain(model: nn.Module, optimizer: Any, number: int) -> Any:
    loss = loss_of(model, number)
    loss.backward()
    optimizer.step()
    return loss.item()


def rates(model: nn.Module, optimizer: Any, number: int) -> Any:
    optimizer.param_groups[0]["lr"] = 0.1 / (number + 1)
    return plain(model, optimizer, number)


def clipped(model: nn.Module, optimizer: Any, number: int) -> Any:
    loss_of(model, number).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    return norm.item()


def two_losses(model: nn.Module, optimizer: Any, number: int) -> Any:
    model.eval()
    loss_of(model, number).backward()
    (loss_of(model, number + 1) / 3.0).backward()
    optimizer.step()
    return model.state_dict()["0.weight"].sum().item()


def outputs_held(model: nn.Module, optimizer: Any, number: int) -> Any:
    x, y = batch(number)
    out = model(x)
    weight = next(iter(model.parameters())) * 2.0  # reads what the step writes
    apart = x * 3.0
    loss = F.cross_entropy(out, y)
    loss.backward()
    optimizer.step()
    return out.sum().item() + weight.sum().item() + apart.sum().item() + loss.item()


def written_between(model: nn.Module, optimizer: Any, number: int) -> Any:
    loss = loss_of(model, number)
    loss.backward()
    with picograd.no_grad():
        for parameter in model.parameters():
            parameter *= 0.9
    optimizer.step()
    return loss.item()


def read_between(model: nn.Module, optimizer: Any, number: int) -> Any:
    loss = loss_of(model, number)
    loss.backward()
    value = loss.item() if number % 2 else 0.0
    optimizer.step()
    return value + loss.item()


def sizes(model: nn.Module, optimizer: Any, number: int) -> Any:
    loss = loss_of(model, number, 5 + number % 2)
    loss.backward()
    optimizer.step()
    return loss.item()


def one_tensor_twice(model: nn.Module, optimizer: Any, number: int) -> Any:
    """Every other step two inputs are the same memory."""
    x, y = batch(number)
    other = x if number % 2 else batch(number + 50)[0]
    loss = F.cross_entropy(model(x) + model(other), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def run(loop: Loop, steps: int = STEPS) -> list[Any]:
    model, optimizer = network()
    found = []
    for number in range(steps):
        optimizer.zero_grad()
        found.append(loop(model, optimizer, number))
    return [*found, *(parameter.numpy() for parameter in model.parameters())]


@pytest.fixture
def hits(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each step was computed as it was foreseen."""
    found: list[bool] = []
    compute = foreseen.compute

    def noted(*args: Any) -> Any:
        roots = compute(*args)
        found.append(roots is not None)
        return roots

    monkeypatch.setattr(foreseen, "compute", noted)
    monkeypatch.setattr(picograd.config, "verify", 0)
    foreseen.KNOWN.clear()
    return found


@pytest.mark.parametrize(
    ("loop", "few"),
    [
        (plain, 3), (rates, 3), (clipped, 3), (two_losses, 3), (outputs_held, 3),
        (written_between, 0), (read_between, 0), (sizes, 1), (one_tensor_twice, 1),
    ],
)  # fmt: skip
def test_steps_are_what_a_walk_finds(
    loop: Loop, few: int, hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run(loop)
    assert sum(hits) >= few, hits
    monkeypatch.setattr(foreseen, "step_of", lambda *args: None)
    for mine, wanted in zip(found, run(loop), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-6)
    assert len(hits) <= STEPS


def test_a_step_that_was_foreseen_makes_no_walk(
    hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, optimizer = network()
    for number in range(5):
        optimizer.zero_grad()
        plain(model, optimizer, number)
    monkeypatch.setattr(pending, "compute_all", lambda *args: pytest.fail("a walk"))
    for number in range(3):
        optimizer.zero_grad()
        plain(model, optimizer, number)


def test_what_was_foreseen_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    foreseen.KNOWN.clear()
    model, optimizer = network()
    for number in range(4):
        optimizer.zero_grad()
        plain(model, optimizer, number)
    (known,) = list(foreseen.KNOWN.values())
    known.buffers[0], known.buffers[1] = known.buffers[1], known.buffers[0]
    optimizer.zero_grad()
    with pytest.raises(InternalError, match="foreseen"):
        plain(model, optimizer, 4)


def test_many_norms_are_foreseen(hits: list[bool]) -> None:
    model = nn.Sequential(*(nn.BatchNorm1d(4) for _ in range(24))).to("null")
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)
    x = Tensor(np.ones((5, 4), np.float32), device="null")
    for _ in range(5):
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert hits[-1] and hits.count(True) >= 2
