"""NumPy's samplers as host calls: moments, keys, parameters outside, the same draws under jit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, distributions
from picograd.graph.host_draws import SAMPLERS, drawn

COUNT = 100_000
KEY = np.array([1.0, 2.0, 3.0, 4.0])
# name -> parameters, mean and variance
MOMENTS = {
    "poisson": ((7.5,), 7.5, 7.5),
    "binomial": ((12.0, 0.25), 3.0, 2.25),
    "gamma": ((2.5,), 2.5, 2.5),
    "log_gamma": ((2.5,), 0.70316, 0.49036),  # digamma(2.5), trigamma(2.5)
    "vonmises": ((0.5, 400.0), 0.5, 0.0025),
}
RATES = [1.0, 5.0, 40.0]


def draws(name: str, *parameters: float, key: Any = KEY) -> Any:
    return drawn(*[np.full(COUNT, each) for each in parameters], key, name)


@pytest.mark.parametrize("name", SAMPLERS)
def test_moments_and_keys(name: str) -> None:
    parameters, mean, variance = MOMENTS[name]
    found = draws(name, *parameters)
    assert abs(found.mean() - mean) < 5 * (variance / COUNT) ** 0.5
    assert abs(found.var() - variance) < 0.03 * variance
    np.testing.assert_array_equal(found, draws(name, *parameters))
    for place in range(4):  # every word of the key counts
        other = draws(name, *parameters, key=KEY + (np.arange(4) == place))
        assert abs(np.corrcoef(found, other)[0, 1]) < 0.02


def test_parameters_outside_give_nan() -> None:
    rates = np.array([-1.0, np.nan, np.inf, 0.0])
    np.testing.assert_array_equal(drawn(rates, KEY, "poisson"), [np.nan, np.nan, np.nan, 0])
    trials, chance = np.array([-1.0, 3.0, 3.0]), np.array([0.5, 1.5, 1.0])
    found = drawn(trials, chance, KEY, "binomial")
    np.testing.assert_array_equal(found, [np.nan, np.nan, 3])
    for name in ("gamma", "log_gamma"):
        assert np.isnan(drawn(np.array([-2.0]), KEY, name)).all()
    assert np.isnan(drawn(np.zeros(1), -np.ones(1), KEY, "vonmises")).all()


@pytest.mark.parametrize(
    "draw",
    [
        picograd.poisson,
        lambda x: picograd.binomial(x.round(), x * 0 + 0.5),
        lambda x: distributions.Gamma(x, x).sample((2,)),
        lambda x: distributions.Beta(x, x).sample(),
        lambda x: distributions.VonMises(x, x).sample(),
    ],
)
def test_jitted_draws_are_those_without(draw: Callable[[Tensor], Tensor]) -> None:
    x, step = Tensor(RATES), picograd.jit(draw)
    picograd.manual_seed(3)
    wanted = [draw(x).tolist() for _ in range(5)]
    picograd.manual_seed(3)
    assert [step(x).tolist() for _ in range(5)] == wanted
    assert len({str(each) for each in wanted}) == 5


def test_samples_draw_their_own_or_the_same() -> None:
    x = Tensor.full((3, 40), 9.0)
    rows = picograd.vmap(picograd.poisson, randomness="different")(x).tolist()
    assert rows[0] != rows[1] != rows[2] != rows[0]
    rows = picograd.vmap(picograd.poisson, randomness="same")(x).tolist()
    assert rows[0] == rows[1] == rows[2]


def test_traced_rates_outside_give_nan() -> None:
    step = picograd.jit(picograd.poisson)
    for _ in range(3):
        assert np.isnan(step(Tensor([-1.0])).numpy()).all()
