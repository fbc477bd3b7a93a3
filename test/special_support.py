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
