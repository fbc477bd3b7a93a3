"""Products of few rows on a GPU: a sum along K for each row, without tiles."""

from dataclasses import replace

import numpy as np
import pytest
from contractions import Case, matmul

from picograd import Tensor
from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.templates import contract, contract_few
from picograd.codegen.tile import MainLoop
from picograd.dtype import bfloat16, float8_e4m3fn, float64
from picograd.schedule.index import Axis
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

TARGET = cuda_target("sm_90a")
CASES = {  # batch, M, N, K
    "along K": matmul((1, 1, 9, 300), order_b=(0, 2, 1), with_bias=True),
    "along N": matmul((1, 1, 70, 40)),
    "three rows": matmul((1, 3, 11, 260), order_b=(0, 2, 1), with_bias=True),
    "three rows along N": matmul((1, 3, 66, 40), with_bias=True),
    "odd rows along N": matmul((1, 3, 139, 37)),
    "columns": matmul((1, 40, 2, 33)),
    "one number": matmul((1, 1, 1, 6000)),
    "batch": matmul((3, 2, 10, 24)),
    "float64": matmul((1, 2, 8, 40), dtype=float64),
}


def has_tiles(case: Case) -> bool:
    tiles = contract.build(case.kernel, TARGET)
    return any(isinstance(step, MainLoop) for part in tiles.parts for step in part.steps)


@pytest.mark.parametrize("name", CASES)
def test_it_means_the_same_at_every_stage(name: str) -> None:
    case = CASES[name]
    assert not has_tiles(case)
    tiles = contract.build(case.kernel, TARGET)
    for interpret, stage in (
        (interpret_tile.interpret, tiles),
        (interpret_program.interpret, linearize(tiles, TARGET)),
    ):
        out = np.zeros(case.expected.size, case.kernel.slots[-1].dtype.numpy)
        slots = [*(each.ravel().copy() for each in case.inputs), out]
        interpret(stage, slots)
        np.testing.assert_allclose(slots[-1], case.expected.ravel(), rtol=1e-4, atol=1e-4)


def test_more_rows_are_tiles() -> None:
    most, few = contract_few.MOST, contract_few.FEW
    for rows, depth, has in ((most, 160, False), (most + 1, 160, True), (few + 1, 37, True)):
        assert has_tiles(matmul((1, rows, 300, depth))) is has
    for rows, has in ((most, False), (most + 1, True)):
        assert has_tiles(matmul((1, rows, 300, 37), order_b=(0, 2, 1))) is has
    across = dict(order_a=(0, 2, 1), order_b=(0, 2, 1))  # of which a thread would read many lines
    for rows, has in ((few, False), (few + 1, True)):
        assert has_tiles(matmul((1, rows, 300, 160), **across)) is has


def test_what_tensor_cores_multiply_is_of_one_row_or_small() -> None:
    for rows, columns, along_k, is_few in (
        (1, 64, True, True), (1, 64, False, False), (4, 64, True, True), (5, 64, True, False),
        (4, 1 << 17, True, False), (1, 1 << 17, True, True),
        (1, 257, False, True), (4, 257, False, True), (5, 257, False, False),
    ):  # fmt: skip
        x = Tensor.empty(rows, 64, dtype=bfloat16).realize()
        w = Tensor.empty(*((columns, 64) if along_k else (64, columns)), dtype=bfloat16).realize()
        (step,) = schedule([(x @ (w.T if along_k else w)).node], TARGET).steps
        assert (contract_few.build(step.kernel, TARGET) is not None) is is_few


def test_a_thread_reads_its_columns_of_a_row_and_what_they_share_once() -> None:
    case = CASES["odd rows along N"]
    program = linearize(contract.build(case.kernel, TARGET), TARGET)
    depth, read = 0, []
    for instr in program.instructions:
        depth += (instr.op == "loop") - (instr.op == "end")
        if instr.op == "load" and program.instructions[instr.args[0]].op == "param":
            read.append((program.instructions[instr.args[0]].arg, depth))
    assert read == [(0, 1), (0, 1), (0, 1), (1, 2)]  # rows of K, in which columns


def test_what_is_no_product_with_its_end_is_left() -> None:
    for dtype, is_few in ((bfloat16, True), (float8_e4m3fn, False)):
        kernel = matmul((1, 1, 30, 64), dtype, order_b=(0, 2, 1)).kernel
        assert (contract_few.build(kernel, TARGET) is not None) is is_few
    kernel = matmul((1, 1, 30, 64)).kernel
    (part,) = kernel.parts
    longer = (Axis("l", 65),)
    other = replace(part.computes[0], reduce=longer)  # a second sum, of more products
    twice = replace(part, computes=(*part.computes, other))
    assert contract_few.build(replace(kernel, parts=(twice,)), TARGET) is None


def test_short_sums_are_of_a_thread_each() -> None:
    for batch, hero in ((70_000, "reduce.col"), (70, "reduce.row")):
        tiles = contract_few.build(matmul((batch, 2, 4, 4), order_b=(0, 2, 1)).kernel, TARGET)
        assert tiles is not None and tiles.kernel.hero == hero


def test_threads_wait_for_two_vectors_of_a_matrix() -> None:
    for depth, blocks in ((1024, 75), (1032, 300), (2048, 300), (2056, 600), (4096, 600)):
        kernel = matmul((1, 1, 600, depth), bfloat16, order_b=(0, 2, 1)).kernel
        assert linearize(contract.build(kernel, TARGET), TARGET).tasks == blocks
