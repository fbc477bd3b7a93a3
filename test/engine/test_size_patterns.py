"""Graphs recorded again at other sizes are bound by code, to what the long way gives."""

from typing import Any

import numpy as np
import pytest
from debug_tools import fresh_engine
from engine.by_code import compare_bindings

import picograd
from picograd import Tensor, nn
from picograd.engine import realize, size_patterns, sizes
from picograd.engine.plan_key import graph_key
from picograd.engine.size_patterns import PATTERNS
from picograd.graph.node import Node
from picograd.number import GivenInt

functional = nn.functional
ORDER = (40, 44, 37, 51, 60, 39)
SOUGHT: dict[str, Any] = {
    "softmax": (lambda x: x.softmax(1) * 2, lambda n: (3, n)),
    "mean and variance": (lambda x: (x - x.mean(1, keepdim=True)) / x.var(0), lambda n: (n, n + 1)),
    "other rows": (lambda x: x[1:-1, 2:] + x.shape[0], lambda n: (n, 6)),
    "merged": (lambda x: x.transpose(0, 1).reshape(-1, 3).cumsum(0), lambda n: (2, n, 3)),
    "pads": (lambda x: functional.pad(x, (1, 2), value=3.0).flip(1), lambda n: (2, n)),
    "convolution": (
        lambda x: functional.conv2d(x, picograd.ones(4, 2, 3, 3), padding=1).relu(),
        lambda n: (1, 2, n, n + 3),
    ),
    "pool": (lambda x: functional.adaptive_avg_pool2d(x, 1), lambda n: (1, 2, n, n + 3)),
    "cross entropy": (
        lambda x: functional.cross_entropy(x, picograd.arange(x.shape[0]) % 4),
        lambda n: (n, 4),
    ),
    "ranks": (lambda x: x.sort(0)[0][:2] + x.argmax(0), lambda n: (n, 3)),
    "a matrix of sizes": (lambda x: picograd.eye(x.shape[0]) @ x, lambda n: (n, 4)),
}  # fmt: skip


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """List whether each look for a plan by code found one; nothing is known before."""
    with fresh_engine():
        yield compare_bindings(monkeypatch)


@pytest.mark.parametrize("name", SOUGHT)
def test_the_plan_is_bound_as_the_long_way(name: str, outcomes: list[bool]) -> None:
    function, shape = SOUGHT[name]
    for n in ORDER:
        values = np.random.default_rng(n).standard_normal(shape(n)).astype(np.float32)
        function(Tensor(values)).realize()
    assert sum(outcomes) >= len(ORDER) - 2


def test_a_cache_that_grows(outcomes: list[bool]) -> None:
    rows = np.random.default_rng(0).standard_normal((24, 1, 4)).astype(np.float32)
    cache = Tensor(rows[0])
    for n in range(1, 24):
        cache = picograd.cat([cache, Tensor(rows[n])])
        scores = (cache @ cache[-1]).softmax(0)
        found = (scores @ cache).numpy()
        known = rows[: n + 1, 0].astype(np.float64)
        weights = np.exp(known @ known[-1])
        np.testing.assert_allclose(found, weights @ known / weights.sum(), rtol=1e-4)
    assert sum(outcomes) >= 12


def test_positions_and_numbers_of_a_user_are_those_of_the_call(outcomes: list[bool]) -> None:
    calls = ((40, 1, 2.0), (44, 30, 0.5), (37, 20, 3.0), (51, 50, 1.5), (60, 4, 0.3), (39, 9, 4.0))
    for n, at, factor in calls:
        values = np.arange(n * 3, dtype=np.float32).reshape(n, 3)
        x = Tensor(values)
        y = x[at] * factor + x[1:].sum(0) / (factor + n)
        want = values[at] * factor + values[1:].sum(0) / (factor + n)
        np.testing.assert_allclose(y.numpy(), want, rtol=1e-5)
    assert sum(outcomes) >= 2


def test_sizes_that_were_equal_by_chance_are_told_apart(outcomes: list[bool]) -> None:
    pairs = ((40, 40), (44, 44), (37, 37), (51, 48), (39, 60), (57, 45), (41, 42))
    for n, m in pairs:
        x, y = (Tensor(np.full((size, 2), 0.5, np.float32)) for size in (n, m))
        assert (x.sum() + y.exp().sum() * m).item() == pytest.approx(n + 2 * m * m * np.exp(0.5))
    assert any(outcomes[-3:])


def test_parts_of_ever_other_sizes_are_bound_by_code(outcomes: list[bool]) -> None:
    """Slices that move, and writes to them: sizes that were met before are no guards."""
    generator = np.random.default_rng(0)
    for _ in range(24):
        best, wanted = picograd.zeros(21), np.zeros(21, np.float32)
        for at in generator.integers(1, 8, 3).tolist():
            new, wanted_new = best.clone(), wanted.copy()
            new[at:] = picograd.maximum(best[at:], best[:-at] + at)
            wanted_new[at:] = np.maximum(wanted[at:], wanted[:-at] + at)
            best, wanted = new, wanted_new
        np.testing.assert_array_equal(best.numpy(), wanted)
    assert len(outcomes) > 20 and all(outcomes[16:])


