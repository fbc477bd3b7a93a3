"""What waits for kernels that are being compiled: in order, once, and also after an interrupt."""

import ctypes
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import picograd
from picograd import nn
from picograd.code import Code, Workspace
from picograd.dtype import float32
from picograd.engine import backends, compile
from picograd.engine.plan_cache import PLANS
from picograd.runtime.backlog import Backlog
from picograd.runtime.cuda import CudaDevice
from picograd.runtime.device import Executable
from picograd.runtime.driver import Driver, has_driver


@pytest.fixture
def runner():
    return SimpleNamespace(running=None)


def test_work_waits_in_order_and_what_fails_stays(runner):
    backlog, done, problems = Backlog(runner), [], [KeyboardInterrupt()]
    assert not backlog.takes(done.append, 0)  # nothing to wait for

    def load():
        assert not backlog.takes(done.append, 0)  # what is part of it runs at once
        backlog.finish()
        if problems:
            raise problems.pop()
        done.append("load")

    backlog.add(load)
    assert backlog.takes(done.append, 1) and backlog.takes(done.append, 2)
    with pytest.raises(KeyboardInterrupt):
        backlog.finish()
    assert done == [] and runner.running is backlog and len(backlog.waiting) == 3
    backlog.finish()
    assert done == ["load", 1, 2] and runner.running is None and not backlog.waiting


def test_no_more_waits_behind_an_error(runner):
    backlog = Backlog(runner)
    with pytest.raises(ZeroDivisionError), backlog.opened():
        assert backlog.is_open
        raise ZeroDivisionError
    assert not backlog.is_open


class Compiled:
    """This class is a batch that is compiled when it is asked for; the first may be interrupted."""

    def __init__(self, log, interrupts):
        self.log, self.interrupts = log, interrupts

    def compile_many(self, codes):
        listed = list(codes)
        self.log.append("begin")
        return self.results(len(listed))

    def results(self, count):
        for number in range(count):
            if self.interrupts:
                raise self.interrupts.pop()
            yield number, b"binary"


@pytest.fixture
def module(fake_driver):
    if has_driver():
        pytest.skip("there is a driver")
    made = fake_driver()

    class Kernels(dict):
        """Every kernel does nothing, and is noted."""

        def __contains__(self, name):
            return True

        def __getitem__(self, name):
            return lambda *_: None

    made.kernels = Kernels()
    return made


@pytest.fixture
def on_double(module, monkeypatch, tmp_path):
    device = CudaDevice(Driver(module), 0, lambda: "none")
    monkeypatch.setitem(backends.OPEN, "cuda:0", device)
    monkeypatch.setattr(compile, "LOADED", type(compile.LOADED)())
    PLANS.clear()
    with picograd.config.override(dynamic=0, cache=str(tmp_path)):
        yield device
    PLANS.clear()


def first_step(width):
    layer = nn.Linear(width, 5, device="cuda")
    optimizer = nn.optim.Adam(layer.parameters())
    x = picograd.Tensor(np.ones((2, width), np.float32), device="cuda")
    layer(x).sum().backward()
    return layer, optimizer


@pytest.mark.parametrize("interrupts", [0, 1])
def test_a_first_step_is_planned_while_first_values_compile(
    on_double, module, monkeypatch, interrupts
):
    """Both are compiling before the first module is loaded; launches keep their order."""
    log = module.log
    compiled = Compiled(log, [KeyboardInterrupt()] * interrupts)
    monkeypatch.setattr(on_double, "compile_many", compiled.compile_many)
    layer, optimizer = first_step(7)
    del log[:]
    if interrupts:
        with pytest.raises(KeyboardInterrupt):
            optimizer.step()
        assert on_double.backlog.waiting and layer.weight.numpy().shape == (5, 7)
        assert not on_double.backlog.waiting
        del log[:]
    optimizer.step()
    kinds = [each if isinstance(each, str) else "launch" for each in log]
    if not interrupts:
        assert kinds[:3] == ["begin", "begin", "load"] and "launch" not in kinds[:3]
        assert kinds[3] == "launch", "first values are computed before anything of the step"
    assert kinds.count("launch") >= 1 and on_double.launcher.running is None
    assert not on_double.backlog.waiting


