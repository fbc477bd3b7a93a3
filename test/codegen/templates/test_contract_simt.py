"""Which tile a product without tensor cores gets, and in how many parts K is cut."""

import pytest
from cuda_tools import matmul_kernel

from picograd.codegen.operands import analyse
from picograd.codegen.templates import contract_cuda
from picograd.codegen.templates.contract_steps import PLAIN, cost, sorted_options, split_count
from picograd.dtype import float32, float64
from picograd.target import cuda_target

TARGET = cuda_target("sm_90a", 132)
# Of rows, columns and K: the tile, its threads and the parts of K that were fastest on an H200, or
# nearly so.
CHOSEN = {
    (512, 512, 512): ((128, 64), 256, 4),
    (1024, 1024, 1024): ((256, 128), 256, 4),
    (1536, 1536, 1536): ((192, 128), 256, 4),
    (2048, 2048, 2048): ((256, 128), 256, 1),
    (3072, 3072, 3072): ((192, 128), 256, 1),
    (4096, 4096, 4096): ((256, 128), 256, 1),
    (8192, 768, 768): ((192, 128), 256, 1),
    (64, 4096, 4096): ((64, 128), 128, 16),
    (784, 256, 4096): ((64, 128), 128, 20),
    (16384, 16384, 16384): ((256, 128), 256, 1),
}


@pytest.mark.parametrize("sizes", CHOSEN, ids=str)
def test_the_tile_that_was_fastest_is_chosen(sizes: tuple[int, int, int]) -> None:
    kernel = matmul_kernel(*sizes, float32, "mk", "nk")
    tiles = contract_cuda.build(kernel, TARGET)
    (block, threads, splits), (part,) = CHOSEN[sizes], tiles.parts
    found = part.ahead[0] if part.ahead else part  # what all blocks add is multiplied before
    assert found.tiles[0].shape == block and tiles.threads == threads
    assert found.grid[-1].size == splits


def test_options_are_sorted_by_their_time() -> None:
    kernel = matmul_kernel(700, 300, 5000, float32, "mk", "nk")
    c = analyse(kernel, kernel.parts[0])
    found = sorted_options(c, float32, (True, True), TARGET)
    times = [cost(c, each, split_count(c, each, TARGET), TARGET) for each in found]
    assert times == sorted(times) and len(found) == len(PLAIN)
    assert all(each.a_is_k_major and each.b_is_k_major for each in found)
    (double,) = sorted_options(c, float64, (True, False), TARGET)
    assert double.vector == 2 and not double.b_is_k_major


def test_no_part_of_k_is_too_short() -> None:
    for k in (16, 64, 200, 5000):
        kernel = matmul_kernel(64, 64, k, float32, "mk", "nk")
        c = analyse(kernel, kernel.parts[0])
        for schedule in PLAIN:
            splits = split_count(c, schedule, TARGET)
            assert splits == 1 or k // splits >= 4 * schedule.block[2]
