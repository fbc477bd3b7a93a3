"""Attention on Hopper: values of Tile IR and of the program, resources by NVRTC."""

import math
import re

import numpy as np
import pytest
from attention_forms import (
    additive,
    boolean,
    by_hand,
    causal,
    causal_twice,
    dropped,
    grouped,
    is_seen,
    plain,
    product,
    softcap,
    weigh,
    window,
)
from cuda_tools import compile_cuda, disassemble
from plan_support import VALUES, leaf, spread

from picograd.codegen import interpret_program, interpret_tile, streams
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.program import verify as verify_program
from picograd.codegen.render.cuda import render
from picograd.codegen.templates import attention_cuda, attention_frame
from picograd.codegen.tile import format_tiles, verify
from picograd.conversion import from_bits, to_bits
from picograd.dtype import bfloat16, float16, float32
from picograd.graph import build
from picograd.graph.interpret import interpret
from picograd.graph.node import Node
from picograd.helpers import round_up
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

FEW = cuda_target("sm_90a", multiprocessors=3)  # several tiles a block


def partly_summed(q, k, v):
    """Totals are of what is seen alone, weights are not: both are made of the scores."""
    s = product(q, k) * 0.3
    e = (s - s.reduce("max", (3,), True).expand(s.shape)).unary("exp")
    total = is_seen(s).where(e, 0).reduce("sum", (3,), True)
    return weigh(e / total.expand(s.shape), v)


FORMS = [
    plain,
    by_hand,
    partly_summed,
    causal,
    causal_twice,
    window,
    additive,
    boolean,
    softcap,
    dropped,
]


def kernel_of(form, shapes, dtype=bfloat16, target=FEW):
    plan = schedule([form(*(leaf(*shape, dtype=dtype) for shape in shapes))], target)
    (kernel,) = plan.kernels
    return kernel, [VALUES[node] for node in plan.inputs]


def shapes_of(rows, columns, depth, width):
    return (1, 2, rows, depth), (1, 2, columns, depth), (1, 2, columns, width)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_values(form):
    check_values(form)


def test_values_of_large_blocks(monkeypatch):
    monkeypatch.setattr(attention_frame, "FEW_PLACES", 0)
    check_values(causal)


@pytest.mark.parametrize("depth, width", [(96, 40), (40, 96)])
def test_values_of_heads_between_slabs(depth, width):
    """Products have as many columns as heads, rounded up to 16, and boxes 64."""
    check_values(plain, depth, width)
    kernel, _ = kernel_of(plain, shapes_of(150, 150, depth, width))
    (part,) = attention_cuda.build(kernel, FEW).parts
    shapes = [tile.shape for tile in part.tiles]
    assert (128, round_up(width, 16)) in shapes and (128, round_up(width, 64)) in shapes


@pytest.mark.parametrize("depth, slots", [(64, 1), (128, 2), (256, 1)])
def test_a_result_has_a_slot_for_each_slab_where_there_is_room(depth, slots):
    kernel, _ = kernel_of(plain, shapes_of(150, 150, depth, depth))
    tiles = attention_cuda.build(kernel, FEW)
    (leaving,) = (tile for tile in tiles.parts[0].tiles if tile.name == "leaving")
    assert leaving.stages == slots
    assert linearize(tiles, FEW).shared_bytes <= FEW.shared_bytes


@pytest.mark.parametrize("depth, size", [(64, 64), (128, 128)])
def test_blocks_of_few_rows_are_small_where_heads_are_narrow(depth, size):
    kernel, _ = kernel_of(plain, shapes_of(1, 1024, depth, depth))
    assert f"place:{size}" in format_tiles(attention_cuda.build(kernel, FEW))


@pytest.mark.parametrize("depth, size", [(64, 128), (128, 128)])
def test_a_boolean_mask_comes_in_boxes(depth, size):
    """A byte is a place: a mask takes less memory than a bias, and blocks stay as wide."""
    tiles = check_values(boolean, depth, depth, places=144)
    (mask,) = (tile for tile in tiles.parts[0].tiles if tile.name == "spread0")
    assert mask.shape == (128, 128) and f"place:{size}" in format_tiles(tiles)


def check_values(form, depth=64, width=64, places=150):
    np.random.seed(0)
    shapes = shapes_of(places, places, depth, width)
    leaves = [leaf(*shape, dtype=bfloat16) for shape in shapes]
    output = form(*leaves)
    plan = schedule([output], FEW)
    for node in plan.inputs:
        if node.dtype is bfloat16:
            VALUES[node] = from_bits(to_bits(VALUES[node], bfloat16), bfloat16)
    (kernel,) = plan.kernels
    (wanted,) = interpret([output], values=VALUES)
    arrays = [np.array(VALUES[node], np.float32).reshape(-1) for node in plan.inputs]
    tiles = verify(attention_cuda.build(kernel, FEW))
    for found in (run_tiles(tiles, arrays), run_program(tiles, arrays)):
        missed = np.linalg.norm(found.reshape(wanted.shape) - wanted)
        assert missed < 0.015 * np.linalg.norm(wanted)  # the graph rounds scores on the way
    return tiles


def run_tiles(tiles, arrays):
    slots = tiles.kernel.slots
    values = [*arrays, np.full(slots[-1].size, np.nan, np.float32)]
    interpret_tile.interpret(tiles, values)
    return values[-1]


def run_program(tiles, arrays):
    slots = tiles.kernel.slots
    program = verify_program(linearize(tiles, FEW))
    values = [*arrays, np.zeros(slots[-1].size, np.float32)]
    raw = [to_bits(value, slot.dtype) for value, slot in zip(values, slots, strict=True)]
    interpret_program.interpret(program, raw)
    return from_bits(raw[-1], slots[-1].dtype)


