"""On a CPU what waits at the peak is made again by a kernel of its own."""

from collections import Counter
from dataclasses import replace

import numpy as np
import plain_nodes
import pytest
from plan_support import TARGET, leaf

from picograd import Tensor
from picograd.buffer import RuntimeScalar
from picograd.dtype import bfloat16, float32
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule import recompute
from picograd.schedule import recompute_apart as module
from picograd.schedule.cost import Machine
from picograd.schedule.in_place import bytes_alive
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.plan import KernelLaunch, Plan, PlanSlot, Step
from picograd.schedule.schedule import schedule
from picograd.schedule.verify import verify
from picograd.target import cuda_target


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small arrays be worth it, and the kernels that make them."""
    monkeypatch.setattr(module, "ENOUGH", 0)
    monkeypatch.setattr(module, "TIME", 1)


def layers(count: int = 4, rows: int = 256) -> list[Node]:
    """Gradients of products with an activation behind each."""
    x, weights = leaf(rows, 16), [leaf(16, 16) for _ in range(count)]
    y = x
    for weight in weights:
        made = build.matmul(y, weight)
        y = made * (made.unary("erf") + 1.0)
    loss = (y * y).reduce("sum", (0, 1))
    found = gradient([(loss, loss.const_like(1.0))], weights)
    return [grad for grad in found if grad is not None]


def kept(roots: list[Node], monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Plan without making anything again."""
    with monkeypatch.context() as changed:
        changed.setattr(module, "ENOUGH", 1 << 60)
        return schedule(roots, TARGET)


def names(plan: Plan) -> list[str]:
    return [step.kernel.name for step in plan.steps if isinstance(step, KernelLaunch)]


def peak(plan: Plan) -> int:
    return max(bytes_alive(plan.slots, plan.steps))


def same_results(plan: Plan, other: Plan) -> None:
    """Check that two plans of one graph give the same bits."""
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=each.shape).astype(np.float32) for each in plan.inputs]
    results = [interpret_plan(each, [*map(np.copy, arrays)], []) for each in (plan, other)]
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_values_are_made_again_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    roots = layers()
    plan, plain = schedule(roots, TARGET), kept(roots, monkeypatch)
    again = [name for name in names(plan) if name.startswith("map_again")]
    assert again == ["map_again_256x16"] * 2
    assert peak(plan) < 0.8 * peak(plain)
    same_results(plan, plain)


def test_the_kernel_of_a_product_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recompute, "OPERATIONS", 0)  # of a formula
    roots = layers()
    plan, plain = schedule(roots, TARGET), kept(roots, monkeypatch)
    found, wanted = Counter(names(plan)), Counter(names(plain))
    more = found - wanted
    assert more and set(more) < set(wanted) and peak(plan) < peak(plain)
    same_results(plan, plain)


def test_it_takes_a_part_of_the_time_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    roots = layers()
    monkeypatch.setattr(module, "TIME", 1 << 40)
    assert names(schedule(roots, TARGET)) == names(kept(roots, monkeypatch))


def test_a_small_gain_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    roots = layers()
    monkeypatch.setattr(module, "GAIN", 0.1)
    plan, plain = schedule(roots, TARGET), kept(roots, monkeypatch)
    assert names(plan) == names(plain) and plan.slots == plain.slots


def test_a_round_leaves_the_steps_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, own = [], module.lower_peak

    def watched(
        slots: list[PlanSlot], steps: list[Step], made: Machine, left: float, is_beside: bool
    ) -> tuple[list[Step], float]:
        before = list(steps)
        found = own(slots, steps, made, left, is_beside)
        assert steps == before  # they stay where the round saves nothing
        rounds.append(found[0] != before)
        return found

    monkeypatch.setattr(module, "lower_peak", watched)
    schedule(layers(), TARGET)
    assert any(rounds)


