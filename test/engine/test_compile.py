"""Kernels are generated and compiled once; failures leave everything usable; the progress bar."""

import io

import numpy as np
import pytest
from debug_tools import fresh_engine, small_network

from picograd import Tensor
from picograd.engine import cache, compile
from picograd.engine.backends import get_device
from picograd.engine.realize import make_plan
from picograd.errors import CompileError, PicogradError


class Terminal(io.StringIO):
    def isatty(self):
        return True


def counted(monkeypatch):
    """Count the kernels that code generation is asked for."""
    made = []
    real = compile.generate

    def generate(kernel, target, trace=None, is_verified=False):
        made.append(kernel.name)
        return real(kernel, target, trace)

    monkeypatch.setattr(compile, "generate", generate)
    return made


def test_equal_kernels_are_generated_once(monkeypatch):
    made = counted(monkeypatch)
    with fresh_engine(cache=""):
        x = Tensor(np.ones((16, 16), np.float32), device="cpu")
        y = Tensor(np.ones((16, 16), np.float32), device="cpu")
        for _ in range(5):
            y = y @ x
        y.realize()
        assert len(made) == 1
        (Tensor(np.ones((16, 16), np.float32), device="cpu") @ x).realize()
        assert len(made) == 1


def test_what_compiles_longest_is_generated_first(monkeypatch):
    made = []
    real = compile.generate
    monkeypatch.setattr(compile, "generate", lambda k, *rest: made.append(k) or real(k, *rest))
    with fresh_engine(cache=""):
        x = Tensor(np.ones((16, 16), np.float32), device="cpu")
        y = (x + 1).cumsum(0) * 2
        y.realize(((y @ x).exp() + 1) @ x, x.sort(0).values)
    sizes = [compile.size_of_code(kernel) for kernel in made]
    assert len(sizes) > 2 and sizes == sorted(sizes, reverse=True)
    heroes = [kernel.hero == "contract" for kernel in made]
    assert heroes == sorted(heroes, reverse=True) and 0 < sum(heroes) < len(heroes)


def test_executables_follow_the_kernels_order():
    with fresh_engine(cache=""):
        kernels = make_plan([small_network("cpu").node]).kernels
        loaded = compile.executables([*kernels, kernels[0]], get_device("cpu"))
    assert [e.code.name for e in loaded[:2]] == [kernel.name for kernel in kernels]
    assert loaded[0] is loaded[2]


def test_second_process_finds_kernels_on_disk(tmp_path, monkeypatch):
    """Stands for one: the memory of this process is emptied."""
    compiled = []
    device = get_device("cpu")
    real = device.machine.start
    note = lambda code: compiled.append(code.name) or real(code)  # noqa: E731
    monkeypatch.setattr(device.machine, "start", note)
    results = []
    for _ in range(2):
        with fresh_engine(cache=str(tmp_path)):
            results.append(small_network("cpu").numpy())
        compiled.append("---")
    assert compiled.index("---") == 2 and len(compiled) == 4, "compiled again"
    assert (results[0] == results[1]).all()


def test_progress_bar_only_on_a_terminal_and_only_when_slow(monkeypatch):
    shown = {}
    for is_terminal in (False, True):
        for delay in (0.0, 60.0):
            stream = Terminal() if is_terminal else io.StringIO()
            monkeypatch.setattr(compile.sys, "stderr", stream)
            monkeypatch.setattr(compile, "PROGRESS_AFTER", delay)
            with fresh_engine(cache=""):
                small_network("cpu").realize()
            shown[is_terminal, delay] = stream.getvalue()
    assert "compiling kernels" in shown[True, 0.0]
    assert not shown[False, 0.0] and not shown[False, 60.0]
    assert "compiling" not in shown[True, 60.0]


def fail_generate(monkeypatch):
    def generate(kernel, target, trace=None, is_verified=False):
        raise CompileError("generate", f"no template for {kernel.name}", "report this kernel")

    monkeypatch.setattr(compile, "generate", generate)


def fail_source(monkeypatch):
    """The kernel's text is not LLVM IR: the compiler itself rejects it."""
    real = compile.generate

    def generate(kernel, target, trace=None, is_verified=False):
        code = real(kernel, target, trace)
        object.__setattr__(code, "source", code.source.replace("define", "defone"))
        return code

    monkeypatch.setattr(compile, "generate", generate)


@pytest.mark.parametrize("fail", [fail_generate, fail_source])
@pytest.mark.parametrize("level", [0, 4])
def test_a_failing_kernel_leaves_everything_usable(fail, level, capsys):
    other = Tensor([1.0, 2.0], device="cpu") + 1.0
    with fresh_engine(cache="", debug=level):
        x = Tensor(np.ones((3, 4), np.float32), device="cpu")
        failing = (x * 3).sum(1)
        with pytest.MonkeyPatch.context() as patch:
            fail(patch)
            with pytest.raises(CompileError):
                failing.numpy()
            with pytest.raises(CompileError):
                failing.numpy()  # and again, with the same error
        assert failing.tolist() == [12.0, 12.0, 12.0]  # the graph is still there
        assert other.tolist() == [2.0, 3.0]
        assert x.tolist() == [[1.0] * 4] * 3
    capsys.readouterr()


def test_a_failing_compiler_stores_nothing(tmp_path, monkeypatch):
    with fresh_engine(cache=str(tmp_path)), pytest.MonkeyPatch.context() as patch:
        fail_source(patch)
        with pytest.raises(PicogradError, match="does not compile"):
            small_network("cpu").numpy()
        found = cache.disk_cache()
        assert found is not None and not found.entries()
        assert not compile.LOADED


@pytest.mark.parametrize("payload", [b"", b"garbage", b"\x7fELF" + bytes(200)])
def test_a_damaged_object_with_a_right_checksum_is_compiled_again(payload, tmp_path):
    for _ in range(3):  # made; found damaged; found
        with fresh_engine(cache=str(tmp_path)):
            kernels = make_plan([small_network("cpu").node]).kernels
            loaded = compile.executables(kernels, get_device("cpu"))
            assert len(loaded) == len(kernels)
            store = cache.disk_cache()
            for path in (tmp_path / "kernels").iterdir():
                if not store.get(path.stem).startswith(b"{"):
                    store.put(path.stem, payload)
