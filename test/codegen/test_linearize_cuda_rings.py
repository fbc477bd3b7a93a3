"""Rings: barriers of stages, and where a role is in them."""

from box_products import program_of, tiles_of
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
