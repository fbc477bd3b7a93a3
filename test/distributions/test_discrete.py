"""Distributions of counts and choices, against PyTorch's."""

import pytest
from distribution_support import A, P, check_against_pytorch, check_divergence, check_moments

ROWS = [
    ("Poisson", (A,), [0.0, 1.0, 3.0]),
    ("Bernoulli", (P,), [0.0, 1.0, 1.0]),
    ("Geometric", (P,), [0.0, 1.0, 3.0]),
    ("Binomial", (4, P), [0.0, 1.0, 3.0]),
    ("Categorical", (P,), [0.0, 1.0, 2.0]),
    ("OneHotCategorical", (P,), [0.0, 1.0, 0.0]),
    ("Multinomial", (4, P), [1.0, 2.0, 1.0]),
]


@pytest.mark.parametrize(("name", "given", "values"), ROWS, ids=[row[0] for row in ROWS])
def test_against_pytorch(name: str, given: tuple, values: list[float]) -> None:
    check_against_pytorch(name, given, values)
    check_divergence(name, given)


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row[0] in ("Geometric", "Binomial", "Multinomial")],
    ids=lambda row: row[0],
)
def test_draws_have_the_moments(row: tuple) -> None:
    check_moments(*row[:2])
