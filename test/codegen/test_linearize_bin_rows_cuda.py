"""Warps that read rows whose keys they have bins for."""

import numpy as np
import pytest
from interpreted_cuda import NAME, interpreted_cuda
from rowwise_cases import check_barriers, check_cuda, check_no_spills

import picograd
from picograd import Tensor
from picograd.graph import binning

NAMES = "bins_beside", "bins_beside_turns"


@pytest.mark.parametrize("name", NAMES)
def test_values(name: str) -> None:
    check_cuda(name)


@pytest.mark.parametrize("name", NAMES)
def test_what_waits_is_read_behind_barriers(name: str) -> None:
    check_barriers(name)


def test_nothing_spills() -> None:
    check_no_spills("bins_beside")


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize("count", [40, 1500])
def test_what_waits_behind_some_turns(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a warp of it at once, less, and none; with what is there before."""
    monkeypatch.setattr(binning, "BESIDE_WARPS", (2,))
    random = np.random.default_rng(0)
    index = random.integers(0, 60, count)
    index[count // 3 : count // 2] = 7
    values = random.integers(-9, 9, (count, 35)).astype("f")
    base = random.integers(-9, 9, (60, 35)).astype("f")
    wanted = base.copy()
    np.add.at(wanted, index, values)
    with interpreted_cuda(monkeypatch):
        monkeypatch.setattr(picograd.graph.indexing, "MOST_VISITS", 0)
        given = [Tensor(each, device=NAME) for each in (base, index, values)]
        found = given[0].index_add(0, *given[1:]).numpy()
    np.testing.assert_array_equal(found, wanted)
