"""The von Mises distribution, against PyTorch's."""

import numpy as np
from distribution_support import A, check_against_pytorch, check_same, torch

import picograd
from picograd import Tensor, distributions

SPREAD = [0.5, 2.0, 20.0]


def test_against_pytorch() -> None:
    check_against_pytorch("VonMises", (A, SPREAD), [0.1, 1.0, -2.0])


def test_draws_point_where_they_should() -> None:
    picograd.manual_seed(0)
    angles = distributions.VonMises(Tensor(A), Tensor(SPREAD)).sample((4000,)).numpy()
    assert np.abs(angles).max() <= np.pi + 1e-6
    mean = np.exp(1j * angles.astype(np.float64)).mean(0)
    wanted = torch.distributions.VonMises(torch.tensor(A), torch.tensor(SPREAD)).variance.numpy()
    np.testing.assert_allclose(1 - np.abs(mean), wanted, atol=0.03)
    np.testing.assert_allclose(np.angle(mean)[1:], A[1:], atol=0.06)


def test_expand_and_jit() -> None:
    wide = distributions.VonMises(Tensor(A), 1.0).expand((2, 3))
    assert wide.sample((4,)).shape == (4, 2, 3)

    @picograd.jit
    def step(k: Tensor, x: Tensor) -> Tensor:
        return distributions.VonMises(0.0, k).log_prob(x)

    theirs = torch.distributions.VonMises(torch.tensor(0.0), torch.tensor(SPREAD))
    for _ in range(2):
        check_same(step(Tensor(SPREAD), Tensor(A)), theirs.log_prob(torch.tensor(A)))
