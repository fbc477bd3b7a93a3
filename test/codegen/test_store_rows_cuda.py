"""Stores in rows: values of results whose rows begin anywhere, barriers, and what ptxas says."""

import re

import numpy as np
import pytest
from box_products import TWO, numbers, program_of, results, tiles_of
from cuda_tools import H200, compile_cuda, from_raw, matmul_kernel, source_of

from picograd import Tensor
from picograd.codegen import interpret_program
from picograd.codegen.templates import contract_cuda
from picograd.codegen.tile_pipeline import RowStore
from picograd.dtype import bfloat16, float32
from picograd.schedule.schedule import schedule

CASES = {
    "plain": dict(m=135, n=203, k=72, dtype=bfloat16, b="nk"),
    "epilogue": dict(m=70, n=131, k=72, dtype=bfloat16, b="nk", epilogue="bias_relu"),
    "float32 out": dict(m=65, n=131, k=72, dtype=bfloat16, b="nk", out_dtype=float32),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    want, tile, program = results(CASES[name], (64, 128))
    limit = (1e-5 if "out_dtype" in CASES[name] else 8e-3) * np.abs(want).max()
    assert np.abs(tile - want).max() < limit
    assert np.abs(program - want).max() < limit


def test_slots_are_used_again_when_all_lanes_have_read_them():
    tiles = tiles_of(matmul_kernel(65, 131, 64, bfloat16, b="nk"), (64, 128))
    assert isinstance(tiles.parts[0].steps[0].body[-1].box, RowStore)
    ops = [instr.op for instr in program_of(tiles, TWO).instructions]
    assert ops.count("warp_barrier") == 2 * 2, "before and after each of two times 64 columns"
    assert "store_box" not in ops and "store_box_wait" not in ops


@pytest.mark.parametrize("epilogue", [None, "bias_relu"])
def test_products_are_not_serialised(epilogue):
    """Stores of pairs behind their own tests made ptxas wait for every product."""
    kernel = matmul_kernel(4095, 4093, 4096, bfloat16, b="nk", epilogue=epilogue)
    _, log = compile_cuda(source_of(contract_cuda.build(kernel, H200))[0], "sm_90a")
    assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log) and "C75" not in log, log


def test_rows_of_whole_pieces_are_stored_16_bytes_a_lane():
    """(70, 72) @ (72, 3 * 64) -> (3, 70, 64): heads, each with its rows beside one another."""
    a, b = (Tensor.zeros(*shape).bfloat16().realize().node for shape in ((70, 72), (72, 192)))
    made = a.contract(b, ((0, 2), (2, 1), (0, 1))).reshape((70, 3, 64)).permute((1, 0, 2))
    (kernel,) = schedule([made], TWO).kernels
    tiles = tiles_of(kernel, (64, 128))
    assert isinstance(tiles.parts[0].steps[0].body[-1].box, RowStore)
    program = program_of(tiles)
    stores = [instr for instr in program.instructions if instr.op == "store"]
    assert any(instr.lanes == 8 for instr in stores), "of a row"
    arrays = numbers(kernel)
    interpret_program.interpret(program, arrays)
    first, second, found = (from_raw(x, bfloat16).astype(float) for x in arrays)
    wanted = (first.reshape(70, 72) @ second.reshape(72, 192)).reshape(70, 3, 64)
    wanted = wanted.transpose(1, 0, 2).reshape(-1)
    assert np.abs(found - wanted).max() < 8e-3 * np.abs(wanted).max()
