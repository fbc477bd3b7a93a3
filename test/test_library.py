"""Operators of programs: called by name, with gradients that they give, never silently without."""

import pytest

import picograd
from picograd import Tensor, library
from picograd.errors import DataError, GradientError


def test_an_operator_has_the_gradient_it_was_given() -> None:
    @library.custom_op("tests::scaled", mutates_args=())
    def scaled(x: Tensor, factor: float = 2.0) -> Tensor:
        return Tensor(x.numpy() * factor)

    @scaled.register_fake
    def _(x, factor=2.0):
        return picograd.empty_like(x)

    x = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(GradientError, match="register_autograd"):
        picograd.ops.tests.scaled(x).sum().backward()

    def keep(ctx, inputs, output):
        ctx.factor = inputs[1]

    library.register_autograd(
        "tests::scaled", lambda ctx, g: (g * ctx.factor, None), setup_context=keep
    )
    y = picograd.ops.tests.scaled(x, factor=3.0)
    y.sum().backward()
    assert y.tolist() == [3.0, 6.0] and x.grad is not None and x.grad.tolist() == [3.0, 3.0]


def test_a_library_declares_and_defines() -> None:
    mine = library.Library("tests", "DEF")
    mine.define("twice(Tensor x) -> Tensor")
    with pytest.raises(DataError, match="has no function"):
        picograd.ops.tests.twice(Tensor([1.0]))
    mine.impl("twice", lambda x: picograd.empty(0), "Meta")
    mine.impl("twice", lambda x: x * 2, "CPU")
    assert picograd.ops.tests.twice.default(Tensor([1.0])).tolist() == [2.0]


def test_operators_that_are_not_there_say_so() -> None:
    assert picograd.ops.aten.relu(Tensor([-1.0])).tolist() == [0.0]
    with pytest.raises(AttributeError, match="tests::other"):
        picograd.ops.tests.other
    with pytest.raises(OSError, match="compiled for PyTorch"):
        picograd.ops.load_library("operators.so")


def test_functions_of_the_package_are_operators() -> None:
    aten, x = picograd.ops.aten, picograd.ones(2, 3)
    assert aten.mm(x, x.t()).tolist() == aten.mm.default(x, x.t()).tolist() == [[3.0, 3.0]] * 2
    assert {aten.add.Tensor: 1}[aten.add.Scalar] == 1 and aten.add != aten.mul
    assert aten.sub_.Tensor(x.clone(), 1).tolist() == [[0.0] * 3] * 2
    assert aten.index.Tensor(x, [None, picograd.tensor([0])]).shape == (2, 1)
    assert aten.slice.Tensor(x, 1, 0, 2).shape == (2, 2)
    assert aten._to_copy.default(x, dtype=picograd.int64).dtype is picograd.int64


def test_operators_that_pytorch_has_for_itself_raise_when_called() -> None:
    inner = picograd.ops.aten._sparse_addmm.default
    with pytest.raises(AttributeError, match="_sparse_addmm"):
        inner(picograd.ones(1))
    with pytest.raises(AttributeError, match="no_such_operator"):
        picograd.ops.aten.no_such_operator


def test_operators_of_triton_are_functions() -> None:
    twice = library.triton_op("tests::twice", lambda x: x * 2, mutates_args=())
    assert twice(Tensor([1.5])).tolist() == [3.0] and library.wrap_triton(max) is max
