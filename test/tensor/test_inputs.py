"""What functions of tensors do to their arguments first."""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import DTypeError
from picograd.tensor import inputs


def test_only_tensors() -> None:
    x = Tensor([1.0])
    assert inputs.is_tensor(x) and not inputs.is_tensor(1.0)
    inputs.need_tensor("f", x, x)
    for wrong in (1.0, [1.0], np.ones(1), None):
        with pytest.raises(DTypeError, match=r"^f: the input must be a Tensor, not"):
            inputs.need_tensor("f", x, wrong)
    assert inputs.need_tensors("f", (x, x)) == inputs.need_tensors("f", ([x, x],))
    with pytest.raises(DTypeError, match="there are no tensors"):
        inputs.need_tensors("f", ())


def test_promotion_and_gradients() -> None:
    x = Tensor([[1.0], [2.0]], requires_grad=True)
    a, b = inputs.promoted("f", x, Tensor([1, 2, 3]))
    assert a.shape == b.shape == (2, 3) and a.dtype is b.dtype is picograd.float32
    assert a.requires_grad and b.requires_grad
    with picograd.no_grad():
        assert not inputs.promoted("f", x, 2)[0].requires_grad
    with pytest.raises(DTypeError):
        inputs.promoted("f", 1.0, 2.0)


def test_host_values() -> None:
    like = Tensor(np.zeros((2, 3)), dtype="float16")
    assert inputs.along([1, 2, 3], 1, like).shape == (1, 3)
    assert inputs.along([1, 2], 0, like).dtype is picograd.float16
    assert inputs.positions(2, like).tolist() == [[0], [1]]
    assert inputs.from_host(np.arange(3)[::-1], like).tolist() == [2, 1, 0]
    assert inputs.as_float(Tensor([1])).dtype is picograd.float32
