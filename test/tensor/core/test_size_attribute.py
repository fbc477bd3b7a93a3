"""`x.size` is a number and a method."""

import pytest

from picograd import Tensor


def test_size_is_a_number_and_a_method() -> None:
    x = Tensor([[1.0, 2.0, 3.0]])
    assert x.size == 3 and isinstance(x.size, int)
    assert x.size() == (1, 3) and x.size(-1) == 3 and Tensor.size(x, 0) == 1
    assert Tensor(2.0).size == 1 and Tensor([]).size == 0
    with pytest.raises(IndexError):
        x.size(2)
