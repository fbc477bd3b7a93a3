"""Contraction and convolution against PyTorch: values, gradients, second order."""

from typing import Any

import numpy as np
import pytest
from graph_support import check_both_orders, check_gradients, gradients_of, leaf, value

from picograd.buffer import Storage
from picograd.conversion import convert
from picograd.dtype import ALL, DType, float32
from picograd.graph import build, product_ops
from picograd.graph.expand import expand_composites
from picograd.graph.gradient import gradient
from picograd.graph.node import Node, toposort
from picograd.graph.shape import ConvSpec, Shape

torch = pytest.importorskip("torch")

CONTRACTIONS = {
    "matmul": ((0, 1), (1, 2), (0, 2), (3, 4), (4, 5)),
    "transposed out": ((0, 1), (1, 2), (2, 0), (3, 4), (4, 5)),
    "batched": ((7, 0, 1), (7, 2, 1), (7, 0, 2), (2, 3, 4), (2, 5, 4)),
    "outer": ((0,), (1,), (0, 1), (3,), (4,)),
    "dot": ((0,), (0,), (), (3,), (3,)),
    "summed alone": ((0, 1), (2, 3), (0, 2), (2, 3), (4, 5)),
    "scalars": ((), (), (), (), ()),
    "two inner": ((-1, 5, 9), (9, -1, 3), (3, 5), (2, 3, 4), (4, 2, 5)),
    "empty": ((0, 1), (1, 2), (0, 2), (3, 0), (0, 5)),
}


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_contract(name: str) -> None:
    a, b, out, shape_a, shape_b = CONTRACTIONS[name]
    random = np.random.default_rng(0)
    x, y = random.normal(size=shape_a), random.normal(size=shape_b)
    letters = {label: chr(97 + k) for k, label in enumerate(dict.fromkeys(a + b))}
    left, right, result = ("".join(letters[label] for label in part) for part in (a, b, out))
    expected = np.einsum(f"{left},{right}->{result}", x, y)
    np.testing.assert_allclose(value(build.contract(leaf(x), leaf(y), (a, b, out))), expected)
    check_both_orders(lambda m, n: build.contract(m, n, (a, b, out)), x, y)


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_complex_contractions_are_one_real_one(name: str, monkeypatch: Any) -> None:
    """Twice as deep and twice as wide, where parts of an operand lie along what is summed."""
    monkeypatch.setattr(product_ops, "REUSED", 1)
    a, b, out, *shapes = CONTRACTIONS[name]
    random = np.random.default_rng(0)
    x, y = (random.normal(size=(2, *shape)).T @ (1, 1j) for shape in shapes)
    node = build.contract(leaf(x.T), leaf(y.T), (a, b, out))
    letters = {label: chr(97 + k) for k, label in enumerate(dict.fromkeys(a + b))}
    left, right, result = ("".join(letters[label] for label in part) for part in (a, b, out))
    expected = np.einsum(f"{left},{right}->{result}", x.T, y.T)
    np.testing.assert_allclose(value(node), expected, atol=1e-12)
    found = [each.inputs[0].shape for each in toposort([node]) if each.op == "contract"]
    deep = {"matmul": 1, "transposed out": 1, "batched": 1, "dot": 1, "two inner": 1}
    assert len(found) == deep.get(name, 4)


def test_complex_rows_of_a_matrix_are_read_as_they_lie() -> None:
    """One row times a matrix: writing the matrix four times would take longer."""
    row, matrix = (leaf(np.ones(shape, np.complex64)) for shape in ((1, 300), (300, 200)))
    labels = ((0, 1), (1, 2), (0, 2))
    node = build.contract(row, matrix, labels)
    assert sum(each.op == "contract" for each in toposort([node])) == 4
    node = build.contract(matrix, leaf(np.ones(200, np.complex64)), ((1, 2), (2,), (1,)))
    assert sum(each.op == "contract" for each in toposort([node])) == 1


@pytest.mark.parametrize("dtype", [d for d in ALL if d.kind != "bool"], ids=str)
def test_matmul_dtypes(dtype: DType) -> None:
    random = np.random.default_rng(0)
    x, y = (random.integers(0, 3, s).astype(dtype.numpy) for s in ((3, 4), (4, 2)))
    got = build.matmul(leaf(x, dtype), leaf(y, dtype))
    assert got.dtype is dtype
    exact = x.astype(np.int64) @ y.astype(np.int64)
    np.testing.assert_array_equal(value(got), convert(exact, dtype))


