"""How tensors print."""

import numpy as np

from picograd import Tensor
from picograd.tensor.printing import format_array, format_tensor, format_traced


def test_small_tensor_is_written_out() -> None:
    text = format_tensor(np.array([1.0, 2.0], np.float32), "float32", "cpu", True)
    assert text.startswith("Tensor([1., 2.]") and "float32" in text and "requires_grad=True" in text
    assert "requires_grad" not in format_tensor(np.zeros(2), "float64", "cpu", False)
    assert repr(Tensor([1.0, 2.0])).startswith("Tensor([1., 2.]")


def test_large_tensor_is_shortened() -> None:
    assert "..." in format_array(np.zeros(1001), 0)
    assert "..." not in format_array(np.zeros(10), 0)


def test_lines_are_aligned() -> None:
    second = format_array(np.zeros((2, 2)), 7).splitlines()[1]
    assert second.startswith(" " * 7)


def test_a_traced_tensor_has_no_values() -> None:
    text = format_traced((2, 3), "float32", "cpu")
    assert "2, 3" in text and "float32" in text
