"""Large updates run as soon as they can."""

import pytest
from plan_support import TARGET, check_plan, leaf

from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule import arrange
from picograd.schedule.in_place import bytes_alive
from picograd.schedule.plan import CopyStep, KernelLaunch, Plan
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target


def trained(is_read: bool = False) -> list[Node]:
    """Weights and averages after a step; the loss may read averages once more, at its end."""
    x, weights = leaf(2, 6), [leaf(6, 6) for _ in range(4)]
    averages = [leaf(6, 6) for _ in weights]
    y, written = x, []
    for weight in weights:
        y = build.matmul(y, weight).unary("tanh")
    loss = (y * y).reduce("sum", (0, 1))
    found = gradient([(loss, loss.const_like(1.0))], weights)
    if is_read:
        last = found[0]
        assert last is not None
        written.append(build.matmul(last, averages[-1]))
    for weight, average, grad in zip(weights, averages, found, strict=True):
        assert grad is not None
        made = average * 0.9 + grad.unary("tanh")
        written += build.assign(average, made), build.assign(weight, weight - made * 0.01)
    return written


def updates(plan: Plan) -> list[int]:
    """List for each weight where its update runs: the number of the step."""
    found = {}
    for number, step in enumerate(plan.steps):
        if isinstance(step, KernelLaunch):
            for slot, place in zip(step.kernel.slots, step.slots, strict=True):
                if slot.role != "in" and plan.slots[place].kind == "input":
                    found[place] = number
    return [found[number] for number in sorted(found)]


def peak(plan: Plan) -> int:
    return max(bytes_alive(plan.slots, plan.steps))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small updates be large."""
    monkeypatch.setattr(arrange, "LEAST", 1)


def test_updates_follow_their_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    roots = trained()
    plan = check_plan(roots)
    assert len(set(updates(plan))) == 4
    monkeypatch.setattr(arrange, "LEAST", 1 << 20)
    late = schedule(roots, TARGET)
    assert len(set(updates(late))) == 1
    assert peak(plan) < peak(late)


def test_nothing_is_written_before_it_was_read() -> None:
    plan = check_plan(trained(is_read=True))
    assert not any(isinstance(step, CopyStep) for step in plan.steps)
    assert len(set(updates(plan))) == 4


def test_updates_wait_for_what_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Python computes may raise: then no weight is written yet."""
    monkeypatch.setattr(arrange, "LONE", (*arrange.LONE, "contract"))
    assert len(set(updates(check_plan(trained())))) == 1


@pytest.mark.parametrize(
    ("name", "target"), [("LEAST", TARGET), ("LONG_UPDATE", cuda_target("sm_90a"))]
)
def test_updates_of_a_whole_array_of_few_bytes_wait(
    name: str, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is one of bytes: 6 x 6 elements of 4."""
    for least, places in ((144, 4), (145, 1)):
        monkeypatch.setattr(arrange, name, least)
        assert len(set(updates(schedule(trained(), target)))) == places


def test_updates_wait_for_maps_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share a launch then, and still come before what is behind it."""
    monkeypatch.setattr(arrange, "LONG_UPDATE", 1)
    weight, x = leaf(6, 6), leaf(6, 6)
    for _ in range(2):
        x = build.matmul(x, leaf(6, 6))
    piece = x.slice(((1, 5, 1), (0, 6, 1))).stored()  # a map two products later
    made = build.assign(weight, weight - build.matmul(leaf(6, 6), leaf(6, 6)))
    roots = [made, build.matmul(piece, leaf(6, 6))]
    plan = check_plan(roots, target=cuda_target("sm_90a"))
    ((place,), last) = updates(plan), len(plan.steps) - 1
    assert 0 < place < last and len(plan.kernels[place].parts) == 2
    monkeypatch.setattr(arrange, "DELAY_LIMIT", 0)
    apart = schedule(roots, cuda_target("sm_90a"))
    assert len(apart.kernels) == len(plan.kernels) + 1
