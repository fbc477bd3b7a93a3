"""Stores in boxes: what is fenced, and what is waited for."""

from box_products import program_of, tiles_of
from cuda_tools import matmul_kernel

from picograd.dtype import bfloat16


def ops_of(program, op):
    return [instr for instr in program.instructions if instr.op == op]


def test_every_slot_that_leaves_is_fenced():
    program = program_of(tiles_of(matmul_kernel(256, 256, 64, bfloat16)))
    stores = len(ops_of(program, "store_box"))
    assert stores == 2 * 2, "two fragments, two times 64 columns"
    assert len(ops_of(program, "async_fence")) == stores
    assert len(ops_of(program, "store_box_wait")) == stores + 1, "and before the end"
