"""Estimates: what fusion decides by grows and falls with what it should."""

from dataclasses import replace

import pytest

from picograd.schedule.cost import (
    FEW_CHANNELS,
    PooledProduct,
    column_tile,
    machine,
    operand_work,
    packings,
    pool_work,
    row_work,
    shared_work,
    sum_parts,
    window_work,
)
from picograd.target import Target, cuda_target

GPU = cuda_target("sm_90a")


def cores(threads: int) -> Target:
    return Target("llvm", "test", 64, threads=threads)


@pytest.mark.parametrize("length", [1000, 1024, 1025, 32768, 32769, 1_000_000])
@pytest.mark.parametrize("axis", [0, 1])
def test_no_length_of_a_row_is_a_cliff(length: int, axis: int) -> None:
    shape = (1024, length) if axis else (length, 1024)
    assert row_work(shape, (axis,), 1, 4, cores(2)).is_together


def test_few_rows_are_cut_where_there_are_many_workers() -> None:
    assert row_work((2, 4_000_000), (1,), 1, 4, cores(1)).is_together
    assert not row_work((2, 4_000_000), (1,), 1, 4, cores(8)).is_together
    assert not row_work((8, 1_000_000), (1,), 1, 4, GPU).is_together
    assert row_work((512, 50_304), (1,), 1, 4, GPU).is_together


def test_a_row_that_is_read_again_from_memory_takes_longer() -> None:
    small, large = (row_work((8, n), (1,), 1, 16, cores(1)) for n in (50_000, 100_000))
    assert large.together > 3 * small.together


def test_short_runs_of_long_columns_stream_slowly() -> None:
    """Blocks of 8 columns of 16 bits: read twice from memory they take longer than two kernels."""
    assert not row_work((12544, 2048), (0,), 1, 2, GPU).is_together
    assert row_work((3136, 2048), (0,), 1, 2, GPU).is_together, "read again from a cache"
    assert row_work((12544, 2048), (0,), 1, 2, cores(8)).is_together


def test_estimates_grow_with_the_elements() -> None:
    for target in (cores(1), cores(8), GPU):
        found = [row_work((rows, 1000), (1,), 1, 4, target) for rows in (1000, 4000, 16000)]
        assert [x.together for x in found] == sorted(x.together for x in found)
        assert "4000 rows of 1000 are" in str(found[1])


def test_nothing_is_gained_by_rows_without_elements() -> None:
    assert not row_work((4, 0), (1,), 1, 4, cores(1)).is_together


def test_rows_take_dear_elements_only_where_they_are_kept() -> None:
    long, short = (row_work((1024, n), (1,), 1, 4, cores(2)) for n in (100_000, 1000))
    assert long.takes(4) and not long.takes(40) and short.takes(40)


def test_columns_of_a_task() -> None:
    assert column_tile(2048, 1, 1024, cores(2)) == 256
    assert column_tile(64, 16, 4096, cores(4)) == 256
    assert column_tile(32, 1, 4096, cores(4)) == 32
    assert column_tile(20, 6, 10, cores(4)) == 30  # short runs of columns, several a task
    assert column_tile(4096, 64, 32, GPU) == 128
    assert column_tile(2048, 1, 1024, GPU) == 8  # 8192 elements: 32 registers a thread


@pytest.mark.parametrize("target", [cores(8), GPU])
def test_values_are_stored_where_computing_them_again_is_dear(target: Target) -> None:
    made, large = machine(target), 10_000_000

    def is_stored(kernels: int, operations: int, loads: int, size: int = large) -> bool:
        return shared_work(kernels, operations, loads, size, 4, made).is_stored

    assert is_stored(2, 40, 1) and not is_stored(2, 20, 1)
    assert is_stored(2, 2, 4) and not is_stored(2, 2, 2)
    assert is_stored(6, 10, 2)
    assert not is_stored(2, 40, 1, 100)  # a kernel of its own would take longer


def test_what_windows_read_is_stored_where_each_row_of_taps_computes_it() -> None:
    made, large = machine(GPU), 10_000_000

    def is_stored(kernels: int, times: float, operations: int, loads: int = 1) -> bool:
        return window_work(kernels, times, (operations, loads, large, 2), made).is_stored

    assert is_stored(1, 3.0, 18) and is_stored(2, 1.5, 8) and is_stored(2, 1.5, 2, 2)
    assert not is_stored(1, 3.0, 2) and not is_stored(1, 1.0, 100)


def test_an_operand_is_stored_if_packing_it_again_takes_longer() -> None:
    made = machine(cores(1))
    once, often = (operand_work(n, 11, 2, 1 << 20, 4, made) for n in (1, 30))
    assert not once.is_stored and often.is_stored
    assert not operand_work(12, 1, 1, 1 << 20, 4, made).is_stored
    assert "packed 30 times, 11 operations and 2 loads: computed then" in str(often)


def test_what_is_not_packed_is_read_for_each_row_or_column() -> None:
    assert packings(1, 1000) == 1000 and packings(1000, 2) == 2
    assert packings(1000, 100) == 1 and packings(1000, 1000) == 4


def test_few_columns_are_worked_on_one_row_of_them_after_the_other() -> None:
    few, many = (row_work((30, 1000, n), (1,), 2, 4, cores(1)) for n in (16, 256))
    assert few.tile == 16_000 and many.tile == 256_000


def test_windows_are_reduced_where_a_cache_keeps_the_rows_they_are_of() -> None:
    large, small = (PooledProduct(count, 64, 576, 4) for count in (1 << 20, 1 << 10))
    few, many = (pool_work(large, held, 0, cores(2)) for held in (56, 2048))
    assert few.is_together and not many.is_together
    assert "windows are of 56 rows, " in str(few)
    assert pool_work(small, 2048, 0, cores(2)).is_together, "a launch takes longer"


def test_images_that_tasks_walk_down_are_shared_by_workers() -> None:
    made = PooledProduct(1 << 20, 64, 576, 4)
    assert pool_work(made, 56, 2, cores(2)).is_together
    alone = pool_work(made, 56, 1, cores(2))
    assert not alone.is_together and "of 56 rows of 1 images" in str(alone)
    wide = replace(made, columns=1024)
    assert not pool_work(wide, 56, 2, cores(2)).is_together, "columns are packed for each block"


def test_eight_vectors_meet_a_matrix_each_and_a_convolution_packs_from_five_channels() -> None:
    assert packings(1000, 8) == 8 and packings(1000, 9) == 1
    assert packings(1000, 5, FEW_CHANNELS) == 1 and packings(1000, 4, FEW_CHANNELS) == 4


def test_long_sums_of_few_results_are_summed_in_parts() -> None:
    def parts(m: int, n: int, k: int) -> int:
        return sum_parts(m, n, k, 2, GPU)

    assert parts(256, 768, 50304) == 16 and parts(1024, 768, 50304) == 4
    assert parts(8192, 768, 50304) == parts(4096, 4096, 4096) == 1  # there are tiles enough
    assert parts(768, 3072, 8192) == parts(512, 512, 512) == 1  # as much would be stored
    assert parts(256, 768, 50303) == 1  # no part is as long as another
    assert parts(64, 64, 1_000_000) == 50  # parts begin between chunks of 16 bytes
    assert parts(16, 768, 50304) == 1
