"""What a plan tells: slots, steps, peak memory, and its printed form."""

import plain_nodes
from plan_support import TARGET, leaf

from picograd.buffer import RuntimeScalar
from picograd.dtype import float32
from picograd.graph import build
from picograd.schedule.plan import CopyStep, KernelLaunch
from picograd.schedule.schedule import schedule


def test_slots_are_numbered_inputs_first() -> None:
    x, weight = leaf(4, 6), leaf(6, 8)
    plan = schedule([build.matmul(build.matmul(x, weight), leaf(8, 2))], TARGET)
    assert [slot.kind for slot in plan.slots] == ["input"] * 3 + ["temporary", "output"]
    assert plan.inputs[:2] == (x, weight)
    assert plan.outputs == (4,)
    assert plan.peak_bytes == 256 + 4 * 2 * 4
    assert plan.slots[3].offset == 0


def test_scalars_are_numbered_once() -> None:
    rate = build.scalar(RuntimeScalar(0.5), "cpu", float32)
    wide = plain_nodes.broadcast(rate, leaf(3))[0]
    plan = schedule([leaf(3) * wide, leaf(3) - wide], TARGET)
    assert plan.scalars == (rate,)
    assert all(step.scalars == (0,) for step in plan.steps if isinstance(step, KernelLaunch))


def test_copies_between_devices_are_steps() -> None:
    moved = build.copy(leaf(3) * 2.0, "null") + build.copy(leaf(3), "null")
    plan = schedule([moved], TARGET)
    assert sum(isinstance(step, CopyStep) for step in plan.steps) == 2
    assert {
        plan.slots[step.target].device for step in plan.steps if isinstance(step, CopyStep)
    } == {"null"}
    devices = [step.device for step in plan.steps if isinstance(step, KernelLaunch)]
    assert devices == ["cpu", "null"]


def test_a_plan_prints() -> None:
    x = leaf(2, 3)
    text = str(schedule([x + 1.0], TARGET))
    assert text.splitlines()[:3] == [
        "plan: 1 kernels, 24 bytes",
        "  p0: input float32[2, 3]",
        "  p1: output float32[2, 3]",
    ]
    assert "map_add_2x3 (map) p0 p1" in text


def test_random_kernels_print_in_linear_space() -> None:
    offset = build.scalar(RuntimeScalar(1), "cpu", float32).cast(build.iota((1,), 0, "cpu").dtype)
    (kernel,) = schedule([build.random_bits(offset, 7, (8,))], TARGET).kernels
    assert len(str(kernel)) < 5000
