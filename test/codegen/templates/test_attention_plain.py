"""Attention in float32 on CUDA cores: values of Tile IR and of the program, resources by NVRTC."""

import re

import numpy as np
import pytest
from attention_check import check, shapes_of
from attention_forms import (
    additive,
    alibi,
    boolean,
    causal_twice,
    documents,
    grouped,
    merged_batch,
    plain,
    softcap,
    window,
    with_gradients,
    with_holes,
)
from cuda_tools import compile_cuda, to_ptx
from plan_support import leaf

from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.program import verify as verify_program
from picograd.codegen.render.cuda import render
from picograd.codegen.templates import attention_cuda
from picograd.codegen.templates.attention_plain import shared_bytes
from picograd.codegen.tile import verify
from picograd.conversion import from_bits, to_bits
from picograd.schedule import score_boxes, score_ranges
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

FEW = cuda_target("sm_80", multiprocessors=3)
FORMS = [plain, causal_twice, window, additive, boolean, softcap, alibi, merged_batch]


@pytest.fixture(autouse=True)
def gradients_of_float32(monkeypatch):
    """What the schedule leaves to products, the kernels here are written for."""
    monkeypatch.setattr(score_boxes, "FEW_BYTES", 0)


def run_tiles(kernel, slots):
    interpret_tile.interpret(verify(attention_cuda.build(kernel, FEW)), slots)


def run_program(kernel, slots):
    """Run the program on numbers in storage format."""
    program = verify_program(linearize(attention_cuda.build(kernel, FEW), FEW))
    raw = [to_bits(value, slot.dtype) for value, slot in zip(slots, kernel.slots, strict=True)]
    interpret_program.interpret(program, raw)
    for value, bits, slot in zip(slots, raw, kernel.slots, strict=True):
        value[...] = from_bits(bits, slot.dtype)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_tiles_mean_what_the_graph_means(form):
    np.random.seed(0)
    check(FEW, with_gradients(form, *shapes_of(90, 90, 32, 64)), run_tiles, 3, 1e-5)


@pytest.mark.parametrize("form", [plain, causal_twice], ids=lambda form: form.__name__)
def test_programs_mean_what_the_graph_means(form):
    np.random.seed(0)
    check(FEW, with_gradients(form, *shapes_of(70, 90, 64, 64)), run_program, 3, 1e-5)


def test_documents(monkeypatch):
    monkeypatch.setattr(score_ranges, "LEAST", 64)
    np.random.seed(0)
    check(FEW, with_gradients(documents, *shapes_of(150, 150, 32, 32)), run_tiles, 3, 1e-5)


def test_blocks_between_others_are_left_out(monkeypatch):
    monkeypatch.setattr(score_ranges, "LEAST", 64)
    np.random.seed(0)
    shapes = (1, 4, 192, 16), (1, 4, 256, 16), (1, 4, 256, 16)
    check(FEW, with_gradients(with_holes, *shapes), run_tiles, 3, 1e-5)


@pytest.mark.parametrize("rows, columns, depth, width", [(40, 100, 192, 96), (70, 40, 256, 256)])
def test_wide_heads(rows, columns, depth, width):
    np.random.seed(0)
    roots = with_gradients(plain, *shapes_of(rows, columns, depth, width))
    check(FEW, roots, run_tiles, 3, 1e-5)  # dk and dv are parts of one kernel


@pytest.mark.parametrize("rows", [1, 5, 20])
def test_few_rows_are_split(rows):
    np.random.seed(0)
    leaves = [leaf(1, heads, count, 64) for heads, count in ((4, rows), (2, 400), (2, 400))]
    check(FEW, [grouped(*leaves)], run_tiles, 1, 1e-5)
    check(FEW, [grouped(*leaves)], run_program, 1, 1e-5)


@pytest.mark.parametrize("depth", [64, 128, 256])
def test_resources(depth):
    target = cuda_target("sm_90a")
    shape = (1, 2, 1024, depth)
    for kernel in schedule(with_gradients(causal_twice, shape, shape, shape), target).kernels:
        if kernel.hero != "attention":
            continue
        tiles = attention_cuda.build(kernel, target)
        assert shared_bytes(tiles.parts[0]) <= target.shared_bytes
        _, log = compile_cuda(render(linearize(tiles, target)), "sm_90a")
        assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log), log


def test_a_thread_is_numbered_once():
    """Numbers that NVRTC computes anew are what ptxas of CUDA 13.0 confused in such a kernel."""
    *_, by_values = with_gradients(boolean, *shapes_of(16, 80, 32, 64))
    kernels = schedule([by_values], FEW).kernels
    (kernel,) = (each for each in kernels if "contract" in each.name)
    source = render(linearize(attention_cuda.build(kernel, FEW), FEW))
    assert to_ptx(source, "sm_80").count("%tid.x") == 1
