"""Maps for CUDA of every kind: joined, padded, transposed, gathered, several in one launch."""

import pytest
from template_cases import check, check_no_spills

MAPS = ["max_pool", "pad", "joined", "transpose", "transpose_batch", "reshaped", "gather", "adam"]
ALIKE = ["adam_alike", "beside_alike", "beside_split"]


@pytest.mark.parametrize("name", [*MAPS, "beside", *ALIKE])
def test_values_on_cuda(name: str) -> None:
    check(name)


def test_nothing_spills() -> None:
    check_no_spills("adam")
    check_no_spills("adam_alike")
