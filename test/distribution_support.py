"""Distributions of both libraries from the same parameters, their facts and their draws."""

import math

import numpy as np
import pytest

import picograd
from picograd import Tensor, distributions

torch = pytest.importorskip("torch")

A, P = [0.5, 1.5, 2.5], [0.2, 0.5, 0.7]
Row = tuple[str, tuple, list[float]]  # name, parameters, values
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


def check_against_pytorch(name: str, given: tuple, values: list[float]) -> None:
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


def check_divergence(name: str, given: tuple) -> None:
    """Compare the divergence from another distribution of the kind, where PyTorch knows one."""
    ours, theirs = made(picograd, name, given)[0], made(torch, name, given)[0]
    try:
        divergence = torch.distributions.kl_divergence(theirs, made(torch, name, given, 1.25)[0])
    except NotImplementedError:
        return
    check_same(distributions.kl_divergence(ours, made(picograd, name, given, 1.25)[0]), divergence)


def check_moments(name: str, given: tuple) -> None:
    """Compare the mean and the spread of draws with those of the distribution."""
    picograd.manual_seed(0)
    drawn, _ = made(picograd, name, given)
    x = drawn.sample((1000,)).numpy().astype(np.float64)
    spread = np.sqrt(drawn.variance.detach().numpy())
    away = np.abs(x.mean(0) - drawn.mean.detach().numpy()) / spread
    assert (away < 6 / math.sqrt(1000)).all(), name
    np.testing.assert_allclose(x.std(0), spread, rtol=0.25, err_msg=name)
