"""zeta and incomplete gamma functions: values, settling, derivatives there are no formulas for."""

import time
from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, numbers

import picograd
from picograd import Tensor
from picograd.errors import PicogradError
from picograd.graph.host_call import lower_share

mpmath = pytest.importorskip("mpmath")
torch = pytest.importorskip("torch")
GAMMA = numbers((3, 5), 0.1, 9)


def test_incomplete_gamma(device: str) -> None:
    a = np.array([0.0, 0, 1, np.inf, 1, -1, 1, np.nan, 1e4, 0.3, 7.0, 20.0])
    x = np.array([0.0, 1, 0, 1, np.inf, 1, -1, 1, 1.01e4, 0.1, 30.0, 18.0])
    for name in ("gammainc", "gammaincc"):
        found = getattr(picograd.special, name)(Tensor(a, device=device), Tensor(x, device=device))
        want = getattr(torch.special, name)(torch.tensor(a), torch.tensor(x))
        np.testing.assert_allclose(found.numpy(), want.numpy(), 1e-9)

    def of_x(name: str) -> Case:
        order = numbers((3, 5), 0.5, 8, seed=5)
        return Case(
            name, lambda x: getattr(picograd.special, name)(Tensor(order, device=device), x),
            [GAMMA], lambda x: getattr(torch.special, name)(torch.tensor(order), x),
            dtype="float64")  # fmt: skip

    compare([of_x("gammainc"), of_x("gammaincc")], device)


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


@pytest.mark.parametrize("name", ["zeta", "gammainc", "gammaincc"])
def test_a_derivative_there_is_no_formula_for_is_refused(name: str) -> None:
    a, x = (Tensor([2.0], requires_grad=True) for _ in range(2))
    result = getattr(picograd.special, name)(a, x)
    assert picograd.grad(result, x)[0].item() != 0
    with pytest.raises(PicogradError, match="no derivative with respect to its first argument"):
        picograd.grad(result, a)
    assert picograd.grad(getattr(picograd.special, name)(a.detach(), x), x)[0].item() != 0


def test_an_incomplete_gamma_function_ends_when_it_has_settled():
    """A factor of the fraction moves by a rounding error for ever."""
    source = np.random.default_rng(0)
    a = source.gamma(2.0, 20.0, 500) + 0.01
    x = a * source.uniform(0.05, 4.0, 500)
    found = picograd.Tensor(a).igammac(picograd.Tensor(x)).numpy()
    wanted = torch.special.gammaincc(torch.tensor(a), torch.tensor(x)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-8)
    started = time.thread_time()
    lower_share(a, x)
    assert time.thread_time() - started < 0.5  # all steps take 2
