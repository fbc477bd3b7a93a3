"""The template of rows: softmax, norms, losses, in blocks of threads."""

import pytest
from template_cases import check, check_no_spills, names


@pytest.mark.parametrize(
    "name", names("softmax", "layer_norm", "moments", "argmax", "cross_entropy")
)
def test_values_on_cuda(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", ["softmax_aligned"])
def test_nothing_spills(name: str) -> None:
    check_no_spills(name)
