"""Plans for many sizes are bound by code; here that is compared with a copy."""

from typing import Any

import numpy as np
import pytest
from debug_tools import fresh_engine
from tensor.transforms.test_jit_sizes import FOLLOWED, FOLLOWING, Decoder, rows

import picograd
from picograd import Dim, Tensor
from picograd.config import config
from picograd.engine import bound_sizes, compile, realize
from picograd.engine.plan_key import graph_key
from picograd.engine.realize import find_plan
from picograd.engine.sizes import FOR_EVER, BoundedPlan
from picograd.tensor.transforms import jit_sizes

ORDER = (9, 7, 12, 3, 2, 11, 14, 5, 1, 8, 9, 16, 4)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """List whether each look for a plan by code found one."""
    outcomes: list[bool] = []
    find = bound_sizes.BoundSizes.find

    def noted(self: Any, values: Any) -> Any:
        plan = find(self, values)
        outcomes.append(plan is not None)
        return plan

    monkeypatch.setattr(bound_sizes.BoundSizes, "find", noted)
    compare_plans(monkeypatch)
    return outcomes


def compare_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare each plan that is bound by code with what binding a copy of the graph gives."""
    find = jit_sizes.Sizes.plan

    def compared(self: Any, capture: Any, slots: Any, inputs: Any) -> Any:
        plan, ready = find(self, capture, slots, inputs)
        if isinstance(plan, BoundedPlan):
            roots, _ = self.at(slots, inputs)
            other = find_plan(graph_key(roots), roots, {}, FOR_EVER)
            if isinstance(other, BoundedPlan) and other.inner is plan.inner:
                assert plan.bound == other.bound
        return plan, ready

    monkeypatch.setattr(jit_sizes.Sizes, "plan", compared)


@pytest.mark.parametrize("name", ["reductions", "attention", "positions", "window"])
def test_sizes_that_vary(name: str, found: list[bool]) -> None:
    function = FOLLOWED[name]
    f = picograd.jit(function, dynamic={"x": {0: Dim("rows", 1, 16)}})
    for count in ORDER:
        x = rows(count)
        np.testing.assert_allclose(f(x).numpy(), function(x).numpy(), rtol=2e-4, atol=1e-5)
    assert sum(found) >= 5


@pytest.mark.parametrize("name", ["broadcast", "cumsum", "expand"])
def test_sizes_that_follow_from_a_position(name: str, found: list[bool]) -> None:
    function = FOLLOWING[name]
    f = picograd.jit(function, dynamic={"x": {0: Dim("rows", 1, 32)}})
    for n in ORDER:
        x = rows(8 + n)
        np.testing.assert_allclose(f(x, n).numpy(), function(x, n).numpy(), rtol=2e-4, atol=1e-5)
    assert sum(found) >= 5


def test_a_decoder_whose_cache_is_read_as_far_as_it_is_filled(found: list[bool]) -> None:
    model, other = Decoder(), Decoder()
    other.load_state_dict(model.state_dict())
    shown = picograd.jit(model.shown, dynamic={"tokens": {1: Dim("length", 1, 16)}})
    with picograd.no_grad():
        for at in range(12):
            token = picograd.tensor([[at % 7]])
            want = other.shown(token, at).numpy()
            np.testing.assert_allclose(shown(token, at).numpy(), want, rtol=1e-4, atol=1e-5)
    assert sum(found) >= 4 and shown.traces == 1


def test_positions_and_numbers_are_those_of_the_call(found: list[bool]) -> None:
    def put(x: Tensor, at: int, factor: float) -> Tensor:
        y = picograd.zeros(40, 6)
        y[at : at + x.shape[0]] = x * factor
        return y[at // 2 : at // 2 + x.shape[0]] + x.shape[0] / factor - at

    f = picograd.jit(put, dynamic={"x": {0: Dim("rows", 1, 16)}})
    for count, at, factor in ((3, 4, 2.0), (5, 1, 0.3), (4, 7, 1.5), (7, 9, 2.5), (9, 3, 0.7),
                              (6, 8, 1.1), (8, 20, 3.0), (5, 0, 0.2), (8, 9, 0.4), (7, 21, 1.2),
                              (9, 10, 2.1)):  # fmt: skip
        x = rows(count)
        want = put(x, at, factor)
        np.testing.assert_allclose(f(x, at, factor).numpy(), want.numpy(), rtol=1e-5, atol=1e-5)
    assert sum(found) >= 3


def test_code_is_unloaded_when_its_plan_falls_out() -> None:
    f = picograd.jit(lambda x: x.softmax(0) * 3, dynamic={"x": {0: Dim("rows", 1, 128)}})
    with fresh_engine(cache="", plans_size=1):
        x = rows(102)
        for count in range(2, 102):
            assert f(x[:count]).shape == (count, 6)
        assert len(f.captures) == 1 and len(realize.PLANS) > 100 and len(compile.LOADED) >= 2
        with config.override(plans_size=0):
            (x * 2).numpy()
            assert len(realize.PLANS) == len(compile.LOADED) == 1
            np.testing.assert_allclose(f(rows(50)).sum(0).numpy(), 3.0, rtol=1e-5)
