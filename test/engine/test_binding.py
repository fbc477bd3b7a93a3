"""A plan bound by what another binding left gives what binding it from the start gives."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.config import config
from picograd.engine import realize, size_patterns, sizes
from picograd.engine.plan_cache import PlanCache
from picograd.engine.sizes import BoundedPlan

SIZES = (10, 13, 9, 16, 12, 20)


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with config.override(dynamic=1):
        yield


def rows(n: int, *rest: int) -> Tensor:
    return Tensor(np.random.default_rng(n).standard_normal((n, *rest)).astype(np.float32))


def training(n: int) -> Tensor:
    model = nn.Sequential(nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 3))
    loss = (model(rows(n, 4)) ** 2).mean()
    loss.backward()
    Tensor.realize(loss, *[parameter.grad for parameter in model.parameters()])
    return loss


def written(n: int) -> Tensor:
    x = rows(n, 4)
    x += x.mean(0) * 0.5
    return x


CASES: dict[str, Callable[[int], Tensor]] = {
    "training": training,
    "written": written,
    "merged": lambda n: rows(3, n, 4).reshape(-1, 4).exp().reshape(3, n, 4).sum(1),
    "last": lambda n: rows(n, 4)[-1] + rows(n, 4)[n // 2 :].sum(0),
    "padded": lambda n: nn.functional.pad(rows(n, 4), (0, 0, 32 - n, n), value=2.0) * 2,
    "a given start": lambda n: rows(n, 4)[3:7] * 2 + rows(n, 4)[5:9],
    "square": lambda n: rows(2, n, n).transpose(1, 2) @ rows(2, n, n).tril(),
    "one memory": lambda n: (lambda x: x[:, None] + x.reshape(1, n, 4))(rows(n, 4)),
}


def bounds(run: Callable[[int], Tensor], monkeypatch: Any, is_fresh: bool) -> list[Any]:
    """List what the plans were bound to, and the values."""
    monkeypatch.setattr(realize, "PLANS", PlanCache())
    monkeypatch.setattr(sizes, "FAMILIES", type(sizes.FAMILIES)())
    monkeypatch.setattr(size_patterns, "PATTERNS", type(size_patterns.PATTERNS)())
    picograd.manual_seed(0)
    found: list[Any] = []
    for n in SIZES:
        for family in sizes.FAMILIES.values() if is_fresh else ():
            family.bindings.clear()
        found.append(run(n).numpy().tobytes())
    plans = [plan for plan in realize.PLANS.plans.values() if isinstance(plan, BoundedPlan)]
    assert plans
    return found + [plan.bound for plan in plans]


@pytest.mark.parametrize("name", CASES)
def test_bound_again_is_bound_anew(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = bounds(CASES[name], monkeypatch, True)
    assert bounds(CASES[name], monkeypatch, False) == fresh
