"""Launches by machine code: what `CompiledPlan.launch` gives, or nothing done at all."""

import gc
import sys

import numpy as np
import pytest
from thread_support import run_in_threads

import picograd
from picograd import Tensor
from picograd.buffer import Buffer
from picograd.engine import executable, native_calls
from picograd.engine.backends import get_device
from picograd.engine.plan_cache import PLANS
from picograd.engine.watch import PROFILES
from picograd.runtime import memory
from picograd.runtime.memory import WATCHERS, Allocation
from picograd.runtime.python_layout import is_possible

pytestmark = [
    pytest.mark.usefixtures("cpu_by_default"),
    pytest.mark.skipif(not is_possible(), reason="another interpreter"),
]
VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def plan_of(function, *arrays):
    """Give the plan of a function, with native code, and the memory of its inputs."""
    PLANS.clear()
    tensors = [Tensor(each) for each in arrays]
    with picograd.config.override(dynamic=0):
        function(*tensors).realize()
    (plan,) = [each for each in PLANS.plans.values() if each.launches]
    plan.native.patience = 1
    plan.native.count_use(plan)
    assert plan.native.address
    spare = [Tensor(VALUES + number).realize() for number in range(2)]
    del spare  # so that there are free blocks
    return plan, [each._node.arg.buffer for each in tensors]


def values(buffer):
    return get_device("cpu").copy_out(buffer).view(np.float32)[: buffer.count]


def pool():
    return get_device("cpu").pool


def test_results_are_those_of_python():
    plan, inputs = plan_of(lambda a, b: (a @ b).sum(0), VALUES, VALUES.T)
    (native,) = plan.native.launch(list(inputs), (), "here", None)
    (slow,) = executable.CompiledPlan.launch(without_code(plan), list(inputs), (), "here")
    assert np.array_equal(values(native), values(slow))
    assert np.array_equal(values(native), (VALUES @ VALUES.T).sum(0))
    for name in ("device", "dtype", "count", "room", "origin"):
        assert getattr(native, name) == getattr(slow, name)
    assert native.handle.address == native.address


def without_code(plan):
    """Copy a plan that has no native code."""
    made = executable.CompiledPlan(plan.plan, plan.actions, plan.devices, plan.input_numbers, ())
    assert not made.native.address
    return made


def test_numbers_are_arguments():
    plan, inputs = plan_of(lambda a: a * 2.5 + 1, VALUES)
    scalars = [4.0, 7] if len(plan.scalar_numbers) == 2 else [4.0]
    (found,) = plan.native.launch(list(inputs), scalars, "", None)
    (slow,) = without_code(plan).launch(list(inputs), scalars)
    assert np.array_equal(values(found), values(slow))


def test_kept_memory_is_written():
    plan, inputs = plan_of(lambda a: a.exp(), VALUES)
    (own,) = plan.native.launch(list(inputs), (), "", None)
    (found,) = plan.native.launch(list(inputs), (), "", [own])
    assert found is own


def test_memory_and_references_stay_flat():
    plan, inputs = plan_of(lambda a, b: a + b, VALUES, VALUES)
    run = lambda: plan.native.launch(inputs, (), "", None)  # noqa: E731
    run()
    gc.collect()
    objects = (None, Buffer, inputs[0], pool(), plan.plan.slots[-1].dtype, True, False, 0)
    before = [sys.getrefcount(each) for each in objects], pool().stats()
    for _ in range(100_000):
        run()
    after = [sys.getrefcount(each) for each in objects], pool().stats()
    assert max(abs(a - b) for a, b in zip(before[0], after[0], strict=True)) < 10
    assert after[1].pop("allocations") == before[1].pop("allocations") + 100_000
    assert after[1] == before[1]


def test_the_pool_counts_as_in_python():
    plan, inputs = plan_of(lambda a, b: a + b, VALUES, VALUES)
    stats = pool().stats()
    (found,) = plan.native.launch(inputs, (), "", None)
    assert pool().stats()["in_use"] == stats["in_use"] + 512
    del found
    assert pool().stats()["in_use"] == stats["in_use"]


