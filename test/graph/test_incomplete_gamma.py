"""Incomplete gamma functions: large and small arguments beside many digits, settling."""

import time
from typing import Any

import numpy as np
import pytest

from picograd.graph.incomplete_gamma import lower_share, zeta

mpmath = pytest.importorskip("mpmath")
torch = pytest.importorskip("torch")


@pytest.mark.parametrize("order", [9.9e5, 1.01e6, 3e7, 2.0**31, 1e12])
def test_incomplete_gamma_of_large_numbers(order: float) -> None:
    """Beside Temme's expansion in 40 digits, whose coefficients cancel in fewer."""
    places = np.array([-30.0, -6.0, -1.5, 0.1, 2.0, 5.0])
    x = order + places * np.sqrt(order)
    lower, upper = lower_share(np.full_like(x, order), x)
    np.testing.assert_allclose(lower, [float(exact_share(order, each)) for each in x], 1e-8, 1e-300)
    np.testing.assert_allclose(upper, [float(1 - exact_share(order, each)) for each in x], 1e-8)
    found = lower_share(np.full(3, order), np.array([1.0, order * 3, np.inf]))
    assert [share.tolist() for share in found] == [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]


def exact_share(order: float, at: float) -> Any:
    """Compute the lower function of a large order."""
    with mpmath.workdps(60):
        a, x = mpmath.mpf(order), mpmath.mpf(at)
        mu = (x - a) / a
        eta = mpmath.sign(mu) * mpmath.sqrt(2 * (mu - mpmath.log1p(mu)))
        first = 1 / mu - 1 / eta
        second = 1 / eta**3 - 1 / mu**3 - 1 / mu**2 - 1 / (12 * mu)
        scale = mpmath.exp(-a * eta**2 / 2) / mpmath.sqrt(2 * mpmath.pi * a)
        return mpmath.erfc(-eta * mpmath.sqrt(a / 2)) / 2 - scale * (first + second / a)


@pytest.mark.parametrize("order", [5e-324, 1e-300, 1e-20, 1e-10, 1e-4, 0.1, 0.2, 0.25])
def test_incomplete_gamma_of_small_numbers(order: float) -> None:
    """The lower function is almost 1, and 1 less it has no digits of the upper one."""
    x = np.array([1e-300, 1e-20, 1e-3, 0.5, 1.0, 1.1, 2.0, 9.0])
    lower, upper = lower_share(np.full_like(x, order), x)
    with mpmath.workdps(90):
        a, ends = mpmath.mpf(order), [mpmath.mpf(each) for each in x]
        if order < 1e-15:
            exact = [a * mpmath.e1(each) for each in ends]
        else:
            exact = [mpmath.gammainc(a, each, regularized=True) for each in ends]
        rest = [float(1 - each) for each in exact]
    np.testing.assert_allclose(upper, [float(each) for each in exact], 1e-13, 5e-324)
    np.testing.assert_allclose(lower, rest, 1e-13)


def test_an_incomplete_gamma_function_ends_when_it_has_settled() -> None:
    """A factor of the fraction moves by a rounding error for ever."""
    source = np.random.default_rng(0)
    a = source.gamma(2.0, 20.0, 500) + 0.01
    x = a * source.uniform(0.05, 4.0, 500)
    _, found = lower_share(a, x)
    wanted = torch.special.gammaincc(torch.tensor(a), torch.tensor(x)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-8)
    started = time.thread_time()
    lower_share(a, x)
    assert time.thread_time() - started < 0.5  # all steps take 2


def test_zeta_of_whole_numbers() -> None:
    for k in range(2, 40):
        assert abs(zeta(k) - float(mpmath.zeta(k))) <= 2**-52
