"""Hyperbolic functions of float32, and log(1 + exp(x)): errors over all sizes, and the text.

Their edges, and that the CUDA text has the same bits: test_elementary.py.
"""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.codegen.hyperbolic import HYPERBOLIC


def errors(found, want):
    """Errors in units in the last place."""
    with np.errstate(over="ignore"):
        unit = np.spacing(np.abs(want).astype(np.float32))
    is_plain = np.isfinite(unit) & np.isfinite(found)
    return np.abs(found - want)[is_plain] / unit[is_plain]


def points(low, high):
    """Draw points between two, and of all sizes within."""
    generator = np.random.default_rng(0)
    sizes = np.exp(generator.uniform(-80, np.log(high), 50_000)) * generator.choice((-1, 1), 50_000)
    near = 1 + np.exp2(generator.uniform(-23, 0, 10_000))
    x = np.concatenate([generator.uniform(low, high, 100_000), sizes, near]).astype(np.float32)
    return x[(low <= x) & (x <= high)]


RANGES = {
    "expm1": (-40, 88.7),
    "sinh": (-89, 89),
    "cosh": (-89, 89),
    "asinh": (-1e30, 1e30),
    "acosh": (1, 1e30),
}


@pytest.mark.parametrize("name", HYPERBOLIC)
def test_errors_in_float32(name):
    x = points(*RANGES.get(name, (-0.9999999, 0.9999999)))
    found = getattr(Tensor(x), name)()
    assert "float64" not in str(picograd.explain(found, "cpu")).split("== Program")[1]
    wide = x.astype(np.longdouble)
    want = getattr(np, name if name in ("expm1", "sinh", "cosh") else "arc" + name[1:])(wide)
    assert errors(found.numpy(), want).max() < (1.4 if name == "expm1" else 1.1)


def test_a_sum_with_one_is_softplus():
    x = points(-104, 100)
    found = Tensor(x).logaddexp(0.0)
    assert "float64" not in str(picograd.explain(found, "cpu")).split("== Program")[1]
    want = np.logaddexp(x.astype(np.longdouble), np.longdouble(0))
    assert errors(found.numpy(), want).max() < 2.5
    edges = Tensor([np.inf, -np.inf, np.nan]).logaddexp(0.0).numpy()
    np.testing.assert_array_equal(edges, [np.inf, 0, np.nan])
