"""Distributions of a number: values, gradients, divergences, draws as PyTorch's."""

import numpy as np
import pytest
from distribution_support import (
    A,
    P,
    check_against_pytorch,
    check_divergence,
    check_moments,
    check_same,
    torch,
)

from picograd import Tensor, distributions

ROWS = [
    ("Normal", (A, P), [0.1, -1.0, 2.0]),
    ("Laplace", (A, P), [0.1, -1.0, 2.0]),
    ("Cauchy", (A, P), [0.1, -1.0, 2.0]),
    ("Gumbel", (A, P), [0.1, -1.0, 2.0]),
    ("Uniform", ([0.0, 0.0, 0.0], A), [0.1, 0.2, 2.0]),
    ("Exponential", (A,), [0.1, 1.0, 2.0]),
    ("HalfNormal", (A,), [0.1, 1.0, 2.0]),
    ("HalfCauchy", (A,), [0.1, 1.0, 2.0]),
    ("GeneralizedPareto", ([0.0, 0.1, 0.0], A, [0.3, 0.0, -0.4]), [0.2, 0.4, 2.0]),
]


@pytest.mark.parametrize(("name", "given", "values"), ROWS, ids=[row[0] for row in ROWS])
def test_against_pytorch(name: str, given: tuple, values: list[float]) -> None:
    check_against_pytorch(name, given, values)
    check_divergence(name, given)


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row[0] in ("Normal", "Gumbel", "GeneralizedPareto")],
    ids=lambda row: row[0],
)
def test_draws_have_the_moments(row: tuple) -> None:
    check_moments(*row[:2])


def test_generalized_pareto_tails() -> None:
    """Concentration 0 is the exponential distribution, and gradients pass there."""
    power = Tensor([0.0, 0.25], requires_grad=True)
    tail = distributions.GeneralizedPareto(0.0, 2.0, power)
    theirs = torch.distributions.GeneralizedPareto(0.0, 2.0, torch.tensor([0.0, 0.25]))
    x = [0.5, 3.0]
    check_same(tail.log_cdf(Tensor(x)), theirs.log_cdf(torch.tensor(x)))
    check_same(tail.log_survival_function(Tensor(x)), theirs.log_survival_function(torch.tensor(x)))
    tail.log_prob(Tensor(x)).sum().backward()
    assert np.isfinite(power.grad.numpy()).all()
    with pytest.raises(ValueError, match="within"):
        distributions.GeneralizedPareto(0.0, 1.0, -1.0, True).log_prob(Tensor([2.0]))
