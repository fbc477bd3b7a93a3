"""Third derivatives in float64: differences of second derivatives, over a table of functions."""

import numpy as np
import pytest

import picograd
from picograd import Tensor

FUNCTIONS = {
    "exp": (-1.0, 1.0), "log": (0.5, 3.0), "sqrt": (0.5, 3.0), "rsqrt": (0.5, 3.0),
    "reciprocal": (0.5, 3.0), "sin": (-2.0, 2.0), "cos": (-2.0, 2.0), "tan": (-1.0, 1.0),
    "asin": (-0.7, 0.7), "acos": (-0.7, 0.7), "atan": (-2.0, 2.0), "sinh": (-1.0, 1.0),
    "cosh": (-1.0, 1.0), "tanh": (-1.5, 1.5), "asinh": (-2.0, 2.0), "acosh": (1.5, 3.0),
    "atanh": (-0.7, 0.7), "sigmoid": (-3.0, 3.0), "silu": (-3.0, 3.0), "gelu": (-2.0, 2.0),
    "softplus": (-3.0, 3.0), "logsigmoid": (-3.0, 3.0), "mish": (-3.0, 3.0),
    "erf": (-1.5, 1.5), "erfc": (-1.5, 1.5), "lgamma": (0.7, 4.0), "digamma": (0.7, 4.0),
    "log1p": (-0.4, 2.0), "expm1": (-1.0, 1.0), "exp2": (-1.0, 1.0), "log2": (0.5, 3.0),
    "logit": (0.2, 0.8), "sinc": (0.3, 2.0),
}  # fmt: skip
STEP = 1e-4


def derivative(name: str, points: np.ndarray, order: int) -> np.ndarray:
    """Take a derivative of an order at every point."""
    x = Tensor(points, requires_grad=True)
    y = getattr(x, name)()
    for _ in range(order):
        (y,) = picograd.grad(y.sum(), x, create_graph=True)
    return np.asarray(y.numpy())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_third_derivative(name: str) -> None:
    low, high = FUNCTIONS[name]
    points = np.linspace(low, high, 7) + 0.01
    after, before = (derivative(name, points + sign * STEP, 2) for sign in (1, -1))
    wanted = (after - before) / (2 * STEP)
    np.testing.assert_allclose(derivative(name, points, 3), wanted, 1e-5, 1e-5)
