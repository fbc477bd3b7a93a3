"""Functions that Python calls: compiled once, for this process; Python does the work without."""

import os
import subprocess
import sys

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine import native_calls, pending
from picograd.engine.native_calls import CALLS, NATIVE_AFTER, NativeCalls
from picograd.engine.plan_cache import PLANS
from picograd.errors import InternalError
from picograd.runtime.python_layout import is_possible

pytestmark = pytest.mark.usefixtures("cpu_by_default")


@pytest.fixture(autouse=True)
def _each_size_has_a_plan():
    with picograd.config.override(dynamic=0):
        yield


def test_another_interpreter_has_none(monkeypatch):
    monkeypatch.setattr(native_calls, "is_possible", lambda: False)
    assert NativeCalls().find("picograd_launch") is None


def test_what_no_one_wrote_is_not_found():
    assert CALLS.find("picograd_other") is None


@pytest.mark.skipif(not is_possible(), reason="another interpreter")
def test_a_plan_gets_one_when_it_has_run_often():
    pending.realize_all()
    PLANS.clear()
    a = Tensor(np.ones((2, 5), np.float32))
    (a + a).realize()
    (plan,) = PLANS.plans.values()
    assert not plan.native.address
    for _ in range(2 * NATIVE_AFTER):
        (a + a).realize()
    assert plan.native.address
    assert (a + a).tolist() == [[2.0] * 5] * 2


@pytest.mark.skipif(not is_possible(), reason="another interpreter")
def test_a_switch_turns_it_off(monkeypatch):
    a, step = Tensor(np.ones((4, 5), np.float32)), picograd.jit(lambda a: a * 5.0)
    for _ in range(3 * NATIVE_AFTER):
        step(a)
        (a + a).realize()
    with picograd.config.override(native=0):
        assert CALLS.find("picograd_small") is None
        assert step.closure.native is None or step.closure.native(a) is None
        assert native_calls.CODED.compute([(a + a)._node], "") is None
        assert step(a).tolist() == [[5.0] * 5] * 4
        assert (a + a).realize().tolist() == [[2.0] * 5] * 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sys.implementation.name", "pypy"),
        ("sys.version_info", (3, 99, 0)),
        ("sys.platform", "win32"),
    ],
)
def test_unknown_interpreters_run_python(monkeypatch, name, value):
    monkeypatch.setattr(name, value)
    assert not is_possible()
    assert NativeCalls().find("picograd_small") is None


@pytest.mark.skipif(not is_possible(), reason="another interpreter")
def test_a_plan_that_falls_out_goes():
    PLANS.clear()
    a = Tensor(np.ones((3, 5), np.float32))
    step = picograd.jit(lambda a: a * 3.0)
    for _ in range(3 * NATIVE_AFTER):
        step(a)
    PLANS.clear()
    assert step(a).tolist() == [[3.0] * 5] * 3


PROGRAM = """
import os, sys, numpy as np, picograd
a = picograd.tensor(np.ones((2, 2), np.float32))
step = picograd.jit(lambda a, b: a + b)
def work():
    for _ in range(60):
        found = step(a, a), (a + a).realize()
    return found[0].tolist() == found[1].tolist() == [[2.0, 2.0], [2.0, 2.0]]
assert work()
child = os.fork()
if not child:
    os._exit(0 if work() and work() else 1)
assert os.waitpid(child, 0)[1] == 0
kept = work(), step(a, a), (a @ a).realize()
sys.exit(0)  # what is alive ends after the modules
"""


@pytest.mark.parametrize(("threads", "native"), [("1", "1"), ("2", "1"), ("1", "0")])
def test_forks_and_the_end_of_the_interpreter(threads, native):
    settings = {"PICOGRAD_THREADS": threads, "PICOGRAD_NATIVE": native, "PICOGRAD_DEVICE": "cpu"}
    variables = {**os.environ, **settings, "DEBUG": ""}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=variables, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""


@pytest.mark.skipif(not is_possible(), reason="another interpreter")
def test_machine_code_begins_after_some_computations_of_whatever_plans() -> None:
    coded = native_calls.Coded()
    for _ in range(coded.patience):
        assert coded.compute is None and coded.wrap is None
        coded.count_computation()
    assert None not in (coded.compute, coded.wrap, coded.stamp)
    first = coded.compute
    coded.count_computation()
    assert coded.compute is first


