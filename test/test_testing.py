"""assert_close says what torch.testing's says."""

import re

import numpy as np
import pytest

import picograd
from picograd import Tensor, testing

CASES = [
    ([1.0, 2.0], [1.0, 2.0 + 1e-6], {}),
    ([1.0, 2.0], [1.0, 2.1], {}),
    ([1.0, 2.0], [1.0, 2.1], {"rtol": 0.1, "atol": 0.0}),
    ([float("nan")], [float("nan")], {}),
    ([float("nan")], [float("nan")], {"equal_nan": True}),
    ([float("inf")], [float("inf")], {}),
    ([1, 2], [1, 3], {}),
    ([True], [False], {}),
    ([], [], {}),
    ([1.0], [[1.0]], {}),
    ([1.0], [1], {}),
    ([1.0], [1], {"check_dtype": False}),
    ([1 + 1j], [1 + 1j], {}),
]


@pytest.mark.parametrize(("a", "b", "options"), CASES)
def test_it_raises_where_pytorch_does(a: list, b: list, options: dict) -> None:
    torch = pytest.importorskip("torch")
    outcomes = []
    for lib, made in ((picograd, picograd.tensor), (torch, torch.tensor)):
        try:
            lib.testing.assert_close(made(a), made(b), **options)
            outcomes.append(True)
        except AssertionError:
            outcomes.append(False)
    assert outcomes[0] == outcomes[1]


def test_containers_and_messages() -> None:
    x = Tensor([1.0, 2.0])
    testing.assert_close({"a": [x, 1.0]}, {"a": [x, 1.0]})
    with pytest.raises(AssertionError, match=re.escape("item ['a']: item [0]: 1 of 2 elements")):
        testing.assert_close({"a": [x]}, {"a": [x + Tensor([0.0, 1.0])]})
    with pytest.raises(AssertionError, match="lengths differ: 1 and 2"):
        testing.assert_close([x], [x, x])
    with pytest.raises(AssertionError, match="mine: 2 of 2"):
        testing.assert_close(x, x + 1, msg=lambda text: f"mine: {text}")
    with pytest.raises(picograd.errors.DTypeError, match="give both"):
        testing.assert_close(x, x, rtol=1.0)
    testing.assert_close(np.float32(1.0), 1.0)


@pytest.mark.parametrize("name", ["bool", "uint8", "int16", "int64", "float16", "float64"])
def test_drawn_tensors_are_in_range(name: str) -> None:
    """Each dtype has its own range; gaps, a format and places without zeros are as asked."""
    dtype = getattr(picograd, name)
    x = testing.make_tensor(40, 5, dtype=dtype)
    low, high = (0, 1) if name == "bool" else (0 if name == "uint8" else -9, 9)
    assert x.dtype is dtype
    assert x.shape == (40, 5)
    assert x.int().min().item() >= low
    assert x.int().max().item() <= high
    apart = testing.make_tensor((4, 6), dtype=dtype, noncontiguous=True, exclude_zero=True)
    assert apart.shape == (4, 6)
    assert not apart.is_contiguous()
    assert (apart != 0).all().item()


def test_drawn_complex_numbers_and_gradients() -> None:
    """Both parts of complex numbers are drawn; a gradient is asked for."""
    x = testing.make_tensor((3,), dtype=picograd.complex64, low=2, high=3, requires_grad=True)
    assert x.requires_grad
    assert (x.detach().imag >= 2).all().item()
    whole = testing.make_tensor((3,), dtype=picograd.int8, low=-1000, high=-127)
    assert whole.tolist() == [-128] * 3


@pytest.mark.parametrize(
    "options", [{"low": 2, "high": 1}, {"low": float("nan")}, {"low": 300}, {"high": -1}]
)
def test_a_range_without_numbers_is_refused(options: dict) -> None:
    with pytest.raises(ValueError, match="make_tensor"):
        testing.make_tensor(2, dtype=picograd.uint8, **options)
