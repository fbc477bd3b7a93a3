"""Embedding: rows of a table, gradients that add up, and indices out of range."""

import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.errors import PicogradError


def test_rows_and_gradient() -> None:
    table = nn.Embedding(5, 3)
    index = Tensor([[1, 4], [1, 0]])
    found = table(index)
    np.testing.assert_array_equal(found.numpy(), table.weight.numpy()[index.numpy()])
    found.sum().backward()
    np.testing.assert_array_equal(table.weight.grad.numpy()[:, 0], [1, 2, 0, 0, 1])


def test_from_pretrained_is_frozen() -> None:
    table = nn.Embedding.from_pretrained(Tensor(np.eye(3, dtype=np.float32)))
    assert not table.weight.requires_grad
    assert table(Tensor([2])).tolist() == [[0, 0, 1]]


@pytest.mark.usefixtures("on_host")
def test_wrong_indices() -> None:
    with pytest.raises(PicogradError):
        nn.Embedding(5, 3)(Tensor([0.5]))
    with pytest.raises(PicogradError):
        nn.Embedding(5, 3)(Tensor([5])).numpy()


def test_the_row_of_padding_is_asserted_as_in_pytorch() -> None:
    with pytest.raises(AssertionError, match="padding_idx=3 is out of range for 3 rows"):
        nn.Embedding(3, 2, padding_idx=3)
