"""Distributions against PyTorch's: values, gradients, divergences, draws."""

import math

import numpy as np
import pytest

import picograd
from picograd import Tensor, distributions

torch = pytest.importorskip("torch")

A, P = [0.5, 1.5, 2.5], [0.2, 0.5, 0.7]
COVARIANCE = [[2.0, 0.5], [0.5, 1.0]]
# name, parameters, values
ROWS = [
    ("Normal", (A, P), [0.1, -1.0, 2.0]),
    ("LogNormal", (A, P), [0.1, 1.0, 2.0]),
    ("Laplace", (A, P), [0.1, -1.0, 2.0]),
    ("Cauchy", (A, P), [0.1, -1.0, 2.0]),
    ("Gumbel", (A, P), [0.1, -1.0, 2.0]),
    ("Uniform", ([0.0, 0.0, 0.0], A), [0.1, 0.2, 2.0]),
    ("Exponential", (A,), [0.1, 1.0, 2.0]),
    ("HalfNormal", (A,), [0.1, 1.0, 2.0]),
    ("HalfCauchy", (A,), [0.1, 1.0, 2.0]),
    ("Gamma", (A, P), [0.1, 1.0, 2.0]),
    ("Chi2", (A,), [0.1, 1.0, 2.0]),
    ("Beta", (A, P), [0.1, 0.5, 0.9]),
    ("Dirichlet", (A,), [0.2, 0.3, 0.5]),
    ("StudentT", ([3.0, 4.0, 5.0], A, P), [0.1, 1.0, 2.0]),
    ("Weibull", (A, [1.0, 2.0, 3.0]), [0.1, 1.0, 2.0]),
    ("Pareto", ([0.05, 0.5, 1.0], A), [0.1, 1.0, 2.0]),
    ("NegativeBinomial", (A, P), [0.0, 1.0, 3.0]),
    ("Poisson", (A,), [0.0, 1.0, 3.0]),
    ("Bernoulli", (P,), [0.0, 1.0, 1.0]),
    ("Geometric", (P,), [0.0, 1.0, 3.0]),
    ("Binomial", (4, P), [0.0, 1.0, 3.0]),
    ("Categorical", (P,), [0.0, 1.0, 2.0]),
    ("OneHotCategorical", (P,), [0.0, 1.0, 0.0]),
    ("Multinomial", (4, P), [1.0, 2.0, 1.0]),
    ("MultivariateNormal", ([0.0, 1.0], COVARIANCE), [0.5, 0.5]),
]
DRAWN = ("Normal", "Gumbel", "Beta", "Geometric", "Binomial", "Multinomial", "MultivariateNormal")
FACTS = ("mean", "variance", "mode", "stddev", "entropy", "enumerate_support")


def made(library, name: str, given: tuple, factor: float = 1.0):
    """Make a distribution and its parameters, which ask for gradients."""
    values = []
    for number, each in enumerate(given):
        if isinstance(each, list):
            scaled = np.asarray(each, np.float32) * (1.0 if number else factor)
            each = library.tensor(scaled.tolist(), requires_grad=True)
        values.append(each)
    return getattr(library.distributions, name)(*values), values


def fact(distribution, name: str, *given):
    """Ask for a fact; None where there is none."""
    try:
        found = getattr(distribution, name)
        return found(*given) if callable(found) else found
    except NotImplementedError:
        return None


def check_same(ours, theirs) -> None:
    wanted = theirs.detach().numpy()
    np.testing.assert_allclose(ours.detach().numpy(), wanted, rtol=3e-4, atol=3e-4)


