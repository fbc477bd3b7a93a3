"""Orthogonal polynomials equal PyTorch's, and have gradients, which PyTorch's have not."""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import PicogradError
from picograd.tensor.math.polynomials import FAMILIES

torch = pytest.importorskip("torch")
NAMES = [name for name in dir(torch.special) if "polynomial" in name and not name.startswith("_")]
X = np.array([-1.0, -0.6, -0.1, 0.0, 0.3, 0.5, 0.9, 1.0, 1.7])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_values(name: str, dtype: str, device: str) -> None:
    ours, theirs = getattr(picograd.special, name), getattr(torch.special, name)
    x = X.astype(dtype)
    tolerance = 2e-4 if dtype == "float32" else 1e-9
    for degree in (-1, 0, 1, 2, 3, 6, 11):
        found = ours(Tensor(x, device=device), degree)
        want = theirs(torch.from_numpy(x), degree).numpy()
        assert found.numpy().dtype == want.dtype
        np.testing.assert_allclose(found.numpy(), want, tolerance, tolerance)
    degrees = np.array([[0], [1], [4]])
    found = ours(Tensor(x, device=device), Tensor(degrees, device=device))
    want = theirs(torch.from_numpy(x), torch.from_numpy(degrees)).numpy()
    np.testing.assert_allclose(found.numpy(), want, tolerance, tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_gradients(name: str, device: str) -> None:
    call = getattr(picograd.special, name)
    x = Tensor(X, device=device, requires_grad=True)
    call(x, 4).sum().backward()
    step = 1e-6
    rise = call(Tensor(X + step), 4).numpy() - call(Tensor(X - step), 4).numpy()
    np.testing.assert_allclose(x.grad.numpy(), rise / (2 * step), 1e-5, 1e-5)


def test_kinds_of_numbers(device: str) -> None:
    ones = Tensor([1, 2], device=device)
    assert picograd.special.legendre_polynomial_p(ones, 2).tolist() == [1.0, 5.5]
    half = picograd.special.hermite_polynomial_h(Tensor([0.5], dtype="float16", device=device), 3)
    assert half.dtype == picograd.float16 and half.tolist() == [-5.0]
    empty = picograd.special.hermite_polynomial_h(ones[:0], ones[:0])
    assert empty.dtype == picograd.float32 and empty.shape == (0,)
    assert len(FAMILIES) == 8
    with pytest.raises(PicogradError):
        picograd.special.laguerre_polynomial_l("x", 2)


def test_under_jit(device: str) -> None:
    step = picograd.jit(lambda x: picograd.special.chebyshev_polynomial_t(x, 5))
    x = Tensor(X, device=device)
    for _ in range(2):
        np.testing.assert_allclose(
            step(x).numpy(), np.polynomial.Chebyshev.basis(5)(X), 1e-9, 1e-12
        )