def found_at_the_peak(monkeypatch: pytest.MonkeyPatch) -> tuple[module.Peak, int, int]:
    """Look at the peak of a plan: a value that waits there, and another that its kernel stores."""
    plan = kept(layers(), monkeypatch)
    alive = bytes_alive(plan.slots, plan.steps)
    draft = recompute.Draft(list(plan.slots), list(plan.steps), alive.index(max(alive)))
    waiting = recompute.candidates(draft, 1)
    value, other = next(
        (one, two)
        for one in waiting
        for two in waiting
        if one != two and draft.writers[one] == draft.writers[two]
    )
    return module.Peak(draft, module.machine(TARGET), 1e18), value, other


@pytest.mark.parametrize("fault", ["", "another result is written again", "it writes in place"])
def test_a_kernel_runs_again_that_makes_the_same(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, value, other = found_at_the_peak(monkeypatch)
    draft = found.draft
    (first,) = draft.writers[value]
    step = draft.steps[first]
    assert isinstance(step, KernelLaunch)
    if fault.startswith("another"):
        draft.writers[other] = [first, len(draft.steps)]
    elif fault:
        slots = tuple(replace(s, role=s.role.replace("in", "inout")) for s in step.kernel.slots)
        draft.steps[first] = replace(step, kernel=replace(step.kernel, slots=slots))
    found.try_kernel(first, [value])
    assert bool(found.added) is not bool(fault)


def test_a_value_is_there_for_kernels_that_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found, value, _ = found_at_the_peak(monkeypatch)
    late = found.late([value])
    earlier = found.draft.peak + 1
    found.uses[value] = [earlier]
    assert found.late([value]) == sorted({earlier, *late})


def normed(count: int = 4, rows: int = 512) -> list[Node]:
    """Gradients of products of rows that are divided by their lengths, each beside its rows."""
    y, weights = leaf(rows, 16), [leaf(16, 16) for _ in range(count)]
    for weight in weights:
        length = (y * y).reduce("sum", (1,), True).unary("sqrt") + 1.0
        y = y + build.matmul((y / length.expand(y.shape)).unary("erf"), weight)
    loss = (y * y).reduce("sum", (0, 1))
    found = gradient([(loss, loss.const_like(1.0))], weights)
    return [grad for grad in found if grad is not None]


def test_on_a_gpu_other_kernels_store_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = replace(cuda_target("sm_90a"), multiprocessors=1)
    roots = normed()
    monkeypatch.setattr(module, "ENOUGH_BESIDE", 1 << 60)
    plain = schedule(roots, gpu)
    monkeypatch.setattr(module, "ENOUGH_BESIDE", 0)
    plan = schedule(roots, gpu)
    found = names(plan)
    assert len(found) == len(names(plain)) and sum(n.endswith("_again") for n in found) > 1
    assert peak(plan) < 0.9 * peak(plain)
    same_results(plan, plain)
    with monkeypatch.context() as changed:
        changed.setattr(module, "GAIN_BESIDE", 0.1)
        assert names(schedule(roots, gpu)) == names(plain)
    monkeypatch.setattr(module, "HELD", 1)  # what would be gone from the cache until it is read
    assert names(schedule(roots, gpu)) == names(plain)


def attending(count: int = 3, rows: int = 64) -> list[Node]:
    """Gradients of layers of attention, whose weights are in memory."""
    y, weights = leaf(rows, 16), [leaf(16, 16) for _ in range(2 * count)]
    for first, second in zip(weights[::2], weights[1::2], strict=True):
        q, k = build.matmul(y, first), build.matmul(y, second)
        s = build.matmul(q, k.permute((1, 0))) * 0.25
        y = y + build.matmul(Tensor.from_node(s).softmax(1).node, k)
    loss = (y * y).reduce("sum", (0, 1))
    found = gradient([(loss, loss.const_like(1.0))], weights)
    return [grad for grad in found if grad is not None]


def test_on_a_gpu_products_and_what_is_made_of_them_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scores are products beside products, and their softmax a part of what runs behind."""
    gpu = replace(cuda_target("sm_90a"), multiprocessors=1)
    roots = attending()
    monkeypatch.setattr(module, "ENOUGH_BESIDE", 1 << 60)
    plain = schedule(roots, gpu)
    for name, value in (("ENOUGH_BESIDE", 0), ("TIME_BESIDE", 0.25)):
        monkeypatch.setattr(module, name, value)
    plan = schedule(roots, gpu)
    again = [name for name in names(plan) if name.endswith("_again")]
    assert {name.partition("_")[0] for name in again} == {"contract", "reduce"}
    assert len(names(plan)) == len(names(plain)) and peak(plan) < 0.75 * peak(plain)
    same_results(plan, plain)
    monkeypatch.setattr(module, "CHAIN", 1)
    assert peak(schedule(roots, gpu)) > peak(plan)  # scores are not there any more


def test_on_a_gpu_what_a_value_is_made_of_is_there_when_the_host_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = replace(cuda_target("sm_90a"), multiprocessors=1)
    monkeypatch.setattr(module, "ENOUGH_BESIDE", 1 << 60)
    plan = schedule(normed(), gpu)
    alive = bytes_alive(plan.slots, plan.steps)
    top = alive.index(max(alive))

    def hosts(number: int, is_short: bool) -> list[int]:
        """Make a value again; with all that its kernel reads gone behind the peak if `is_short`."""
        draft = recompute.Draft(list(plan.slots), list(plan.steps), top)
        if is_short:
            for slot in plan.steps[draft.lives[number][0]].slots:  # type: ignore[union-attr]
                if slot != number:
                    draft.lives[slot] = draft.lives[slot][0], top + 1
                    draft.slots[slot] = replace(draft.slots[slot], kind="temporary")
                    draft.writers[slot] = [0]
        module.Peak(draft, module.machine(gpu), 1e18, True).try_beside(number)
        pairs = zip(draft.steps, plan.steps, strict=True)
        names = [one.kernel.name.endswith("_again") for one, _ in pairs]  # type: ignore[union-attr]
        return [place for place, is_host in enumerate(names) if is_host]

    waiting = recompute.candidates(recompute.Draft(list(plan.slots), list(plan.steps), top), 1)
    late = [number for number in waiting if any(at > top + 1 for at in hosts(number, False))]
    assert late and not any(hosts(number, True) for number in late)


def test_who_is_a_host() -> None:
    """A join may not run at all; one product has tiles that others may not want."""
    top, bottom = (leaf(64, 16).pad(pads) for pads in (((0, 64), (0, 0)), ((64, 0), (0, 0))))
    join, plain = (schedule([root], TARGET).kernels[0] for root in (top + bottom, top * 2.0))
    assert not module.has_room(join, plain) and module.has_room(plain, plain)
    plans = (
        schedule([build.matmul(leaf(64, 16, dtype=each), leaf(16, 8, dtype=each))], TARGET)
        for each in (float32, bfloat16)
    )
    lone, half = (plan.kernels[0] for plan in plans)
    pair = replace(lone, parts=lone.parts * 2)
    assert not module.has_room(lone, lone) and module.has_room(pair, lone)
    assert not module.has_room(pair, half) and not module.has_room(pair, plain)
    assert not module.has_room(plain, lone)


def test_parts_keep_their_scalars() -> None:
    """Slots that both read are one, and numbers of scalars follow those of the host."""
    x = leaf(64, 16)
    rates = [build.scalar(RuntimeScalar(each), "cpu", float32) for each in (2.0, 3.0)]
    roots = [x * plain_nodes.broadcast(rate, x)[0] for rate in rates]
    (first,), (second,) = (schedule([root], TARGET).steps for root in roots)
    both = module.beside(first, replace(second, slots=(0, 2), scalars=(1,)))
    assert isinstance(both, KernelLaunch)
    assert both.slots == (0, 1, 2) and both.scalars == (0, 1)
    kernel = verify(both.kernel)
    assert [repr(part.computes[0].body) for part in kernel.parts] == [
        "mul(s0[a0], scalar0)",
        "mul(s0[a0], scalar1)",
    ]
