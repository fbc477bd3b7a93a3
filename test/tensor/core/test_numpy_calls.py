"""Functions of NumPy called with tensors: recorded by ours, or computed on the values."""

import numpy as np
import pytest

from picograd import Tensor
from picograd.errors import GradientError
from picograd.tensor.core.numpy_calls import METHODS, REFLECTED


@pytest.mark.parametrize("name", ["sqrt", "exp", "log", "tanh", "absolute", "square", "isnan"])
def test_functions_of_one_tensor(name: str) -> None:
    values = np.array([0.5, 2.0], np.float32)
    found = getattr(np, name)(Tensor(values))
    assert isinstance(found, Tensor)
    np.testing.assert_allclose(found.numpy(), getattr(np, name)(values), rtol=1e-6)


@pytest.mark.parametrize(
    "name", [*REFLECTED, "left_shift", "maximum", "arctan2", "fmod", "logical_and"]
)
def test_functions_of_two(name: str) -> None:
    kind = np.int32 if "bitwise" in name or "shift" in name else np.float32
    a, b = np.array([5, 2], kind), np.array([3, 2], kind)
    wanted = getattr(np, name)(a, b)
    for pair in ((Tensor(a), Tensor(b)), (a, Tensor(b)), (Tensor(a), b)):
        found = getattr(np, name)(*pair)
        assert isinstance(found, Tensor)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


def test_gradients_are_recorded() -> None:
    x = Tensor([4.0], requires_grad=True)
    np.sqrt(x).backward()
    assert x.grad is not None and x.grad.tolist() == [0.25]
    with pytest.raises(GradientError, match=r"numpy.cbrt: .*pass tensor.detach"):
        np.cbrt(x)


def test_other_functions_compute_on_the_values() -> None:
    x = Tensor([1.0, 8.0])
    assert isinstance(np.cbrt(x), Tensor) and np.cbrt(x).tolist() == [1.0, 2.0]
    assert [part.tolist() for part in np.modf(Tensor([1.5]))] == [[0.5], [1.0]]
    assert np.add.outer(x, x).tolist() == [[2.0, 9.0], [9.0, 16.0]]
    array = np.ones(2, np.float32)
    array += x
    assert isinstance(array, np.ndarray) and array.tolist() == [2.0, 9.0]
    assert all(hasattr(Tensor, each) for each in (*METHODS.values(), *REFLECTED.values()))
