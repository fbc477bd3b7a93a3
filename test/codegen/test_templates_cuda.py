"""Maps for CUDA of every kind: joined, padded, transposed, gathered, several in one launch."""

import pytest
from template_cases import check, check_no_spills

MAPS = ["max_pool", "pad", "joined", "transpose", "transpose_batch", "reshaped", "gather", "adam"]


@pytest.mark.parametrize("name", [*MAPS, "beside"])
def test_values_on_cuda(name: str) -> None:
    check(name)


def test_nothing_spills() -> None:
    check_no_spills("adam")
