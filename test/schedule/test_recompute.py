"""What waits at the peak is stored again by a kernel that reads what it is made of."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.dtype import float32
from picograd.engine import pending
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import buffer_to_numpy
from picograd.graph.node import Node
from picograd.schedule import recompute as module
from picograd.schedule.in_place import bytes_alive
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot
from picograd.schedule.plan import KernelLaunch, Plan, PlanSlot, Step
from picograd.schedule.recompute import recompute
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

SIZE = 8
I = Axis("i", SIZE)  # noqa: E741
HERE = axis_index(I)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small arrays be worth it."""
    for name, value in (("FROM", 0), ("LEAST", 1), ("SHARE", 1)):
        monkeypatch.setattr(module, name, value)


def launch(*slots: int, shift: int = 0) -> KernelLaunch:
    """Make a launch: the last slot = the sum of the others, of places `shift` away modulo SIZE."""
    at = (HERE + shift) % SIZE if shift else HERE
    loads = [Expr("load", (), (n, at), float32) for n in range(len(slots) - 1)]
    body = loads[0]
    for each in loads[1:]:
        body = Expr("add", (body, each), None, float32)
    body = Expr("neg", (body,), None, float32)
    compute = Compute((I,), (), None, body, float32, (len(loads), HERE))
    roles = ["in"] * len(loads) + ["out"]
    kernel_slots = tuple(Slot(float32, SIZE, role) for role in roles)
    kernel = Kernel("k", "map", kernel_slots, (), (Part((I,), (compute,)),))
    return KernelLaunch(kernel, slots, (), "cpu")


def slots(kinds: str) -> list[PlanSlot]:
    names = {"i": "input", "t": "temporary", "o": "output"}
    return [PlanSlot(names[k], float32, SIZE, "cpu", (SIZE,), (1,)) for k in kinds]


# p0 is x, p1 is -x, and most is taken at p4; what makes p5 reads x, and what makes p6 reads p1.
STEPS = launch(0, 1), launch(1, 2), launch(2, 3), launch(2, 3, 4), launch(4, 0, 5)
LATE = launch(5, 1, 6, shift=2)
KINDS = "itttttot"


def stored(steps: Sequence[Step]) -> list[int]:
    return [len(step.kernel.parts[0].computes) for step in steps if isinstance(step, KernelLaunch)]


def test_a_kernel_that_reads_the_array_stores_the_value_again() -> None:
    known = slots(KINDS)
    steps = [*STEPS, LATE]
    found = recompute(known, steps)
    assert stored(found) == [1, 1, 1, 1, 2, 1] and len(known) == len(KINDS) + 1
    assert max(bytes_alive(known, found)) < max(bytes_alive(slots(KINDS), steps))


def test_who_reads_the_value_before_its_host_follows_it() -> None:
    known = slots(KINDS)
    found = recompute(known, [*STEPS[:4], launch(4, 1, 6, shift=2), launch(4, 0, 5)])
    assert stored(found) == [1, 1, 1, 1, 2, 1]
    last = found[-1]
    assert isinstance(last, KernelLaunch) and last.slots == (4, len(KINDS), 6)


def test_who_reads_the_value_where_it_is_made_makes_it() -> None:
    known = slots(KINDS)
    found = recompute(known, [*STEPS[:4], launch(4, 1, 5), launch(5, 1, 6, shift=2)])
    assert stored(found) == [1, 1, 1, 1, 2, 1]
    host = found[4]
    assert isinstance(host, KernelLaunch) and host.slots == (4, 5, 0, len(KINDS))


def test_a_value_that_nobody_else_reads_is_not_stored_again() -> None:
    known = slots(KINDS)
    found = recompute(known, [*STEPS[:4], launch(4, 1, 6)])
    assert stored(found) == [1] * 5 and len(known) == len(KINDS)
    assert repr(found[4].kernel.parts[0].computes[0].body) == "neg(add(s0[i], neg(s2[i])))"


@pytest.mark.parametrize("steps", [
    [*STEPS[:4], launch(4, 1, 7, shift=2), launch(7, 0, 5), launch(5, 1, 6, shift=2)],
    [*STEPS[:4], launch(4, 0, 5, shift=3), LATE],
    [launch(0, 1, shift=3), *STEPS[1:], LATE],
    [*STEPS[:3], launch(2, 3, 1, 4), STEPS[4], LATE],
], ids=["host needs it", "elsewhere", "made of others", "read at the peak"])  # fmt: skip
def test_what_is_kept(steps: list[Step]) -> None:
    assert recompute(slots(KINDS), steps) == steps


def test_little_memory_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FROM", 1 << 30)
    assert recompute(slots(KINDS), [*STEPS, LATE]) == [*STEPS, LATE]


class Residual(nn.Sequential):
    """Modules beside a shortcut."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


def transformer() -> list[Tensor]:
    """Make a loss, and gradients, of blocks with norms and activations."""
    blocks = [
        Residual(nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU("tanh"), nn.Linear(64, 32))
        for _ in range(2)
    ]
    model, x = nn.Sequential(*blocks), Tensor.randn(512, 32)
    pending.realize_all()
    with picograd.autocast("cpu", picograd.bfloat16):
        loss = model(x).float().square().mean()
    return [loss, *picograd.autograd.grad(loss, list(model.parameters()))]


def contents(node: Node) -> np.ndarray:
    """Give what a leaf holds."""
    buffer = leaf_buffer(node)
    assert buffer is not None
    return buffer_to_numpy(buffer, node.shape).copy()


def planned(roots: Sequence[Node]) -> Plan:
    return schedule(roots, replace(cuda_target("sm_90a"), multiprocessors=1))


@pytest.mark.usefixtures("on_host")
def test_values_stay_what_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    picograd.manual_seed(0)
    roots = [tensor.node for tensor in transformer()]
    plans = [planned(roots)]
    monkeypatch.setattr(module, "FROM", 1 << 60)
    plans.append(planned(roots))
    assert len(plans[0].slots) > len(plans[1].slots) + 1
    results = []
    for plan in plans:
        arrays = [contents(node) for node in plan.inputs]
        results.append(interpret_plan(plan, arrays, [node.arg.value for node in plan.scalars]))
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_array_equal(found, wanted)
