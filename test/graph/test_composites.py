"""Composites and norms against PyTorch; every VJP, of both orders, by finite differences."""

from typing import Any

import numpy as np
import pytest
from graph_support import Build, check_both_orders, gradients_of, leaf, value

from picograd.dtype import bfloat16, float16, float32, int32
from picograd.graph import build, build_composite
from picograd.graph.composites import join
from picograd.graph.node import Node
from picograd.graph.ops import OPS
from picograd.graph.row import Role
from picograd.graph.shape import reduce_shape

torch = pytest.importorskip("torch")
F = torch.nn.functional

Array = Any
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(4, 5))
IMAGE = RANDOM.normal(size=(2, 3, 4, 5))
TARGET = np.array([0, 4, 2, 2])
PLANES = RANDOM.integers(0, 3, (2, 4, 5))
WEIGHT, BIAS = RANDOM.normal(size=(2, 5))
CHANNEL = RANDOM.normal(size=3)
POOL = ((2, 2, 1, 1), (3, 3, 2, 1))

# name -> (ours, PyTorch's, inputs)
Case = tuple[Build, Any, tuple[Array, ...]]
CASES: dict[str, Case] = {
    "cat": (lambda *n: join(n, 1), lambda *t: torch.cat(t, 1), (X, X[:, :2], X[:, :0])),
    "relu": (build.relu, torch.relu, (X,)),
    "sigmoid": (build.sigmoid, torch.sigmoid, (X,)),
    "silu": (build.silu, F.silu, (X,)),
    "gelu": (build.gelu, F.gelu, (X,)),
    "gelu tanh": (lambda n: build.gelu(n, "tanh"), lambda t: F.gelu(t, approximate="tanh"), (X,)),
    "softmax": (lambda n: build.softmax(n, -1), lambda t: t.softmax(-1), (X,)),
    "softmax first": (lambda n: build.softmax(n, 0), lambda t: t.softmax(0), (X,)),
    "softmax scalar": (lambda n: build.softmax(n, 0), lambda t: t.softmax(0), (X[0, 0],)),
    "softmax empty": (lambda n: build.softmax(n, 1), lambda t: t.softmax(1), (X[:0],)),
    "log_softmax": (lambda n: build.log_softmax(n, 1), lambda t: t.log_softmax(1), (X,)),
    "logsumexp": (lambda n: build.logsumexp(n, 0), lambda t: t.logsumexp(0), (X,)),
    "logsumexp all": (
        lambda n: build.logsumexp(n, (0, 1), True),
        lambda t: t.logsumexp((0, 1), True),
        (X,),
    ),
    "mean": (lambda n: build.mean(n, 1), lambda t: t.mean(1), (X,)),
    "var": (lambda n: build.var(n, 1), lambda t: t.var(1), (X,)),
    "var biased": (
        lambda n: build.var(n, (0, 1), 0, True),
        lambda t: t.var((0, 1), correction=0, keepdim=True),
        (X,),
    ),
    "layer_norm": (
        lambda n, w, b: build.layer_norm(n, 1, w, b),
        lambda t, w, b: F.layer_norm(t, (5,), w, b),
        (X, WEIGHT, BIAS),
    ),
    "layer_norm plain": (
        lambda n: build.layer_norm(n, 2),
        lambda t: F.layer_norm(t, (4, 5)),
        (IMAGE,),
    ),
    "batch_norm": (
        build.batch_norm,
        lambda t, w, b: F.batch_norm(t, None, None, w, b, True),
        (IMAGE, CHANNEL, CHANNEL + 1),
    ),
    "cross_entropy": (
        lambda n: build.cross_entropy(n, leaf(TARGET)),
        lambda t: F.cross_entropy(t, torch.tensor(TARGET)),
        (X,),
    ),
    "cross_entropy smooth": (
        lambda n: build.cross_entropy(n, leaf(TARGET), "sum", 0.1),
        lambda t: F.cross_entropy(t, torch.tensor(TARGET), reduction="sum", label_smoothing=0.1),
        (X,),
    ),
    "cross_entropy planes": (
        lambda n: build.cross_entropy(n, leaf(PLANES), "none"),
        lambda t: F.cross_entropy(t, torch.tensor(PLANES), reduction="none"),
        (IMAGE,),
    ),
    "cross_entropy ignoring": (
        lambda n: build.cross_entropy(n, leaf(TARGET), ignore_index=2),
        lambda t: F.cross_entropy(t, torch.tensor(TARGET), ignore_index=2),
        (X,),
    ),
    "cross_entropy one": (
        lambda n: build.cross_entropy(n, leaf(np.array(3))),
        lambda t: F.cross_entropy(t, torch.tensor(3)),
        (X[0],),
    ),
    "max_pool": (
        lambda n: build.max_pool(n, POOL),
        lambda t: F.max_pool2d(t, (2, 3), (1, 2)),
        (IMAGE,),
    ),
}


def pytorch(function: Any, arrays: tuple[Array, ...]) -> tuple[Array, list[Array]]:
    """Value, and gradients of the sum of value x 1, 2, 3, ..."""
    leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    y = function(*leaves)
    slopes = torch.autograd.grad(y, leaves, torch.arange(y.numel()).reshape(y.shape).to(y))
    return y.detach().numpy(), [slope.numpy() for slope in slopes]


