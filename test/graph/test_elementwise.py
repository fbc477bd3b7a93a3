"""Every elementwise row, against PyTorch and finite differences; a new row is tested by being one.

Values are compared where the dtype is exact enough: the reference computes in float64 from the
same rounded inputs.
"""

from typing import Any

import numpy as np
import pytest
from graph_support import check_both_orders, check_gradients, gradients_of, leaf, value

from picograd.dtype import ALL, DType, bfloat16, bool_, float32, float64, int32, uint16
from picograd.graph import build
from picograd.graph.elementwise import ELEMENTWISE
from picograd.graph.node import Node
from picograd.graph.row import Op

torch = pytest.importorskip("torch")

Array = Any
ROWS = [row for row in ELEMENTWISE.values() if row.name not in ("cast", "bitcast")]
CASES = [(row, dtype) for row in ROWS for dtype in ALL if dtype.kind in row.dtype_rule.kinds]
SMOOTH = [row for row in ROWS if row.is_differentiable]
TORCH_NAMES = {
    "floordiv": "floor_divide",
    "mod": "remainder",
    "equal": "eq",
    "not_equal": "ne",
    "less_equal": "le",
    "shift_left": "bitwise_left_shift",
    "shift_right": "bitwise_right_shift",
}
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-12}
SHAPES = [(3, 4), (0, 4), ()]


def name_of(case: Any) -> str:
    return getattr(case, "name", str(case))


def sample(row: Op, dtype: DType, shape: tuple[int, ...], seed: int) -> Array:
    """Draw inputs from the row's domain, in the dtype."""
    random = np.random.default_rng(seed)
    low, high = row.domain
    if dtype is bool_:
        return random.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        low = max(low, 1 if low > 0 or dtype.kind == "uint" else low)
        return random.integers(int(low), int(high) + 1, shape).astype(dtype.numpy)
    return random.uniform(low, high, shape).astype(dtype.numpy)


def inputs_of(row: Op, dtype: DType, shape: tuple[int, ...] = (3, 4)) -> list[Node]:
    nodes = [leaf(sample(row, dtype, shape, seed), dtype) for seed in range(row.arity)]
    if row.arity == 3 and row.linear:
        nodes[0] = leaf(np.random.default_rng(9).integers(0, 2, shape).astype(bool))
    return nodes


def reference(row: Op, arrays: list[Array]) -> Array:
    """Compute with PyTorch in float64 or int64, or with the row itself if PyTorch lacks the op."""
    exact = [a.astype(np.float64 if a.dtype.kind == "f" else a.dtype) for a in arrays]
    function = getattr(torch, TORCH_NAMES.get(row.name, row.name), None)
    is_unsigned = any(a.dtype.kind == "u" for a in exact)
    if function is None or is_unsigned:
        return row.numpy(*exact)  # type: ignore[misc]
    return function(*map(torch.tensor, exact)).numpy()


