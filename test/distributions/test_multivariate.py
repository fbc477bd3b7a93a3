"""The normal distribution of vectors, against PyTorch's."""

import pytest
from distribution_support import check_against_pytorch, check_divergence, check_moments

COVARIANCE = [[2.0, 0.5], [0.5, 1.0]]
ROWS = [("MultivariateNormal", ([0.0, 1.0], COVARIANCE), [0.5, 0.5])]


@pytest.mark.parametrize(("name", "given", "values"), ROWS, ids=[row[0] for row in ROWS])
def test_against_pytorch(name: str, given: tuple, values: list[float]) -> None:
    check_against_pytorch(name, given, values)
    check_divergence(name, given)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row[0] in ("MultivariateNormal",)], ids=lambda row: row[0]
)
def test_draws_have_the_moments(row: tuple) -> None:
    check_moments(*row[:2])
