"""Ranges that an attention kernel finds by itself: how rows are shared, values, one launch."""

import pytest
from attention_forms import documents, masked, recurring, with_holes
from plan_support import VALUES, leaf
from test_attention_gradient_cuda import check, gradients_of, run_program, run_tiles

from picograd.codegen.templates import attention_ahead, attention_cuda
from picograd.dtype import bfloat16, bool_
from picograd.schedule import score_ranges
from picograd.schedule.loop import dynamics_of
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

MANY = cuda_target("sm_90a")
FEW = cuda_target("sm_90a", multiprocessors=3)


def stored(q, k, v):
    """A mask in memory that hides most blocks, and that four heads share."""
    rows, places = q.shape[2], k.shape[2]
    mask = leaf(rows, places, dtype=bool_, below=2)
    VALUES[mask][:, : places // 3] = False
    VALUES[mask][: rows // 2, places // 2 :] = False
    return masked(q, k, v, lambda s, at: at(mask, 2, 3))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(score_ranges, "LEAST", 64)


@pytest.mark.parametrize("run, length", [(run_tiles, 200), (run_program, 66)])
def test_masks_in_memory(run, length):
    shapes = (1, 4, length, 64), (1, 4, length + 9, 64), (1, 4, length + 9, 64)
    check(stored, shapes, run)


@pytest.mark.parametrize(
    "form, run, depth",
    [(with_holes, run_tiles, 64), (with_holes, run_tiles, 128), (recurring, run_program, 64)],
)
def test_blocks_between_others_are_left_out(form, run, depth):
    shapes = (1, 4, 192, depth), (1, 4, 256, depth), (1, 4, 256, depth)
    check(form, shapes, run)
    kernels = schedule(gradients_of(form, shapes), FEW).kernels
    for kernel in (each for each in kernels if each.hero == "attention"):
        (loop,) = attention_cuda.build(kernel, FEW).parts[0].steps
        (pipeline,) = (step for step in loop.body if hasattr(step, "produce"))
        assert pipeline.seen is not None and any(dynamics_of(pipeline.known[0][1]))


@pytest.mark.parametrize("form, parts", [(documents, [2, 1, 2]), (stored, [3, 1, 2])])
def test_one_kernel_forward_and_three_with_gradients(form, parts):
    """By rows, by rows again, and by places, for which blocks of a mask are looked at once."""
    shape = (1, 4, 256, 64)
    roots = gradients_of(form, [shape] * 3)
    (forward,) = schedule(roots[:1], MANY).kernels
    assert len(forward.parts) == parts[0]
    kernels = schedule(roots, MANY).kernels
    streams = [kernel for kernel in kernels if kernel.hero == "attention"]
    assert [len(kernel.parts) for kernel in streams] == parts and len(kernels) == 3


def test_rows_are_shared_by_their_number():
    """A block reduces a row, or each of its warps does."""
    shape = (1, 4, 640, 64)
    operands = (leaf(*shape, dtype=bfloat16) for _ in range(3))
    (kernel,) = schedule([stored(*operands)], FEW).kernels
    blocks, ranges, _ = kernel.parts
    for target, part, points in ((FEW, blocks, 20), (MANY, blocks, 100), (FEW, ranges, 10)):
        built = attention_ahead.build(kernel, part, target, 384)
        assert built.blocks == points
    (own,) = attention_cuda.build(kernel, FEW).parts
    assert len(own.ahead) == 2
