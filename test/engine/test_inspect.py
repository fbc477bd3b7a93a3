"""picograd.plan: kernels, reads and writes, sources for any target, without running anything."""

import numpy as np
import pytest
from debug_tools import small_network

import picograd
from picograd import Tensor
from picograd.engine.inspect import target_named
from picograd.errors import ValueRangeError


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
