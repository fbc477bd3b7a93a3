"""Bins of columns, one for each warp."""

from dataclasses import replace

import numpy as np
import pytest
from interpreted_cuda import NAME, interpreted_cuda

import picograd
from picograd import Tensor
from picograd.codegen.templates import bin_columns
from picograd.dtype import float32, int32
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Bins, Expr
from picograd.target import cuda_target

GPU, WARPS = cuda_target("sm_90a"), 8


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize(("count", "bins_of_each", "columns"), [(700, 2000, 8), (1100, 4000, 4)])
def test_warps_have_columns_beside_one_another(
    monkeypatch: pytest.MonkeyPatch, count: int, bins_of_each: int, columns: int
) -> None:
    """In one part, and in parts that are added up by another kernel; some places meet often."""
    found: list[bool] = []
    are_columns = bin_columns.are_columns

    def noted(*args: object) -> bool:
        found.append(are_columns(*args))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(bin_columns, "are_columns", noted)
    monkeypatch.setattr(bin_columns, "LEAST_BLOCKS", 0)
    random = np.random.default_rng(0)
    places = random.integers(0, bins_of_each, (count, columns))
    places[::3] = random.integers(0, 5, places[::3].shape)
    values = random.standard_normal((count, columns), np.float32)
    wanted = np.zeros((bins_of_each, columns))
    np.add.at(wanted, (places, np.arange(columns)), values)
    with interpreted_cuda(monkeypatch):
        zeros = picograd.zeros(bins_of_each, columns, device=NAME)
        index = Tensor(places, device=NAME)
        made = zeros.scatter_add(0, index, Tensor(values, device=NAME)).numpy()
    assert found == [True]
    np.testing.assert_allclose(made, wanted, rtol=0, atol=2e-5)


def sums_of_columns(count: int, tiles: int, stride: int) -> Bins:
    """Sums of 640 elements of each of `count` rows, elements so far apart: 0 where rows are."""
    row, axis, tile = Axis("r", count), Axis("k", 640), Axis("tile", tiles)
    place = Axis("place", 100)
    at = axis_index(row) + axis_index(axis) * stride
    if not stride:
        at = axis_index(row) * 640 + axis_index(axis)
    key = Expr("load", (), (0, at), int32)
    body = Expr("load", (), (1, at), float32)
    target = (axis_index(row) * tiles + axis_index(tile)) * 100 + axis_index(place)
    return Bins((row,), axis, tile, place, 640 // tiles, 1, key, body, 2, target)


def test_which_sums_are_those_of_columns() -> None:
    """Rows beside one another, in enough blocks of whole warps, whose parts nobody adds up."""
    many = GPU.multiprocessors * WARPS * bin_columns.LEAST_BLOCKS
    step = sums_of_columns(many, 1, many)
    assert bin_columns.are_columns(step, WARPS, GPU)
    assert bin_columns.are_columns(sums_of_columns(many // 2, 2, many // 2), WARPS, GPU)
    added = replace(sums_of_columns(many, 2, many), target=step.target)
    near = sums_of_columns(many, 1, 0)
    mixed = replace(step, body=near.body)
    few = sums_of_columns(many - WARPS, 1, many)
    for other in (added, near, mixed, few, replace(step, lanes=32), replace(step, rows=())):
        assert not bin_columns.are_columns(other, WARPS, GPU)
    assert not bin_columns.are_columns(sums_of_columns(many, 1, 1), WARPS, GPU)
    ragged = sums_of_columns(many + 1, 1, many + 1)
    assert not bin_columns.are_columns(ragged, WARPS, GPU)
    assert not bin_columns.are_columns(step, 1, GPU)