@pytest.mark.parametrize("row, dtype", CASES, ids=name_of)
def test_values_match_pytorch(row: Op, dtype: DType) -> None:
    nodes = inputs_of(row, dtype)
    node = build.elementwise(row.name, *nodes)
    assert node.dtype is row.dtype_rule.result(dtype)
    with np.errstate(all="ignore"):
        expected = reference(row, [value(each) for each in nodes])
    tolerance = TOLERANCE.get(node.dtype.name, 0.0)
    np.testing.assert_allclose(value(node), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("row", ROWS, ids=name_of)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes_stay(row: Op, shape: tuple[int, ...]) -> None:
    dtype = next(d for d in (float32, *ALL) if d.kind in row.dtype_rule.kinds)
    assert value(build.elementwise(row.name, *inputs_of(row, dtype, shape))).shape == shape


def applied(row: Op, *nodes: Node) -> Node:
    """Apply the row to float nodes; the condition of a ternary row compares the first."""
    if row.arity == 3 and row.linear:
        condition = build.binary("less", nodes[0], nodes[1])
        return build.where(condition, nodes[1], nodes[2])
    return build.elementwise(row.name, *nodes)


@pytest.mark.parametrize("row", SMOOTH, ids=name_of)
class TestGradients:
    def test_each_input(self, row: Op) -> None:
        arrays = [sample(row, float64, (3, 4), seed) for seed in range(row.arity)]
        check_both_orders(lambda *nodes: applied(row, *nodes), *arrays)

    def test_one_tensor_used_twice(self, row: Op) -> None:
        x = sample(row, float64, (3, 4), 5)
        if row.name in ("maximum", "minimum", "mod", "floordiv"):
            pytest.skip("a tie or a jump everywhere: no derivative to compare with")
        check_gradients(lambda n: applied(row, *[n] * row.arity) + n * n, x)

    def test_broadcast(self, row: Op) -> None:
        arrays = [sample(row, float64, (1, 4), seed) for seed in range(row.arity)]
        check_gradients(
            lambda *nodes: applied(row, *(build.expand(n, (3, 4)) for n in nodes)), *arrays
        )

    def test_permuted(self, row: Op) -> None:
        arrays = [sample(row, float64, (4, 3), seed) for seed in range(row.arity)]
        check_gradients(
            lambda *nodes: applied(row, *(build.permute(n, (1, 0)) for n in nodes)), *arrays
        )

    @pytest.mark.parametrize("shape", [(0, 4), ()], ids=str)
    def test_small_shapes(self, row: Op, shape: tuple[int, ...]) -> None:
        arrays = [sample(row, float64, shape, seed) for seed in range(row.arity)]
        check_gradients(lambda *nodes: applied(row, *nodes), *arrays)


@pytest.mark.parametrize("to", ALL, ids=name_of)
@pytest.mark.parametrize("dtype", ALL, ids=name_of)
def test_cast(dtype: DType, to: DType) -> None:
    x = leaf(np.array([0, 1, 2, 5]).astype(dtype.numpy), dtype)
    expected = value(x).astype(to.numpy)
    np.testing.assert_array_equal(value(build.cast(x, to)), expected)


def test_bitcast() -> None:
    x = np.array([1.0, -2.5], np.float32)
    np.testing.assert_array_equal(value(build.bitcast(leaf(x), int32)), x.view(np.int32))
    half = leaf(x, bfloat16)
    bits = build.bitcast(half, uint16)
    np.testing.assert_array_equal(value(bits), [0x3F80, 0xC020])
    np.testing.assert_array_equal(value(build.bitcast(bits, bfloat16)), x)


def torch_slopes(function: Any, *arrays: Array) -> list[Array]:
    leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    function(*leaves).sum().backward()
    return [t.grad.numpy() for t in leaves]


EDGES = np.array([-1.0, 0.0, 0.0, 1.0, 2.0])
OTHER = np.array([2.0, 0.0, 2.0, 1.0, 0.0])


@pytest.mark.parametrize("name", ["abs", "maximum", "minimum", "pow"])
def test_slopes_at_edges_are_those_of_pytorch(name: str) -> None:
    arrays = [EDGES, OTHER][: ELEMENTWISE[name].arity]
    ours = gradients_of(lambda *n: build.elementwise(name, *n), arrays, np.ones(5))
    theirs = torch_slopes(getattr(torch, name), *arrays)
    for a, b in zip(ours, theirs):
        np.testing.assert_array_equal(a, b)


def test_where_lets_no_infinity_through() -> None:
    def masked(x: Node) -> Node:  # the branch not taken has an infinite slope at 0
        is_positive = build.binary("less", x.const_like(0), x)
        return build.where(is_positive, is_positive.where(x, 1.0).unary("log"), x)

    (slope,) = gradients_of(masked, [np.array([0.0, 2.0])], np.ones(2))
    np.testing.assert_array_equal(slope, [1.0, 0.5])
