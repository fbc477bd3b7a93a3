"""Steps of a loop that is written out share kernels, wherever in an array they begin to read."""

from typing import Any

import numpy as np
import pytest

from picograd import Tensor
from picograd.dtype import DType, float32, int8
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot
from picograd.schedule.memory import place_slots
from picograd.schedule.plan import KernelLaunch, PlanSlot, Step
from picograd.schedule.rebase import rebase, spans_of
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target

I = Axis("i", 8)  # noqa: E741
HERE = axis_index(I)


def launch(*places: Index, dtype: DType = float32, role: str = "in", source: int = 0) -> Step:
    """Make a launch: s1[i] = -s0[place], for each place."""
    computes = []
    for place in places:
        body = Expr("neg", (Expr("load", (), (0, place), dtype),), None, dtype)
        computes.append(Compute((I,), (), None, body, dtype, (1, HERE)))
    slots = Slot(dtype, 256, role), Slot(dtype, 8, "out")
    kernel = Kernel("k", "map", slots, (), (Part((I,), tuple(computes)),))
    return KernelLaunch(kernel, (source, 1), (), "cpu")


def slots(kind: str = "temporary", dtype: DType = float32) -> list[PlanSlot]:
    whole = PlanSlot(kind, dtype, 256, "cpu", (256,), (1,))
    return [whole, PlanSlot("output", dtype, 8, "cpu", (8,), (1,))]


def kernels(steps: list[Step]) -> int:
    return len({id(step.kernel) for step in steps if isinstance(step, KernelLaunch)})


def test_launches_read_parts_of_an_array() -> None:
    given = slots()
    steps, parts = rebase(given, [launch(HERE + at) for at in (16, 32, 33, 48, 65)])
    assert kernels(steps) == 2  # those that begin at a cache line, and those an element behind
    assert parts == [(2, 0, 64), (3, 0, 128), (4, 0, 128), (5, 0, 192), (6, 0, 256)]
    assert [each.size for each in given[2:]] == [8, 8, 9, 8, 9]


@pytest.mark.parametrize(
    "made, steps",
    [
        (slots(), [launch(HERE + 16)]),
        (slots(), [launch(HERE + 16), launch(HERE * 2 + 32)]),
        (slots(), [launch(HERE, HERE + 16), launch(HERE, HERE + 32)]),
        (slots("input"), [launch(HERE + 16), launch(HERE + 32)]),
        (slots(), [launch(HERE + 16, role="inout"), launch(HERE + 32, role="inout")]),
        (slots(dtype=int8), [launch(HERE + 16, dtype=int8), launch(HERE + 32, dtype=int8)]),
    ],
    ids=["one", "unlike", "from the beginning", "an input", "written", "within a cache line"],
)
def test_what_stays(made: list[PlanSlot], steps: list[Step]) -> None:
    assert rebase(made, steps) == (steps, []) and len(made) == 2


def test_a_part_ends_with_its_array() -> None:
    step = launch(HERE * 32 + 48)
    assert isinstance(step, KernelLaunch) and spans_of(step.kernel) == {0: (48, 208)}


def test_a_part_of_what_lies_in_another_array() -> None:
    inner = PlanSlot("temporary", float32, 64, "cpu", (64,), (1,))
    made = [inner, PlanSlot("temporary", float32, 256, "cpu", (256,), (1,)), inner]
    place_slots(made, {0: (0, 0), 1: (1, 2), 2: (1, 1)}, [(2, 0, 64), (0, 1, 256)])
    assert [each.offset for each in made] == [256, 0, 320]


def test_an_array_is_there_as_long_as_a_part_of_it_is_read() -> None:
    made = [PlanSlot("temporary", float32, 64, "cpu", (64,), (1,)) for _ in range(3)]
    place_slots(made, {0: (0, 1), 1: (1, 5), 2: (2, 3)}, [(1, 0, 64)])
    whole, part, other = [each.offset for each in made]
    assert part == whole + 64 and (other >= whole + 256 or other + 256 <= whole)


def outcomes_of(x: Any, weight: Any, steps: int) -> list[Any]:
    """Run a cell one step after the other."""
    hidden, outcomes = x[:, 0] * 0, []
    for t in range(steps):
        hidden = (x[:, t] + hidden @ weight).tanh()
        outcomes.append(hidden)
    return outcomes


@pytest.mark.parametrize(
    "target", [Target("llvm", "host", 32), cuda_target("sm_90a")], ids=["cpu", "gpu"]
)
def test_kernels_do_not_grow_with_the_steps_of_a_loop(target: Target) -> None:
    counts = []
    for steps in (24, 48):
        x, weight = Tensor.zeros(4, steps, 32).realize(), Tensor.zeros(32, 32).realize()
        weight.requires_grad_()
        outcome = Tensor.stack(outcomes_of(x, weight, steps), 1)
        (outcome * outcome).mean().backward()
        plan = schedule([weight.grad.node], target)
        counts.append(len({repr(kernel.parts) for kernel in plan.kernels}))
    assert max(counts) < 12


def test_gradients_of_a_loop_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    generator = np.random.default_rng(0)
    given = generator.normal(size=(4, 20, 24)).astype(np.float32)
    matrix = (generator.normal(size=(24, 24)) * 0.1).astype(np.float32)
    found = []
    for library, make in ((Tensor, Tensor), (torch, torch.tensor)):
        x, weight = make(given), make(matrix).requires_grad_()
        (library.stack(outcomes_of(x, weight, 20), 1) ** 2).mean().backward()
        found.append(weight.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-7)
