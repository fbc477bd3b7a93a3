"""Attention in float32 on tensor cores: values of Tile IR and of programs, resources by NVRTC."""

import re
from dataclasses import replace

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
    scale_before,
    softcap,
    window,
    with_gradients,
)
from cuda_tools import compile_cuda
from plan_support import leaf

from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.program import verify as verify_program
from picograd.codegen.render.cuda import render
from picograd.codegen.templates import attention_cuda
from picograd.codegen.tile import verify
from picograd.schedule import score_ranges
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

WHOLE = replace(cuda_target("sm_90a"), tf32=True)
FEW = replace(WHOLE, multiprocessors=3)
FORMS = [plain, causal_twice, window, additive, boolean, softcap, alibi, merged_batch, scale_before]


def run_tiles(kernel, slots, target=FEW):
    interpret_tile.interpret(verify(attention_cuda.build(kernel, target)), slots)


def run_program(kernel, slots):
    program = verify_program(linearize(attention_cuda.build(kernel, FEW), FEW))
    assert any(instr.op == "mma_packed" for instr in program.instructions)
    interpret_program.interpret(program, slots)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_tiles_mean_what_the_graph_means(form):
    np.random.seed(0)
    check(FEW, with_gradients(form, *shapes_of(90, 90, 32, 64)), run_tiles, 3, 1e-5)


@pytest.mark.parametrize("form", [plain, causal_twice], ids=lambda form: form.__name__)
def test_programs_mean_what_the_graph_means(form):
    np.random.seed(0)
    check(FEW, with_gradients(form, *shapes_of(70, 90, 32, 64)), run_program, 3, 2e-3)


def test_rows_that_no_box_brings():
    """They are rounded, and multiplied from registers."""
    np.random.seed(0)
    q, k, v = (leaf(*shape) for shape in shapes_of(70, 40, 32, 32))
    check(FEW, [plain(q.unary("exp"), k, v)], run_program, 1, 2e-3)


def test_documents(monkeypatch):
    """Blocks find what masks show, as for 16-bit floats."""
    monkeypatch.setattr(score_ranges, "LEAST", 64)
    np.random.seed(0)
    roots = with_gradients(documents, *shapes_of(150, 150, 32, 32))
    check(FEW, roots, run_tiles, 3, 1e-5)
    assert len(schedule(roots, FEW).kernels) == 3


def test_heads_that_share_keys():
    np.random.seed(0)
    roots = with_gradients(grouped, (1, 4, 70, 32), (1, 2, 80, 32), (1, 2, 80, 32))
    check(FEW, roots, run_tiles, 3, 1e-5)


def test_few_rows_have_all_digits():
    """They run on CUDA cores: reading keys takes longer than multiplying."""
    operands = (leaf(*shape) for shape in shapes_of(40, 600, 64, 64))
    (kernel,) = schedule([plain(*operands)], WHOLE).kernels
    assert not linearize(attention_cuda.build(kernel, WHOLE), WHOLE).tensors


@pytest.mark.parametrize("depth, count", [(128, 3), (192, 0)])
def test_gradients_of_wide_heads_are_products_of_scores(depth, count):
    """Two operands of rows and two stages have no room in shared memory."""
    roots = with_gradients(plain, *shapes_of(256, 256, depth, depth))
    heroes = [kernel.hero for kernel in schedule(roots, WHOLE).kernels]
    assert heroes.count("attention") == count
    assert schedule(roots[:1], WHOLE).kernels[0].hero == "attention"


def test_operands_of_streams_are_not_turned():
    """Products of TF32 want what they sum over nearest; those of scores read values as they lie."""
    shape = (1, 2, 512, 64)
    roots = with_gradients(causal_twice, shape, shape, shape)
    assert [kernel.hero for kernel in schedule(roots, WHOLE).kernels].count("attention") == 3
    assert len(schedule(roots, WHOLE).kernels) == 3


@pytest.mark.parametrize("depth", [64, 128])
def test_resources(depth):
    """No spill, no serialised product."""
    shape = (1, 2, 1024, depth)
    for kernel in schedule(with_gradients(causal_twice, shape, shape, shape), WHOLE).kernels:
        if kernel.hero != "attention":
            continue
        text = render(linearize(attention_cuda.build(kernel, WHOLE), WHOLE))
        _, log = compile_cuda(text, "sm_90a")
        assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log), log
        assert "C75" not in log and "serialized" not in log, log


def test_a_loop_over_one_tile_takes_two_rounds():
    """One of a single round NVRTC writes out up to 13.0, and spills; each tile is still one's."""
    roots = with_gradients(causal_twice, *shapes_of(256, 256, 64, 64))
    for kernel in schedule(roots, WHOLE).kernels:
        (part,) = attention_cuda.build(kernel, WHOLE).parts
        (loop,) = part.steps
        blocks = loop.block.size
        assert loop.rounds == 2 and [loop.points_of(n) for n in range(blocks)] == [
            [n] for n in range(blocks)
        ]
    check(WHOLE, roots[:1], lambda kernel, slots: run_tiles(kernel, slots, WHOLE), 1, 1e-5)
