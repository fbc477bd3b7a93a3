"""Order: nodes by their ops; what is known of a graph is asked once while it stays the same."""

import pytest
from attention_forms import by_hand, causal, plain, with_gradients
from plan_support import TARGET, leaf

from picograd.graph.expand import expand_composites, realized
from picograd.graph.node import toposort
from picograd.schedule import order, score_boxes
from picograd.schedule import schedule as stages
from picograd.schedule.order import Order
from picograd.schedule.score_boxes import regions_of
from picograd.schedule.values import facts_of
from picograd.target import cuda_target

HOPPER = cuda_target("sm_90a")


def attended(form=plain):
    return with_gradients(form, *[(2, 3, 32, 32)] * 3)


def test_nodes_by_their_ops():
    x = leaf(2, 3)
    listed = toposort([x.unary("exp").reduce("sum", (1,)), x.unary("sin"), x.unary("exp")])
    known = Order(listed)
    assert known == listed and set(order.ops_in(known)) == set(order.ops_in(listed))
    assert order.nodes_of(known, {"exp"}) == order.nodes_of(listed, {"exp"})
    for ops in ({"reduce", "sin"}, {"exp", "buffer"}, {"cos"}):
        assert set(order.nodes_of(known, ops)) == set(order.nodes_of(listed, ops))


def test_regions_of_scores_are_found_once_for_a_graph_that_stays(monkeypatch):
    calls = []
    found = score_boxes.find_regions
    monkeypatch.setattr(score_boxes, "find_regions", lambda *args: calls.append(1) or found(*args))
    plan = stages.schedule(attended(), TARGET)
    assert "attention" in [kernel.hero for kernel in plan.kernels] and len(calls) == 1


@pytest.mark.parametrize("target", [TARGET, HOPPER])
@pytest.mark.parametrize("form", [plain, causal, by_hand])
@pytest.mark.parametrize("is_read", [False, True])
def test_regions_that_were_wide_are_those_of_a_strict_walk(form, is_read, target):
    roots = expand_composites(attended(form))
    listed = toposort(roots, realized)
    scores = [node for node in listed if node.op == "contract" and node.shape[-1] == 32]
    asked = [*roots, *(scores[:1] if is_read else ()), scores[-1].reduce("sum", (0, 1, 2, 3))]
    listed = toposort(asked, realized)
    facts = facts_of(listed, asked)
    values, wanted = list(dict.fromkeys(facts.values())), {facts[id(root)] for root in asked}
    wide, strict = (regions_of(values, wanted, target, has_wide) for has_wide in (True, False))
    assert any(region.shared or region.wide for region in wide)
    for region in wide:
        region.be_strict()
    sinks = [
        [[sink.facts.number for sink in region.sinks] for region in regions]
        for regions in (wide, strict)
    ]
    assert sinks[0] == sinks[1] and strict
    assert [region.problem for region in wide] == [region.problem for region in strict]


def test_what_leaves_a_graph_as_it_is_is_not_asked_again_of_it(monkeypatch):
    calls = []

    def idle(roots, order, target):
        calls.append("idle")
        return list(roots)

    def negate(roots, order, target):
        calls.append("negate")
        return [-root for root in roots] if calls.count("negate") == 1 else list(roots)

    monkeypatch.setattr(stages, "REWRITES", (idle, idle, negate, idle, negate, idle))
    stages.schedule([leaf(2, 3).unary("exp")], TARGET)
    assert calls == ["idle", "negate", "idle", "negate"]
