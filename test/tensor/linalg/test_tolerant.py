"""Decompositions that say what went wrong."""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import LinAlgError

GOOD = np.array([[4.0, 1.0], [1.0, 3.0]])
BAD = np.array([[1.0, 2.0], [2.0, 1.0]])  # not positive definite
FLAT = np.array([[1.0, 2.0], [2.0, 4.0]])
LATE = np.array([[4.0, 2 - 1j, 1, 1], [2 + 1j, 5, 3j, 1], [1, -3j, 0, 2], [1, 1, 2, 3]])


@pytest.mark.parametrize("matrix", [GOOD, np.stack([GOOD, BAD, -GOOD]), FLAT, LATE])
def test_cholesky(matrix: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    ours, info = picograd.linalg.cholesky_ex(Tensor(matrix))
    theirs = torch.linalg.cholesky_ex(torch.tensor(matrix))
    assert info.tolist() == theirs.info.tolist()
    np.testing.assert_allclose(ours.numpy(), theirs.L.numpy(), rtol=1e-6)


@pytest.mark.parametrize("matrix", [GOOD, FLAT, np.stack([GOOD, FLAT]), np.diag([0.0, 1.0])])
def test_inverses_and_solutions(matrix: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    right = np.ones((*matrix.shape[:-2], 2, 1))
    results = [
        (lib.linalg.inv_ex(x), lib.linalg.solve_ex(x, y))
        for lib, x, y in (
            (picograd, Tensor(matrix), Tensor(right)),
            (torch, torch.tensor(matrix), torch.tensor(right)),
        )
    ]
    for ours, theirs in zip(*results, strict=True):
        assert ours.info.tolist() == theirs.info.tolist()
        good = np.asarray(theirs.info) == 0
        np.testing.assert_allclose(ours[0].numpy()[good], theirs[0].numpy()[good], rtol=1e-6)


def test_gradients_and_errors() -> None:
    x = Tensor(GOOD, requires_grad=True)
    picograd.linalg.cholesky_ex(x, upper=True).L.sum().backward()
    assert x.grad is not None and np.isfinite(x.grad.numpy()).all()
    assert picograd.linalg.solve_ex(x, Tensor(GOOD), left=False).result.shape == (2, 2)
    with pytest.raises(LinAlgError):
        picograd.linalg.inv_ex(Tensor(FLAT), check_errors=True)


def test_float16_says_what_went_wrong() -> None:
    matrix = Tensor([[1.0, 2.0], [2.0, 1.0]], dtype=picograd.float16)
    assert picograd.linalg.cholesky_ex(matrix).info.item() == 2