def test_reading_waits_for_first_values(on_double, module, monkeypatch):
    """Whoever asks for memory between the two plans gets what was computed by then."""
    compiled = Compiled(module.log, [])
    monkeypatch.setattr(on_double, "compile_many", compiled.compile_many)
    layer, optimizer = first_step(9)
    optimizer._store_parameters()
    assert len(on_double.backlog.waiting) >= 2
    del module.log[:]
    layer.weight.numpy()
    assert module.log and not on_double.backlog.waiting


def test_what_is_written_waits_behind_launches(on_double):
    """Memory that is filled or copied may be what a launch that waits used before."""
    buffers = [on_double.new_buffer(float32, 4) for _ in range(3)]
    ones = np.ones(4, np.float32)
    on_double.copy_in(buffers[2], 7 * ones)
    done = []
    on_double.backlog.add(lambda: done.append([array_of(each)[0] for each in buffers]))
    on_double.copy_in(buffers[0], ones)
    on_double.fill(buffers[1], np.array([3.0], np.float32))
    on_double.copy(buffers[2], buffers[0])
    ones[:] = 5.0  # what was given is what is copied
    before = [array_of(each)[0] for each in buffers]
    found = [on_double.copy_out(each).view(np.float32).tolist() for each in buffers]
    assert done == [before] and before == [0.0, 0.0, 7.0]
    assert found == [[1.0] * 4, [3.0] * 4, [1.0] * 4]


def test_kernels_with_workspaces_do_not_wait(on_double, monkeypatch):
    """Theirs are found when they are loaded: in memory that a launch which waits might use."""
    late, load = [], on_double.load

    def noted(code, binary):
        late.append(bool(code.workspaces) and on_double.backlog.is_working)
        return load(code, binary)

    monkeypatch.setattr(on_double, "load", noted)
    x = picograd.Tensor(np.ones((4, 1 << 20), np.float32), device="cuda").realize()
    with on_double.backlog.opened():
        (x + 1).realize()
        assert on_double.backlog.waiting and not late
        x.sum().realize()
        assert any(kernel.code.workspaces for kernel in compile.LOADED.values())
    assert not any(late)


@pytest.mark.parametrize("has_workspaces", [False, True])
def test_launches_with_workspaces_do_not_wait(on_double, monkeypatch, has_workspaces):
    workspaces = (Workspace(8),) if has_workspaces else ()
    executable = Executable(replace(Code("a", "cuda", "a", "", 1), workspaces=workspaces), None)
    tape = SimpleNamespace(state=None, launches=[SimpleNamespace(executable=executable)])
    done, state = [], SimpleNamespace(fill=lambda *_: None)
    monkeypatch.setattr(on_double, "state_of", lambda tape: on_double.activate() or state)
    monkeypatch.setattr(on_double, "run", lambda state: done.append("launch"))
    with on_double.backlog.opened():
        on_double.backlog.add(lambda: done.append("load"))
        on_double.run_tape(tape, [], [])
    assert done == (["load", "launch"] if has_workspaces else [])


def array_of(buffer):
    memory = (ctypes.c_char * buffer.nbytes).from_address(buffer.address)
    return np.frombuffer(memory, np.float32)


def test_kernels_that_were_loaded_before_an_interrupt_are_not_compiled_again(on_double):
    codes = [Code(name, "cuda", name, "", 1) for name in "ab"]
    missing = [Executable(code, None) for code in codes]
    asked = []

    def interrupted():
        yield 0, b"a"
        raise KeyboardInterrupt

    def compile_many(left):
        asked.append(list(left))
        return iter([(0, b"b")])

    on_double.compile_many = compile_many
    begun = [interrupted()]
    with pytest.raises(KeyboardInterrupt):
        compile.load_compiled(missing, begun, on_double, list)
    assert [each.function for each in missing] == ["a", None] and not asked
    compile.load_compiled(missing, begun, on_double, list)
    assert [each.function for each in missing] == ["a", "b"] and asked == [[codes[1]]]
