"""Elementwise functions on nodes: promotion, shortcuts and PyTorch's corner cases."""

import numpy as np
import pytest
from graph_support import leaf, value

import picograd
from picograd import Tensor
from picograd.errors import DTypeError, PicogradError
from picograd.tensor.math import elementwise as e

X = np.array([-2.0, -0.5, 0.0, 1.5, np.inf, np.nan], np.float32)
N = np.array([-7, -1, 0, 3, 8], np.int32)
B = np.array([True, False])


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (e.arithmetic("add", leaf(N), 1), N + 1),
        (e.arithmetic("add", leaf(N), 0.5), (N + 0.5).astype(np.float32)),
        (e.arithmetic("add", leaf(B), leaf(B)), B | B),
        (e.subtract(leaf(N), 2), N - 2),
        (e.divide(leaf(N), 2), (N / 2).astype(np.float32)),
        (e.power("pow", leaf(X), 2), X**2),
        (e.power("pow", leaf(N), 3), N**3),
        (e.compare("less", leaf(N), 2), N < 2),
        (e.compare("less", leaf(N.astype(np.int8)), 1000), N < 1000),
        (e.logical("logical_and", leaf(N), True), N != 0),
        (e.logical_xor("logical_xor", leaf(N), leaf(N)), N != N),
        (e.truth(leaf(X)), X != 0),
        (e.bitwise("bitwise_and", leaf(N), 3), N & 3),
        (e.absolute(leaf(N)), np.abs(N)),
        (e.rounding("floor", leaf(N)), N),
        (e.unary("sqrt", leaf(np.array([4, 9]))), np.array([2, 3], np.float32)),
        (e.is_nan(leaf(X)), np.isnan(X)),
        (e.is_infinite(leaf(X)), np.isinf(X)),
        (e.is_finite(leaf(X)), np.isfinite(X)),
        (e.where(leaf(N > 0), leaf(N), 0), np.where(N > 0, N, 0)),
        (e.clamp(leaf(N), -1, 4), np.clip(N, -1, 4)),
        (e.clamp(leaf(N), None, 4), np.minimum(N, 4)),
        (e.unary("exp2", leaf(N)), np.exp2(N).astype(np.float32)),
    ],
)
def test_value_and_dtype(found, wanted) -> None:
    made = value(found)
    assert made.dtype == wanted.dtype
    np.testing.assert_allclose(made, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: e.subtract(leaf(B), leaf(B)),
        lambda: e.bitwise("bitwise_and", leaf(X), 1),
        lambda: e.negate(leaf(B)),
        lambda: e.clamp(leaf(X), None, None),
        lambda: e.arithmetic("add", leaf(X), "1"),
    ],
)
def test_mistakes(make) -> None:
    with pytest.raises(PicogradError):
        make()


def test_bools_have_no_difference() -> None:
    with pytest.raises(DTypeError, match="sub"):
        e.subtract(leaf(B), leaf(B))


def test_squares_multiply() -> None:
    assert e.short_power(leaf(X), 2).op == "mul"
    assert e.short_power(leaf(X), 2.71) is None


def test_a_number_minus_bools_counts_them() -> None:
    done = Tensor(np.array([True, False]))
    assert done.dtype is picograd.bool and (1 - done).tolist() == [0, 1]
    assert (1 - done).dtype is picograd.int64 and (1.0 - done).dtype is picograd.float32
    assert (Tensor([2.0, 3.0]) * (1 - done)).tolist() == [0.0, 3.0]
    for refused in (lambda: done - 1, lambda: done - done, lambda: True - done):
        with pytest.raises(DTypeError, match="is not defined for bool"):
            refused()
