"""Which launches wait for which, against all pairs that touch the same memory."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.dtype import float32
from picograd.helpers import direct
from picograd.schedule.plan import KernelLaunch, PlanSlot, find_waits


def network() -> nn.Module:
    convolution = nn.Conv2d(1, 4, 3, padding=1)
    layers = convolution, nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(64, 16), nn.GELU(), nn.Linear(16, 4))


def branches() -> list[Tensor]:
    """Gradients of a network, a sum of products, and a write after reads."""
    a, b, c = (Tensor(np.ones((size, size), np.float32)).realize() for size in (8, 64, 48))
    model, x = network(), Tensor(np.ones((2, 1, 8, 8), np.float32))
    loss = nn.functional.cross_entropy(model(x), Tensor([1, 2]))
    loss.backward()
    both = (a @ a).softmax(0) + (a @ a.T).softmax(1)
    a.add_(both)
    products = [b @ b.tanh() @ b @ b, c @ c.tanh() @ c @ c]
    return [loss, both, a, *products, *[p.grad for p in model.parameters()]]


def touches(plan, slot):
    """The bytes of a slot: its number, or where it lies in the arena."""
    found = plan.slots[slot]
    if found.kind != "temporary":
        return {(slot, 0)}
    return {("arena", at) for at in range(found.offset, found.offset + found.nbytes)}


@pytest.fixture
def plan(cpu_by_default):
    return picograd.plan(*branches()).plan


def test_whoever_shares_memory_with_a_writer_is_in_order(plan) -> None:
    launches = [step for step in plan.steps if isinstance(step, KernelLaunch)]
    waits = find_waits(plan.slots, launches)
    before: list[set[int]] = []
    for waited in waits:
        before.append(set(waited).union(*(before[each] for each in waited)))
    reads, writes = [], []
    for launch in launches:
        pairs = [*zip(launch.slots, launch.kernel.slots, strict=True)]
        used = {role: [slot for slot, each in pairs if each.role == role] for role in
                ("in", "out", "inout")}  # fmt: skip
        reads.append(set().union(*(touches(plan, s) for s in used["in"] + used["inout"])))
        writes.append(set().union(*(touches(plan, s) for s in used["out"] + used["inout"])))
    free = 0
    for late in range(len(launches)):
        for early in range(late):
            together = reads[late] & writes[early] or writes[late] & (reads[early] | writes[early])
            assert not together or early in before[late], (launches[early], launches[late])
            free += early not in before[late]
    assert free  # some may run side by side


def test_what_is_waited_for_by_way_of_another_is_left_out(plan) -> None:
    assert direct([(), (0,), (0, 1), (), (0, 2, 3)]) == [(), (0,), (1,), (), (2, 3)]
    launches = [step for step in plan.steps if isinstance(step, KernelLaunch)]
    waits = find_waits(plan.slots, launches)
    assert direct(waits) == waits
    assert any(len(each) != 1 for each in waits[1:])


def test_temporaries_that_share_memory() -> None:
    """One that begins inside another waits for its readers; neighbours do not meet."""

    def temporary(offset: int, device: str = "cuda") -> PlanSlot:
        return PlanSlot("temporary", float32, 4, device, (4,), (1,), offset)

    slots = [temporary(0), temporary(8), temporary(16), temporary(0, "cpu"), temporary(24)]
    outputs = [replace(slots[0], kind="output", offset=-1)] * 3
    writes = [((), 0), ((0,), 5), ((), 1), ((), 2), ((), 3), ((2,), 6), ((), 4)]
    launches: list[Any] = []
    for reads, target in writes:
        roles = ["in"] * len(reads) + ["out"]
        kernel = SimpleNamespace(slots=[SimpleNamespace(role=role) for role in roles])
        launches.append(SimpleNamespace(kernel=kernel, slots=(*reads, target)))
    waits = find_waits([*slots, *outputs], launches)
    assert waits == [(), (0,), (1,), (2,), (), (3,), (5,)]
    rows = find_waits([*slots, *outputs], launches, [[3, 5]])
    assert rows == [*waits[:4], (1,), *waits[5:]]
