"""Making nodes of host data: dtypes, ragged lists, ranges."""

import numpy as np
import pytest
from graph_support import value

from picograd import Tensor
from picograd.conversion import to_bits
from picograd.dtype import bfloat16, bool_, float32, float64, int64
from picograd.errors import PicogradError, ShapeError
from picograd.tensor.making import creation as c


@pytest.mark.parametrize(
    ("data", "dtype"),
    [([1, 2], int64), ([1.0, 2], float32), ([True], bool_), (np.zeros(2), float64),
     ([np.zeros(2), np.ones(2)], float64), (3, int64), ([], float32)],
)  # fmt: skip
def test_dtype_of_new_data(data, dtype) -> None:
    assert c.from_data(data, None, "cpu").dtype is dtype


def test_ragged_lists_name_the_place() -> None:
    with pytest.raises(ShapeError, match=r"\[1\]"):
        c.from_data([[1, 2], [3]], None, "cpu")


@pytest.mark.parametrize("data", ["text", [1, "a"], object(), [None], np.zeros(2, "M8[s]")])
def test_what_is_no_number(data) -> None:
    with pytest.raises(PicogradError):
        c.from_data(data, None, "cpu")


def test_bfloat16_rounds_to_nearest_even() -> None:
    numbers = np.array([1 + 2**-8, 1 + 3 * 2**-8, np.nan, np.inf], np.float32)
    bits = to_bits(numbers, bfloat16)
    assert bits[0] == 0x3F80 and bits[1] == 0x3F82 and bits[3] == 0x7F80
    assert np.isnan((bits[2:3].astype(np.uint32) << 16).view(np.float32)[0])


@pytest.mark.parametrize("span", [(0, 5, 1), (5, 0, -2), (1, 1, 1), (0.0, 1.0, 0.25), (2, 9, 3)])
def test_arange(span) -> None:
    found = value(c.arange(*span, None, "cpu"))
    np.testing.assert_allclose(found, np.arange(*span), rtol=1e-6)


def test_arange_takes_its_end_by_name_and_counts_float32_numbers_exactly() -> None:
    assert Tensor.arange(end=3).tolist() == [0, 1, 2]
    assert Tensor.arange(0.0, 3).dtype is float32  # not because 0.0 is no start
    assert Tensor.arange(0, np.float32(1.1), 0.1).shape == (12,)  # 1.1 is 1.10000002 there
    with pytest.raises(TypeError, match="^arange: "):
        Tensor.arange()


def test_linspace_full_eye() -> None:
    np.testing.assert_allclose(value(c.linspace(0, 1, 5, None, "cpu")), np.linspace(0, 1, 5))
    np.testing.assert_array_equal(value(c.full((2, 2), 7, None, "cpu")), np.full((2, 2), 7))
    np.testing.assert_array_equal(value(c.eye(2, 3, None, "cpu")), np.eye(2, 3))
    np.testing.assert_array_equal(value(c.one_hot(c.arange(0, 3, 1, None, "cpu"), 4)), np.eye(3, 4))


def test_dtypes_are_told_from_devices() -> None:
    assert c.is_dtype("float32") and c.is_dtype(int) and not c.is_dtype("cpu")
    assert Tensor([1]).to("float32").dtype is float32


def test_tensors_of_one_element_are_numbers_in_lists() -> None:
    """PyTorch's shapes; longer tensors and arrays are rows."""
    one, flag = Tensor([1.0]), Tensor([[True]])
    assert Tensor([one, one * 2]).tolist() == [1.0, 2.0]
    assert Tensor([[one], [one * 3]]).tolist() == [[1.0], [3.0]]
    assert Tensor([flag, flag]).tolist() == [True, True]
    assert Tensor([np.ones(1), np.ones(1)]).shape == (2, 1)
    assert Tensor([Tensor([1.0, 2.0]), Tensor([3.0, 4.0])]).shape == (2, 2)


def test_ends_of_a_range_may_ask_for_gradients() -> None:
    """They are read: the numbers between them follow neither, as in PyTorch."""
    low, high = (Tensor(x, requires_grad=True) for x in (0.0, 3.0))
    for ends in ((low, high), (low, 3.0), (0.0, high)):
        found = Tensor.linspace(*ends, 4)
        assert found.tolist() == [0.0, 1.0, 2.0, 3.0] and not found.requires_grad
