"""Distributions made of others, against PyTorch's."""

import numpy as np
import pytest
from distribution_support import P, check_same, fact, torch

import picograd
from picograd import Tensor, distributions


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


def flows(library):
    d = library.distributions
    normal = d.Normal(library.zeros(3, 4), library.ones(3, 4))
    stick = d.StickBreakingTransform()
    turned = [d.AffineTransform(1.0, -2.0), d.ExpTransform()]
    grid = d.ReshapeTransform((4,), (2, 2))
    wide = [d.AffineTransform(library.zeros(2, 3, 4), 2.0)]
    return [
        d.TransformedDistribution(normal, each) for each in (stick, turned, [stick], [grid], wide)
    ]


def test_transforms_that_change_shapes() -> None:
    for ours, theirs in zip(flows(picograd), flows(torch)):
        assert ours.batch_shape == tuple(theirs.batch_shape)
        assert ours.event_shape == tuple(theirs.event_shape)
        assert repr(ours.support) == repr(theirs.support)
        x = theirs.rsample()
        check_same(ours.log_prob(Tensor(x.numpy())), theirs.log_prob(x))
        batch = (5, *ours.batch_shape)
        wide, other = ours.expand(batch), theirs.expand(batch)
        assert wide.sample((2,)).shape == tuple(other.sample((2,)).shape)


def test_falling_transforms_turn_the_distribution_function() -> None:
    ours, theirs = flows(picograd)[1], flows(torch)[1]
    x = np.random.default_rng(0).uniform(0.1, 0.9, (3, 4)).astype(np.float32)
    check_same(ours.cdf(Tensor(x)), theirs.cdf(torch.from_numpy(x)))
    check_same(ours.icdf(Tensor(x)), theirs.icdf(torch.from_numpy(x)))


def test_what_cannot_be_transformed() -> None:
    d = distributions
    with pytest.raises(ValueError, match="Transform"):
        d.TransformedDistribution(d.Normal(0.0, 1.0), [abs])
    with pytest.raises(ValueError, match="fewer than 1 axes"):
        d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform())


def test_expanded_relaxed_choices() -> None:
    values = [[[0.2, 0.3, 0.5]], [[0.6, 0.3, 0.1]]]
    found = []
    for library in (picograd, torch):
        made = library.distributions.RelaxedOneHotCategorical(
            library.tensor(0.7), logits=library.tensor([0.1, 0.2, 0.3])
        ).expand((2, 1))
        assert made.rsample().shape == (2, 1, 3)
        found.append(made.log_prob(library.tensor(values)).numpy())
        with pytest.raises(NotImplementedError):
            made.entropy()
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_independent_prints_what_it_is_made_of() -> None:
    one = picograd.distributions.Independent(picograd.distributions.Normal(Tensor([0.5]), 1.0), 1)
    assert repr(one) == "Independent(Normal(loc: 0.5, scale: 1.0), 1)"
