import ctypes
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import picograd
from picograd import errors
from picograd.code import ALL, FEW, MIDDLE, Code
from picograd.runtime import llvm
from picograd.runtime.compiler import Compiler
from picograd.runtime.llvm import ONE_BY_ONE, compiler_version, host, host_of
from picograd.runtime.native import runner_source
from picograd.runtime.workers import SYMBOLS, runner


@pytest.fixture(scope="module")
def compiler():
    return Compiler(host())


def test_kernels_with_one_name_do_not_mix(compiler):
    addresses = set()
    for value in (1, 2):
        source = f"define i32 @f() {{\n  ret i32 {value}\n}}\n"
        library = compiler.load(compiler.compile(Code("f", "llvm", "f", source, 1)), ("f",))
        addresses.add(library["f"])
    assert len(addresses) == 2


def test_threads_compile_at_the_same_time(compiler):
    def build(number):
        source = f"define i32 @f() {{\n  ret i32 {number}\n}}\n"
        library = compiler.load(compiler.compile(Code("f", "llvm", "f", source, 1)), ("f",))
        return ctypes.CFUNCTYPE(ctypes.c_int32)(library["f"])()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(build, range(100))) == list(range(100))


def test_threads_that_load_the_chain_at_the_same_time_each_keep_theirs(compiler):
    source = "define i32 @f() {\n  ret i32 7\n}\n"
    code, gate = Code("f", "llvm", "f", source, 1), Barrier(8)

    def build(_):
        gate.wait()
        found = compiler.compile(code)
        gate.wait()
        return compiler.compile(code) == found

    for _ in range(10):
        llvm.chain_on.cache_clear()
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(build, range(8)))


def test_assembly_is_text(compiler):
    code = Code("f", "llvm", "f", "define void @f() {\n  ret void\n}", 1)
    assert "f:" in compiler.start(code).assembly()


def test_objects_are_reproducible(compiler):
    code = runner(runner_source())
    assert compiler.compile(code) == compiler.compile(code)
    assert compiler.load(compiler.compile(code), SYMBOLS).names.keys() >= set(SYMBOLS)
    assert "LLVM" in compiler_version() and "@picograd_run" in code.source


def used_memory():
    """Bytes the C library has handed out in this process."""

    class Info(ctypes.Structure):
        names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
        _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

    look = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if look is None:
        pytest.skip("the C library does not tell")
    look.restype = Info
    found = look()
    return found.uordblks + found.hblkhd


def growth(run, count):
    """Bytes that stay behind, for each run."""
    for _ in range(70):  # past the first linker
        run()
    before = used_memory()
    for _ in range(count):
        run()
    return (used_memory() - before) / count


def test_compiling_leaves_nothing_behind(compiler):
    code = Code("f", "llvm", "f", "define void @f() {\n  ret void\n}\n", 1)
    assert growth(lambda: compiler.compile(code), 50) < 8 << 10  # 40 KB where managers stay


@pytest.mark.parametrize("is_image", [True, False])
def test_a_library_that_is_dropped_is_unloaded(is_image, compiler, monkeypatch):
    if not is_image:
        monkeypatch.setattr(llvm, "image_of", bytes)
    binary = compiler.compile(Code("f", "llvm", "f", "define void @f() {\n  ret void\n}\n", 1))
    assert growth(lambda: compiler.load(binary, ("f",)), 640) < 2 << 10  # 8 KB with one linker


def test_a_library_outlives_its_linker(monkeypatch):
    """Where objects are not laid out for memory."""
    monkeypatch.setattr(llvm, "image_of", bytes)
    compiler = Compiler(host())
    source = "define i32 @f() {\n  ret i32 7\n}\n"
    binary = compiler.compile(Code("f", "llvm", "f", source, 1))
    first = compiler.load(binary, ("f",))
    jit = compiler.linker.jit
    others = [compiler.load(binary, ("f",)) for _ in range(150)]
    assert compiler.linker.jit is not jit
    del compiler, jit, others
    assert ctypes.CFUNCTYPE(ctypes.c_int32)(first["f"])() == 7