@pytest.mark.parametrize("name", CASES)
class TestAgainstPytorch:
    def test_value_and_gradients(self, name: str) -> None:
        ours, theirs, arrays = CASES[name]
        y, slopes = pytorch(theirs, arrays)
        np.testing.assert_allclose(value(ours(*map(leaf, arrays))), y, rtol=1e-9, atol=1e-12)
        cotangent = np.arange(float(y.size)).reshape(y.shape)
        for a, b in zip(gradients_of(ours, arrays, cotangent), slopes):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)

    def test_both_orders(self, name: str) -> None:
        ours, _, arrays = CASES[name]
        check_both_orders(ours, *arrays)

    def test_used_twice_and_permuted(self, name: str) -> None:
        ours, _, (x, *others) = CASES[name]
        order = tuple(reversed(range(x.ndim)))
        turned = np.array(x.transpose(order), order="C")

        def twice(n: Node) -> Node:
            back = build.permute(n, order)
            return ours(back * back, *map(leaf, others)) + ours(back, *map(leaf, others))

        both = gradients_of(twice, [turned], np.ones(ours(*map(leaf, (x, *others))).shape))
        assert np.isfinite(both[0]).all()

    @pytest.mark.parametrize("dtype", [float16, bfloat16], ids=str)
    def test_sixteen_bits_round_once(self, name: str, dtype: Any) -> None:
        ours, _, arrays = CASES[name]
        nodes = [leaf(np.asarray(a, np.float32).astype(dtype.numpy), dtype) for a in arrays]
        exact = value(ours(*(leaf(value(n).astype(np.float64)) for n in nodes)))
        got = ours(*nodes)
        assert got.dtype is dtype
        step = 2**-10 if dtype is float16 else 2**-7
        np.testing.assert_allclose(value(got), exact, rtol=step, atol=step / 8)


def test_every_composite_is_covered() -> None:
    named = {name.split()[0] for name in CASES}
    composites = {row.name for row in OPS.values() if row.role is Role.COMPOSITE}
    # test_scanning, test_sorting, picograd.Function, and tensor/math/test_transcendental
    elsewhere = {"scan", "sort", "custom", "smooth"}
    elsewhere |= {
        "prod_gradient",
        "cumprod_gradient",
        "analytic",
        "counted_mean",
        "side",
        "reduce_segments",
    }  # test_factors, test_complex_rules, "cross_entropy ignoring", test_sides, test_segments
    assert composites - named - elsewhere == {"argmax", "argmin"}


def test_sides() -> None:
    x, y = leaf(X), leaf(X[::-1].copy())
    for test in (x.binary("less", y), x.binary("less_equal", x), y.binary("less", 0.5)):
        side = build_composite.side(test)
        assert side.op == "side"
        np.testing.assert_array_equal(value(side), value(test))
    for other in (x.binary("equal", y), x.cast(int32).binary("less", 1)):
        assert build_composite.side(other) is other


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arguments(name: str, axis: int) -> None:
    x = np.array([[3.0, 1.0, 3.0], [np.nan, 1.0, 0.0], [0.0, np.nan, np.nan]])
    ours = getattr(build, name)(leaf(x), axis, True)
    np.testing.assert_array_equal(value(ours), getattr(torch.tensor(x), name)(axis, True).numpy())


def test_extreme_values() -> None:
    x = np.array([[1e30, -1e30, 0.0], [-np.inf, -np.inf, -np.inf], [np.inf, 0.0, 1.0]])
    x32 = x.astype(np.float32)
    for name in ("softmax", "log_softmax", "logsumexp"):
        expected = getattr(torch.tensor(x32), name)(1).numpy()
        np.testing.assert_array_equal(value(getattr(build, name)(leaf(x32), 1)), expected)
    np.testing.assert_array_equal(value(build.sigmoid(leaf(np.float32([-200, 200])))), [0, 1])


def test_max_pool_sends_the_gradient_to_the_first_maximum() -> None:
    x = np.zeros((1, 1, 4, 5))
    y, slopes = pytorch(lambda t: F.max_pool2d(t, (2, 3), (1, 2)), (x,))
    cotangent = np.arange(float(y.size)).reshape(y.shape)
    (ours,) = gradients_of(lambda n: build.max_pool(n, POOL), [x], cotangent)
    np.testing.assert_array_equal(ours, slopes[0])


def test_max_pool_sends_the_gradient_to_a_nan() -> None:
    x = RANDOM.normal(size=(1, 1, 4, 5))
    x[0, 0, 2, 3] = np.nan
    y, slopes = pytorch(lambda t: F.max_pool2d(t, (2, 3), (1, 2)), (x,))
    cotangent = np.arange(float(y.size)).reshape(y.shape)
    (ours,) = gradients_of(lambda n: build.max_pool(n, POOL), [x], cotangent)
    np.testing.assert_array_equal(ours, slopes[0])


def test_batch_statistics_survive_a_large_mean() -> None:
    x = (RANDOM.normal(size=(8, 2, 16)) + 1e4).astype(np.float32)
    mean, variance = build.batch_stats(leaf(x))
    assert mean.dtype is float32
    np.testing.assert_allclose(value(mean), x.astype(np.float64).mean((0, 2)), rtol=1e-6)
    np.testing.assert_allclose(value(variance), x.astype(np.float64).var((0, 2)), rtol=1e-4)


def test_logsumexp_over_nothing_is_minus_infinity() -> None:
    x = np.ones((2, 0))
    got = value(build.logsumexp(leaf(x), 1))
    assert got.shape == reduce_shape(x.shape, (1,))
    assert (got == -np.inf).all()
