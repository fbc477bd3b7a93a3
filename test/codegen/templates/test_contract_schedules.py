"""Which schedule is chosen for a product of boxes, and that all of them fit a processor."""

from dataclasses import replace

import pytest
from box_products import only
from cuda_tools import H200, matmul_kernel

from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.operands import analyse
from picograd.codegen.render.cuda import render
from picograd.codegen.templates import contract_cuda, contract_tma
from picograd.codegen.templates.contract_schedules import SCHEDULES, Work, cost
from picograd.codegen.tile_pipeline import Persistent
from picograd.dtype import bfloat16, float8_e4m3fn, float32, float64
from picograd.target import cuda_target


def chosen(target=H200, **case):
    """Find the block tile of a product, None if its operands come in no boxes."""
    tiles = contract_cuda.build(matmul_kernel(**case), target)
    is_box = isinstance(tiles.parts[0].steps[0], Persistent)
    return tiles.parts[0].tiles[0].shape if is_box else None


def test_one_rule_chooses_the_tile():
    sizes = 1024, 1536, 2048, 4096, 8192
    square = [chosen(m=n, n=n, k=n, dtype=bfloat16, b="nk") for n in sizes]
    assert square == [(64, 128), (192, 96), (128, 128), (128, 256), (128, 192)]
    assert chosen(m=8192, n=64, k=768, dtype=bfloat16) == (64, 64)
    assert chosen(m=16384, n=64, k=768, dtype=bfloat16) == (128, 64)


def test_rows_that_lines_of_the_cache_do_not_fit_want_fewer_reads():
    assert chosen(m=1024, n=4096, k=4088, dtype=bfloat16, b="nk") == (128, 256)
    assert chosen(m=1024, n=4096, k=4096, dtype=bfloat16, b="nk") == (128, 128)


def test_what_the_cache_has_no_room_for_is_read_less():
    """Tiles of 128 x 128 are multiplied as fast, but bring a third more."""
    case = dict(m=8192, n=4096, dtype=bfloat16)
    assert chosen(**case, k=1024) == (128, 192)
    assert chosen(**case, k=28672) == (128, 256)
    assert chosen(m=2048, n=2048, k=4096, dtype=bfloat16) == (128, 128)


def test_tiles_of_zeros_are_stored_while_nobody_multiplies():
    """As many steps of K in a quarter of the tiles take longer: the others wait for memory."""
    kernel = matmul_kernel(12544, 4096, 2048, bfloat16, b="nk")
    c, dtype, majors = contract_cuda.arranged(analyse(kernel), H200)
    schedule = SCHEDULES[0]
    frame, sides = contract_tma.operands(c, dtype, majors, schedule, H200)
    even = Work(frame.steps / 4, frame.blocks, 0, False)
    times = [cost(c, schedule, sides, each) for each in (even, replace(even, empty=0.75))]
    assert times[1] - times[0] > 12544 * 4096


def test_tiles_of_narrow_parts_are_for_operands_along_k():
    case = dict(m=1536, n=1536, k=1536, dtype=bfloat16)
    assert chosen(**case, b="nk") == (192, 96)
    assert chosen(**case)[1] % 64 == 0


@pytest.mark.parametrize("rows, tile", [(128, (64, 64)), (256, (64, 128)), (4096, (128, 128))])
def test_tiles_of_8_bit_floats(rows, tile):
    case = dict(n=4096, k=4096, dtype=float8_e4m3fn, b="nk", out_dtype=bfloat16)
    assert chosen(m=rows, **case) == tile


@pytest.mark.parametrize(
    "case",
    [
        dict(m=4096, n=4096, k=4096, dtype=float32),
        dict(m=4096, n=4096, k=4096, dtype=float64),
        dict(m=4095, n=4093, k=4097, dtype=bfloat16),  # rows of an odd number of bytes
        dict(m=4096, n=4097, k=4096, dtype=bfloat16),
        dict(m=64, n=64, k=65536, dtype=bfloat16),  # one tile and a long sum
        dict(m=1, n=4095, k=4096, dtype=bfloat16),
    ],
)
def test_what_boxes_do_not_suit(case):
    assert chosen(**case) is None


def test_other_gpus_have_no_boxes():
    a100 = cuda_target("sm_80", 108, 163 * 1024)
    assert chosen(a100, m=4096, n=4096, k=4096, dtype=bfloat16) is None


def test_programs_of_all_schedules_fit():
    kernel = matmul_kernel(768, 768, 2048, bfloat16, b="nk", out_dtype=float32)
    for schedule in SCHEDULES:
        if schedule.is_summed:
            continue
        chosen = only(schedule.block, schedule.is_shared, schedule.together)
        program = linearize(contract_cuda.build(kernel, H200, chosen), H200)
        assert program.shared_bytes <= H200.shared_bytes
        assert program.threads == schedule.threads and "wgmma_fence" in render(program)


def test_tf32_is_asked_for_and_runs_along_k():
    asked = replace(H200, tf32=True)
    case = dict(m=4096, n=4096, k=4096, dtype=float32)
    assert chosen(**case, b="nk") is None
    assert chosen(asked, **case, b="nk") == (128, 256)
    assert chosen(asked, **case) is None and chosen(asked, **case, a="km", b="nk") is None
    assert chosen(asked, **{**case, "dtype": float64}, b="nk") is None


def test_float8_runs_along_k_alone_and_else_as_float16():
    case = dict(m=4096, n=4096, k=4096, dtype=float8_e4m3fn, out_dtype=bfloat16)
    assert chosen(**case, b="nk") == (128, 128)
    assert chosen(**case) is None
    tiles = contract_cuda.build(matmul_kernel(**case), cuda_target("sm_80", 108))
    assert "float16" in repr(tiles.parts[0].steps[0].a.dtype)
