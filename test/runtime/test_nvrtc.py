import time

import pytest

from picograd.code import Code
from picograd.errors import CompileError, DeviceError
from picograd.runtime import nvrtc

pytest.importorskip("cuda.bindings.nvrtc")
SOURCE = """#ifndef SHARED_HELPER
#define SHARED_HELPER
struct half { unsigned short bits; };
#endif
extern "C" __global__ void NAME(float* y, const float* x, float a) {
  y[blockIdx.x] = a * x[blockIdx.x];
}
"""


def cuda_code(name, source=SOURCE):
    return Code(name, "cuda", name, source.replace("NAME", name), 1)


def test_cubin_without_a_gpu():
    cubin = nvrtc.compile_cuda(cuda_code("one"), "sm_90a")
    assert cubin[:4] == b"\x7fELF" and b"one" in cubin
    assert cubin == nvrtc.compile_cuda(cuda_code("one"), "sm_90a")
    assert nvrtc.nvrtc_version().startswith("nvrtc 1")


def test_error_shows_numbered_lines():
    source = "int x;\n__global__ void f() {\n  y = 3;\n}\n"
    with pytest.raises(CompileError) as caught:
        nvrtc.compile_cuda(cuda_code("bad", source), "sm_90a")
    text = str(caught.value)
    assert 'identifier "y" is undefined' in text and ">    3   y = 3;" in text


def test_kernels_share_a_program():
    codes = [cuda_code(f"kernel{n}") for n in range(3)]
    cubin = nvrtc.compile_together(codes, "sm_90a")
    assert cubin is not None and all(code.entry.encode() in cubin for code in codes)
    assert nvrtc.compile_together([*codes, cuda_code("bad", "nonsense")], "sm_90a") is None


def test_batches_hold_different_entries(monkeypatch):
    codes = [cuda_code(name) for name in "abcab"]
    listed: list[Code] = []
    assert list(nvrtc.batches(codes, listed)) == [[0, 1, 2], [3, 4]] and listed == codes
    monkeypatch.setattr(nvrtc, "BATCH_TEXT", 2 * len(codes[0].source))
    assert list(nvrtc.batches(codes, [])) == [[0, 1], [2, 3], [4]]
    assert list(nvrtc.batches([], [])) == []
    monkeypatch.setattr(nvrtc, "SMALL_BATCH_TEXT", len(codes[0].source))
    assert list(nvrtc.batches(codes, [], 2)) == [[0], [1], [2, 3], [4]]


def test_a_batch_is_full_before_the_next_kernel_is_asked_for():
    asked: list[str] = []

    def codes():
        for name in "aab":
            asked.append(name)
            yield cuda_code(name)

    found = nvrtc.batches(codes(), [])
    assert next(found) == [0] and asked == ["a", "a"]


def test_a_long_kernel_does_not_wait_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def codes():
        for name in "abc":
            asked.append(name)
            yield cuda_code(name)

    monkeypatch.setattr(nvrtc, "BATCH_TEXT", len(cuda_code("a").source))
    found = nvrtc.batches(codes(), [])
    assert next(found) == [0] and asked == ["a"]
    assert list(found) == [[1], [2]]


def test_missing_packages_are_named(monkeypatch):
    nvrtc.load_nvrtc.cache_clear()

    def missing(name):
        raise ImportError(name)

    def no_library(name):
        raise RuntimeError("DynamicLibNotFoundError")

    monkeypatch.setattr(nvrtc.importlib, "import_module", missing)
    with pytest.raises(DeviceError, match="package cuda-bindings is missing.*pip install"):
        nvrtc.load_nvrtc()
    monkeypatch.setattr(nvrtc.importlib, "import_module", no_library)
    with pytest.raises(DeviceError, match="nvidia-cuda-nvrtc.*is missing.*pip install"):
        nvrtc.load_nvrtc()
    nvrtc.load_nvrtc.cache_clear()


def test_batches_share_a_cubin_and_name_the_kernel_at_fault():
    codes = [
        Code(name, "cuda", name, f'extern "C" __global__ void {name}() {{}}', 1)
        for name in ("a", "b", "a")
    ]
    found = dict(nvrtc.compile_batches(codes, "sm_90a"))
    assert sorted(found) == [0, 1, 2] and found[0] is found[1] and found[2] is not found[0]
    bad = Code("bad", "cuda", "bad", "nonsense", 1)
    with pytest.raises(Exception, match="kernel bad does not compile"):
        dict(nvrtc.compile_batches([codes[0], bad], "sm_90a"))


def test_nothing_is_compiled_after_an_error(monkeypatch):
    monkeypatch.setattr(nvrtc.config, "compile_processes", 1)
    seen = []

    def compile_one(code, *_):
        seen.append(code.entry)
        time.sleep(0.05)  # so that the main thread has time to ask for the next
        raise CompileError("compile", f"{code.entry} is wrong", "write it anew")

    monkeypatch.setattr(nvrtc, "compile_cuda", compile_one)
    codes = [Code("a", "cuda", "a", "", 1)] * 50  # of one name: each is a batch
    with pytest.raises(CompileError, match="a is wrong"):
        list(nvrtc.compile_batches(codes, "sm_90a"))
    assert len(seen) < 5
