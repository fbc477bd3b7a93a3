"""digamma and its derivatives, and gamma functions of several dimensions, as PyTorch's."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, numbers
from special_support import call

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")
GAMMA = numbers((3, 5), 0.1, 9)


def test_gamma_functions(device: str) -> None:
    s = numbers((3, 5), 1.2, 9, seed=3)
    reference = torch.tensor(s)

    def order(n: int) -> Case:
        return Case(f"polygamma {n}", lambda x: picograd.special.polygamma(n, x), [GAMMA],
                    lambda x: torch.special.polygamma(n, x), dtype="float64")  # fmt: skip

    cases = [order(n) for n in range(4)]
    cases += [Case("multigammaln", call("multigammaln", 3), [GAMMA + 1], dtype="float64")]
    cases += [Case("zeta", lambda q: picograd.special.zeta(Tensor(s, device=device), q), [GAMMA],
                   lambda q: torch.special.zeta(reference, q), dtype="float64")]  # fmt: skip
    compare(cases, device)
    x, q = np.array([1.0, 0.5, 2, 2, 2, np.nan]), np.array([1.0, 1, 0, -1, np.nan, 1])
    found = picograd.special.zeta(Tensor(x, device=device), Tensor(q, device=device)).numpy()
    np.testing.assert_array_equal(found, torch.special.zeta(torch.tensor(x), torch.tensor(q)))


POINTS = [1.5, 0.3, -0.4, -2.7, 12.0, 0.5, 40.0]


def derivative(function: Any, order: int) -> Any:
    """Differentiate a sum of a function of each element so often."""
    if not order:
        return function
    inner = derivative(function, order - 1)
    return picograd.func.grad(lambda x: inner(x).sum())


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_every_derivative_of_digamma_is_a_polygamma(order: int) -> None:
    x = Tensor(POINTS, dtype="float64")
    want = torch.polygamma(order, torch.tensor(POINTS, dtype=torch.float64)).numpy()
    for function, less in ((picograd.digamma, 0), (picograd.lgamma, 1)):
        found = derivative(function, order + less)(x)
        np.testing.assert_allclose(found.numpy(), want, 1e-9)
    np.testing.assert_allclose(picograd.special.polygamma(order, x).numpy(), want, 1e-9)
    further = derivative(lambda t: picograd.special.polygamma(order, t), 1)(x)
    want = torch.polygamma(order + 1, torch.tensor(POINTS, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(further.numpy(), want, 1e-9)