def test_elements_that_lie_apart_are_read_one_by_one_where_that_is_faster() -> None:
    assert host_of("znver5", "+avx2").features == f"+avx2,{ONE_BY_ONE}"
    assert host_of("sapphirerapids", "+avx2").features == "+avx2"


ABANDONED = """
import gc
from picograd import errors
from picograd.code import Code
from picograd.runtime.compiler import Compiler
from picograd.runtime.llvm import host
compiler = Compiler(host())
gc.disable()
for number in range(20):
    source = f"define i32 @f{number}() {{ ret i32 {number} }}"
    job = compiler.start(Code("f", "llvm", "f", source, 1))
    job.run()
    job.itself = job
del job
gc.collect()
"""


def test_jobs_that_are_never_finished_may_be_collected():
    """An exception in the middle, as Ctrl-C raises, leaves a job in a cycle of references."""
    done = subprocess.run([sys.executable, "-c", ABANDONED], capture_output=True, check=False)
    assert not done.returncode, done.stderr.decode()


def test_a_finished_job_frees_its_context(compiler):
    job = compiler.start(Code("f", "llvm", "f", "define void @f() {\n  ret void\n}", 1))
    context = job.context
    job.run()
    job.result()
    assert not job.words.module and not context._owned


LOOP = """define void @f(ptr noalias %s, ptr noalias %t, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %exit
body:
  %far = mul nsw i64 %i, 24
  %p = getelementptr inbounds i64, ptr %s, i64 %far
  %v = load i64, ptr %p
  %q = getelementptr inbounds i64, ptr %t, i64 %i
  store volatile i64 %v, ptr %q
  %next = add nsw i64 %i, 1
  br label %head
exit:
  ret void
}
"""


@pytest.mark.skipif(not llvm.HAS_ADDRESSES, reason="registers of x86")
def test_middle_passes_keep_variables_in_registers(compiler):
    code = Code("f", "llvm", "f", LOOP, 1)
    found = [compiler.start(code, passes).assembly() for passes in (FEW, MIDDLE)]
    assert ["(%rsp)" in text for text in found] == [True, False]
    assert found[1] != compiler.start(code, ALL).assembly()


def text_of_another_library():
    """Compile the loop as a library does that shares LLVM with us."""
    machine = llvm.target_machine(host())
    module = llvm.llvm.parse_assembly(LOOP)
    return machine.emit_assembly(module)


@pytest.mark.skipif(not llvm.HAS_ADDRESSES, reason="addresses are rewritten here")
def test_addresses_are_kept_for_kernels_alone(compiler):
    before = text_of_another_library()
    code = Code("f", "llvm", "f", LOOP, 1)
    jobs = [compiler.start(code), compiler.start(code)]
    kept = text_of_another_library()
    assert kept != before
    jobs[0].run()
    jobs[0].result()
    assert text_of_another_library() == kept  # the other job is still open
    jobs[1].close()
    assert text_of_another_library() == before and not llvm.OPEN
    with pytest.raises(errors.CompileError):
        compiler.compile(Code("f", "llvm", "f", "no text", 1))
    assert not llvm.OPEN


def test_lanes_that_are_chosen_apart() -> None:
    """LLVM 22 put three remainders and their signs in vectors, and took a lane from nowhere."""
    values = np.random.default_rng(0).normal(size=(4, 17, 5, 5)).astype(np.float32)
    places = np.array([2, 0, 1])
    x, index = picograd.tensor(values, device="cpu"), picograd.tensor(places, device="cpu")
    x.realize(index)
    taken = x.index_select(1, index % 17)
    total = picograd.cat([taken[2:], taken[:2] * 2], 0).sum(1, keepdim=True) * 0.1
    joined = picograd.cat([x, x * 2, x.flip(3)], 3)
    total.realize(joined)
    rows = values[:, places]
    expected = np.concatenate([rows[2:], rows[:2] * 2]).sum(1, keepdims=True) * 0.1
    np.testing.assert_allclose(total.numpy(), expected, rtol=1e-4, atol=1e-6)
