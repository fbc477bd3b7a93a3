"""Products of a warpgroup: where their operands lie."""

from box_products import program_of, tiles_of
from cuda_tools import matmul_kernel

from picograd.codegen.deal_cuda import across, along
from picograd.codegen.layout import Swizzled
from picograd.dtype import bfloat16


def ops_of(program, op):
    return [instr for instr in program.instructions if instr.op == op]


def test_a_stage_is_multiplied_in_steps_of_32_bytes():
    program = program_of(tiles_of(matmul_kernel(256, 256, 640, bfloat16)))
    offsets = [instr.arg.a_offset for instr in ops_of(program, "wgmma")]
    assert sorted(set(offsets)) == [0, 32, 64, 96, 8192, 8224, 8256, 8288]
    assert not any(instr.arg.is_first for instr in ops_of(program, "wgmma"))


def test_slabs_along_k_follow_one_another():
    """A head of 128 has two slabs of 64 columns, each of all rows."""
    layout = Swizzled((96, 128), 2)
    assert [along(layout, k, 0) for k in (0, 3, 4, 7)] == [0, 96, 96 * 128, 96 * 128 + 96]
    assert across(layout, 2, 0, 2) == 2 * 16 * 128
