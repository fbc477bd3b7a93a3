"""Launches of one outline share a kernel, and it is the one that each would get by itself."""

from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import plain_nodes
import pytest
from plan_support import TARGET, check_plan, cnn_step, leaf, linear

from picograd.buffer import RuntimeScalar
from picograd.dtype import float32, int64
from picograd.graph import build
from picograd.graph.node import Node
from picograd.number import GivenInt
from picograd.schedule import schedule as stages
from picograd.schedule.alike import Outline
from picograd.schedule.canonical import canonical_key
from picograd.schedule.lower import Location
from picograd.schedule.plan import KernelLaunch, Plan, PlanSlot
from picograd.schedule.schedule import schedule


def launches(plan: Plan) -> list[KernelLaunch]:
    return [step for step in plan.steps if isinstance(step, KernelLaunch)]


def kernels_made(plan: Plan) -> int:
    return len({id(step.kernel) for step in launches(plan)})


def check_alone(roots: Sequence[Node], monkeypatch: pytest.MonkeyPatch) -> Plan:
    """The kernels of a plan are those of one where each launch is lowered by itself."""
    together = schedule(roots, TARGET)
    with monkeypatch.context() as patch:
        patch.setattr(stages, "outline_of", lambda launch, outline: None)
        alone = schedule(roots, TARGET)
    assert kernels_made(alone) == len(launches(alone))
    for a, b in zip(launches(together), launches(alone), strict=True):
        assert (a.slots, a.scalars, a.kernel.name) == (b.slots, b.scalars, b.kernel.name)
        assert canonical_key(a.kernel) == canonical_key(b.kernel)
    return together


def layers(count: int) -> Node:
    y = leaf(8, 16)
    for _ in range(count):
        y = build.gelu(linear(y, leaf(16, 16), leaf(16)))
    return y


def test_equal_layers_are_lowered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = check_alone([layers(6)], monkeypatch)
    assert (len(launches(plan)), kernels_made(plan)) == (6, 1)
    check_plan([layers(3)])


def test_a_training_step_is_lowered_as_launch_by_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    check_alone(cnn_step(2, (4, 8), 8)[1], monkeypatch)


def part_of(x: Node, start: int) -> Node:
    return x.slice(((start, start + 4, 1), (0, 6, 1))).unary("exp")


def scaled(x: Node, number: float) -> Node:
    rate = build.scalar(RuntimeScalar(number), "cpu", float32)
    return x * plain_nodes.broadcast(rate, x)[0]


def different() -> list[tuple[Node, Node]]:
    """Pairs of graphs over arrays of one shape, whose kernels differ."""
    x, y = leaf(4, 6), leaf(4, 6)
    wide, also_wide = leaf(9, 6), leaf(9, 6)
    square, other = leaf(6, 6), leaf(6, 6)
    return [
        (x.unary("exp"), y.unary("sin")),
        (x + 1.0, y + 2.0),
        (x * 0.0, y * -0.0),
        (x.pad(((1, 0), (0, 0)), 0.0).unary("exp"), y.pad(((1, 0), (0, 0)), -0.0).unary("exp")),
        (x.pad(((1, 0), (0, 0))).unary("exp"), y.pad(((0, 1), (0, 0))).unary("exp")),
        (part_of(wide, 0), part_of(also_wide, 5)),
        (square.unary("exp"), other.permute((1, 0)).unary("exp")),
        (x * x, x * y),
        (x.cast(int64).cast(float32), y.cast(float32).unary("floor")),
        (x.reduce("sum", (0,)), y.reduce("max", (0,))),
        (x.reduce("sum", (0,)), y.reduce("sum", (1,))),
    ]


def alone(node: Node, number: int) -> Node:
    """Read a value by a kernel of its own: they would be parts of one launch otherwise."""
    weight = leaf(node.size, 3 + number)
    return node.reshape((1, node.size)).contract(weight, ((0, 1), (1, 2), (0, 2)))


@pytest.mark.parametrize("number", range(len(different())))
def test_what_differs_does_not_share(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = different()[number]
    first = alone(a, 0)
    rest = plain_nodes.broadcast(first.reduce("sum", (0, 1)), b)[0]
    check_alone([first, alone(b + rest, 1)], monkeypatch)
    check_plan([first, alone(b + rest, 1)])


def test_positions_and_scalars_are_arguments_of_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    y, found = leaf(16, 6), []
    for start, number in ((2, 0.5), (3, 1.5), (5, -1.0)):
        cut = part_of(y, GivenInt(start))
        y = linear(scaled(cut, number).pad(((0, 12), (0, 0))), leaf(6, 6), leaf(6))
        found.append(y)  # whole: rows that nobody reads would not be computed
    plan = check_alone(found, monkeypatch)
    assert kernels_made(plan) < len(launches(plan))
    check_plan(found)


def test_one_array_twice_is_not_two(monkeypatch: pytest.MonkeyPatch) -> None:
    x = leaf(8, 8)
    for weight, also in pairwise([leaf(8, 8), *[leaf(8, 8)] * 3]):
        x = x.contract(weight, ((0, 1), (1, 2), (0, 2))) + also * weight
    check_alone([x], monkeypatch)
    check_plan([x])


def test_assignments_share(monkeypatch: pytest.MonkeyPatch) -> None:
    x = leaf(8, 8)
    writes: list[Node] = []
    for _ in range(4):
        state = leaf(8)
        x = linear(x, leaf(8, 8), leaf(8))
        writes.append(build.assign(state, state * 0.9 + x.reduce("sum", (0,)) * 0.1))
    plan = check_alone([x, *writes], monkeypatch)
    assert kernels_made(plan) < len(launches(plan))
    check_plan([x, *writes])


def test_what_one_part_reads_and_another_computes_has_both_rows() -> None:
    """The part that computes it comes later: what it is made of belongs to the outline as well."""
    x, group = leaf(3), SimpleNamespace(depth=2)
    source = SimpleNamespace(number=0, node=x, group=None, is_source=True, inputs=())
    double = SimpleNamespace(
        number=1, node=x.unary("exp"), group=group, is_source=False, inputs=(source,)
    )
    slots = [PlanSlot("temporary", float32, 3, "cpu", (3,), (1,))] * 2
    outline = Outline({0: Location(0, (1,)), 1: Location(1, (1,))}, slots, {})
    read, computed = (outline.node(cast(Any, double), depth) for depth in (3, 2))
    assert read != computed and [row[0] for row in outline.rows] == ["load", "load", "exp"]
    assert outline.node(cast(Any, double), 3) == read
    view = SimpleNamespace(
        number=2, node=x.unary("exp").reshape((3, 1)), group=None, is_source=False, inputs=(double,)
    )
    early, late = (outline.node(cast(Any, view), depth) for depth in (2, 3))
    assert outline.rows[early][1] == (computed,) and outline.rows[late][1] == (read,)


def test_the_outline_of_a_scatters_base_ends_there() -> None:
    """Its updates are a launch of their own, below which a whole network may lie."""
    y, places = leaf(4, 8), leaf(4, dtype=int64)
    for _ in range(400):
        y = build.gelu(linear(y, leaf(8, 8), leaf(8)))
        y = y.binary("add", leaf(4, 8).scatter(y, (places,), (0,), "sum"))
    assert kernels_made(schedule([y], TARGET)) < 20
