"""L D L^T against PyTorch: factors, pivots, solutions and their gradients."""

import numpy as np
import pytest

import picograd
from picograd import Tensor, linalg
from picograd.errors import ShapeError, ValueRangeError

torch = pytest.importorskip("torch")


def matrices(*shape: int, dtype: str = "float64") -> np.ndarray:
    random = np.random.default_rng(3)
    x = random.normal(size=shape)
    if dtype.startswith("complex"):
        x = x + 1j * random.normal(size=shape)
    return x.astype(dtype)


def turned(x: np.ndarray) -> np.ndarray:
    return x.conj().swapaxes(-1, -2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(6, 6), (2, 3, 5, 5), (1, 1), (0, 3, 3), (2, 0, 0), (40, 40)])
@pytest.mark.parametrize("hermitian", [False, True])
def test_factors_and_solutions(dtype: str, shape: tuple[int, ...], hermitian: bool) -> None:
    x = matrices(*shape, dtype=dtype)
    x = x + (x.conj() if hermitian else x).swapaxes(-1, -2)
    b = matrices(*shape[:-1], 2, dtype=dtype)
    found = linalg.ldl_factor(Tensor(x), hermitian=hermitian)
    want = torch.linalg.ldl_factor(torch.tensor(x), hermitian=hermitian)
    bound = 1e-3 if dtype == "float32" else 1e-9
    np.testing.assert_array_equal(found.pivots.numpy(), want.pivots.numpy())
    np.testing.assert_allclose(found.LD.numpy(), want.LD.numpy(), rtol=bound, atol=bound)
    right = Tensor(b, requires_grad=True)
    solution = linalg.ldl_solve(*found, right, hermitian=hermitian)
    np.testing.assert_allclose(x @ solution.numpy(), b, rtol=bound, atol=bound)
    slope = matrices(*b.shape, dtype=dtype)  # PyTorch has no gradient here
    solution.backward(Tensor(slope))
    np.testing.assert_allclose(turned(x) @ right.grad.numpy(), slope, rtol=bound, atol=bound)


def test_one_factor_for_many_right_sides() -> None:
    x = matrices(4, 4) + matrices(4, 4).T
    b = matrices(3, 4, 2)
    found = linalg.ldl_solve(*linalg.ldl_factor(Tensor(x)), Tensor(b))
    np.testing.assert_allclose(found.numpy(), np.linalg.solve(x, b), atol=1e-9)
    assert type(linalg.ldl_factor(Tensor(x))) is picograd.return_types.linalg_ldl_factor


def test_what_does_not_fit() -> None:
    zeros = linalg.ldl_factor_ex(Tensor([[[0.0, 0.0], [0.0, 1.0]], [[0.0, 2.0], [2.0, 0.0]]]))
    assert zeros.info.tolist() == [2, 0] or zeros.info.tolist() == [1, 0]
    with pytest.raises(ValueRangeError, match=r"linalg\.ldl_factor: D has a 0"):
        linalg.ldl_factor(Tensor([[0.0]]))
    with pytest.raises(ShapeError, match="not square"):
        linalg.ldl_factor(Tensor([[1.0, 2.0]]))
    with pytest.raises(ShapeError, match="do not fit"):
        linalg.ldl_solve(*linalg.ldl_factor(Tensor([[1.0]])), Tensor([[1.0], [2.0]]))