@pytest.mark.skipif(not is_possible(), reason="another interpreter")
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_unsigned_numbers_are_words(dtype):
    """Numbers of fewer than 64 bits fit a signed word, those that wrap around too."""
    PLANS.clear()
    x = Tensor(np.array([0, 5, 200], dtype))
    most = int(np.iinfo(dtype).max)
    for number in (3, most, most - 7) * NATIVE_AFTER:
        found = (x + number).numpy()
        np.testing.assert_array_equal(found, x.numpy() + np.array(number, dtype))
    assert any(plan.native.address for plan in PLANS.plans.values())


COLD = """
import os, sys, time, numpy as np, picograd
from picograd.engine.native_calls import CALLS, CODED
a = picograd.tensor(np.ones((2, 2), np.float32), requires_grad=True)
step = picograd.jit(lambda a: a + 1)
rate = picograd.tensor(np.ones((2, 2), np.float32))

def work():
    found = []
    for _ in range(60):
        a.grad = None
        (a * rate).exp().sum().backward()
        found.append((step(rate).sum() + a.grad.sum()).item())
    return found

was = work()
assert CALLS.is_coming and CALLS.find("picograd_launch") is None and CODED.compute is None
child = os.fork()  # which waits
if not child:
    os._exit(0 if work() == was and not CALLS.is_coming and step.closure.native else 1)
assert os.waitpid(child, 0)[1] == 0
assert work() == was == work() and not CALLS.is_coming
assert step.closure.native is not None and CODED.compute is not None and CALLS.kernels
"""


@pytest.mark.skipif(not is_possible(), reason="another interpreter")
def test_a_program_goes_on_while_functions_are_compiled(tmp_path):
    variables = {**os.environ, "PICOGRAD_CACHE": str(tmp_path), "PICOGRAD_DEVICE": "cpu"}
    slow = "import time; from picograd.engine import native_calls as calls; made = calls.source\n"
    slow += "calls.source = lambda found: time.sleep(3) or made(found)\n"
    ran = subprocess.run(
        [sys.executable, "-c", slow + COLD], env={**variables, "DEBUG": ""}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""


def test_an_error_of_a_compilation_is_raised_where_it_is_asked_for(monkeypatch):
    for starts in True, False:
        monkeypatch.setattr(
            native_calls, "has_started", lambda thread, starts=starts: starts and not thread.start()
        )
        calls = NativeCalls()
        calls.compilation = native_calls.Compilation(lambda: 1 // 0)
        calls.wait()
        with pytest.raises(ZeroDivisionError):
            calls.find("picograd_launch")
        assert calls.find("picograd_launch") is None and not calls.is_coming


SHARED = """
import os, threading, numpy as np, picograd
from picograd.engine.native_calls import CALLS
CALLS.find("picograd_launch")
CALLS.wait()
a = picograd.tensor(np.random.default_rng(0).normal(0, 1, (64, 64)).astype(np.float32))
small = picograd.tensor(np.ones(1000, np.float32))  # another size: two parts, and tasks
step = picograd.jit(lambda a: (a.tanh().exp(), small.sin() + a[0, 0]))
wanted, wrong = [each.tolist() for each in step(a)], []

def work():
    for _ in range(300):
        if [each.tolist() for each in step(a)] != wanted:
            wrong.append(1)

work()
plan = step.closure.capture.find_plan()
assert plan.stretch.tape.state.is_parallel and plan.native.address and step.closure.native(a)
threads = [threading.Thread(target=work) for _ in range(3)]
for each in threads:
    each.start()
for each in threads:
    each.join()
assert not wrong
child = os.fork()
if not child:
    work()
    os._exit(0 if not wrong and step.closure.native(a) else 1)
assert os.waitpid(child, 0)[1] == 0
work()
assert not wrong
"""


@pytest.mark.skipif(not is_possible(), reason="another interpreter")
def test_small_kernels_on_several_threads_are_run_by_machine_code():
    settings = {"PICOGRAD_THREADS": "2", "PICOGRAD_DEVICE": "cpu", "DEBUG": ""}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SHARED],
        env={**os.environ, **settings}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""


def test_a_name_stands_for_one_thing():
    known = {"LIMIT": 8, "open": (opened := []), "name": "cpu"}
    native_calls.add_names(known, {"LIMIT": 8, "open": opened, "name": "cpu", "more": 1})
    assert known["more"] == 1
    for name, other in (("LIMIT", 16), ("LIMIT", True), ("open", []), ("name", "cuda")):
        with pytest.raises(InternalError, match=f"knows {name} as something else"):
            native_calls.add_names(known, {name: other})
