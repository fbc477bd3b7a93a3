"""Roles: what the program of a pipeline is made of."""

from box_products import program_of, tiles_of
from cuda_tools import matmul_kernel

from picograd.dtype import bfloat16


def ops_of(program, op):
    return [instr for instr in program.instructions if instr.op == op]


def test_two_roles_run_beside_one_another():
    program = program_of(tiles_of(matmul_kernel(256, 256, 640, bfloat16, b="nk")))
    first, second = (instr.arg for instr in ops_of(program, "role"))
    assert (first.first, first.threads, first.teams, first.follows) == (0, 128, 1, False)
    assert (second.first, second.threads, second.teams, second.follows) == (128, 128, 2, True)
    assert first.registers * 128 + second.registers * 256 <= 65536


def test_a_stage_is_one_copy_a_slab_and_all_of_its_bytes_are_expected():
    along = program_of(tiles_of(matmul_kernel(256, 256, 640, bfloat16, b="nk")))
    assert len(ops_of(along, "copy_box")) == 2
    across = program_of(tiles_of(matmul_kernel(256, 256, 640, bfloat16, a="km")))
    assert len(ops_of(across, "copy_box")) == 4, "slabs of 64 columns"
    for program in (along, across):
        (expected,) = ops_of(program, "barrier_expect")
        assert expected.arg == 2 * 128 * 64 * 2


def test_barriers_count_who_arrives():
    for block, groups in (((128, 128), 1), ((128, 256), 2)):
        program = program_of(tiles_of(matmul_kernel(256, 256, 64, bfloat16), block))
        counts = [instr.arg for instr in ops_of(program, "barrier_init")]
        assert set(counts) == {1, groups} and (2 in counts) == (groups == 2)


def test_one_group_of_products_stays_under_way():
    program = program_of(tiles_of(matmul_kernel(256, 256, 640, bfloat16)))
    assert [instr.arg for instr in ops_of(program, "wgmma_wait")] == [1, 0]
    products = ops_of(program, "wgmma")
    assert len(products) == 4 * 2, "4 times 16 of K, two fragments of 64 rows"
    assert {instr.arg.register for instr in products} == {0, 64}


def test_the_index_type_is_wide_where_an_array_is():
    program = program_of(tiles_of(matmul_kernel(1 << 16, 1 << 16, 64, bfloat16)))
    loops = [instr.dtype.name for instr in program.instructions if instr.op == "loop"]
    assert set(loops) == {"int64"}


def test_what_describes_boxes_is_fetched_before_they_are_wanted():
    program = program_of(tiles_of(matmul_kernel(256, 256, 640, bfloat16)))
    ops = [instr.op for instr in program.instructions]
    fetched = {instr.args for instr in ops_of(program, "prefetch_map")}
    numbers = {program.instructions[tensor].arg for (tensor,) in fetched}
    assert len(numbers) == 2 and ops.index("prefetch_map") < ops.index("barrier_init")
