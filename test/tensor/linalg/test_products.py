"""Products on nodes: ranks, batches and einsum against NumPy; errors name the shapes."""

import numpy as np
import pytest
from graph_support import leaf, value

import picograd
from picograd import Tensor, scaled_mm
from picograd.dtype import bfloat16, float8_e4m3fn, float8_e5m2, float32, uint8
from picograd.errors import DTypeError, PicogradError, ShapeError
from picograd.tensor.linalg.products import (
    einsum,
    linear,
    matmul,
    matmul_of_rank,
    outer,
    parse_einsum,
)

RANDOM = np.random.default_rng(0)
A, B = RANDOM.normal(size=(2, 1, 3, 4)), RANDOM.normal(size=(5, 4, 2))
V = RANDOM.normal(size=4)


@pytest.mark.parametrize(
    ("a", "b"),
    [(A, B), (V, V), (A, V), (V, B), (A[0, 0], B[0]), (A[:0], B), (A[..., :0], B[:, :0])],
)
def test_matmul(a, b) -> None:
    np.testing.assert_allclose(value(matmul(leaf(a), leaf(b))), a @ b)


@pytest.mark.parametrize(
    ("equation", "arrays"),
    [
        ("ij,jk->ik", (A[0, 0], B[0])), ("ij,jk", (A[0, 0], B[0])), ("ii->i", (np.eye(3),)),
        ("ii", (np.eye(3),)), ("...ij,...jk->...ik", (A, B)), ("i,j,k->ijk", (V, V, V)),
        ("ij->ji", (A[0, 0],)), ("ij->", (A[0, 0],)),
    ],
)  # fmt: skip
def test_einsum(equation: str, arrays) -> None:
    wanted = np.einsum(equation, *arrays)
    np.testing.assert_allclose(value(einsum(equation, [leaf(a) for a in arrays])), wanted)


def test_einsum_adds_small_integers_up_in_int64() -> None:
    small = leaf(np.full((2, 100), 100, np.uint8))
    assert value(einsum("ij->i", [small])).tolist() == [10_000, 10_000]
    assert einsum("ij,ij->ij", [small, small]).dtype is uint8


def test_linear_and_outer() -> None:
    w, bias = RANDOM.normal(size=(6, 4)), RANDOM.normal(size=6)
    np.testing.assert_allclose(value(linear(leaf(A), leaf(w), leaf(bias))), A @ w.T + bias)
    np.testing.assert_allclose(value(outer(leaf(V), leaf(bias))), np.outer(V, bias))


def test_outer_has_the_names_of_pytorch() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    for found in (picograd.outer(x, vec2=y), picograd.ger(x, vec2=y), x.ger(vec2=y)):
        assert found.tolist() == [[3.0, 4.0], [6.0, 8.0]]
    assert [part.shape for part in x.split(split_size=1)] == [(1,), (1,)]
    assert [part.shape for part in picograd.unsafe_split(x, split_size=2)] == [(2,)]


def test_inner_sizes_that_differ_are_named() -> None:
    with pytest.raises(ShapeError, match=r"matmul: .*\(3, 4\).*\(2, 4\)"):
        matmul(leaf(A[0, 0]), leaf(B[0].T))
    with pytest.raises(ShapeError, match="^bmm"):
        matmul_of_rank("bmm", leaf(A[0, 0]), leaf(B[0]), 3)


@pytest.mark.parametrize("equation", ["ij,jk->iz", "ij", "ij,jk,kl->il", "i-j", "ij,jk->ii"])
def test_equations_that_do_not_fit(equation: str) -> None:
    with pytest.raises(PicogradError):
        einsum(equation, [leaf(A[0, 0]), leaf(B[0])])


def test_parse() -> None:
    assert parse_einsum("ij,jk", [2, 2]) == ([["i", "j"], ["j", "k"]], ["i", "k"])


@pytest.mark.parametrize("is_by_row", [False, True])
def test_scaled_mm(is_by_row: bool) -> None:
    a = Tensor(RANDOM.normal(size=(6, 9))).to(float8_e4m3fn)
    b = Tensor(RANDOM.normal(size=(5, 9))).to(float8_e5m2)
    shapes = ((6, 1), (1, 5)) if is_by_row else ((), (1,))
    scales = [RANDOM.uniform(size=shape).astype(np.float32) for shape in shapes]
    bias = RANDOM.normal(size=5).astype(np.float32)
    found = scaled_mm(a, b.T, *map(Tensor, scales), Tensor(bias), out_dtype=float32)
    left, right = (x.float().numpy().astype(float) for x in (a, b))
    wanted = (left * scales[0]) @ (right.T * scales[1]) + bias
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-5)
    assert scaled_mm(a, b.T, Tensor(1.0), Tensor(1.0)).dtype is bfloat16


def test_errors_of_scaled_mm() -> None:
    a, one = Tensor(np.zeros((6, 9))).to(float8_e4m3fn), Tensor(1.0)
    with pytest.raises(DTypeError, match=r"scaled_mm: takes 8-bit floats, not float32\. Fix"):
        scaled_mm(a, a.T.float(), one, one)
    with pytest.raises(ShapeError, match=r"inner sizes differ: \(6, 9\) @ \(6, 9\).*\.T"):
        scaled_mm(a, a, one, one)
    with pytest.raises(ShapeError, match="takes two matrices"):
        scaled_mm(a, a[0], one, one)
    with pytest.raises(ShapeError, match=r"scale_b \(2,\) does not fit .*give one number, or \(1"):
        scaled_mm(a, a.T, one, Tensor([1.0, 2.0]))
    with pytest.raises(ShapeError, match=r"bias \(1,\) does not fit .*give one of shape \(6,\)"):
        scaled_mm(a, a.T, one, one, Tensor([1.0]))
