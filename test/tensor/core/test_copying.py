"""Copies of tensors beside what shares memory with them."""

import copy

from picograd import Tensor, nn


def test_deep_copies_share_memory_as_what_was_copied_does() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    row, turned, whole = copy.deepcopy((x[1], x.t(), x))
    whole[1] = 0.0
    turned[0].add_(5)
    assert (whole.tolist(), row.tolist()) == ([[6.0, 2.0], [5.0, 0.0]], [5.0, 0.0])
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_parameters_are_copied_apart() -> None:
    flat = Tensor([1.0, 2.0])
    weight = nn.Parameter(Tensor([0.0]))
    weight.data = flat[1:]
    other, copied = copy.deepcopy((weight, flat))
    copied.zero_()
    assert (other.tolist(), weight.tolist(), other.grad) == ([2.0], [2.0], None)


def test_a_shallow_copy_shares_memory() -> None:
    x = Tensor([1.0, 2.0])
    other = copy.copy(x)
    x.add_(1)
    other[0] = 7.0
    assert x.tolist() == other.tolist() == [7.0, 3.0]
