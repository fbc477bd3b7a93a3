"""Ranges that an attention kernel finds by itself: how rows are shared, values, one launch."""

import numpy as np
import pytest
from attention_forms import (
    causal,
    documents,
    latent_joined,
    masked,
    normed,
    recurring,
    rotary,
    rotary_normed,
    with_holes,
)
from plan_support import VALUES, leaf
from test_attention_gradient_cuda import check, gradients_of, run_program, run_tiles

from picograd.codegen.templates import attention_ahead, attention_cuda
from picograd.conversion import from_bits, to_bits
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


def angles(rows, depth):
    """Cosines and sines, the same for both halves."""
    turns = np.arange(rows)[:, None] / 50 ** (np.arange(depth) % (depth // 2) / depth)
    leaves = [leaf(rows, depth, dtype=bfloat16) for _ in range(2)]
    for each, values in zip(leaves, (np.cos(turns), np.sin(turns)), strict=True):
        VALUES[each] = from_bits(to_bits(np.float32(values), bfloat16), bfloat16)
    return leaves


def check_prologue(form, run, rows, depth):
    heads, fixed = (1, 3, rows, depth), angles(rows, depth)
    rest = {rotary: [], rotary_normed: [(depth,)] * 2, latent_joined: [heads, (1, rows, depth)]}

    def with_angles(*leaves):
        return form(*leaves) if form is latent_joined else form(*leaves, *fixed)

    check(with_angles, [heads] * 3 + rest[form], run)


@pytest.mark.parametrize("form", [rotary, rotary_normed, latent_joined])
@pytest.mark.parametrize("rows, depth", [(150, 64), (128, 128)])
def test_rows_that_are_normed_rotated_and_joined(form, rows, depth):
    check_prologue(form, run_tiles, rows, depth)


@pytest.mark.parametrize("form", [rotary, rotary_normed, latent_joined])
def test_programs_of_rows_that_are_normed_rotated_and_joined(form):
    check_prologue(form, run_program, 150, 64)


def test_rows_of_a_thread_are_few_where_they_are_long():
    for width, rows in ((64, 128), (1024, 8)):
        wide = leaf(1, 640, width, dtype=bfloat16)
        q = normed(wide, leaf(width, dtype=bfloat16)).reshape((1, 640, width // 64, 64))
        q = q.permute((0, 2, 1, 3))
        (kernel,) = schedule([causal(q, q, q)], FEW).kernels
        (part,) = attention_cuda.build(kernel, FEW).parts[0].ahead
        assert part.blocks == 640 // rows
