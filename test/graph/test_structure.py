"""Leaves, reductions and effects: values against NumPy, gradients by finite differences."""

from typing import Any

import numpy as np
import plain_nodes
import pytest
from graph_support import check_both_orders, check_gradients, gradients_of, leaf, value

from picograd.buffer import RuntimeScalar
from picograd.dtype import ALL, DType, bfloat16, float16, float32, int32
from picograd.graph import build
from picograd.graph.structure import STRUCTURE

torch = pytest.importorskip("torch")

X = np.random.default_rng(0).normal(size=(2, 3, 6))
MONOIDS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("monoid", MONOIDS)
@pytest.mark.parametrize("axes", [None, 1, (0, 2), ()], ids=str)
class TestReduce:
    @pytest.mark.parametrize("dtype", [d for d in ALL if d.kind not in ("bool", "float8")], ids=str)
    @pytest.mark.filterwarnings("ignore:overflow")  # the product overflows float16: so it should
    def test_value(self, monoid: str, axes: Any, dtype: DType) -> None:
        x = leaf(np.random.default_rng(0).integers(1, 3, (2, 3, 4)).astype(dtype.numpy), dtype)
        for keepdim in (False, True):
            got = value(plain_nodes.reduce(monoid, x, axes, keepdim))
            numpy_axes = axes if axes is not None else (0, 1, 2)
            exact = MONOIDS[monoid](value(x).astype(np.float64), numpy_axes, keepdims=keepdim)
            exact = np.asarray(exact).astype(np.int64).astype(dtype.numpy)
            np.testing.assert_allclose(got, exact, rtol=1e-2 if dtype.bits == 16 else 1e-6)

    def test_gradients(self, monoid: str, axes: Any) -> None:
        check_gradients(lambda n: plain_nodes.reduce(monoid, n * n + n, axes), X)
        if monoid != "max":
            check_both_orders(lambda n: plain_nodes.reduce(monoid, n, axes), np.abs(X) + 0.5)


@pytest.mark.parametrize("name", ["amax", "amin", "prod", "sum"])
def test_ties_and_zeros_as_pytorch(name: str) -> None:
    monoid = {"amax": "max", "amin": "min"}.get(name, name)
    x = np.array([[2.0, 5.0, 5.0], [0.0, 3.0, 4.0], [0.0, 0.0, 2.0], [1.0, 1.0, 1.0]])
    t = torch.tensor(x, requires_grad=True)
    getattr(torch, name)(t, 1).sum().backward()
    (ours,) = gradients_of(lambda n: plain_nodes.reduce(monoid, n, 1), [x], np.ones(4))
    np.testing.assert_allclose(ours, t.grad.numpy())


def test_sixteen_bit_sums_accumulate_in_float32() -> None:
    ones = np.ones(5000)
    for dtype in (float16, bfloat16):
        total = value(plain_nodes.reduce("sum", leaf(ones.astype(np.float32), dtype)))
        assert abs(total - 5000) <= 5000 / 128


def test_reduce_of_empty_and_scalar() -> None:
    empty = leaf(np.ones((0, 3)))
    np.testing.assert_array_equal(value(plain_nodes.reduce("sum", empty, 0)), np.zeros(3))
    np.testing.assert_array_equal(value(plain_nodes.reduce("prod", empty, 0)), np.ones(3))
    check_gradients(lambda n: plain_nodes.reduce("sum", n), np.ones((0, 3)))
    check_gradients(lambda n: plain_nodes.reduce("max", n), np.array(2.0))


def test_nan_propagates() -> None:
    x = leaf(np.array([1.0, np.nan, 3.0]))
    assert np.isnan(value(plain_nodes.reduce("max", x))) and np.isnan(
        value(plain_nodes.reduce("min", x))
    )


def test_leaves() -> None:
    np.testing.assert_array_equal(value(build.const(2, (2, 2), int32, "cpu")), np.full((2, 2), 2))
    np.testing.assert_array_equal(value(build.iota((2, 3), 1, "cpu")), [[0, 1, 2]] * 2)
    number = RuntimeScalar(1.5)
    node = build.scalar(number, "cpu", float32)
    assert value(node) == 1.5
    number.value = 2.5
    assert value(node) == 2.5


def test_assign_has_the_value_written() -> None:
    target = leaf(np.zeros(3))
    np.testing.assert_array_equal(value(build.assign(target, target + 1.0)), np.ones(3))


def test_every_row_is_interpreted() -> None:
    assert all(row.numpy is not None for row in STRUCTURE.values())
