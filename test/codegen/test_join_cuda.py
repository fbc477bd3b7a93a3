"""Blocks that share tiles: values at both levels, and what a part or flag that is missing does."""

import re
from dataclasses import replace

import numpy as np
import pytest
from box_products import numbers, program_of, results, tiles_of
from cuda_tools import H200, compile_cuda, disassemble, matmul_kernel, source_of

from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.program import Program
from picograd.codegen.templates import contract_cuda
from picograd.codegen.tile import format_tiles
from picograd.codegen.tile import verify as verify_tiles
from picograd.codegen.tile_pipeline import Join, Persistent
from picograd.dtype import bfloat16, float16, float32
from picograd.errors import InternalError
from picograd.target import cuda_target

CASES = {
    "a few tiles, each of several blocks": ((128, 128), 5, dict(m=256, n=264, k=640, b="nk")),
    "more tiles than blocks": ((128, 128), 4, dict(m=256, n=264, k=392, a="km")),
    "one tile": ((64, 64), 2, dict(m=40, n=64, k=1000, b="nk")),
    "wide, ragged": ((128, 128), 3, dict(m=200, n=200, k=520, a="km")),
    "epilogue": ((128, 128), 5, dict(m=264, n=200, k=392, a="km", epilogue="bias_relu")),
    "float32 out": ((128, 128), 3, dict(m=136, n=200, k=392, a="km", out_dtype=float32)),
}
CASE = dict(m=256, n=128, k=640, dtype=bfloat16, b="nk", out_dtype=float32)
THREE, WIDE = cuda_target("sm_90a", 3), (128, 128)


@pytest.mark.parametrize("dtype", [bfloat16, float16])
@pytest.mark.parametrize("name", CASES)
def test_values(name, dtype):
    block, blocks, case = CASES[name]
    target = cuda_target("sm_90a", blocks)
    want, tile, program = results(case | {"dtype": dtype}, block, target, is_shared=True)
    limit = (1e-5 if "out_dtype" in case else 8e-3) * np.abs(want).max()
    assert np.abs(tile - want).max() < limit
    assert np.abs(program - want).max() < limit


def broken(change):
    """Run a product whose program was changed; gives the worst error."""
    want, _, found = results(CASE, WIDE, THREE, change, is_shared=True)
    return np.abs(found - want).max() / np.abs(want).max()


def without(op, count=1):
    """Take out the first instructions of a kind that give no value."""

    def change(program: Program) -> Program:
        left, found = count, []
        for instr in program.instructions:
            is_taken = instr.op == op and left > 0
            left -= is_taken
            found.append(replace(instr, op="wgmma_fence", args=(), arg=None) if is_taken else instr)
        return replace(program, instructions=tuple(found))

    return change


def test_parts_are_summed():
    assert broken(lambda program: program) < 1e-5


@pytest.mark.parametrize(
    "op, text",
    [("flag_raise", "all roles wait for one another"), ("flag_wait", "raised twice|not left zero")],
)
def test_a_flag_that_is_missing_is_found(op, text):
    with pytest.raises(InternalError, match=text):
        broken(without(op))


def test_a_part_that_is_not_left_is_missed():
    def change(program: Program) -> Program:
        found = list(program.instructions)
        stores = [n for n, i in enumerate(found) if i.op == "store" and i.lanes == 4]
        (number,) = (n for n in stores if found[found[n].args[0]].op == "workspace")
        found[number] = replace(found[number], op="wgmma_fence", dtype=None, args=(), lanes=1)
        return replace(program, instructions=tuple(found))

    assert broken(change) > 0.01


def test_blocks_wait_for_those_before_them_alone():
    tiles = tiles_of(matmul_kernel(**CASE), WIDE, THREE, is_shared=True)
    values = [x.copy() for x in numbers(matmul_kernel(**CASE))]
    with pytest.raises(InternalError, match="a part is read that nobody has left"):
        interpret_tile.interpret(tiles, values, is_reversed=True)
    with pytest.raises(InternalError, match="all roles wait for one another"):
        interpret_program.interpret(program_of(tiles, THREE), values, tasks=[1])


def test_a_join_has_room_for_every_block():
    tiles = tiles_of(matmul_kernel(**CASE), WIDE, THREE, is_shared=True)
    (part,) = tiles.parts
    assert "acc += partial[" in format_tiles(tiles) and "Shares(" in format_tiles(tiles)
    narrow = [replace(t, shape=(2, *t.shape[1:])) if t.name == "partial" else t for t in part.tiles]
    with pytest.raises(InternalError, match="parts of acc are left in partial"):
        verify_tiles(replace(tiles, parts=(replace(part, tiles=tuple(narrow)),)))


@pytest.mark.parametrize(
    "m, n, k", [(3072, 768, 16384), (768, 3072, 4096), (512, 4608, 12544), (128, 768, 50304)]
)
def test_gradients_of_weights_are_shared(m, n, k):
    step = contract_cuda.build(matmul_kernel(m, n, k, bfloat16, "km", "kn"), H200).parts[0].steps[0]
    assert isinstance(step, Persistent) and step.shares is not None
    assert step.block.size == 132 and isinstance(step.body[-1], Join)


@pytest.mark.parametrize(
    "m, n, k", [(4096, 4096, 4096), (1024, 1024, 1024), (8192, 768, 768), (2304, 768, 16384)]
)
def test_what_fills_the_processors_or_is_short_is_not_shared(m, n, k):
    step = contract_cuda.build(matmul_kernel(m, n, k, bfloat16, "km", "kn"), H200).parts[0].steps[0]
    assert isinstance(step, Persistent) and step.shares is None


def test_parts_pass_16_bytes_at_a_time(tmp_path):
    tiles = contract_cuda.build(matmul_kernel(3072, 768, 16384, bfloat16, "km", "kn"), H200)
    cubin, log = compile_cuda(source_of(tiles)[0], "sm_90a")
    assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log), log
    assert "C75" not in log and "serialized" not in log, log
    sass = disassemble(cubin, tmp_path)
    count = tiles.parts[0].tiles[0].layout.register_count // 4
    assert sass.count("STG.E.128 ") == sass.count("LDG.E.128 ") == count
    assert "LDL" not in sass and "STL" not in sass
