"""The cache of plans: bounded by bytes; what falls out is unloaded, and made again when needed."""

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from debug_tools import fresh_engine
from thread_support import run_in_threads

import picograd
from picograd import Tensor
from picograd.config import config
from picograd.engine import cache, compile, realize


@pytest.fixture
def tiny() -> Iterator[None]:
    """Room for the newest plan alone."""
    with fresh_engine(cache="", plans_size=0):
        yield


def power(x: Tensor, count: int) -> Tensor:
    """Another program for every count."""
    for _ in range(count):
        x = x * x
    return x.sum()


def test_the_plan_used_longest_ago_goes_first() -> None:
    with fresh_engine(cache="", plans_size=0):
        for size in (1, 2, 3, 4):
            assert (Tensor(np.ones(size, np.float32), device="cpu") + 1).tolist() == [2.0] * size
            assert len(realize.PLANS) == 1 and realize.PLANS.bytes > 0
        realize.PLANS.clear()
        assert realize.PLANS.bytes == 0
    with fresh_engine(cache="", plans_size=512, dynamic=0):
        for size in (1, 2, 1, 3):
            (Tensor(np.ones(size, np.float32), device="cpu") + 1).realize()
        one, two, three = realize.PLANS.plans.values()
        assert [each.plan.slots[0].size for each in (one, two, three)] == [2, 1, 3]


def test_what_falls_out_is_unloaded(tiny: None, device: str) -> None:
    x = Tensor(np.full(3, 1.0, np.float32), device=device)
    for count in range(1, 6):
        assert power(x, count).item() == 3.0
    assert realize.PLANS.stats().plans == 1
    assert len(compile.LOADED) == realize.PLANS.stats().kernels
    dropped = weakref.ref(next(iter(realize.PLANS.plans.values())).executables[0])
    assert power(x, 1).item() == 3.0  # one that fell out is made again
    assert dropped() is None


def test_a_kernel_of_two_plans_is_counted_once() -> None:
    with fresh_engine(cache=""):
        x, y = Tensor(np.ones(4), device="cpu"), Tensor(np.ones(4), device="cpu")
        (x + y).realize()
        (x + y).reshape(2, 2).realize()
        stats = realize.PLANS.stats()
        (kernel,) = compile.LOADED.values()
        own = sum(plan.nbytes for plan in realize.PLANS.plans.values())
        assert (stats.plans, stats.kernels, stats.bytes) == (2, 1, own + kernel.nbytes)
        del kernel
        for key in realize.PLANS:
            realize.PLANS.drop(key)
        assert realize.PLANS.bytes == 0 and not realize.PLANS.users and not len(compile.LOADED)


def test_a_kernel_that_grew_leaves_no_bytes_behind() -> None:
    """Of one that is compiled behind a plan the code is there later, and so is better code."""
    with fresh_engine(cache=""):
        (Tensor(np.ones(4, np.float32), device="cpu") + 1).realize()
        (kernel,) = compile.LOADED.values()
        kernel.nbytes += 1000
        realize.PLANS.clear()
        assert realize.PLANS.bytes == 0


def test_a_plan_that_runs_is_not_unloaded(tiny: None, device: str) -> None:
    wrong: list[float] = []

    def work(number: int) -> None:
        x = Tensor(np.full(8, 1.0, np.float32), device=device)
        wrong.extend(f for c in range(12) if (f := power(x, 1 + (c + number) % 5).item()) != 8.0)

    run_in_threads(work, 4)
    assert not wrong


def test_plans_made_again_are_told_once(tiny: None, capsys: pytest.CaptureFixture[str]) -> None:
    x = Tensor([1.0], device="cpu")
    for count in range(24):
        power(x, 1 + count % 2).item()
    assert capsys.readouterr().err.count("PICOGRAD_PLANS_SIZE") == 1


def test_a_trace_whose_plan_fell_out_is_made_again(tiny: None, device: str) -> None:
    @picograd.jit
    def double(x: Tensor) -> Tensor:
        return x * 2 + Tensor(np.arange(x.shape[0], dtype=np.float32), device=device)

    small, large = Tensor([1.0], device=device), Tensor([1.0, 2.0], device=device)
    assert double(small).tolist() == double(small).tolist() == [2.0]
    assert double.count == 1
    memory = weakref.ref(next(b for (c,) in double.captures.values() for b in c.inputs if b))
    assert double(large).tolist() == [2.0, 5.0]
    gc.collect()
    assert memory() is None  # what only the trace had goes with the plan
    assert double(small).tolist() == [2.0] and double.count == 3
    assert double(small).tolist() == [2.0] and double.count == 3


def test_traces_of_many_signatures_are_bounded_by_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    with fresh_engine(cache="", plans_size=1):
        double = picograd.jit(lambda x: x * 2, dynamic=False)
        for size in range(1, 65):
            assert double(Tensor(np.ones(size, np.float32), device="cpu")).sum().item() == 2 * size
        assert realize.PLANS.bytes <= 1 << 20
    told = capsys.readouterr().err
    assert "was traced 8 times" in told and "was traced 64 times" in told
    assert "because axis 0 of argument x (from 7 to 8) changed" in told


def test_entries_held_in_memory_are_bounded(tmp_path: object) -> None:
    kept = cache.DiskCache(str(tmp_path), 1 << 30)
    kept.is_private = False
    with config.override(plans_size=1):
        for number in range(5):
            kept.put(str(number), bytes(300 << 10))
        assert list(kept.memory) == ["2", "3", "4"] and kept.held == 3 * (300 << 10)
        assert kept.get("4") is not None and kept.get("0") is None


PROGRAMS = """
import gc, sys
import numpy as np
import picograd
from picograd import Tensor
from picograd.engine.native_calls import CALLS
from picograd.engine.realize import PLANS

picograd.config.threads, picograd.config.plans_size = 1, 2
picograd.config.cache = sys.argv[2]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / (1 << 20)


def run(number):
    x = Tensor(np.full((1 + number % 61, 1 + number // 61), 1.0, np.float32))
    assert (x.T + x.sum()).mean().item() == 1 + x.numel(), number


count = int(sys.argv[1])
for number in range(count):
    run(number)
    if number == count // 3:
        CALLS.wait()  # machine code that comes beside the program takes memory once
        run(number)
        gc.collect()
        early = resident()
gc.collect()
run(0)
print(PLANS.stats(), round(early, 1), round(resident(), 1))
assert PLANS.stats().bytes <= 2 << 20 and resident() - early < 8, resident() - early
"""


def test_memory_is_flat_over_many_programs(tmp_path: object) -> None:
    command = [sys.executable, "-c", PROGRAMS, "90", str(tmp_path)]
    on_cpu = {**os.environ, "PICOGRAD_DEVICE": "cpu"}  # a GPU's driver takes memory too
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=on_cpu)
    assert done.returncode == 0, done.stdout + done.stderr
