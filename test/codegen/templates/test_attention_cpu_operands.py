"""Attention of bfloat16 on a CPU by tile registers: as its stages mean it, and as it runs."""

from dataclasses import replace

import numpy as np
import pytest
from attention_forms import causal, plain, window
from plan_support import VALUES, leaf

import picograd
import picograd.nn.functional as F
from picograd import Tensor
from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.program import verify as verify_program
from picograd.codegen.templates import attention_cpu
from picograd.codegen.tile import format_tiles, verify
from picograd.conversion import from_bits, to_bits
from picograd.dtype import bfloat16, float16, float32
from picograd.schedule.schedule import schedule
from picograd.target import Target

PLAIN = Target("llvm", "test", 64)
TILES = replace(PLAIN, features="+amx-bf16")
SHAPES = {
    "whole": ((1, 1, 64, 32), (1, 1, 64, 32), (1, 1, 64, 32)),
    "ragged": ((1, 1, 37, 40), (1, 1, 70, 40), (1, 1, 70, 24)),
}


def kernel_of(form, shapes, dtype=bfloat16, target=TILES):
    leaves = [leaf(*shape, dtype=dtype) for shape in shapes]
    plan = schedule([form(*leaves)], target)
    (kernel,) = plan.kernels
    assert kernel.hero == "attention"
    return plan, kernel


def bits_of(plan):
    return [to_bits(VALUES[node].astype(np.float32), bfloat16).ravel() for node in plan.inputs]


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("form", [plain, causal, window], ids=lambda form: form.__name__)
def test_steps_mean_what_those_of_vectors_do(form, shapes):
    np.random.seed(0)
    plan, kernel = kernel_of(form, shapes)
    arrays = [from_bits(each, bfloat16) for each in bits_of(plan)]
    found = []
    for target in (TILES, PLAIN):
        tiles = verify(attention_cpu.build(kernel, target))
        assert format_tiles(tiles).count("unit='tiles'") == 2 * (target is TILES)
        out = np.zeros(kernel.slots[-1].size, np.float32)
        interpret_tile.interpret(tiles, [*arrays, out], [])
        found.append(out)
    assert np.linalg.norm(found[0] - found[1]) < 1e-3 * np.linalg.norm(found[1])


def test_instructions_mean_what_those_of_vectors_do():
    np.random.seed(0)
    plan, kernel = kernel_of(causal, ((1, 1, 32, 33), (1, 1, 40, 33), (1, 1, 40, 24)))
    bits = bits_of(plan)
    found = []
    for target in (TILES, PLAIN):
        program = verify_program(linearize(attention_cpu.build(kernel, target), target))
        stored = np.zeros(kernel.slots[-1].size, np.uint16)
        interpret_program.interpret(program, [*bits, stored])
        found.append(from_bits(stored, bfloat16))
    assert np.linalg.norm(found[0] - found[1]) < 2**-8 * np.linalg.norm(found[1])


@pytest.mark.parametrize("dtype", [float32, float16], ids=lambda dtype: dtype.name)
def test_other_floats_are_multiplied_by_vectors(dtype):
    _, kernel = kernel_of(plain, SHAPES["whole"], dtype)
    assert "unit='tiles'" not in format_tiles(attention_cpu.build(kernel, TILES))


def test_few_rows_and_machines_without_tiles_use_vectors():
    rows = (1, 1, 20, 32), *SHAPES["whole"][1:]
    for target, shapes in ((TILES, rows), (PLAIN, SHAPES["whole"])):
        _, kernel = kernel_of(plain, shapes, target=target)
        assert "unit='tiles'" not in format_tiles(attention_cpu.build(kernel, target))


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("sizes", [(64, 64, 64, 64), (70, 75, 40, 24), (300, 300, 80, 80)])
def test_values_are_near_those_of_float64(sizes, is_causal):
    """Whatever this machine multiplies with; gradients, too."""
    rows, places, depth, width = sizes
    generator = np.random.default_rng(0)
    shapes = (2, 3, rows, depth), (2, 3, places, depth), (2, 3, places, width)
    arrays = [generator.standard_normal(shape).astype(np.float32) for shape in shapes]
    results = []
    for dtype in (picograd.bfloat16, picograd.float64):
        rounded = [Tensor(x).to(picograd.bfloat16).to(dtype).realize() for x in arrays]
        for each in rounded:
            each.requires_grad = True
        out = F.scaled_dot_product_attention(*rounded, is_causal=is_causal)
        seed = Tensor(np.ones(out.shape)).to(dtype)
        found = [out, *picograd.autograd.grad(out, rounded, seed)]
        results.append([each.detach().to(picograd.float64).numpy() for each in found])
    for found, wanted in zip(*results, strict=True):
        error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
        assert error < 0.01
