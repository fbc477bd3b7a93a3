"""Distributions that are simple ones, transformed, against PyTorch's."""

import numpy as np
import pytest
from distribution_support import (
    A,
    P,
    check_against_pytorch,
    check_divergence,
    check_moments,
    check_same,
    made,
    torch,
)

import picograd
from picograd import Tensor, distributions

ROWS = [
    ("LogNormal", (A, P), [0.1, 1.0, 2.0]),
    ("Weibull", (A, [1.0, 2.0, 3.0]), [0.1, 1.0, 2.0]),
    ("Pareto", ([0.05, 0.5, 1.0], A), [0.1, 1.0, 2.0]),
    ("InverseGamma", (A, P), [0.1, 1.0, 2.0]),
    ("LogisticNormal", ([0.0, 0.5], [1.0, 0.5]), [0.2, 0.5, 0.3]),
]
UNIT = ([0.5, 1.5, 2.5], [1.5, 2.5, 0.7])


@pytest.mark.parametrize(("name", "given", "values"), ROWS, ids=[row[0] for row in ROWS])
def test_against_pytorch(name: str, given: tuple, values: list[float]) -> None:
    check_against_pytorch(name, given, values)
    check_divergence(name, given)


def test_kumaraswamy() -> None:
    """All but the mode is PyTorch's, whose formula gives NaN: here it is where the density ends."""
    ours, theirs = (made(library, "Kumaraswamy", UNIT)[0] for library in (picograd, torch))
    at = [0.1, 0.5, 0.9]
    for what in ("log_prob", "cdf", "icdf"):
        check_same(getattr(ours, what)(Tensor(at)), getattr(theirs, what)(torch.tensor(at)))
    for what in ("mean", "variance"):
        check_same(getattr(ours, what), getattr(theirs, what))
    check_same(ours.entropy(), theirs.entropy())
    mode, x = ours.mode.numpy(), np.linspace(0.001, 0.999, 999, dtype=np.float32)
    assert np.isnan(mode[[0, 2]]).all()
    density = ours.log_prob(Tensor(x).unsqueeze(-1)).numpy()[:, 1]
    assert abs(mode[1] - x[density.argmax()]) < 1e-3


@pytest.mark.parametrize(
    ("name", "given"), [("InverseGamma", ([5.0, 7.0], [1.0, 2.0])), ("Kumaraswamy", UNIT)]
)
def test_draws_have_the_moments(name: str, given: tuple) -> None:
    check_moments(name, given)


@pytest.mark.parametrize("name", ["InverseGamma", "Kumaraswamy", "LogisticNormal"])
def test_gradients_through_draws(name: str) -> None:
    ours, parameters = made(picograd, name, UNIT)
    ours.rsample((2,)).sum(0).max().backward()
    assert all(np.isfinite(parameter.grad.numpy()).all() for parameter in parameters)


def test_shapes_are_expanded() -> None:
    base = distributions.LogisticNormal(Tensor.zeros(2), Tensor.ones(2))
    wide = base.expand((4,))
    assert wide.batch_shape == (4,) and wide.event_shape == (3,)
    assert wide.sample((5,)).shape == (5, 4, 3)
    wide = distributions.Kumaraswamy(Tensor(A), 1.5).expand((2, 3))
    assert wide.rsample().shape == wide.mean.shape == (2, 3)


def test_under_jit() -> None:
    @picograd.jit
    def step(a: Tensor, x: Tensor) -> Tensor:
        flat = distributions.Kumaraswamy(a, 2.0)
        return flat.log_prob(x) + flat.entropy() + flat.rsample() * 0.0

    a, x = Tensor([1.5, 2.5]), Tensor([0.3, 0.6])
    plain = distributions.Kumaraswamy(a, 2.0)
    for _ in range(2):
        np.testing.assert_allclose(
            step(a, x).numpy(), (plain.log_prob(x) + plain.entropy()).numpy(), 1e-5
        )
