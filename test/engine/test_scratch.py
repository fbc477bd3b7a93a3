"""Workspaces of products lie in the arena of their plan."""

from dataclasses import replace

import numpy as np
import pytest

from picograd import Tensor, grad, nn
from picograd.code import Code, Workspace
from picograd.engine import scratch
from picograd.engine.backends import get_device
from picograd.engine.scratch import place_workspaces
from picograd.runtime.device import Executable
from picograd.schedule.in_place import lives_of
from picograd.schedule.plan import KernelLaunch, Plan, find_waits
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target

SPACES = (Workspace(1000), Workspace(5000), Workspace(4, is_zeroed=True))


def planned(device: str = "cpu", count: int = 3) -> Plan:
    """Plan a chain of products."""
    x = Tensor.zeros(32, 64, device=device).realize()
    weights = [Tensor.zeros(64, 64, device=device).realize() for _ in range(count)]
    for weight in weights:
        x = (x @ weight).relu()
    is_host = device == "cpu"
    return schedule([x.node], Target("llvm", "test", 64) if is_host else cuda_target("sm_90a"))


def spaces_of(plan: Plan, step: KernelLaunch) -> list[tuple[int, int]]:
    """List where the workspaces of a launch begin and end."""
    added = [plan.slots[number] for number in step.slots[len(step.kernel.slots) :]]
    return [(slot.offset, slot.offset + slot.nbytes) for slot in added]


def test_a_workspace_is_where_nothing_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned()
    code = Code("k", "llvm", "k", "", 1, workspaces=SPACES)
    loaded = {("cpu", id(kernel)): Executable(code, None) for kernel in plan.kernels}
    assert place_workspaces(plan, loaded) == plan  # they are small
    monkeypatch.setattr(scratch, "LEAST", 1)
    placed = place_workspaces(plan, loaded)
    for step in placed.steps:
        assert isinstance(step, KernelLaunch)
        found = spaces_of(placed, step)
        assert [stop - start for start, stop in found] == [1000, 5000]
        used = [placed.slots[number] for number in step.slots[: len(step.kernel.slots)]]
        found += [(s.offset, s.offset + s.nbytes) for s in used if s.kind == "temporary"]
        assert found and max(stop for _, stop in found) <= placed.arenas["cpu"]
        for (_, stop), (start, _) in zip(sorted(found), sorted(found)[1:]):
            assert stop <= start
    assert placed.arenas["cpu"] < plan.arenas["cpu"] + 3 * 6000


