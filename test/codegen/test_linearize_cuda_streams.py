"""Main loops that work on the results of their products: which run beside which, and what waits."""

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "schedule"))

import pytest
from attention_forms import causal, plain
from box_products import tiles_of as product_tiles
from cuda_tools import matmul_kernel
from plan_support import leaf

from picograd.codegen.boxes import Pipeline
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.linearize_cuda_streams import late_boxes
from picograd.codegen.program import verify
from picograd.codegen.templates import attention_cuda
from picograd.dtype import bfloat16, float8_e4m3fn
from picograd.errors import InternalError
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

TARGET = cuda_target("sm_90a", multiprocessors=3)


def tiles_of(form, rows, shares=False):
    q, k, v = (leaf(1, 2, n, 64, dtype=bfloat16) for n in (rows, 300, 300))
    (kernel,) = schedule([form(q, k, k if shares else v)], TARGET).kernels
    return attention_cuda.build(kernel, TARGET)


def pipeline_of(tiles):
    (loop,) = tiles.parts[0].steps
    (found,) = (step for step in loop.body if isinstance(step, Pipeline))
    return found


def ops_of(tiles, *ops):
    """List instructions of the program of the consumers."""
    instructions = verify(linearize(tiles, TARGET)).instructions
    (start,) = (n for n, x in enumerate(instructions) if x.op == "role" and x.arg.follows)
    return [instr for instr in instructions[start:] if instr.op in ops]


def test_last_products_run_under_the_work_on_the_next_position():
    found = ops_of(tiles_of(plain, 300), "wgmma_commit", "wgmma_wait", "quick_exp2")
    order = [(x.op, x.arg) for x in found if x.op != "quick_exp2"]
    begin = ("wgmma_commit", None)
    first = [begin, ("wgmma_wait", 0)]
    others = [begin, begin, ("wgmma_wait", 1), ("wgmma_wait", 0)]
    assert order == [*first, *others, *first]
    place = [(x.op, x.arg) for x in found].index(("wgmma_wait", 1))
    assert found[place + 1].op == "quick_exp2"


@pytest.mark.parametrize("form", [plain, causal], ids=lambda form: form.__name__)
def test_values_have_stages_of_their_own(form):
    """Keys are free as soon as scores are there, values one position later."""
    tiles = tiles_of(form, 300)
    (late,) = late_boxes(pipeline_of(tiles))
    early = [each.tile for each in pipeline_of(tiles).produce if each.tile != late.tile]
    assert len(early) == 1
    waits = {instr.args[0] for instr in ops_of(tiles, "barrier_wait")}
    assert len(waits) == 3  # rows, keys, values


def test_shared_stages_are_not_rotated():
    tiles = tiles_of(plain, 300, shares=True)
    assert not pipeline_of(tiles).is_rotated
    assert not late_boxes(pipeline_of(tiles))
    assert [instr.arg for instr in ops_of(tiles, "wgmma_wait")] == [0, 0]
    assert pipeline_of(tiles_of(plain, 40)).is_rotated


def test_stages_that_first_products_read_are_not_late():
    pipeline = replace(pipeline_of(tiles_of(plain, 300, shares=True)), is_rotated=True)
    with pytest.raises(InternalError, match="share no stages"):
        late_boxes(pipeline)


def test_products_of_two_places_run_under_the_sum_of_those_before():
    """Four positions a turn of the loop, then those that are left; none is under way between."""
    kernel = matmul_kernel(64, 64, 6 * 128, float8_e4m3fn, b="nk", out_dtype=bfloat16)
    instructions = verify(linearize(product_tiles(kernel, (64, 64)), TARGET)).instructions
    kinds = "wgmma_commit", "wgmma_wait"
    order = [instr.arg for instr in instructions if instr.op in kinds]
    begin, one, none = None, 1, 0
    assert order == [begin, begin, one, begin, one, begin, one, none, begin, begin, one, none]


def test_warps_that_multiply_at_once_say_so_by_themselves():
    """A thread of a warpgroup has waited for products of all of it, but for no other warp."""
    target = replace(TARGET, tf32=True)
    q, k, v = (leaf(1, 2, n, 64) for n in (300, 300, 300))
    (kernel,) = schedule([plain(q, k, v)], target).kernels
    tiles = attention_cuda.build(kernel, target)
    instructions = verify(linearize(tiles, target)).instructions
    made = [instr for instr in instructions if instr.op == "barrier_init"]
    (loop,) = tiles.parts[0].steps
    warps = loop.teams.threads // 32
    (apart,) = {instr.args[0] for instr in made if instr.arg == warps}
    kinds = "wgmma_commit", "wgmma_wait", "mma_packed", "warp_barrier"
    order = [x.op for x in instructions if x.op in kinds or x.args[:1] == (apart,)]
    text = " ".join(order)
    assert text.count("wgmma_commit wgmma_wait mma_packed warp_barrier barrier_arrive") == 1, text
