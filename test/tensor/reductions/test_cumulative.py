"""Running sums, products and extremes against PyTorch: values, indices, gradients."""

import numpy as np
import pytest
from order_support import chosen_device, compare, compare_gradients  # noqa: F401

import picograd
from picograd import Tensor
from picograd.errors import AxisError, DTypeError

torch = pytest.importorskip("torch")
RANDOM = np.random.default_rng(0)
FLOATS = [RANDOM.normal(size=shape) for shape in ((7,), (3, 5), (2, 3, 4), (40, 70))]
FLOATS += [np.array(2.5), np.array([[1.0, 2, 0, 3], [0, 1, 0, 2], [1, 2, 2, 1]])]
SPECIAL = [np.array([1.0, np.nan, 3, np.inf, -np.inf, 2])]
WHOLE = [RANDOM.integers(-5, 5, (6, 7)), RANDOM.integers(0, 2, (6, 7)).astype(bool)]
WHOLE += [RANDOM.integers(0, 5, 9).astype(np.uint8), RANDOM.integers(-9, 9, 8).astype(np.int16)]
EMPTY = [np.zeros(0), np.zeros((0, 3)), np.zeros((3, 0))]
NAMES = ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"]


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", NAMES)
def test_equals_torch(name: str, axis: int) -> None:
    arrays = FLOATS + SPECIAL + EMPTY + (WHOLE if name != "logcumsumexp" else [])
    for array in arrays:
        compare(lambda x: getattr(x, name)(dim=axis), array)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_equal_torch(name: str, axis: int) -> None:
    for array in FLOATS:
        compare_gradients(lambda x: getattr(x, name)(dim=axis), array, 1e-7)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_float_dtypes(dtype: str) -> None:
    tolerance = 4e-3 if dtype == "float16" else 1e-5
    for array in FLOATS:
        compare(lambda x: x.cumsum(dim=0), array.astype(dtype), tolerance)


def test_views_are_read_in_place() -> None:
    array = RANDOM.normal(size=(4, 6, 5))
    compare(lambda x: x.permute(2, 0, 1).cumsum(dim=1), array)
    compare(lambda x: x[:, 1:5].cumsum(dim=1), array)
    compare(lambda x: x.flip((1,)).cumsum(dim=1).flip((1,)), array)


@pytest.mark.parametrize("shape", [(200_001,), (2, 150_000), (150_000, 3)])
def test_long_axes_are_cut_in_chunks(shape: tuple[int, ...]) -> None:
    array = RANDOM.normal(size=shape)
    axis = int(np.argmax(shape))
    for name in ("cumsum", "cummax", "logcumsumexp"):
        compare(lambda x, name=name: getattr(x, name)(dim=axis), array)


def test_dtype_is_cast_first() -> None:
    found = Tensor([1, 2, 3]).cumsum(0, dtype=picograd.float32)
    assert found.dtype is picograd.float32 and found.tolist() == [1, 3, 6]
    assert picograd.cumprod(Tensor([1, 2, 3]), 0).tolist() == [1, 2, 6]


def test_errors() -> None:
    with pytest.raises(AxisError, match="cumsum"):
        Tensor([1.0]).cumsum(1)
    with pytest.raises(DTypeError, match="logcumsumexp: needs a float dtype"):
        Tensor([1]).logcumsumexp(0)


def test_a_tracing_step_scans() -> None:
    step = picograd.jit(lambda x: x.cumsum(0) * 2)
    for _ in range(3):
        assert step(Tensor([1.0, 2.0])).tolist() == [2, 6]


def test_logcumsumexp_of_complex_numbers_equals_pytorchs() -> None:
    array = (RANDOM.normal(size=(3, 5)) * 3 + 4j * RANDOM.normal(size=(3, 5))).astype("c8")
    x, theirs = Tensor(array).requires_grad_(), torch.tensor(array, requires_grad=True)
    y, wanted = x.logcumsumexp(1), theirs.logcumsumexp(1)
    np.testing.assert_allclose(y.numpy(), wanted.detach().numpy(), rtol=1e-5)
    y.real.sum().backward()
    wanted.real.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), theirs.grad.resolve_conj().numpy(), atol=1e-5)
    least = Tensor([-np.inf, -np.inf, 1.0]).to(picograd.complex64).logcumsumexp(0)
    assert least.tolist() == [-np.inf, -np.inf, 1.0]
