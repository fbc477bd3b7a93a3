"""Groups of values that wait: a computation finds those that it may have to do with."""

from collections.abc import Iterator
from weakref import ref

import numpy as np
import pytest

from picograd.dtype import float32
from picograd.engine import waiting
from picograd.engine.waiting import Group, Groups
from picograd.graph.node import Node


def leaf() -> Node:
    return Node("const", (), 1.0, (2,), float32, "cpu")


def computed_of(*inputs: Node) -> Node:
    return Node("add", inputs, None, (2,), float32, "cpu")


def below(node: Node) -> Iterator[Node]:
    """List what a node is made of, and is still to be computed."""
    for each in node.inputs:
        if each.inputs:
            yield each
            yield from below(each)


def graph(random: np.random.Generator, count: int) -> list[Node]:
    """Make nodes of the few before them."""
    nodes = [leaf(), leaf()]
    for _ in range(count):
        first, second = random.integers(max(0, len(nodes) - 6), len(nodes), 2)
        nodes.append(computed_of(nodes[first], nodes[second]))
    return nodes[2:]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_made_of_what_is_computed_is_near(seed: int) -> None:
    random = np.random.default_rng(seed)
    nodes, groups, waits = graph(random, 60), Groups(), list[Node]()
    for start in range(0, 60, 6):
        fresh = [each for each in nodes[start : start + 6] if random.random() < 0.6]
        groups.add(fresh)
        waits += fresh
        computed = list(random.choice(np.array(nodes, object), 2))
        made = {each for each in waits if any(node in computed for node in below(each))}
        near = groups.take_near(computed)
        assert made <= set(near) <= set(waits) and len(near) == len(set(near))
        groups.add(near)
        assert sorted(map(id, members(groups))) == sorted(map(id, waits))


def members(groups: Groups) -> list[Node]:
    """List what waits."""
    return groups.nodes()


def test_few_groups_know_a_long_loop_and_each_node_is_walked_once() -> None:
    groups, state, kept = Groups(), computed_of(leaf()), []
    for _ in range(512):
        state = computed_of(state)
        kept.append(computed_of(state))
        groups.add(kept[-1:])
    assert len(groups.all) <= 10
    assert sum(len(each.names) for each in groups.all) == 513
    assert groups.take_near([leaf()]) == [] and len(groups.all) <= 10
    assert set(groups.take_near(kept[0].inputs)) == set(kept) and groups.size() == 0


def test_one_of_many_values_is_found_without_a_look_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    groups, nodes = Groups(), [computed_of(computed_of(leaf())) for _ in range(256)]
    groups.add(nodes)
    looked = []
    real = Group.take_near
    monkeypatch.setattr(Group, "take_near", lambda *args: looked.append(1) or real(*args))
    for node in nodes[100:110]:
        looked.clear()
        assert groups.take_near(node.inputs) == [node]
        assert len(looked) < 40
    assert groups.size() == 246 and len(members(groups)) == 246


def test_nodes_that_are_gone_are_like_no_others() -> None:
    """Where one lay, another may: what waited for it is not near."""
    groups = Groups()
    kept = []
    for _ in range(200):
        node = computed_of(computed_of(leaf()))
        groups.add([node])
        del node
        kept.append(computed_of(leaf()))
        assert groups.take_near(kept[-1:]) == []


def test_groups_of_a_long_loop_stay_few_and_flat() -> None:
    """One value stays, others come and are taken; many know nothing that others do not."""
    groups, kept = Groups(), [computed_of(computed_of(leaf()))]
    groups.add(kept)
    for _ in range(3000):
        node = computed_of(computed_of(leaf()))
        groups.add([node])
        assert groups.take_near(node.inputs) == [node]
    assert members(groups) == kept and len(groups.all) == 1
    kept += [computed_of(kept[0].inputs[0]) for _ in range(3000)]
    groups.add(kept[1:])
    assert max(each.depth for each in groups.all) <= 40 and len(groups.all) < 16
    assert set(groups.take_near(kept[0].inputs)) == set(kept) and not groups.all


@pytest.mark.parametrize("deep", [40, 2])
def test_what_is_left_of_deep_groups_is_found(deep: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "DEEP", deep)
    groups, waits, random = Groups(), list[Node](), np.random.default_rng(0)
    for _ in range(300):
        fresh = [computed_of(computed_of(leaf())) for _ in range(random.integers(1, 5))]
        groups.add(fresh)
        waits += fresh
        for _ in range(random.integers(0, 4)):
            node = waits.pop(random.integers(len(waits))) if waits else leaf()
            assert groups.take_near(node.inputs) == ([node] if node.inputs else [])
    assert set(members(groups)) == set(waits) and len(waits) > 50
    assert max(each.depth for each in groups.all) <= max(deep + 1, 12)


def test_what_was_computed_is_nothing_to_wait_for() -> None:
    groups, made = Groups(), computed_of(leaf())
    made.realized = object()  # type: ignore[assignment]
    last = computed_of(made)
    groups.add([last])
    assert groups.take_near([made]) == []


def test_what_waits_no_more_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FEW", 4)
    groups, state = Groups(), computed_of(leaf())
    table, kept = {}, []
    for step in range(20):
        state = computed_of(state)
        kept.append(computed_of(state))
        groups.add(kept[-1:])
        if step == 3:
            table[ref(kept[-1])] = None
    groups.shrink(table)
    assert members(groups) == [kept[3]] and groups.limit == 4 + 4 * 5
    (group,) = groups.all
    assert ref(kept[3].inputs[0]) in group.names
    groups.shrink({})
    assert members(groups) == [kept[3]]  # few are no reason to look
