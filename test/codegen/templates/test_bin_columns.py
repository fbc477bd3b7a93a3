"""Bins of columns, one for each warp."""

import numpy as np
import pytest
from interpreted_cuda import NAME, interpreted_cuda

import picograd
from picograd import Tensor
from picograd.codegen.templates import bin_columns


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