def negated(q, k, v):
    """Rows that no box brings."""
    return plain(q.unary("neg"), k, v)


@pytest.mark.parametrize(
    "form, depth", [(plain, 64), (plain, 128), (causal, 64), (causal, 96), (negated, 128)]
)
def test_resources_and_opcodes(form, depth, tmp_path):
    """No spill, no serialised product; powers of 2 and maxima are one instruction each."""
    target = cuda_target("sm_90a", 16 if form is negated else 132)  # one tile each, or parts of it
    for dtype in (bfloat16, float16):
        kernel, _ = kernel_of(form, shapes_of(1024, 1024, depth, depth), dtype, target)
        tiles = attention_cuda.build(kernel, target)
        cubin, log = compile_cuda(render(linearize(tiles, target)), "sm_90a")
        assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log), log
        assert "C75" not in log and "serialized" not in log, log
        sass = disassemble(cubin, tmp_path)
        for opcode in (f"HGMMA.64x{depth}x16.F32", "UTMALDG", "MUFU.EX2", "FMNMX"):
            assert opcode in sass, opcode
        if form is not negated:
            continue
        product = r"HGMMA\.\S+ R\d+, R(\d+), gdesc\[\w+\](\.tnspB)?"
        registers = {bool(across): set() for across in (True, False)}
        for left, across in re.findall(product, sass):
            registers[bool(across)].add(left)
        assert registers[False] and registers[True]
        assert not registers[False] & registers[True]  # rows stay where weights are made


def test_blocks_that_a_mask_hides_are_not_brought():
    for form, has_first in ((causal, False), (window, True)):
        kernel, _ = kernel_of(form, shapes_of(512, 512, 64, 64))
        (loop,) = attention_cuda.build(kernel, FEW).parts[0].steps
        (pipeline,) = (step for step in loop.body if hasattr(step, "produce"))
        assert pipeline.stop is not None and (pipeline.first is not None) == has_first


@pytest.mark.parametrize("rows, is_boxed", [(150, True), (40, False)])
def test_results_leave_in_boxes(rows, is_boxed):
    """Each warp hands 16 rows over to the copy engine; few rows are stored as they are."""
    kernel, _ = kernel_of(plain, shapes_of(rows, 512, 64, 64))
    (loop,) = attention_cuda.build(kernel, FEW).parts[0].steps
    stores = [step for step in loop.body if hasattr(step, "box")]
    assert all((step.box is not None) == is_boxed for step in stores)
    assert bool(stores) or not is_boxed


def test_heads_that_share_keys():
    """Long rows of one head are a tile: blocks behind the diagonal are not brought."""
    np.random.seed(0)
    shapes = (1, 4, 150, 64), (1, 2, 150, 64), (1, 2, 150, 64)
    leaves = [leaf(*shape, dtype=bfloat16) for shape in shapes]
    for node in leaves:
        VALUES[node] = from_bits(to_bits(VALUES[node], bfloat16), bfloat16)
    output = grouped(*leaves)
    plan = schedule([output], FEW)
    (kernel,) = plan.kernels
    (wanted,) = interpret([output], values=VALUES)
    arrays = [np.array(VALUES[node], np.float32).reshape(-1) for node in plan.inputs]
    tiles = verify(attention_cuda.build(kernel, FEW))
    for found in (run_tiles(tiles, arrays), run_program(tiles, arrays)):
        missed = np.linalg.norm(found.reshape(wanted.shape) - wanted)
        assert missed < 0.02 * np.linalg.norm(wanted)
    (loop,) = tiles.parts[0].steps
    assert loop.points[1].size == 3


def sloped(q, k, v):
    """ALiBi: a slope of each head in memory."""
    s = product(q, k) * 0.3
    slopes = spread(leaf(1, q.shape[1], 1, 1), s.shape)
    away = (s.iota(3) - s.iota(2)).cast(float32) * slopes
    return weigh(build.softmax(is_seen(s).where(s.cast(float32) + away, -math.inf), 3), v)


@pytest.mark.parametrize("form, groups", [(plain, 3), (causal, 3), (window, 1), (sloped, 1)])
def test_tiles_of_rows_are_high_where_rows_see_much(form, groups):
    """Else blocks are small, and some of them share a processor."""
    target = cuda_target("sm_90a")
    kernel, _ = kernel_of(form, [(2, 16, 4096, 64)] * 3)
    tiles = attention_cuda.build(kernel, target)
    assert tiles.threads == 128 * (1 + groups)
    text = render(linearize(tiles, target))
    together = {plain: 1, causal: 1, window: 3, sloped: 2}[form]
    assert f"__launch_bounds__({tiles.threads}, {together})" in text
    assert tiles.parts[0].grid[0].size == 132 * together
    _, log = compile_cuda(text, "sm_90a")
    assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log), log


def test_tiles_lie_along_the_longest_axis_of_rows():
    """Heads that share keys may be nearer in the result than places: a layer follows."""
    q, k = leaf(2, 8, 128, 64, dtype=bfloat16), leaf(2, 2, 128, 64, dtype=bfloat16)
    wide = k.reshape((2, 2, 1, 128, 64)).expand((2, 2, 4, 128, 64)).reshape((2, 8, 128, 64))
    result = causal(q, wide, wide).permute((0, 2, 1, 3))
    stored = Node("contiguous", (result,), None, result.shape, result.dtype, result.device)
    (kernel,) = schedule([stored], cuda_target("sm_90a")).kernels
    assert kernel.parts[0].rows[-1].size == 4
    stream = attention_cuda.with_long_rows(streams.analyse(kernel, kernel.parts[0]))
    assert [axis.size for axis in stream.rows] == [128]
