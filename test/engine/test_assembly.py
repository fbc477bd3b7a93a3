"""Machine code as text: what it holds, and what happens where a tool is missing."""

import dataclasses
import re

import pytest
from debug_tools import fresh_engine, small_network

from picograd.codegen.pipeline import generate
from picograd.engine import assembly
from picograd.engine.backends import get_device
from picograd.engine.realize import make_plan
from picograd.target import cuda_target

H200 = cuda_target("sm_90a")


@pytest.fixture
def kernel():
    return make_plan([small_network("cpu").node]).kernels[1]


@pytest.fixture
def no_nvdisasm(monkeypatch):
    monkeypatch.setattr(assembly, "find_nvdisasm", lambda: None)
    assembly.warn_once.cache_clear()
    yield
    assembly.warn_once.cache_clear()


def test_host(kernel):
    target = get_device("cpu").target
    text = assembly.assembly_of(generate(kernel, target), target)
    assert f"{kernel.name}:" in text and "ret" in text


def test_host_resources():
    text = (
        "\tvmovups\t%zmm3, 64(%rsp)\n\tvmovups\t64(%rsp), %zmm3\n"
        "\tvaddps\t-8(%rsp), %xmm1, %xmm3\n\tvmovups\t(%rdi), %ymm1\n"
    )
    expected = "2 vector registers, 1 stores to and 2 loads from the stack"
    assert assembly.host_resources(text) == expected
    assert assembly.host_resources("\tldr q0, [x1]\n") == ""


def test_sass(kernel):
    pytest.importorskip("cuda.bindings.nvrtc")
    text = assembly.assembly_of(generate(kernel, H200), H200)
    first = text.splitlines()[0]
    assert " 0 registers" not in first and " 0 bytes stack, " in first
    if assembly.find_nvdisasm():
        assert first.endswith("0 stores to and 0 loads from local memory (spills)")
        assert f".text.{kernel.name}" in text and "EXIT" in text


SPILLING = """extern "C" __global__ void __launch_bounds__(1024) k(float* x, int n) {
    __shared__ float tile[32];
    float held[200];
    for (int i = 0; i < 200; i++) held[i] = x[i * n];
    tile[threadIdx.x % 32] = held[n];
    __syncthreads();
    for (int i = 0; i < 200; i++) x[i * n] = held[199 - i] * tile[i % 32];
}"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_resources_are_those_the_compiler_reports(arch):
    nvrtc = pytest.importorskip("picograd.runtime.nvrtc")
    flags = (*nvrtc.OPTIONS, "--ptxas-options=-v")
    cubin, report = nvrtc.compile_text(SPILLING, arch, flags)
    text = assembly.cuda_resources(cubin)
    assert "128 bytes static shared memory" in text
    registers, stack = (int(number) for number in re.findall(r"\d+", text)[:2])
    assert stack >= 800
    if "Used" in report:  # not where NVRTC has compiled the text before
        assert f"Used {registers} registers" in report and f"{stack} bytes stack" in report


def test_without_nvdisasm_one_warning(kernel, no_nvdisasm, capsys):
    pytest.importorskip("cuda.bindings.nvrtc")
    code = generate(kernel, H200)
    texts = [assembly.assembly_of(code, H200) for _ in range(2)]
    assert all("registers" in text and "EXIT" not in text for text in texts)
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "pip install 'picograd[debug]'" in message


@pytest.mark.parametrize("target", [H200, None])
def test_code_that_does_not_compile_is_no_failure(kernel, target):
    target = target or get_device("cpu").target
    code = dataclasses.replace(generate(kernel, target), source="nonsense")
    assert assembly.assembly_of(code, target).startswith("// no assembly: ")


def test_level_four_runs_without_the_compiler(monkeypatch, capsys):
    """The null device needs no NVRTC to plan and to count, whatever DEBUG says."""

    def missing(*arguments):
        raise RuntimeError("no NVRTC")

    monkeypatch.setattr(assembly, "compile_text", missing)
    with fresh_engine(debug=4, cache=""):
        small_network("null").realize()
    assert "// no assembly: no NVRTC" in capsys.readouterr().err
