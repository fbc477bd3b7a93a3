"""The continuous Bernoulli distribution, against PyTorch's and around 1/2."""

import numpy as np
import pytest
from distribution_support import (
    P,
    check_against_pytorch,
    check_divergence,
    check_moments,
    check_same,
    torch,
)

import picograd
from picograd import Tensor, distributions

AT = [0.1, 0.5, 0.9]


@pytest.mark.parametrize("probs", [P, [0.02, 0.4999, 0.78], [0.45, 0.5002, 0.6]])
def test_against_pytorch(probs: list[float]) -> None:
    check_against_pytorch("ContinuousBernoulli", (probs,), AT)
    check_divergence("ContinuousBernoulli", (probs,))


def test_logits_and_gradients() -> None:
    """Every fact and its derivative, in float64, on both sides of the switch between formulas."""
    t = np.array([-20.0, -3.0, -0.51, -0.49, -1e-2, 1e-2, 0.49, 0.51, 3.0, 20.0])
    ours = Tensor(t, requires_grad=True)
    theirs = torch.tensor(t, requires_grad=True)
    one = distributions.ContinuousBernoulli(logits=ours)
    other = torch.distributions.ContinuousBernoulli(logits=theirs)
    x = Tensor(np.full(10, 0.3))
    y = torch.full((10,), 0.3, dtype=torch.float64)
    pairs = [(one.mean, other.mean), (one.variance, other.variance)]
    pairs += [(one.entropy(), other.entropy()), (one.log_prob(x), other.log_prob(y))]
    pairs += [(one.cdf(x), other.cdf(y)), (one.icdf(x), other.icdf(y))]
    for found, want in pairs:
        np.testing.assert_allclose(found.detach().numpy(), want.detach().numpy(), 1e-6, 1e-9)
        slope = torch.autograd.grad(want.sum(), theirs, retain_graph=True)[0].numpy()
        mine = picograd.grad(found.sum(), ours)[0].numpy()
        far = np.abs(t) > 0.1  # PyTorch's own derivative is a short sum between its limits
        np.testing.assert_allclose(mine[far], slope[far], 1e-5, 1e-8)


def test_the_fair_one_is_uniform() -> None:
    fair = distributions.ContinuousBernoulli(Tensor([0.5], requires_grad=True))
    x = Tensor([0.25])
    for what, want in (("log_prob", 0.0), ("cdf", 0.25), ("icdf", 0.25)):
        assert abs(getattr(fair, what)(x).item() - want) < 1e-7
    check_same(fair.variance, torch.tensor([1 / 12]))


def test_draws() -> None:
    check_moments("ContinuousBernoulli", (P,))
    logits = Tensor([-2.0, 0.0, 2.0], requires_grad=True)
    distributions.ContinuousBernoulli(logits=logits).rsample((4,)).sum().backward()
    assert (logits.grad > 0).all().item()
    sure = distributions.ContinuousBernoulli(Tensor([0.0, 1.0]))
    assert np.isfinite(sure.sample((3,)).numpy()).all()
    assert distributions.ContinuousBernoulli(Tensor(P)).expand((2, 3)).sample().shape == (2, 3)


def test_under_jit() -> None:
    @picograd.jit
    def step(logits: Tensor, x: Tensor) -> Tensor:
        one = distributions.ContinuousBernoulli(logits=logits)
        return one.log_prob(x) + one.entropy() + one.rsample() * 0.0

    logits, x = Tensor([-1.0, 0.0, 2.0]), Tensor(AT)
    one = torch.distributions.ContinuousBernoulli(logits=torch.tensor([-1.0, 0.0, 2.0]))
    for _ in range(2):
        check_same(step(logits, x), one.log_prob(torch.tensor(AT)) + one.entropy())
