"""Divergences of distributions of different kinds: every pair that PyTorch knows."""

import numpy as np
import pytest
from distribution_support import check_same, made, torch

import picograd
from picograd import distributions
from picograd.distributions.kl import RULES

# two rows a kind: those of uniform ones are inside and outside of other kinds' values
KINDS = {
    "Bernoulli": [([0.2, 0.7],)],
    "Beta": [([0.7, 2.5], [1.5, 0.8])],
    "Binomial": [(3, [0.2, 0.7])],
    "ContinuousBernoulli": [([0.2, 0.7],)],
    "Exponential": [([0.5, 2.0],)],
    "Gamma": [([0.7, 2.5], [1.5, 0.8])],
    "Gumbel": [([0.5, -1.0], [1.5, 0.8])],
    "Laplace": [([0.5, -1.0], [1.5, 0.8])],
    "Normal": [([0.5, -1.0], [1.5, 0.8])],
    "Pareto": [([0.3, 1.5], [2.5, 1.5])],
    "Poisson": [([0.5, 2.0],)],
    "Uniform": [([0.1, 0.4], [0.6, 0.9]), ([-1.0, 1.6], [2.0, 3.0])],
}
PAIRS = [
    (one.__name__, other.__name__)
    for one, other in torch.distributions.kl._KL_REGISTRY
    if one is not other and {one.__name__, other.__name__} <= KINDS.keys()
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_pair(one: str, other: str) -> None:
    for first in KINDS[one]:
        for second in KINDS[other]:
            found, want = (
                library.distributions.kl_divergence(
                    made(library, one, first)[0], made(library, other, second)[0]
                )
                for library in (picograd, torch)
            )
            check_same(found, want)


@pytest.mark.parametrize(
    ("one", "other"), [("Beta", "Gamma"), ("Gamma", "Gumbel"), ("Normal", "Laplace")]
)
def test_gradients(one: str, other: str) -> None:
    slopes = []
    for library in (picograd, torch):
        p, ours = made(library, one, KINDS[one][0])
        q, theirs = made(library, other, KINDS[other][0])
        library.distributions.kl_divergence(p, q).sum().backward()
        slopes.append([parameter.grad.numpy() for parameter in ours + theirs])
    for found, want in zip(*slopes):
        np.testing.assert_allclose(found, want, 1e-4, 1e-5)


def test_every_pair_of_pytorch_is_known() -> None:
    known = {(one.__name__, other.__name__) for one, other in RULES}
    registry = torch.distributions.kl._KL_REGISTRY
    wanted = {(one.__name__, other.__name__) for one, other in registry}
    assert wanted <= known


def test_draws_agree() -> None:
    """A formula is the mean of the difference of logarithms."""
    picograd.manual_seed(0)
    p, q = distributions.Gamma(2.5, 1.5), distributions.Gumbel(0.5, 1.2)
    x = p.sample((20000,))
    mean = (p.log_prob(x) - q.log_prob(x)).mean().item()
    assert abs(mean - distributions.kl_divergence(p, q).item()) < 0.02
