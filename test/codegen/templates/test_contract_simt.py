"""Which tile a product without tensor cores gets, and in how many parts K is cut."""

import numpy as np
import pytest
import twin_products
from contractions import matmul
from cuda_tools import compile_host, matmul_kernel, run_host

from picograd.codegen.operands import analyse, with_twin
from picograd.codegen.pipeline import generate
from picograd.codegen.templates import contract_cuda
from picograd.codegen.templates.contract_steps import PLAIN, cost, sorted_options, split_count
from picograd.dtype import float32, float64
from picograd.target import cuda_target, opencl_target

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


TWINS = {
    "columns of weights": dict(m=100, n=136, k=72, b="nk"),
    "rows of weights, products stored": dict(m=130, n=200, k=40, is_kept=True),
    "no whole vectors": dict(m=130, n=203, k=41, b="nk"),
    "turned": dict(m=132, n=260, k=100, a="km"),
}


def test_threads_have_patches_of_a_product_and_of_its_twin() -> None:
    few = cuda_target("sm_90a", 2)
    kernels = [twin_products.gated_kernel(**case, dtype=float32) for case in TWINS.values()]
    tiles = [contract_cuda.build(kernel, few) for kernel in kernels]
    library = compile_host(tiles)
    generator = np.random.default_rng(0)
    for case, kernel, each in zip(TWINS.values(), kernels, tiles, strict=True):
        own, beside = each.parts[0].tiles
        assert (own.name, beside.name, own.shape) == ("acc", "beside", beside.shape)
        arrays = [generator.standard_normal(slot.size).astype("f") for slot in kernel.slots]
        inputs = {n: arrays[n] for n, slot in enumerate(kernel.slots) if slot.role == "in"}
        want = twin_products.expected(kernel, arrays, case)
        found = run_host(library, each, inputs)
        assert set(found) <= set(want)
        for number, value in found.items():
            assert np.abs(value - want[number]).max() < 2e-6 * np.abs(want[number]).max()


def test_tiles_of_twins_have_whole_patches_of_each() -> None:
    kernel = twin_products.gated_kernel(4096, 2048, 768, float32, b="nk")
    c = with_twin(analyse(kernel, kernel.parts[0]))
    assert c.sizes == (1, 4096, 4096, 768) and c.twin.number == 1
    found = sorted_options(c, float32, (True, True), TARGET)
    assert 0 < len(found) < len(PLAIN)
    for each in found:
        assert each.layout.shape == (each.block[0], each.block[1] // 2)
        assert each.layout.register_count * each.threads * 2 == each.block[0] * each.block[1]


@pytest.mark.parametrize("target", [cuda_target("sm_90a"), opencl_target()], ids=["cuda", "opencl"])
def test_blocks_that_cannot_wait_leave_a_long_sum_to_the_last(target):
    kernel = matmul((1, 60, 40, 16384)).kernel
    made = {}
    generate(kernel, target, made.__setitem__, True)
    assert [len(part.ahead) for part in made["tile"].parts] == [target.has_waiting_blocks]
