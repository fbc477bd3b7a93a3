"""Errors of the functions in units in the last place stay under the bars of bench/accuracy.py."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from picograd import Tensor, special

pytest.importorskip("mpmath")
sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import accuracy

mp = accuracy.mp
BY_NAME = {function.name: function for function in accuracy.FUNCTIONS}
POINTS = {"elementary": 80, "special": 16}


@pytest.mark.parametrize("name", BY_NAME)
def test_errors_stay_under_the_bar(name: str) -> None:
    function = BY_NAME[name]
    for dtype in accuracy.BITS:
        count = POINTS[function.kind]
        worst, where = accuracy.measure(function, dtype, count, seed=1, dense=100_000)
        assert worst <= accuracy.BARS[function.kind], (dtype, worst, where)


@pytest.mark.parametrize("shape, axis", [((3_000_000,), 0), ((2, 300_000), 1), ((100_000, 3), 0)])
def test_long_running_sums_round_once(shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(0).random(shape, np.float32)
    exact = x.cumsum(axis, np.float64)
    found = Tensor(x).cumsum(axis).numpy()
    assert np.max(np.abs(found - exact) / exact) < 2.0**-23


def test_table_of_the_documentation_is_that_of_the_functions() -> None:
    text = (Path(__file__).parents[2] / "docs" / "dtypes.md").read_text()
    rows = re.findall(r"^\| `(.+)` \| (elementary|special) \| (.+) \| (.+) \|$", text, re.M)
    assert [row[:2] for row in rows] == [(f.name, f.kind) for f in accuracy.FUNCTIONS]
    for name, kind, *errors in rows:
        assert all(float(error) <= accuracy.BARS[kind] for error in errors), name


@pytest.mark.parametrize("low, high", [(1e-9, 0.5), (0.5, 12.0), (12.0, 300.0)])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_digamma(order: int, low: float, high: float) -> None:
    logs = np.random.default_rng(0).uniform(np.log(low), np.log(high), 30)
    found = special.polygamma(order, Tensor(np.exp(logs))).tolist()
    with mp.workdps(40):
        for x, value in zip(np.exp(logs), found, strict=True):
            exact = mp.psi(order, mp.mpf(float(x)))
            unit = mp.ldexp(1, mp.frexp(exact)[1] - 53)
            assert abs(exact - mp.mpf(value)) <= 3.5 * unit, x


def test_long_logcumsumexp_rounds_once() -> None:
    x = np.random.default_rng(2).standard_normal(200_000, np.float32)
    exact = np.logaddexp.accumulate(x.astype(np.float64))
    found = Tensor(x).logcumsumexp(0).numpy()
    assert np.max(np.abs(found - exact) / np.maximum(np.abs(exact), 1e-3)) < 2.0**-23


def test_logarithms_of_sums_near_one_keep_their_digits() -> None:
    share = np.random.default_rng(4).uniform(0.5, 1.0, 200_000)
    a, b = (np.log(each).astype(np.float32) for each in (share, 1.0 - share))
    exact = np.logaddexp(a.astype(np.longdouble), b.astype(np.longdouble))
    found = Tensor(a).logaddexp(Tensor(b)).numpy()
    allowed = 2.0**-24 * np.abs(exact) + 1e-13
    assert (np.abs(found - exact) <= allowed).all()


@pytest.mark.parametrize("m, n", [(1, 1), (2, 2), (1, 40), (20, 20)])
def test_long_products_add_the_sums_of_blocks(m: int, n: int) -> None:
    generator = np.random.default_rng(3)
    depth = 1_500_000 // max(m, n) + 1
    a, b = generator.random((m, depth), np.float32), generator.random((depth, n), np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    found = (Tensor(a) @ Tensor(b)).numpy()
    assert np.max(np.abs(found - exact) / exact) < 3e-6
    if m == n == 1:
        found = Tensor(a[0]).dot(Tensor(b[:, 0])).numpy()
        assert np.abs(found - exact[0, 0]) / exact[0, 0] < 1e-6
