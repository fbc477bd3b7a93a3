"""Transforms of numbers: values, inverses and slopes as PyTorch's."""

import numpy as np
import pytest
from distribution_support import check_same, torch

import picograd
from picograd import Tensor, distributions

X = np.array([0.3, 0.8, 1.4], np.float32)


def some(library) -> list:
    d, scale = library.distributions, library.tensor([0.5, -2.0, 1.0])
    return [
        d.ExpTransform(), d.SigmoidTransform(), d.TanhTransform(), d.SoftplusTransform(),
        d.AffineTransform(1.0, -2.0), d.AffineTransform(scale, scale), d.PowerTransform(-2.0),
        d.AffineTransform(1.0, scale, event_dim=1), d.PowerTransform(scale.abs()),
        d.CumulativeDistributionTransform(d.Normal(0.5, 2.0)),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(10))
def test_against_pytorch(number: int) -> None:
    ours, theirs = some(picograd)[number], some(torch)[number]
    y, other = ours(Tensor(X)), theirs(torch.from_numpy(X))
    check_same(y, other)
    check_same(ours.inv(y), torch.from_numpy(X))
    slope = ours.log_abs_det_jacobian(Tensor(X), y)
    check_same(slope, theirs.log_abs_det_jacobian(torch.from_numpy(X), other))
    signs = [
        each.tolist() if hasattr(each, "tolist") else each for each in (ours.sign, theirs.sign)
    ]
    assert signs[0] == signs[1]
    assert ours.event_dim == theirs.event_dim and ours.bijective
    assert ours.forward_shape((2, 3)) == (2, 3) == ours.inverse_shape((2, 3))
    if number < 9:
        assert ours == some(picograd)[number] and ours != some(picograd)[number - 1]


def test_absolute_values() -> None:
    folded = distributions.AbsTransform()
    assert folded(Tensor([-1.0, 2.0])).tolist() == [1.0, 2.0] and not folded.bijective


def test_a_copula() -> None:
    """Normal draws that depend on each other, each taken to (0, 1)."""
    factor = distributions.LKJCholesky(2).sample()
    base = distributions.MultivariateNormal(Tensor.zeros(2), scale_tril=factor)
    chance = distributions.CumulativeDistributionTransform(distributions.Normal(0.0, 1.0))
    drawn = distributions.TransformedDistribution(base, [chance]).sample((100,)).numpy()
    assert (drawn > 0).all() and (drawn < 1).all()
