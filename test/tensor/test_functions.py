"""PyTorch's function spelling names the same operations as the methods."""

import numpy as np
import pytest

import picograd
from picograd import Tensor

X = Tensor([[1.0, 4.0], [9.0, 16.0]])


@pytest.mark.parametrize("name", ["exp", "sqrt", "sum", "relu", "argmax", "cumsum", "tril"])
def test_function_is_the_method(name: str) -> None:
    more = (0,) if name == "cumsum" else ()
    one, other = getattr(picograd, name)(X, *more), getattr(X, name)(*more)
    np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert getattr(picograd, name).__name__ == name


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "rand_like"])
def test_likes_keep_shape_and_dtype(name: str) -> None:
    half = X.to("float16")
    found = getattr(picograd, name)(half)
    assert found.shape == half.shape and found.dtype is half.dtype
    assert getattr(picograd, name)(half, dtype="float64").dtype.name == "float64"


def test_full_like_fills() -> None:
    assert picograd.full_like(X, 3).tolist() == [[3, 3], [3, 3]]


def test_a_real_tensor_is_its_own_conjugate():
    x = Tensor([1.0, -2.0])
    assert picograd.conj(x) is x.conj() is picograd.real(x) is x.conj_physical() is x
    assert not picograd.is_complex(x) and not x.is_conj()
    with pytest.raises(RuntimeError, match="takes a complex dtype, not float32"):
        picograd.imag(x)
