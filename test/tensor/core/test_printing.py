"""How tensors print: the numbers, brackets and line breaks of PyTorch."""

from collections.abc import Iterator

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.dtype import float32, float64
from picograd.errors import ValueRangeError
from picograd.tensor.core.printing import format_array, format_tensor, format_traced


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    yield
    picograd.set_printoptions(profile="default")


def draw(random: np.random.Generator) -> np.ndarray:
    """Draw an array of one of the kinds that print differently."""
    shape = tuple(random.integers(0, 5, random.integers(0, 4)))
    kind, normal = random.integers(0, 7), random.normal(size=shape)
    if kind == 0:
        return np.asarray(random.integers(-1000, 1000, shape))
    if kind == 1:
        return np.asarray(normal > 0)
    if kind == 2:
        return np.round(normal * 10.0 ** random.integers(0, 10)).astype(np.float32)
    if kind == 3:
        spoilt = np.where(normal > 1, np.nan, np.where(normal < -1, -np.inf, normal))
        return spoilt.astype(np.float32)
    if kind == 4:
        return np.where(normal > 0, np.inf, np.round(normal * 5)).astype(np.float32)
    if kind == 5:
        return (normal * 10.0 ** random.integers(-4, 4, shape)).astype(np.float32)
    return np.asarray(normal * 10.0 ** random.integers(-6, 9), np.float32)


def test_it_is_the_text_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    arrays = [draw(random) for _ in range(150)]
    for shape in ((2000,), (50, 50), (4, 20, 20), (30,), (3, 40)):
        arrays.append(random.normal(size=shape).astype(np.float32))
        arrays.append(random.integers(0, 9, shape))
    for array in arrays:
        wanted = repr(torch.tensor(array)).replace("torch.", "picograd.")
        assert "t" + repr(Tensor(array, device="cpu"))[1:] == wanted


def test_suffixes() -> None:
    x = Tensor([1.0, 2.5], requires_grad=True, device="cpu")
    assert repr(x) == "Tensor([1.0000, 2.5000], requires_grad=True)"
    assert repr(x * 2) == "Tensor([2., 5.], grad_fn=<MulBackward0>)"
    assert repr(Tensor([1], dtype="int32", device="cpu")) == "Tensor([1], dtype=picograd.int32)"
    assert repr(Tensor.zeros(0, 3, device="cpu")) == "Tensor([], size=(0, 3))"
    text = format_tensor(np.array([1.0, 2.0]), (2,), float64, "cuda:0", True)
    assert text == ("Tensor([1., 2.], dtype=picograd.float64, device='cuda:0', requires_grad=True)")
    long = format_tensor(np.arange(25.0), (25,), float32, "cpu", True).splitlines()
    assert long[-1] == "       requires_grad=True)"


def test_options() -> None:
    x = np.array([1.0, 0.123456])
    picograd.set_printoptions(precision=2)
    assert format_array(x, 0) == "[1.00, 0.12]"
    picograd.set_printoptions(sci_mode=True)
    assert format_array(x, 0) == "[1.00e+00, 1.23e-01]"
    picograd.set_printoptions(profile="short", sci_mode=False, threshold=3, edgeitems=1)
    assert format_array(np.arange(5) * 10000.3, 0) == "[    0.00,  ..., 40001.20]"
    picograd.set_printoptions(profile="default", linewidth=20)
    assert format_array(np.ones(9), 0) == "[1., 1., 1., 1., 1.,\n 1., 1., 1., 1.]"
    picograd.set_printoptions(profile="full")
    assert "..." not in format_array(np.zeros(2000), 0)
    with pytest.raises(ValueRangeError, match="profile='tiny' is unknown"):
        picograd.set_printoptions(profile="tiny")
    with pytest.raises(ValueRangeError, match="precision=-1"):
        picograd.set_printoptions(precision=-1)


def test_a_traced_tensor_has_no_values() -> None:
    text = format_traced((2, 3), "float32", "cpu")
    assert "2, 3" in text and "float32" in text
