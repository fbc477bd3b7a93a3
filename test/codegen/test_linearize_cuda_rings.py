"""Rings: barriers of stages, and where a role is in them."""

import numpy as np
from box_products import program_of, results, tiles_of
from cuda_tools import matmul_kernel

from picograd.dtype import bfloat16


def test_a_ring_has_two_barriers_a_stage_and_goes_round():
    tiles = tiles_of(matmul_kernel(256, 256, 640, bfloat16, b="nk"))
    stages = {tile.stages for tile in tiles.parts[0].tiles if tile.space == "shared"}
    program = program_of(tiles)
    instructions = program.instructions
    count = max(stages)
    inits = [instr for instr in instructions if instr.op == "barrier_init"]
    turns = 2  # teams
    assert len(inits) == 2 * count + turns
    numbers = {n: instr.arg for n, instr in enumerate(instructions) if instr.op == "const"}
    tests = [x for x in instructions if x.op == "equal" and numbers.get(x.args[1]) == count]
    assert len(tests) == 2, "one role fills, the other reads"
    assert sum(instr.op == "bitwise_xor" for instr in instructions) >= 2


def test_boxes_are_no_longer_than_the_array():
    """16 of 64 rows arrive: 2 KiB and 8 KiB of the other operand, in each stage."""
    case = dict(m=16, n=72, k=136, dtype=bfloat16, b="nk")
    program = program_of(tiles_of(matmul_kernel(**case), (64, 64)))
    expected = {i.arg for i in program.instructions if i.op == "barrier_expect"}
    left = [i.arg for i in program.instructions if i.op == "unfilled"]
    assert expected == {(16 + 64) * 128} and set(left) == {48 * 128} and len(left) == 10
    want, tile, found = results(case, (64, 64))
    assert np.abs(tile - want).max() < 8e-3 * np.abs(want).max()
    assert np.abs(found - want).max() < 8e-3 * np.abs(want).max()
