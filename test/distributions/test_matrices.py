"""Distributions of matrices, against PyTorch's."""

import numpy as np
import pytest
from distribution_support import check_against_pytorch, check_same, made, torch

import picograd
from picograd import Tensor, distributions

COVARIANCE = [[2.0, 0.5], [0.5, 1.0]]
FACTOR = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]]
VALUE = [[3.0, 0.2], [0.2, 2.0]]


@pytest.mark.parametrize("size", [2, 3, 5])
def test_lkj_density(size: int) -> None:
    x = torch.distributions.LKJCholesky(size, 1.5).sample((4, 2))
    a, b = [0.5, 3.0], [0.5, 3.0]
    ours, theirs = Tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
    found = distributions.LKJCholesky(size, ours).log_prob(Tensor(x.numpy()))
    want = torch.distributions.LKJCholesky(size, theirs).log_prob(x)
    check_same(found, want)
    found.sum().backward()
    want.sum().backward()
    check_same(ours.grad, theirs.grad)


def test_lkj_draws() -> None:
    """Off-diagonal correlations are symmetric beta draws: their variance is 1 / (2 a + n - 1)."""
    picograd.manual_seed(0)
    ours = distributions.LKJCholesky(4, Tensor([1.0, 5.0]))
    factor = ours.sample((3000,))
    assert ours.support.check(factor).all().item()
    matrix = (factor @ factor.mT).numpy()
    for place in ((1, 0), (3, 1), (3, 2)):
        spread = matrix[..., place[0], place[1]].var(0)
        np.testing.assert_allclose(spread, [1 / 5, 1 / 13], rtol=0.1)
    assert ours.expand((3, 2)).sample().shape == (3, 2, 4, 4)
    with pytest.raises(ValueError, match="size 1"):
        distributions.LKJCholesky(1)


@pytest.mark.parametrize("place", [1, 2])
def test_wishart_against_pytorch(place: int) -> None:
    check_against_pytorch("Wishart", (4.0, *[None] * (place - 1), COVARIANCE), VALUE)


def test_wishart_of_a_factor() -> None:
    """As PyTorch's, but nothing reads what is above the diagonal: no gradient is there."""
    factor = [[2.0, 0.0], [0.5, 1.0]]
    given = ([4.0, 5.0], None, None, factor)
    ours, parameters = made(picograd, "Wishart", given)
    theirs, others = made(torch, "Wishart", given)
    found, want = ours.log_prob(Tensor(VALUE)), theirs.log_prob(torch.tensor(VALUE))
    check_same(found, want)
    found.sum().backward()
    want.sum().backward()
    check_same(parameters[0].grad, others[0].grad)
    check_same(parameters[3].grad, others[3].grad.tril())
    assert ours.expand((3, 2)).rsample((5,)).shape == (5, 3, 2, 2, 2)


def test_wishart_divergence() -> None:
    """PyTorch's is the general one of exponential families, which ours is compared with as well."""
    pairs = []
    for library in (picograd, torch):
        one = library.distributions.Wishart(library.tensor(4.0), library.tensor(COVARIANCE))
        other = library.distributions.Wishart(library.tensor(5.0), library.eye(2))
        pairs.append(library.distributions.kl_divergence(one, other))
    check_same(*pairs)
    one = distributions.Wishart(Tensor(4.0), Tensor(COVARIANCE))
    other = distributions.Wishart(Tensor(5.0), Tensor.eye(2))
    check_same(distributions.kl.kl_exponential_family(one, other), pairs[1])
    check_same(distributions.ExponentialFamily.entropy(one), torch.tensor(one.entropy().item()))


def test_wishart_draws() -> None:
    picograd.manual_seed(0)
    matrix = Tensor(COVARIANCE, requires_grad=True)
    ours = distributions.Wishart(Tensor(5.0), matrix)
    draws = ours.rsample((4000,))
    np.testing.assert_allclose(draws.mean(0).detach().numpy(), ours.mean.detach().numpy(), atol=0.4)
    spread = draws.detach().numpy().var(0)
    np.testing.assert_allclose(spread, ours.variance.detach().numpy(), rtol=0.15)
    draws.mean(0).sum().backward()
    np.testing.assert_allclose(matrix.grad.numpy().sum(), 20.0, rtol=0.1)  # of 5 V: 5 a place


def test_wishart_checks_its_parameters(cpu_by_default: None) -> None:
    with pytest.raises(ValueError, match="df"):
        distributions.Wishart(Tensor(1.0), Tensor.eye(3))
    with pytest.raises(ValueError, match="batch"):
        distributions.Wishart(Tensor(2.0), Tensor([1.0]))
    with pytest.raises(ValueError, match="2 of"):
        distributions.Wishart(Tensor(2.0), Tensor.eye(2), Tensor.eye(2))


def test_under_jit() -> None:
    @picograd.jit
    def step(df: Tensor, x: Tensor, factor: Tensor) -> Tensor:
        lkj = distributions.LKJCholesky(3, df).log_prob(factor)
        return distributions.Wishart(df, Tensor(COVARIANCE)).log_prob(x) + lkj

    other = torch.distributions
    want = other.Wishart(torch.tensor(4.0), torch.tensor(COVARIANCE)).log_prob(torch.tensor(VALUE))
    want = want + other.LKJCholesky(3, 4.0).log_prob(torch.tensor(FACTOR))
    for _ in range(2):
        check_same(step(Tensor(4.0), Tensor(VALUE), Tensor(FACTOR)), want)
