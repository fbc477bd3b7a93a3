"""Distributions made of others, against PyTorch's."""

import numpy as np
import pytest
from distribution_support import (
    A,
    P,
    check_against_pytorch,
    check_divergence,
    check_same,
    fact,
    torch,
)

import picograd
from picograd import Tensor, distributions

ROWS = [
    ("LogNormal", (A, P), [0.1, 1.0, 2.0]),
    ("Weibull", (A, [1.0, 2.0, 3.0]), [0.1, 1.0, 2.0]),
    ("Pareto", ([0.05, 0.5, 1.0], A), [0.1, 1.0, 2.0]),
]


@pytest.mark.parametrize(("name", "given", "values"), ROWS, ids=[row[0] for row in ROWS])
def test_against_pytorch(name: str, given: tuple, values: list[float]) -> None:
    check_against_pytorch(name, given, values)
    check_divergence(name, given)


def test_gradients_through_relaxed_choices() -> None:
    logits = Tensor([0.5, -0.5], requires_grad=True)
    relaxed = distributions.RelaxedOneHotCategorical(0.5, logits=logits).rsample()
    relaxed[0].backward()
    assert abs(relaxed.sum().item() - 1) < 1e-5 and logits.grad.abs().sum().item() > 0
    straight = distributions.OneHotCategoricalStraightThrough(logits=logits).rsample()
    assert sorted(straight.tolist()) == pytest.approx([0.0, 1.0], abs=1e-6)


def composed(library):
    d = library.distributions
    two = d.Normal(library.zeros(2, 3), library.ones(2, 3))
    mixture = d.MixtureSameFamily(d.Categorical(library.tensor([0.25, 0.75])), parts(library))
    flow = [d.AffineTransform(1.0, 2.0), d.SigmoidTransform()]
    bent = d.TransformedDistribution(d.Normal(library.zeros(3), library.ones(3)), flow)
    tanh = d.TransformedDistribution(d.Independent(two, 1), [d.TanhTransform()])
    return [d.Independent(two, 1), mixture, bent, tanh, d.RelaxedBernoulli(
        library.tensor(0.5), library.tensor(P))]  # fmt: skip


def parts(library):
    normal = library.distributions.Normal
    return normal(library.tensor([0.0, 2.0]), library.tensor([1.0, 0.5]))


def test_made_of_others() -> None:
    x = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3)).astype(np.float32)
    for ours, theirs in zip(composed(picograd), composed(torch)):
        check_same(ours.log_prob(Tensor(x)), theirs.log_prob(torch.from_numpy(x)))
        assert ours.sample((4,)).shape == tuple(theirs.sample((4,)).shape)
        assert ours.batch_shape == tuple(theirs.batch_shape)
        for what in ("mean", "variance"):
            answer = fact(theirs, what)
            if answer is not None:
                check_same(fact(ours, what), answer)