MATMULS = [
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (6, 4, 5)),
    ((1, 3, 4), (1, 4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
]


@pytest.mark.parametrize("a, b", MATMULS, ids=str)
def test_matmul_broadcasts(a: Shape, b: Shape) -> None:
    random = np.random.default_rng(0)
    x, y = random.normal(size=a), random.normal(size=b)
    np.testing.assert_allclose(value(build.matmul(leaf(x), leaf(y))), np.matmul(x, y))
    check_gradients(build.matmul, x, y)


def test_one_matrix_used_twice() -> None:
    x = np.random.default_rng(0).normal(size=(3, 3))
    check_both_orders(lambda n: build.matmul(n, build.permute(n, (1, 0))), x)


CONVS: list[Any] = [
    # stride, padding, dilation, groups
    ((1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ((1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    ((2, 3), ((1, 2), (0, 1)), (1, 1), 1),
    ((2, 2), ((0, 0), (1, 1)), (2, 1), 2),
    ((1, 2), ((3, 3), (2, 2)), (2, 3), 3),
    ((3, 3), ((0, 0), (0, 0)), (1, 1), 1),
]


def torch_conv(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """Convolve with PyTorch in our shapes."""
    n, _, _, h, v = x.shape
    (top, bottom), (left, right) = padding
    flat = torch.nn.functional.pad(x.reshape(n, -1, h, v), (left, right, top, bottom))
    weight = w.reshape(-1, *w.shape[2:])
    y = torch.nn.functional.conv2d(flat, weight, None, stride, 0, dilation, groups)
    return y.reshape(n, groups, -1, *y.shape[2:])


@pytest.mark.parametrize("case", CONVS, ids=str)
def test_conv(case: Any) -> None:
    stride, padding, dilation, groups = case
    random = np.random.default_rng(0)
    x = random.normal(size=(2, groups, 2, 8, 9))
    w = random.normal(size=(groups, 3, 2, 3, 2))
    spec = ConvSpec(stride, padding, (1, 1), dilation)

    def ours(m: Node, n: Node) -> Node:
        return build.conv(m, n, spec)

    tx, tw = torch.tensor(x, requires_grad=True), torch.tensor(w, requires_grad=True)
    y = torch_conv(tx, tw, *case)
    np.testing.assert_allclose(value(ours(leaf(x), leaf(w))), y.detach().numpy(), rtol=1e-9)
    g = random.normal(size=y.shape)
    theirs = torch.autograd.grad(y, (tx, tw), torch.tensor(g))
    for a, b in zip(gradients_of(ours, [x, w], g), theirs):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-9, atol=1e-9)
    check_both_orders(ours, x, w)


SPECS = [
    ((1,), ((2, -1),), (2,), (1,)),
    ((2,), ((-1, 3),), (3,), (2,)),
    ((1,), ((0, 0),), (2,), (1,)),
]


@pytest.mark.parametrize("case", SPECS, ids=str)
def test_conv_with_input_dilation_and_cuts(case: Any) -> None:
    random = np.random.default_rng(0)
    x, w = random.normal(size=(2, 1, 2, 5)), random.normal(size=(1, 3, 2, 3))
    check_both_orders(lambda m, n: build.conv(m, n, ConvSpec(*case)), x, w)


@pytest.mark.parametrize("case", SPECS, ids=str)
def test_gradients_of_weights_multiply_the_fewest_zeros(case: Any) -> None:
    x, w = (
        Node("buffer", (), Storage(None), shape, float32, "cpu")
        for shape in ((2, 1, 2, 5), (1, 3, 2, 3))
    )
    out = build.conv(x, w, ConvSpec(*case))
    order = toposort(gradient([(out, out)], [w]), lambda node: node is out)
    convolutions = [each for each in order if each.op == "conv" and each is not out]
    spread = min(case[0], case[2])
    assert [each.arg.input_dilation for each in convolutions] == [spread]


def test_empty_batch() -> None:
    spec = ConvSpec((1,), ((0, 0),), (1,), (1,))
    arrays = np.ones((0, 1, 2, 5)), np.ones((1, 3, 2, 3))
    check_gradients(lambda m, n: build.conv(m, n, spec), *arrays)


@pytest.mark.parametrize("number", [0, 1])
def test_rows_of_one_number_are_multiplied_once(number: int) -> None:
    """A gradient of a sum: its product with a matrix has rows, or columns, that are all alike."""
    ones = build.permute(build.detach(build.const(3.0, (16, 2, 300), float32, "cpu")), (1, 2, 0))
    x = np.random.default_rng(0).normal(size=(2, 16, 50)).astype(np.float32)
    labels = ((7, 0, 1), (7, 1, 2), (7, 0, 2))
    pair = (ones, leaf(x)) if number == 0 else (leaf(x), ones)
    ordered = labels if number == 0 else (labels[1], labels[0], labels[2])
    node = build.contract(*pair, ordered)
    (found,) = expand_composites([node])
    assert found is not node and max(each.size for each in toposort([found])) == node.size
    assert [each.shape for each in toposort([found]) if each.op == "contract"] == [(2, 1, 50)]
    np.testing.assert_allclose(value(found), value(node), rtol=1e-5)
    np.testing.assert_allclose(
        value(node), 3 * x.sum(1, keepdims=True).repeat(300, 1), rtol=1e-4, atol=1e-5
    )
