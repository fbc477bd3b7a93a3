"""picograd.plan: kernels, reads and writes, sources for any target, without running anything."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from debug_tools import small_network

import picograd
from picograd import Tensor
from picograd.engine.assembly import find_nvdisasm
from picograd.engine.inspect import target_named
from picograd.errors import ValueRangeError
from picograd.explain.__main__ import main
from picograd.target import Target


def test_kernels_of_a_plan():
    tensor = small_network("cpu")
    plan = picograd.plan(tensor)
    assert [kernel.hero for kernel in plan.kernels] == ["contract", "reduce.row"]
    product, softmax = plan.kernels
    assert [slot.kind for slot in product.reads] == ["input", "input"]
    assert product.writes == softmax.reads
    assert [slot.kind for slot in softmax.writes] == ["output"]
    assert softmax.writes[0].shape == (3, 5)
    assert product.name in repr(product) and product.name in repr(plan)
    assert tensor.node.realized is None, "it ran"


def test_peak_counts_outputs_and_temporaries():
    plan = picograd.plan(small_network("cpu"))
    assert 2 * 60 <= plan.peak_bytes <= 2 * 60 + 512


def test_sources_for_other_machines():
    kernel = picograd.plan(small_network("cpu")).kernels[1]
    cuda, llvm = kernel.source("cuda"), kernel.source("llvm")
    assert f"{kernel.name}(" in cuda and "__global__" in cuda
    assert f"@{kernel.name}(" in llvm and "define" in llvm
    assert "__global__" in kernel.source("cuda", "sm_80")


def test_reasons_are_in_the_text():
    x = Tensor(np.ones((8, 8), np.float32), device="cpu")
    wave = (x * 0.1).sin().exp().sin()
    plan = picograd.plan(wave.mean(0), wave.std(1), wave.T @ x)
    for reason in plan.reasons:
        assert reason in repr(plan)


def test_unknown_language():
    with pytest.raises(ValueRangeError, match="unknown language 'rust'"):
        target_named("rust", "sm_90a")


def test_computed_tensors_have_no_plan():
    with pytest.raises(ValueRangeError, match="computed already"):
        picograd.plan(Tensor([1.0], device="cpu").realize())


def test_a_notebook_shows_a_table(cpu_by_default):
    text = picograd.plan(small_network("cpu"))._repr_html_()
    assert text.startswith("<div><b>2 kernels") and "reduce.row" in text
    assert "float32[3, 4], float32[4, 5]" in text and "reasons of fusion" in text


ROOT = Path(__file__).parents[2]
PLAIN = Target("llvm", "x86-64-v3", vector_bytes=32, registers=16)


def headings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("== ")]


def titles(text: str) -> list[str]:
    return [line.strip("= ").split(" =")[0] for line in headings(text)]


@pytest.mark.parametrize("target", ["cpu", "cuda", "sm_80", PLAIN], ids=str)
def test_all_stages_in_order(target: str | Target) -> None:
    text = picograd.explain(Tensor([-1.0, 2.0]).relu(), target)
    names = [title.split(":")[0] for title in titles(text)]
    assert names == [
        "Graph IR",
        "Graph IR, composites expanded",
        "Plan",
        "Loop IR",
        "Tile IR",
        "Program",
        "Source",
    ]
    for heading in headings(text):
        assert (ROOT / heading.split()[-1]).is_file()


def test_headings_name_the_template_of_the_hero() -> None:
    x = picograd.ones(64, 64).contiguous().realize()
    text = picograd.explain((x @ x).sum(1), "cuda")
    assert "picograd/codegen/templates/contract.py" in text
    assert "picograd/codegen/templates/reduce.py" in text


def test_equal_kernels_are_shown_once() -> None:
    x = Tensor([1.0, 2.0])
    assert titles(picograd.explain(x.relu())).count("Loop IR") == 1


def test_nothing_runs() -> None:
    y = Tensor([-1.0, 2.0]).exp()
    picograd.explain(y)
    assert y.node.realized is None


def test_helpers_are_shown_on_request() -> None:
    y = Tensor([-1.0, 2.0]).relu()
    short, full = picograd.explain(y, "cuda"), picograd.explain(y, "cuda", full=True)
    assert "lines of helpers)" in short and "struct half" not in short
    assert "struct half" in full


def test_host_assembly() -> None:
    text = picograd.explain(Tensor([-1.0, 2.0]).relu(), "cpu", assembly=True)
    assert titles(text)[-1] == "Machine code"
    assert "ret" in text[text.index("== Machine code") :]


def test_sass_needs_no_gpu() -> None:
    text = picograd.explain(Tensor([-1.0, 2.0]).relu(), "cuda", assembly=True)
    text = text[text.index("== Machine code") :]
    assert " registers" in text and "bytes dynamic shared memory" in text
    assert ("EXIT" in text) == bool(find_nvdisasm())


def test_a_computed_tensor_has_nothing_to_explain() -> None:
    with pytest.raises(ValueRangeError) as caught:
        picograd.explain(Tensor(np.zeros(3)))
    assert str(caught.value) == (
        "explain: every tensor given is computed already."
        " Fix: ask before reading or realizing them."
    )


@pytest.mark.parametrize("name", ["tpu", "sm_new"])
def test_unknown_target(name: str) -> None:
    with pytest.raises(ValueRangeError, match=f"unknown target '{name}'"):
        picograd.explain(Tensor([1.0]).exp(), name)


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Tensor([-1., 2.]).relu()", "--target", "cuda"]) == 0
    assert "__global__" in capsys.readouterr().out
    assert main(["nn.ReLU()(picograd.arange(2.0))"]) == 0
    assert "relu" in capsys.readouterr().out
    assert main(["1 + 1"]) == 1
    assert capsys.readouterr().err == (
        "explain: the expression gives int, not Tensor. Fix: try Tensor([-1.0, 2.0]).relu().\n"
    )
    assert main(["Tensor([1.]"]) == 1
    assert "never closed" in capsys.readouterr().err
    for wrong, kind in (("Tensor([1.]).rel()", "AttributeError"), ("1 / 0", "ZeroDivisionError")):
        assert main([wrong]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"{kind}: ")


def test_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "picograd.explain", "exp(ones(4))"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == "" and "Loop IR" in done.stdout


def test_the_default_target_is_the_device() -> None:
    text = picograd.explain(Tensor([-1.0, 2.0], device="null").relu())
    assert "CUDA C for sm_90a" in text
    assert repr(text) == str(text)  # readable at the prompt, without print
