"""Functions of `special` by their names, and their values beside PyTorch's, at the edges too."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, library

from picograd import Tensor

torch = pytest.importorskip("torch")

WIDE = np.array([*np.linspace(-18, 18, 19), 1e-3, -1e-3, 7.9, 8.1, 60.0, -60.0])
EDGES = np.array([0.0, 1.0, 2.0, -1.0, 40.0, -40.0, np.inf, -np.inf, np.nan])


def call(name: str, *args: Any) -> Any:
    """Make a call of `special` in the library of its tensor."""
    return lambda x: getattr(library(x).special, name)(x, *args)


def check_functions(points: dict[str, Any], dtype: str, device: str) -> None:
    """Compare functions of one at points, of no element, and at the edges."""
    scale = 4.0 if dtype == "float32" else 1.0
    cases = [Case(n, call(n), [x], dtype=dtype, scale=scale) for n, x in points.items()]
    cases += [Case(f"{n} empty", call(n), [x[:0]], dtype=dtype) for n, x in points.items()]
    compare(cases, device)
    for name in points:
        found = call(name)(Tensor(EDGES, device=device)).numpy()
        want = call(name)(torch.tensor(EDGES)).numpy()
        np.testing.assert_allclose(found, want, 1e-12, 1e-300)


def check_exactly(
    name: str, functions: tuple[Any, Any], points: Any, dtype: str, device: str
) -> None:
    """Compare a function and its gradient with functions of more digits than PyTorch has."""
    function, slope = functions
    points = points.astype(dtype)
    x = Tensor(points, device=device, requires_grad=True)
    y = call(name)(x)
    y.sum().backward()
    digits = 1e-12 if dtype == "float64" else 2e-6
    exact = points.astype(np.float64)
    assert y.dtype.name == dtype and library(x) is not torch
    np.testing.assert_allclose(y.detach().numpy(), function(exact), digits, digits)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), slope(exact), 10 * digits, digits)


def check_edges(name: str, points: Any, device: str) -> None:
    """Compare a function with PyTorch's where it may be nan or infinite, and of no element."""
    found = call(name)(Tensor(points, device=device)).numpy()
    np.testing.assert_allclose(found, call(name)(torch.tensor(points)).numpy(), 1e-5, 1e-5)
    assert call(name)(Tensor(points[:0], device=device)).shape == (0,)