def test_a_launch_with_little_room_shares_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound counts all of its workspaces that need not be zero: 1000 and 5000 bytes."""
    plan = planned()
    code = Code("k", "llvm", "k", "", 1, workspaces=SPACES)
    loaded = {("cpu", id(kernel)): Executable(code, None) for kernel in plan.kernels}
    for least, is_placed in ((6000, True), (6001, False)):
        monkeypatch.setattr(scratch, "LEAST", least)
        assert (len(place_workspaces(plan, loaded).slots) > len(plan.slots)) is is_placed


def test_long_workspaces_of_a_gpu_are_in_the_arena_of_a_plan_that_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = Code("k", "cuda", "k", "", 1, workspaces=SPACES)
    single, chain = planned("null", 1), planned("null")
    for plan, least, is_placed in ((chain, 6000, True), (chain, 6001, False), (single, 1, False)):
        monkeypatch.setattr(scratch, "LEAST_APART", least)
        loaded = {("null", id(kernel)): Executable(code, None) for kernel in plan.kernels}
        placed = place_workspaces(plan, loaded)
        assert (len(placed.slots) > len(plan.slots)) is is_placed
        for step in placed.steps:
            assert isinstance(step, KernelLaunch)
            sizes = [stop - start for start, stop in spaces_of(placed, step)]
            assert sizes == ([1000, 5000] if is_placed else [])


def test_launches_wait_for_those_that_had_the_memory_of_their_workspaces() -> None:
    plan = planned("null", 2)
    space = scratch.space_slot(5000, "null")
    first, last = plan.steps
    assert isinstance(first, KernelLaunch) and isinstance(last, KernelLaunch)
    alone = replace(first, slots=(*first.slots, len(plan.slots)))
    other = replace(first, slots=(0, 1, len(plan.slots) + 2, len(plan.slots) + 1))
    slots = [*plan.slots, replace(space, offset=1 << 20), replace(space, offset=(1 << 20) + 4608)]
    slots.append(replace(plan.slots[first.slots[2]], offset=1 << 21))
    assert find_waits(slots, [alone, other]) == [(), (0,)]
    slots[-2] = replace(space, offset=(1 << 20) + 5120)
    assert find_waits(slots, [alone, other]) == [(), ()]


def test_parts_of_a_joined_array_stay_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "LEAST", 1)
    plan = planned()
    part, whole = [n for n, slot in enumerate(plan.slots) if slot.kind == "temporary"][:2]
    slots = list(plan.slots)
    slots[part] = replace(slots[part], offset=slots[whole].offset + 256)
    plan = replace(plan, slots=tuple(slots), joined=((part, whole),))
    code = Code("k", "llvm", "k", "", 1, workspaces=SPACES)
    loaded = {("cpu", id(kernel)): Executable(code, None) for kernel in plan.kernels}
    placed = place_workspaces(plan, loaded).slots
    assert placed[part].offset == placed[whole].offset + 256


@pytest.mark.usefixtures("cpu_by_default")
def test_arrays_of_which_parts_are_read_stay_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "LEAST", 1)
    x, cell = Tensor.zeros(6, 32, 64).realize(), nn.LSTMCell(64, 64)
    state, outcomes = None, []
    for step in x:
        state = cell(step, state)
        outcomes.append(state[0])
    gradients = grad((Tensor.stack(outcomes) ** 2).mean(), list(cell.parameters()))
    plan = schedule([each.node for each in gradients], Target("llvm", "test", 64))
    code = Code("k", "llvm", "k", "", 1, workspaces=SPACES)
    loaded = {("cpu", id(kernel)): Executable(code, None) for kernel in plan.kernels}
    placed = place_workspaces(plan, loaded)
    assert any(last > whole_last for last, whole_last in last_reads(placed))
    check_kept(placed)


def last_reads(plan: Plan) -> list[tuple[int, int]]:
    """List the last steps of parts, and of what they are parts of."""
    lives = lives_of(plan.steps)
    return [(lives[part][1], lives[whole][1]) for part, whole in plan.joined]


def check_kept(plan: Plan) -> None:
    """Check that no step writes over what a later one reads."""
    owners, written = dict(plan.joined), list[tuple[int, int, int]]()
    for step in plan.steps:
        if not isinstance(step, KernelLaunch):
            continue
        own = [slot.role for slot in step.kernel.slots]
        roles = own + ["out"] * (len(step.slots) - len(own))
        used = [(n, role) for n, role in zip(step.slots, roles) if plan.slots[n].offset >= 0]
        for number, role in used:
            slot, owner = plan.slots[number], owners.get(number, number)
            start, stop = slot.offset, slot.offset + slot.nbytes
            if role == "out":
                written.append((owner, start, stop))
                continue
            over = [who for who, first, last in written if first < stop and start < last]
            assert over[-1] == owner, f"{step.kernel.name} reads what was overwritten"


def test_products_keep_no_memory_beside_their_plans() -> None:
    device = get_device("cpu")
    a, b = np.random.normal(size=(2, 640, 640)).astype(np.float32)
    kept = [block.size for block in device.workspaces.shared.values()]
    x, y = Tensor(a), Tensor(b)
    np.testing.assert_allclose((x @ y @ x).numpy(), a @ b @ a, rtol=1e-3, atol=1e-2)
    assert [block.size for block in device.workspaces.shared.values()] == kept