@pytest.mark.parametrize(("name", "given", "values"), ROWS, ids=[row[0] for row in ROWS])
def test_against_pytorch(name: str, given: tuple, values: list[float]) -> None:
    ours, parameters = made(picograd, name, given)
    theirs, wanted = made(torch, name, given)
    density, other = ours.log_prob(Tensor(values)), theirs.log_prob(torch.tensor(values))
    check_same(density, other)
    density.sum().backward()
    other.sum().backward()
    for parameter, each in zip(parameters, wanted):
        if isinstance(parameter, Tensor) and each.grad is not None:
            check_same(parameter.grad, each.grad)
    for what in FACTS:
        answer = fact(theirs, what)
        if answer is not None:
            check_same(fact(ours, what), answer)
    for what, at in (("cdf", values), ("icdf", P)):
        answer = None if name == "Gumbel" else fact(theirs, what, torch.tensor(at))
        if answer is not None:
            check_same(fact(ours, what, Tensor(at)), answer)
    assert ours.batch_shape == tuple(theirs.batch_shape)
    assert ours.event_shape == tuple(theirs.event_shape)
    assert ours.sample((2, 1)).shape == tuple(theirs.sample((2, 1)).shape)
    assert ours.has_rsample == theirs.has_rsample
    try:
        divergence = torch.distributions.kl_divergence(theirs, made(torch, name, given, 1.25)[0])
    except NotImplementedError:
        return
    check_same(distributions.kl_divergence(ours, made(picograd, name, given, 1.25)[0]), divergence)


def test_draws_have_the_moments() -> None:
    picograd.manual_seed(0)
    for name, given, _ in ROWS:
        drawn, _ = made(picograd, name, given)
        if name not in DRAWN:
            continue
        x = drawn.sample((1000,)).numpy().astype(np.float64)
        spread = np.sqrt(drawn.variance.detach().numpy())
        away = np.abs(x.mean(0) - drawn.mean.detach().numpy()) / spread
        assert (away < 6 / math.sqrt(1000)).all(), name
        np.testing.assert_allclose(x.std(0), spread, rtol=0.25, err_msg=name)


def test_gradients_through_draws() -> None:
    """Draws of gamma numbers move with the shape as PyTorch's do."""
    shape = Tensor([0.7, 3.0], requires_grad=True)
    draws = distributions.Gamma(shape, Tensor([2.0, 2.0])).rsample()
    draws.sum().backward()
    unit = torch.from_numpy(draws.detach().numpy() * 2.0)
    slope = torch._standard_gamma_grad(torch.tensor([0.7, 3.0]), unit)
    np.testing.assert_allclose(shape.grad.numpy(), slope.numpy() / 2.0, rtol=1e-3)
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
    pair = [composed(picograd)[0] for _ in range(2)]
    assert distributions.kl_divergence(*pair).tolist() == [0.0, 0.0]
    with pytest.raises(NotImplementedError, match="register_kl"):
        distributions.kl_divergence(pair[0], distributions.Poisson(1.0))


def test_transforms() -> None:
    x = np.array([0.3, 0.8, 1.4], np.float32)
    d = distributions
    for name in ("Exp", "Sigmoid", "Tanh", "Softplus"):
        ours = getattr(d, f"{name}Transform")()
        theirs = getattr(torch.distributions, f"{name}Transform")()
        y, other = ours(Tensor(x)), theirs(torch.from_numpy(x))
        check_same(y, other)
        check_same(ours.inv(y), torch.from_numpy(x))
        slope = ours.log_abs_det_jacobian(Tensor(x), y)
        check_same(slope, theirs.log_abs_det_jacobian(torch.from_numpy(x), other))
    chain = d.ComposeTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)])
    check_same(chain.inv(chain(Tensor(x))), torch.from_numpy(x))


def test_wrong_parameters_are_named(cpu_by_default: None) -> None:
    d = distributions
    for wrong in (
        lambda: d.Normal(Tensor([0.0]), Tensor([-1.0])),
        lambda: d.Bernoulli(Tensor([1.5])),
        lambda: d.Normal(Tensor([math.nan]), 1.0),
        lambda: d.Exponential(1.0).log_prob(Tensor([-1.0])),
        lambda: d.Categorical(),
    ):
        with pytest.raises(ValueError):
            wrong()
    unchecked = d.Normal(Tensor([0.0]), Tensor([-1.0]), validate_args=False)
    assert math.isnan(unchecked.log_prob(Tensor([0.0])).item())
    assert d.Normal(0.0, 1.0).expand((2, 3)).sample().shape == (2, 3)
