"""The gamma distribution and those made of it, against PyTorch's."""

import math

import numpy as np
import pytest
from distribution_support import A, P, check_against_pytorch, check_divergence, check_moments, torch

import picograd
from picograd import Tensor, distributions
from picograd.distributions.gamma_family import log_gamma

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


def test_gamma_at_zero() -> None:
    for shape, density in ((1.0, 0.0), (2.0, -math.inf), (0.5, math.inf)):
        assert distributions.Gamma(shape, 1.0).log_prob(0).item() == density


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_draws_of_small_concentrations_lie_at_both_ends(dtype: str) -> None:
    picograd.manual_seed(1)
    for concentration in (1e-2, 5e-4):
        both = picograd.full((20000,), concentration, dtype=dtype)
        draws = distributions.Beta(both, both).sample().numpy()
        assert draws.min() > 0 and draws.max() < 1
        assert abs((draws < 0.1).mean() - 0.5) < 0.02 and abs((draws > 0.9).mean() - 0.5) < 0.02
    shares = distributions.Dirichlet(picograd.full((1000, 3), 1e-2, dtype=dtype)).sample()
    assert np.allclose(shares.sum(-1).numpy(), 1.0, atol=1e-5)


def test_logarithms_of_draws_follow_their_shapes() -> None:
    shapes = [0.7, 3.0, 0.02, 0.01, 1e-3]
    for seed in range(4):
        picograd.manual_seed(seed)
        shape = Tensor(shapes, dtype="float64", requires_grad=True)
        logs = log_gamma(shape)
        logs.sum().backward()
        draws = torch.from_numpy(logs.detach().exp().numpy())
        slope = torch._standard_gamma_grad(torch.tensor(shapes, dtype=torch.float64), draws)
        assert shape.grad is not None
        is_known = draws.numpy() > 1e-300
        given = slope.numpy()[is_known] / draws.numpy()[is_known]
        np.testing.assert_allclose(shape.grad.numpy()[is_known], given, rtol=2e-2)
        assert np.isfinite(shape.grad.numpy()).all()
    share = distributions.Beta(Tensor([0.5], requires_grad=True), 2.0).rsample()
    assert share.requires_grad and share.dtype is picograd.float32
