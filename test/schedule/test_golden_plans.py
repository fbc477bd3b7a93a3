"""Golden plans: kernels, heroes and reasons of the graphs of bench/plan_graphs.py, per target.

A change of fusion shows itself as a difference of texts; --update-golden writes them.
"""

import importlib
import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

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
    target: str, bench: Any, update_golden: bool, cpu_by_default: None
) -> None:
    graphs, text = bench
    folder = GOLDEN / target.partition(":")[0]
    folder.mkdir(exist_ok=True, parents=True)
    changed = []
    for name in graphs.GRAPHS:
        found, path = text.plan_text(graphs.plan_of(name, target)), folder / f"{name}.txt"
        if update_golden:
            path.write_text(found)
        wanted = path.read_text() if path.exists() else ""
        if found != wanted:
            changed += unified_diff(wanted.splitlines(), found.splitlines(), path.stem, n=0)
    assert not changed, "plans changed; run with --update-golden if meant\n" + "\n".join(changed)
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
    checks = [[part for part in each if part.computes[0].dtype.name == "bool"] for each in parts]
    assert [len(each) for each in checks] == [1, 1, 1]


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
