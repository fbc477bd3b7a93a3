"""The float32 polynomials against float64, over their ranges and at special values."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import binary, unary
from harness import TARGET, run

from picograd.codegen.pipeline import generate
from picograd.dtype import float32, float64

SPECIAL = np.array(
    [
        0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1e-45,
        -1e-45,
        1e-39,
        1,
        -1,
        88.7,
        88.8,
        89,
        -87.4,
        -103.9,
        -104.5,
        3.4e38,
        0.5,
        2,
        3,
        -2,
        -3,
        1e-30,
        0.625,
    ],
    np.float32,
)
RANGES = {"exp": (-104, 89), "tanh": (-10, 10), "erf": (-5, 5), "sin": (-1e5, 1e5)}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
    "sin": np.sin,
    "cos": np.cos,
}


def worst_error(found: Any, want: Any) -> float:
    """Largest error in units in the last place; equal and both-NaN count as 0."""
    narrow = want.astype(np.float32)
    is_same = (np.isnan(narrow) & np.isnan(found)) | (narrow == found)
    unit = np.maximum(np.spacing(np.abs(narrow)).astype(np.float64), 2.0**-149)
    error = np.abs(found.astype(np.float64) - want) / unit
    return float(np.where(is_same, 0, np.where(np.isnan(error), np.inf, error)).max())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_unary_function(name: str) -> None:
    generator = np.random.default_rng(0)
    low, high = RANGES.get(name, (-1e4, 1e4))
    points = np.concatenate([generator.uniform(low, high, 20000), generator.uniform(-1, 1, 20000)])
    special = SPECIAL
    if name == "log":
        points = np.abs(np.concatenate([points, np.exp(generator.uniform(-100, 88, 20000))]))
    x = np.concatenate([special, points.astype(np.float32)])
    case = unary(name, float32, len(x))
    found = run(case.kernel, [x, np.zeros_like(x)])[1]
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name](x.astype(np.float64))
    assert worst_error(found, want) < 1.5
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(want[zero]))


def test_pow() -> None:
    generator = np.random.default_rng(0)
    a, b = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    bases = np.exp(generator.uniform(-20, 20, 20000))
    exponents = generator.uniform(-5, 5, 20000)
    x = np.concatenate([a, bases]).astype(np.float32)
    y = np.concatenate([b, exponents]).astype(np.float32)
    case = binary("pow", float32, len(x))
    found = run(case.kernel, [x, y, np.zeros_like(x)])[2]
    with np.errstate(all="ignore"):
        assert worst_error(found, np.power(x.astype(np.float64), y.astype(np.float64))) < 1.5


def test_powers_that_are_float32_are_exact() -> None:
    x, y = (grid.ravel().astype("f4") for grid in np.meshgrid(range(1, 200), range(-3, 13)))
    want = np.power(x.astype(np.float64), y)
    is_exact = want.astype("f4") == want
    found = run(binary("pow", float32, len(x)).kernel, [x, y, np.zeros_like(x)])[2]
    assert is_exact.sum() > 1000
    np.testing.assert_array_equal(found[is_exact], want[is_exact])


SHORT = {"log": 55, "log2": 70, "log10": 70, "atan": 60, "tanh": 90}


@pytest.mark.parametrize("name, most", SHORT.items())
def test_functions_of_float64_are_short(name: str, most: int) -> None:
    text = generate(unary(name, float64, 1000).kernel, TARGET).source
    assert sum(line.startswith("  %") for line in text.splitlines()) <= most
