"""Golden plans: kernels, heroes and reasons of the graphs of bench/plan_graphs.py, per target.

A change of fusion shows itself as a difference of texts; --update-golden writes them.
"""

import gc
import importlib
import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from picograd.codegen.boxes import Persistent
from picograd.codegen.pipeline import TEMPLATES
from picograd.schedule.group import Facts

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "test" / "golden" / "plans"
ROOMS = ("examples", "bench")


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    known = set(sys.modules)
    sys.path[:0] = [str(ROOT / room) for room in ROOMS]
    yield importlib.import_module("plan_graphs"), importlib.import_module("plan_text")
    del sys.path[: len(ROOMS)]
    for name in set(sys.modules) - known:
        if any((ROOT / room / f"{name}.py").exists() for room in ROOMS):
            del sys.modules[name]  # other tests import files of these names afresh


@pytest.mark.parametrize("target", ["cpu", "cuda:0"])
def test_plans_are_as_they_were(
    target: str, bench: Any, update_golden: bool, cpu_by_default: None, request: Any
) -> None:
    graphs, text = bench
    request.addfinalizer(gc.enable)
    request.addfinalizer(gc.unfreeze)
    gc.collect()
    gc.disable()
    folder = GOLDEN / target.partition(":")[0]
    folder.mkdir(exist_ok=True, parents=True)
    changed, holding = [], []
    for name in graphs.GRAPHS:
        found, path = text.plan_text(graphs.plan_of(name, target)), folder / f"{name}.txt"
        if update_golden:
            path.write_text(found)
        wanted = path.read_text() if path.exists() else ""
        if found != wanted:
            changed += unified_diff(wanted.splitlines(), found.splitlines(), path.stem, n=0)
        if any(type(each) is Facts for each in gc.get_objects()):
            holding.append(name)
        gc.freeze()  # what is there is looked through once
    assert not changed, "plans changed; run with --update-golden if meant\n" + "\n".join(changed)
    assert not holding, "what they were planned with waits for the collector, and holds memory"
    assert {path.stem for path in folder.iterdir()} == set(graphs.GRAPHS)


def test_labels_are_checked_in_the_plan_of_the_step(bench: Any) -> None:
    from picograd import Tensor, nn

    with bench[1].only_plans("cuda:0") as plans:
        weight = Tensor.ones(8, 4, device="cuda:0").realize().requires_grad_()
        optimizer = nn.optim.SGD([weight], lr=0.1)
        x = Tensor.ones(5, 8, device="cuda:0").realize()
        labels = Tensor.zeros(5, dtype="int64", device="cuda:0").realize()
        plans.is_open = True
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(x @ weight, labels).backward()
            optimizer.step()
            weight.realize()
    parts = [[part for kernel in plan.kernels for part in kernel.parts] for plan in plans]
    for each in parts:
        computes = [compute for part in each for compute in part.computes]
        assert any(compute.reduce and compute.dtype.name == "bool" for compute in computes)


@pytest.mark.parametrize("images", [64, 256])
def test_convolutions_of_a_network_come_in_boxes(images: int, bench: Any) -> None:
    """Forward and gradients: what a first convolution leaves lies as the next ones want it."""
    from picograd import autocast, nn

    graphs, text = bench
    with text.only_plans("cuda:0") as plans:
        first = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        pooled = nn.MaxPool2d(3, stride=2, padding=1)
        layers = [first, nn.BatchNorm2d(64), nn.ReLU(), pooled]
        for _ in range(2):
            layers += [nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
        model = nn.Sequential(*layers).to("cuda:0")
        x = graphs.leaf("cuda:0", images, 3, 224, 224)
        plans.is_open = True
        with autocast("cuda", dtype="bfloat16"):
            loss = model(x).float().mean()
        loss.backward()
        model[0].weight.grad.realize()
    kernels = [kernel for plan in plans for kernel in plan.kernels if kernel.hero == "conv"]
    target = text.TARGETS["cuda:0"]
    first_steps = [TEMPLATES["conv"](kernel, target).parts[0].steps[0] for kernel in kernels]
    assert len(kernels) >= 8  # three forward, five gradients
    assert all(isinstance(step, Persistent) for step in first_steps)


def test_modules_move_to_a_device_that_only_plans(bench: Any) -> None:
    """What a buffer is computed of has memory on the host, which is copied."""
    from picograd import arange, nn

    with bench[1].only_plans("cuda:0"):
        model = nn.Module()
        model.register_buffer("table", arange(3).cumsum(0))
        model.to("cuda:0")
        assert str(model.table.device) == "cuda:0"


def test_nothing_remains_of_an_engine_that_only_plans(bench: Any) -> None:
    from picograd import Tensor
    from picograd.engine import backends, realize

    text = bench[1]
    before = realize.find_plan, dict(backends.OPEN), len(realize.CHECKS)
    with text.only_plans("cuda:0") as plans:
        plans.is_open = True
        Tensor.ones(3, device="cuda:0").exp().realize()
        assert len(plans) == 1
    after = realize.find_plan, dict(backends.OPEN), len(realize.CHECKS)
    assert before == after
    assert Tensor([1.0, 2.0], device="cpu").sum().item() == 3.0


def test_the_bench_of_scheduling_runs_and_a_step_without_scores_is_not_searched_for_them(
    bench: Any, cpu_by_default: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cost = importlib.import_module("schedule_cost")
    roots, _ = cost.roots_of(cost.mlp(100))
    monkeypatch.setattr("picograd.schedule.score_boxes.facts_of", None)
    seconds, draft = cost.stage_seconds(roots)
    assert len(seconds) == len(cost.STAGES)
    assert draft.steps
