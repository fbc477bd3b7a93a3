"""Regions of scores: what they are made of, where elements are, what keeps them stored."""

import pytest
from plan_support import TARGET, leaf

from picograd.graph.expand import expand_composites
from picograd.graph.node import toposort
from picograd.schedule import scores as scores_stage
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.schedule import facts_of
from picograd.schedule.scores import Finder, find_regions, is_seed, lone_axis

SIZES = (2, 20, 8), (2, 24, 8)


def regions_of(*roots):
    expanded = expand_composites(list(roots), target=TARGET)
    facts = facts_of(toposort(expanded), expanded)
    values = list(dict.fromkeys(facts.values()))
    return find_regions(values, {facts[id(root)] for root in expanded})


def scores(a=SIZES[0], b=SIZES[1]):
    return leaf(*a).contract(leaf(*b), ((0, 1, 2), (0, 3, 2), (0, 1, 3)))


def test_a_region_spreads_over_what_is_elementwise_and_ends_in_reductions():
    s = scores()
    (region,) = regions_of((s * 2.0).unary("exp").reduce("sum", (2,)))
    assert not region.problem and region.has_exponential
    assert [sink.facts.node.op for sink in region.sinks] == ["reduce"]
    assert [{axis.size for axis in side} for side in region.sides] == [{20}, {24}]


def test_views_move_places_and_regions_that_meet_are_one():
    s, t = scores(), scores()
    turned = t.permute((0, 2, 1)).permute((0, 2, 1)).reshape((40, 24)).reshape((2, 20, 24))
    (region,) = regions_of((s * turned).reduce("sum", (1,)))
    assert not region.problem and len(region.sinks) == 1
    assert region.at[region.sinks[0].facts.inputs[0].number] == region.at[region.members[0].number]


@pytest.mark.parametrize(
    "read, reason",
    [
        (lambda s: s, "it is an output"),
        (lambda s: s.reduce("sum", (1, 2)), "over other axes than one side"),
        (lambda s: s.reduce("sum", (0,)), "over other axes than one side"),
        (lambda s: s.slice(((0, 2, 1), (0, 5, 1), (0, 24, 1))).reduce("sum", (2,)), "shows parts"),
        (
            lambda s: s.contract(leaf(20, 24, 3), ((0, 1, 2), (1, 2, 3), (0, 1, 3))),
            "multiplies each row by another matrix",
        ),
    ],
    ids=["output", "both sides", "the batch", "a slice", "a matrix for each row"],
)
def test_what_else_reads_scores_keeps_them_in_memory(read, reason):
    (region,) = regions_of(read(scores()))
    assert reason in region.problem


def test_long_chains_are_stored_as_elsewhere():
    """What is lowered by recursion is bounded: bias after bias would be too deep."""
    found = {}
    for count in (60, 500):
        s = scores()
        for _ in range(count):
            s = s + leaf(2, 20, 24)
        (region,) = regions_of(s.unary("exp").reduce("sum", (2,)))
        found[count] = region.problem
    assert found == {60: "", 500: "it has more than 100 nodes in a row"}


def test_small_and_deep_products_are_no_seeds():
    def is_one(a, b):
        return is_seed(scores(a, b))

    assert is_one(*SIZES)
    assert not is_one((2, 8, 8), (2, 24, 8))  # few rows
    assert not is_one((2, 20, 512), (2, 24, 512))  # deep


def test_lone_axis():
    axis = Axis("a", 5)
    assert lone_axis(axis_index(axis)) is axis
    assert lone_axis(axis_index(axis) * 2) is None and lone_axis(axis_index(axis) + 1) is None


@pytest.mark.parametrize("is_first", [True, False])
def test_members_move_seldom_however_many_regions_meet(monkeypatch, is_first):
    moved = []
    unite = Finder.unite

    def counted(self, region, facts, other, at):
        moved.append(len(other.members) if region is not other else 0)
        unite(self, region, facts, other, at)

    monkeypatch.setattr(Finder, "unite", counted)
    monkeypatch.setattr(scores_stage, "CHAIN_LIMIT", 10_000)

    def count(layers):
        moved.clear()
        sum_of = scores()
        for _ in range(layers):
            more = scores().unary("exp")
            sum_of = sum_of + more if is_first else more + sum_of
        (region,) = regions_of(sum_of.reduce("sum", (2,)))
        assert not region.problem and len(region.members) == 3 * layers + 1
        return sum(moved)

    assert count(2000) < 2.5 * count(1000)
