"""Arguments by any of their names, in any of their places."""

import inspect

import pytest

import picograd
from picograd import Tensor, nn


def test_inplace_by_place_and_by_name() -> None:
    for call in (
        lambda x: nn.functional.leaky_relu(x, 0.5, True),
        lambda x: nn.functional.leaky_relu(input=x, negative_slope=0.5, inplace=True),
        lambda x: nn.functional.leaky_relu_(x, 0.5),
    ):
        x = Tensor([-1.0, 2.0])
        assert call(x) is x and x.tolist() == [-0.5, 2.0]
    assert list(inspect.signature(nn.functional.elu).parameters) == ["input", "alpha", "inplace"]
    with pytest.raises(TypeError, match="positional"):
        nn.functional.relu(Tensor([1.0]), True, True)


def test_arguments_by_name_are_put_in_place() -> None:
    x = Tensor([[1.0, 2.0], [4.0, 3.0]])
    assert x.sum(axis=1).tolist() == x.sum(dim=1).tolist() == picograd.sum(input=x, dim=1).tolist()
    assert x.var(keepdims=True, unbiased=False, axis=0).tolist() == [[2.25, 0.25]]
    assert x.sum(1, dtype="float64").dtype is picograd.float64
    for call, text in (
        (lambda: x.sum(1, axis=1), "both axis and dim were given"),
        (lambda: x.sum(axis=1, dim=None), "both axis and dim were given"),
        (lambda: x.sum(other=1), "unexpected keyword argument 'other'"),
        (lambda: x.sum(1, True, "float64"), "takes 3 positional arguments but 4"),
    ):
        with pytest.raises(TypeError, match=text):
            call()
