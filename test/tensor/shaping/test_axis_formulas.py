"""Rearranging by formulas of names, against NumPy's transpose and reshape; wrong formulas."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from picograd import Tensor
from picograd.errors import DTypeError, ShapeError

Array = Any

FORMULAS: dict[str, tuple[dict[str, int], Callable[[Array], Array]]] = {
    "a b c -> c a b": ({}, lambda x: x.transpose(2, 0, 1)),
    "a b c->a (b c)": ({}, lambda x: x.reshape(2, 12)),
    "a b c -> (c b a)": ({}, lambda x: x.transpose(2, 1, 0).reshape(24)),
    "a b (c d) -> a d (b c)": (
        {"c": 2},
        lambda x: x.reshape(2, 3, 2, 2).transpose(0, 3, 1, 2).reshape(2, 2, 6),
    ),
    "a b (c1 c2 c3) -> c3 c1 c2 a b": (
        {"c1": 2, "c3": 1},
        lambda x: x.reshape(2, 3, 2, 2, 1).transpose(4, 2, 3, 0, 1),
    ),
    "a b c -> a 1 b () c": ({}, lambda x: x.reshape(2, 1, 3, 1, 4)),
    "a ... -> ... a": ({}, lambda x: x.transpose(1, 2, 0)),
    "... c -> (... c)": ({}, lambda x: x.reshape(24)),
    "... -> ...": ({}, lambda x: x),
    "a b ... c -> c b a ...": ({}, lambda x: x.transpose(2, 1, 0)),
    "a b c -> a b c": ({"a": 2}, lambda x: x),
}
WRONG = {
    "a b c": "it has not two sides",
    "a b -> b a": "it has 2 axes, the tensor 3",
    "a b c d ... -> a b c d ...": "it has 5 axes, the tensor 3",
    "a b c -> a b": "'c' is on one side only",
    "a b c -> a b c d": "'d' is on one side only",
    "a a c -> a c": "'a' is there twice",
    "a b (c d) -> a b c d": "sizes ['c', 'd'] do not follow",
    "a b (c -> a b c": "a parenthesis is open",
    "a b (c (d)) -> a b c d": "'(' is no name",
    "a b * -> a b": "'*' is no name",
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_formula(formula: str, device: str) -> None:
    sizes, wanted = FORMULAS[formula]
    array = np.arange(24).reshape(2, 3, 4)
    found = Tensor(array, device=device).rearrange(formula, **sizes).numpy()
    np.testing.assert_array_equal(found, wanted(array))
    assert found.shape == wanted(array).shape


@pytest.mark.parametrize("formula", WRONG)
def test_wrong_formula(formula: str) -> None:
    with pytest.raises(ShapeError) as error:
        Tensor.zeros(2, 3, 4).rearrange(formula)
    assert WRONG[formula] in str(error.value)


def test_wrong_sizes() -> None:
    x = Tensor.zeros(2, 3, 4)
    for formula, sizes in (
        ("a b (c d) -> a b c d", {"c": 3}),
        ("a b c -> a b c", {"c": 5}),
        ("a b c -> a b c", {"z": 4}),
    ):
        with pytest.raises(ShapeError):
            x.rearrange(formula, **sizes)
    with pytest.raises(ShapeError):
        x.rearrange("a b 1 -> a b")  # the axis has 4 elements


def test_zero_dims_and_empty_axes() -> None:
    assert Tensor(3.0).rearrange("-> 1 1").tolist() == [[3.0]]
    assert Tensor([[3.0]]).rearrange("1 1 ->").item() == 3.0
    assert Tensor(3.0).rearrange("... -> ...").shape == ()
    assert Tensor.zeros(0, 3).rearrange("a b -> (b a)").shape == (0,)
    assert Tensor.zeros(0, 4).rearrange("a (b c) -> b (a c)", b=2).shape == (2, 0)


def test_gradient() -> None:
    x = Tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    (x.rearrange("a b -> (b a)") * Tensor(np.arange(6.0))).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.arange(6.0).reshape(3, 2).T)


def test_what_is_no_tensor_or_formula() -> None:
    with pytest.raises(DTypeError):
        Tensor.rearrange([1.0], "a -> a")
    with pytest.raises(DTypeError):
        Tensor([1.0]).rearrange(3)
