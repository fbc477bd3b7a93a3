"""The gamma distribution and those made of it, against PyTorch's."""

import numpy as np
import pytest
from distribution_support import A, P, check_against_pytorch, check_divergence, check_moments, torch

from picograd import Tensor, distributions

ROWS = [
    ("Gamma", (A, P), [0.1, 1.0, 2.0]),
    ("Chi2", (A,), [0.1, 1.0, 2.0]),
    ("Beta", (A, P), [0.1, 0.5, 0.9]),
    ("Dirichlet", (A,), [0.2, 0.3, 0.5]),
    ("FisherSnedecor", ([1.0, 3.0, 5.0], [5.0, 6.0, 3.0]), [0.1, 1.0, 2.0]),
    ("StudentT", ([3.0, 4.0, 5.0], A, P), [0.1, 1.0, 2.0]),
    ("NegativeBinomial", (A, P), [0.0, 1.0, 3.0]),
]


@pytest.mark.parametrize(("name", "given", "values"), ROWS, ids=[row[0] for row in ROWS])
def test_against_pytorch(name: str, given: tuple, values: list[float]) -> None:
    check_against_pytorch(name, given, values)
    check_divergence(name, given)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row[0] in ("Beta",)], ids=lambda row: row[0]
)
def test_draws_have_the_moments(row: tuple) -> None:
    check_moments(*row[:2])


def test_gradients_through_draws() -> None:
    """Draws of gamma numbers move with the shape as PyTorch's do."""
    shape = Tensor([0.7, 3.0], requires_grad=True)
    draws = distributions.Gamma(shape, Tensor([2.0, 2.0])).rsample()
    draws.sum().backward()
    unit = torch.from_numpy(draws.detach().numpy() * 2.0)
    slope = torch._standard_gamma_grad(torch.tensor([0.7, 3.0]), unit)
    np.testing.assert_allclose(shape.grad.numpy(), slope.numpy() / 2.0, rtol=1e-3)


def test_fisher_snedecor_draws() -> None:
    check_moments("FisherSnedecor", ([3.0, 8.0], [12.0, 20.0]))
    shape = Tensor([3.0, 8.0], requires_grad=True)
    distributions.FisherSnedecor(shape, 12.0).rsample((3,)).sum().backward()
    assert np.isfinite(shape.grad.numpy()).all() and shape.grad.abs().sum().item() > 0


def test_dirichlet_at_zero() -> None:
    """0 to the power of 0 is 1: the density where a concentration is 1 has a value there."""
    for value in ([0.0, 1.0], [0.5, 0.5]):
        ours = distributions.Dirichlet(Tensor([1.0, 2.0])).log_prob(Tensor(value))
        theirs = torch.distributions.Dirichlet(torch.tensor([1.0, 2.0]))
        assert ours.item() == pytest.approx(theirs.log_prob(torch.tensor(value)).item())
