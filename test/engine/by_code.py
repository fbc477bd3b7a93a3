"""Compare plans that are bound by code with what binding the long way gives."""

from typing import Any

import pytest

from picograd.engine import quick, realize, sizes
from picograd.engine.plan_key import graph_key
from picograd.engine.quick import check_known
from picograd.engine.size_patterns import plan_by_code
from picograd.graph.formula import FOLDED


def compare_bindings(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Compare each plan that is bound by code; returns a list of whether one was found."""
    outcomes: list[bool] = []

    def compare(found: Any, plan: Any) -> None:
        outcomes.append(plan is not None)
        if plan is None:
            return
        roots = [found.order[at] for at in found.key.rows[1]]
        if any(node.op == FOLDED for node in found.order):
            roots, found = realize.plain_graph(roots, found)
        other = sizes.bounded_plan(roots, found, realize.own_plan, {})
        assert other is not None
        if other.inner is plan.inner:
            assert repr(plan.bound) == repr(other.bound)  # 2 == 2.0

    def compared(found: Any) -> Any:
        plan = plan_by_code(found)
        compare(found, plan)
        return plan

    def checked(known: Any, updates: Any, roots: Any, found: Any) -> None:
        """The plans of steps, bound by the keys of their updates."""
        check_known(known, updates, roots, found)
        if isinstance(known.key, quick.OfSizes):
            compare(graph_key(quick.with_writes(updates, roots)), known.plan())

    monkeypatch.setattr(realize, "plan_by_code", compared)
    monkeypatch.setattr(quick, "check_known", checked)
    return outcomes