def test_a_count_that_is_a_float_is_no_size(outcomes: list[bool]) -> None:
    for n in ORDER:
        values = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
        x = Tensor(values)
        x += x.mean(0) * 0.5
        np.testing.assert_allclose(x.numpy(), values + values.mean(0) * 0.5, rtol=1e-4, atol=1e-5)
    assert any(outcomes)


def test_loops_are_bound_by_code(outcomes: list[bool]) -> None:
    layer = nn.LSTM(3, 4)
    with picograd.no_grad():
        for steps in ORDER:
            layer(Tensor(np.ones((steps, 2, 3), np.float32)))[0].realize()
    assert any(outcomes)


def test_steps_of_an_optimizer_are_bound_by_code(outcomes: list[bool]) -> None:
    """Updates are formulas, whose own sizes stay; gradients are none once sizes were many."""
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for n in range(40, 56):
        x = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
        loss = functional.cross_entropy(model(Tensor(x)), picograd.arange(n) % 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert sum(outcomes) >= 6


def test_what_was_learnt_ends_with_its_plan(outcomes: list[bool]) -> None:
    def run(n: int) -> None:
        (Tensor(np.ones((n, 3), np.float32)).softmax(0) * 2).realize()

    for n in ORDER:
        run(n)
    assert outcomes[-1]
    with fresh_engine():
        run(41)
        assert not outcomes[-1]


def test_few_patterns_are_kept(monkeypatch: pytest.MonkeyPatch, outcomes: list[bool]) -> None:
    monkeypatch.setattr(size_patterns, "PATTERN_LIMIT", 2)
    for power in range(1, 4):
        x = Tensor(np.ones((40, 3), np.float32))
        for _ in range(power):
            x = x.exp() - 1
        x.realize()
    assert len(PATTERNS) == 2


def test_another_structure_at_the_same_ops_goes_the_long_way(outcomes: list[bool]) -> None:
    for n in (40, 44, 37, 51):
        x = Tensor(np.ones((n, 3), np.float32))
        (x.sum(0) * 2).realize()
    count = sum(outcomes)
    for n in (40, 44, 37):
        x = Tensor(np.ones((n, 3), np.float32))
        assert (x.sum(1) * 2).shape == (n,)
        (x.sum(1) * 2).realize()
    assert sum(outcomes) <= count + 1
    assert not [each.refused for each in sizes.FAMILIES.values() if each.refused]


def trained(n: int) -> Any:
    """Two steps whose gradients and updates are folded formulas."""
    picograd.manual_seed(0)
    layer = nn.Linear(4, 3)
    optimizer = nn.optim.Adam(layer.parameters())
    for _ in range(2):
        loss = (layer(Tensor(np.full((n, 4), 0.5, np.float32))) * 1.5).softmax(1)[1 : n - 1].sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return layer.weight


@pytest.mark.parametrize("name", [*SOUGHT, "training"])
def test_a_plan_from_disk_is_the_first_of_its_family(name: str, tmp_path: Any) -> None:
    """Another process with the cache of the first learns sizes as that did."""

    def run() -> Any:
        found: list[Any] = []
        with fresh_engine(cache=str(tmp_path), verify=0):
            for n in ORDER[:4]:
                if name == "training":
                    found.append(trained(n).numpy().tobytes())
                    continue
                function, shape = SOUGHT[name]
                values = np.random.default_rng(n).standard_normal(shape(n)).astype(np.float32)
                found.append(function(Tensor(values)).numpy().tobytes())
            plans = [type(each).__name__ for each in realize.PLANS.plans.values()]
            families = {*map(id, sizes.FAMILIES.values())}
            families |= {id(each.untold) for each in PATTERNS.values()}
            assert {id(each.family) for each in realize.PLANS.plans.values()} <= families
            firsts = {key: each.first for key, each in sizes.FAMILIES.items()}
            return found, plans, firsts, [each.untold for each in PATTERNS.values()]

    first, second = run(), run()
    assert second[:2] == first[:2]
    untold = [each for each in second[3] if each is not None]
    assert len(untold) < len(second[3])
    assert not any(each.first.shapes for each in untold)
    for key, record in second[2].items():
        assert first[2][key].shapes == record.shapes and first[2][key].sizes == record.sizes
    assert len(second[2]) + len(untold) >= len(first[2])


def test_what_is_listed_of_a_node_is_what_is_filled_in() -> None:
    """A size that is no int has no number: listed with one, a position took that of another."""
    x = Tensor(np.ones((3, 4), np.float32))
    source = Node("cast", (x._node,), x._node.dtype, (np.int64(3), 4), x._node.dtype, "cpu")
    cut = Node("slice", (source,), ((GivenInt(1), 2, 1), (0, 4, 1)), (1, 4), x._node.dtype, "cpu")
    found, listed = graph_key([cut]), []  # type: ignore[var-annotated]
    for at, node in enumerate(found.order):
        size_patterns.content(found, at, node is cut, listed)
    waiting = iter(listed)
    for node in found.order:
        size_patterns.filled_in(node.shape, waiting)
    filled = size_patterns.filled_in(cut.arg, waiting)
    assert filled[0][0].source == 1 and type(filled[0][0].source) is GivenInt
    assert next(waiting, None) is None