def test_an_arena_takes_a_larger_block_where_blocks_are_large(monkeypatch):
    """As in Python: another plan of about that size has left one."""
    monkeypatch.setattr(memory, "LARGE", 1 << 16)
    tall = np.ones((200, 2), np.float32)
    plan, inputs = plan_of(lambda a, b: (a @ b) @ a, tall, tall.T)
    (size,) = map(memory.size_class, plan.plan.arenas.values())
    near = [*memory.near_sizes(size)]
    assert near[0] == size > memory.LARGE and len(near) > 2
    assert memory.size_class(near[-1] + 1) > size + size // 8
    blocks = pool().free[near[2]]
    blocks.append(pool().reserve(near[2]))
    pool().reserved += near[2]
    before, spared = list(blocks), {each: pool().free[each][:] for each in near[:2]}
    for each in near[:2]:
        pool().free[each].clear()
    (found,) = plan.native.launch(list(inputs), (), "", None)
    for each in near[:2]:
        pool().free[each] += spared[each]
    assert set(values(found)) == {400.0}
    assert blocks == before


@pytest.mark.parametrize("reason", ["running", "inside", "debug", "profile", "memory", "no block"])
def test_the_unusual_is_left_to_python(reason, monkeypatch):
    plan, inputs = plan_of(lambda a, b: a + b, VALUES, VALUES)
    runner = get_device("cpu").runner
    if reason == "running":
        monkeypatch.setattr(runner, "running", object())
    if reason == "inside":
        monkeypatch.setattr(runner, "is_inside", True)
    if reason == "debug":
        monkeypatch.setitem(vars(picograd.config), "debug", 2)
    if reason == "profile":
        PROFILES.append(object())
    if reason == "memory":
        WATCHERS.append(lambda device, size: None)
    blocks, held = pool().free[512], []
    if reason == "no block":
        held, blocks[:] = list(blocks), []
    stats = pool().stats()
    try:
        assert plan.native.launch(inputs, (), "", None) is None
        assert pool().stats() == stats
    finally:
        blocks.extend(held)
        PROFILES[:] = []
        WATCHERS[:] = []
        monkeypatch.undo()
    assert plan.native.launch(inputs, (), "", None) is not None


@pytest.mark.parametrize(
    "given",
    [
        ((), (), "", None),
        ([], (), "", None),
        ([1, 2], (), "", None),
        ([None, None], (), "", None),
        (None, None, None, None),
        ("ab", (), "", None),
    ],
)
def test_other_arguments_are_left_to_python(given):
    plan, _ = plan_of(lambda a, b: a + b, VALUES, VALUES)
    assert plan.native.launch(*given) is None


@pytest.mark.parametrize("count", [0, 3, 5])
def test_another_number_of_arguments_is_a_type_error(count):
    plan, _ = plan_of(lambda a, b: a + b, VALUES, VALUES)
    with pytest.raises(TypeError, match="launch takes inputs"):
        plan.native.launch(*[None] * count)


def test_a_buffer_without_an_address_is_left_to_python():
    plan, inputs = plan_of(lambda a, b: a + b, VALUES, VALUES)
    broken = Buffer("cpu", inputs[0].dtype, 6, "no number")
    assert plan.native.launch([broken, inputs[0]], (), "", None) is None
    assert plan.native.launch([object.__new__(Buffer), inputs[0]], (), "", None) is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("filled", [(), ("pool",), ("pool", "size"), ("address", "size")])
def test_memory_that_was_half_made_ends(filled):
    plan_of(lambda a, b: a + b, VALUES, VALUES)
    for _ in range(3):  # as where a handler of a signal raises in `__init__`
        half = object.__new__(Allocation)
        for name in filled:
            setattr(half, name, pool() if name == "pool" else 512)
        del half


def test_threads_run_the_same_plan():
    plan, _ = plan_of(lambda a, b: a * b, VALUES, VALUES)
    errors = []

    def work(number):
        own = Tensor(VALUES + number)
        held = [own._node.arg.buffer] * 2
        for _ in range(3000):
            found = plan.native.launch(held, (), "", None)
            if found is not None and not np.array_equal(
                values(found[0]), (VALUES + number).ravel() ** 2
            ):
                errors.append(number)

    run_in_threads(work, 4)
    assert not errors


def test_long_plans_have_none():
    PLANS.clear()
    a = Tensor(np.ones((256, 256), np.float32))
    (a @ a).realize()
    (plan,) = PLANS.plans.values()
    assert native_calls.plan_table(plan) is None
