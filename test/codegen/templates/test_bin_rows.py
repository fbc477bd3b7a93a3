"""Bins of rows beside one another: which blocks have what."""

import pytest
from rowwise_cases import step_count

from picograd.graph.binning import LANES, QUEUED, beside_of
from picograd.target import cuda_target

GPU = cuda_target("sm_90a")


def test_the_step_count_does_not_depend_on_the_size() -> None:
    assert step_count("bins_beside") == step_count("bins_beside_turns") <= 15


@pytest.mark.parametrize("bins", [1, 64, 2708, 10_000, 25_000])
@pytest.mark.parametrize("rows", [8, 33, 64, 500])
@pytest.mark.parametrize("itemsize", [4, 8])
def test_blocks_have_room_for_their_bins(bins: int, rows: int, itemsize: int) -> None:
    """And for what waits, in no more waves than other numbers of warps have."""
    found = beside_of(bins, rows, 1000, itemsize, GPU)
    assert found is not None
    each, warps = found
    assert warps * (each * LANES * itemsize + QUEUED * 8) <= GPU.shared_bytes
    blocks = -(-bins // each) * -(-rows // LANES)
    if bins * rows <= 64 * 500:
        assert blocks <= GPU.multiprocessors and warps == 16


def test_too_many_numbers_are_not_looked_at() -> None:
    assert beside_of(50_000, 64, 1_000_000, 4, GPU) is None
    assert beside_of(50, 4, 1000, 4, GPU) is None
