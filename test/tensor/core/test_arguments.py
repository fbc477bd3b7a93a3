"""What functions of tensors do to their arguments first."""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import DTypeError
from picograd.tensor.core import arguments


def test_only_tensors() -> None:
    x = Tensor([1.0])
    assert arguments.is_tensor(x) and not arguments.is_tensor(1.0)
    arguments.need_tensor("f", x, x)
    for wrong in (1.0, [1.0], np.ones(1), None):
        with pytest.raises(DTypeError, match=r"^f: the input must be a Tensor, not"):
            arguments.need_tensor("f", x, wrong)
    assert arguments.need_tensors("f", (x, x)) == arguments.need_tensors("f", ([x, x],))
    with pytest.raises(DTypeError, match="there are no tensors"):
        arguments.need_tensors("f", ())


def test_promotion_and_gradients() -> None:
    x = Tensor([[1.0], [2.0]], requires_grad=True)
    a, b = arguments.promoted("f", x, Tensor([1, 2, 3]))
    assert a.shape == b.shape == (2, 3) and a.dtype is b.dtype is picograd.float32
    assert a.requires_grad and b.requires_grad
    with picograd.no_grad():
        assert not arguments.promoted("f", x, 2)[0].requires_grad
    with pytest.raises(DTypeError):
        arguments.promoted("f", 1.0, 2.0)


def test_host_values() -> None:
    like = Tensor(np.zeros((2, 3)), dtype="float16")
    assert arguments.along([1, 2, 3], 1, like).shape == (1, 3)
    assert arguments.along([1, 2], 0, like).dtype is picograd.float16
    assert arguments.positions(2, like).tolist() == [[0], [1]]
    assert arguments.from_host(np.arange(3)[::-1], like).tolist() == [2, 1, 0]
    assert arguments.as_float(Tensor([1])).dtype is picograd.float32
