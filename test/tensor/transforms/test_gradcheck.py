"""Checks of gradients: right ones pass, wrong ones are named."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.autograd import gradcheck, gradgradcheck
from picograd.errors import DTypeError, GradientError, ShapeError, ValueRangeError


def leaf() -> Tensor:
    return Tensor(np.array([0.5, -1.0]), requires_grad=True)


class Wrong(picograd.Function):
    """Its gradient forgets a factor, the second one is right again."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * ctx.saved_tensors[0]


def test_right_gradients() -> None:
    assert gradcheck(lambda a, b, k: (a * b.sin() * k, a.sum()), (leaf(), leaf(), 3.0))
    assert gradgradcheck(lambda a, b: (a * b) ** 2, (leaf(), leaf()))


def test_wrong_gradients() -> None:
    text = "output 0 with respect to input 0: element 0 along element 0 has gradient 0.5, the"
    with pytest.raises(GradientError, match=text):
        gradcheck(Wrong.apply, leaf())
    assert not gradcheck(Wrong.apply, leaf(), raise_exception=False)
    assert not gradgradcheck(lambda x: Wrong.apply(x) * x, leaf(), raise_exception=False)


class Cube(picograd.autograd.Function):
    """This class has the two rules under PyTorch's other names; that along directions is wrong."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def vjp(ctx: Any, gradient: Any) -> Any:
        return 3 * ctx.saved_tensors[0] ** 2 * gradient

    @staticmethod
    def jvp(ctx: Any, along: Any) -> Any:
        return 2 * ctx.saved_tensors[0] ** 2 * along


def test_rules_along_directions_are_checked_if_wanted() -> None:
    assert gradcheck(Cube.apply, leaf())
    for options in ({}, {"check_backward_ad": False}):
        with pytest.raises(GradientError, match="mend jvp"):
            gradcheck(Cube.apply, leaf(), check_forward_ad=True, **options)
    both = dict(check_forward_ad=True, check_backward_ad=True)
    assert gradcheck(lambda a, b, k: (a * b.sin() * k, a.sum()), (leaf(), leaf(), 3.0), **both)


def complex_leaf() -> Tensor:
    return Tensor(np.array([0.5 + 1j, -1.0 + 0.25j]), requires_grad=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda z, x: z * x,
        lambda z, x: (z.abs(), z.conj() * z.exp()),
        lambda z, x: picograd.fft.fft(z).real,
        lambda z, x: picograd.complex(x, x * x) * 2,
        lambda z, x: picograd.linalg.det(picograd.stack([z, z * x * z])),
    ],
    ids=range(5),
)
def test_complex_numbers(function: Any) -> None:
    given = complex_leaf(), leaf()
    assert gradcheck(function, given, fast_mode=True) and gradgradcheck(function, given)


def test_a_gradient_that_is_not_conjugated_is_wrong() -> None:
    class Square(Wrong):
        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return 2 * gradient * ctx.saved_tensors[0]

    assert gradcheck(Square.apply, leaf())
    assert not gradcheck(Square.apply, complex_leaf(), raise_exception=False)


def test_wrong_inputs() -> None:
    with pytest.warns(UserWarning, match="an input is float32, coarse"):
        assert gradcheck(lambda x: x * 2, Tensor([1.0], requires_grad=True), eps=0.25)
    with pytest.raises(DTypeError, match="gradcheck: no option 'fast'"):
        gradcheck(lambda x: x, leaf(), fast=True)
    with pytest.raises(ValueRangeError, match="no input is a float tensor that asks"):
        gradcheck(lambda x: x, Tensor(np.ones(2)))
    with pytest.raises(ShapeError, match="2 grad_outputs for 1 outputs"):
        gradgradcheck(lambda x: x, leaf(), [leaf(), leaf()])


def test_inputs_that_a_function_reaches_by_other_ways() -> None:
    x, y = leaf(), leaf()
    before = y.tolist()
    assert gradcheck(lambda x, _: x * y, (x, y)) and y.tolist() == before
    with pytest.raises(GradientError, match="output 0 with respect to input 1"):
        gradcheck(lambda x, _: x * y.detach() + y * 0, (x, y))


def test_what_lost_its_gradient_on_the_way_is_wrong() -> None:
    x = Tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    with pytest.raises(RuntimeError, match="has gradient 0, the difference is 2"):
        gradcheck(lambda x: x.detach() * 2, x)
    assert gradcheck(lambda x: (x * 0).detach(), x)
