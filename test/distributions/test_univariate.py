"""Distributions of a number: values, gradients, divergences, draws as PyTorch's."""

import pytest
from distribution_support import A, P, check_against_pytorch, check_divergence, check_moments

ROWS = [
    ("Normal", (A, P), [0.1, -1.0, 2.0]),
    ("Laplace", (A, P), [0.1, -1.0, 2.0]),
    ("Cauchy", (A, P), [0.1, -1.0, 2.0]),
    ("Gumbel", (A, P), [0.1, -1.0, 2.0]),
    ("Uniform", ([0.0, 0.0, 0.0], A), [0.1, 0.2, 2.0]),
    ("Exponential", (A,), [0.1, 1.0, 2.0]),
    ("HalfNormal", (A,), [0.1, 1.0, 2.0]),
    ("HalfCauchy", (A,), [0.1, 1.0, 2.0]),
]


@pytest.mark.parametrize(("name", "given", "values"), ROWS, ids=[row[0] for row in ROWS])
def test_against_pytorch(name: str, given: tuple, values: list[float]) -> None:
    check_against_pytorch(name, given, values)
    check_divergence(name, given)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row[0] in ("Normal", "Gumbel")], ids=lambda row: row[0]
)
def test_draws_have_the_moments(row: tuple) -> None:
    check_moments(*row[:2])
