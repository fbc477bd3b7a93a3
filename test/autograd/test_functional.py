"""Derivatives of functions under the names of torch.autograd.functional."""

from typing import Any

import pytest

import picograd
from picograd import Tensor, autograd
from picograd.errors import GradientError


def test_second_derivatives_along() -> None:
    x, y, v = Tensor([1.0, 2.0]), Tensor([3.0]), Tensor([1.0, -1.0])
    value, product = autograd.functional.hvp(lambda a: (a**3).sum(), x, v)
    assert value.item() == 9 and product.tolist() == [6, -12]
    _, several = autograd.functional.vhp(lambda a, b: (a * b).sum(), (x, y), (v, Tensor([1.0])))
    assert [each.tolist() for each in several] == [[1.0, 1.0], [0.0]]
    assert autograd.functional.jacobian(lambda a: a * a, x).tolist() == [[2, 0], [0, 4]]


def test_strict_results_follow_from_inputs() -> None:
    x, y, functional = Tensor([1.0, 2.0]), Tensor([3.0]), autograd.functional
    assert functional.jacobian(lambda a: a * a, x, strict=True).tolist() == [[2, 0], [0, 4]]
    with pytest.raises(
        GradientError, match="result 1 of the function does not follow from input 0"
    ):
        functional.jacobian(lambda a, b: (a * b, b * 2.0), (x, y), strict=True)
    with pytest.raises(GradientError, match=r"leave out strict=True"):
        functional.vjp(lambda a: picograd.ones(2), x, x, strict=True)
    for derivative in (functional.hessian, functional.hvp):
        with pytest.raises(GradientError, match="result 0 .* does not follow from input 0"):
            derivative(lambda a: a.sum(), x, strict=True)


def test_gradients_of_derivatives_reach_inputs_and_directions() -> None:
    x, v = (Tensor(values, requires_grad=True) for values in ([1.0, 2.0], [1.0, -1.0]))
    with picograd.no_grad():  # recorded inside, whatever is outside
        for product in (autograd.functional.hvp, autograd.functional.vhp):
            _, found = product(lambda a: (a**3).sum(), x, v, create_graph=True)
            by_x, by_v = autograd.grad(found, (x, v), picograd.ones(2))
            assert by_x.tolist() == [6, -6] and by_v.tolist() == [6, 12]
        slopes = autograd.functional.vjp(lambda a: a**3, x, v)[1]
        assert slopes.tolist() == [3, -12] and not slopes.requires_grad


def test_arguments_of_derivatives_are_tensors_that_fit() -> None:
    x, functional = Tensor([1.0, 2.0]), autograd.functional
    with pytest.raises(TypeError, match="jvp: inputs has an int"):
        functional.jvp(lambda a, b: a * b, (x, 2), (x, x))
    with pytest.raises(TypeError, match="vjp: the result of the function has a str"):
        functional.vjp(lambda a: (a, "b"), x, x)
    for derivative in (functional.vjp, functional.jvp, functional.hvp):
        with pytest.raises(RuntimeError, match=rf"{derivative.__name__}: v has shapes \[\(1,\)\]"):
            derivative(lambda a: a * a, x, x[:1])
    with pytest.raises(RuntimeError, match="hvp: the function gives 2 tensors"):
        functional.hvp(lambda a: (a, a), x, x)
    with pytest.raises(GradientError, match="the slope of result 0 .* follow from input 0"):
        functional.vjp(lambda a: a * 2.0, x, x, create_graph=True, strict=True)


def test_hessians_are_of_one_number() -> None:
    x = Tensor([1.0, 2.0])
    cubes = autograd.functional.hessian(lambda a: (a**3).sum(0, keepdim=True), x)
    assert cubes.tolist() == [[6, 0], [0, 12]]
    with pytest.raises(GradientError, match="let it return one number"):
        autograd.functional.hessian(lambda a: a * a, x)


def test_parts_of_derivatives_by_hand() -> None:
    functional, x, y = autograd.functional, Tensor([1.0, 2.0]), Tensor([3.0])
    known, (first,) = functional._as_tuple(x, "inputs", "jacobian")
    assert not known and first is x and len(functional._as_tuple([x, y])) == 2
    with pytest.raises(TypeError, match="inputs has an int"):
        functional._as_tuple(3, "inputs", "jacobian")
    bases = functional._construct_standard_basis_for((x, y), (2, 1))
    assert [each.tolist() for each in bases] == [[[1, 0], [0, 1], [0, 0]], [[0], [0], [1]]]
    (point,) = functional._grad_preprocess((x,), create_graph=False, need_graph=True)
    assert (
        point.requires_grad and not functional._grad_postprocess((point,), False)[0].requires_grad
    )
    assert functional._tuple_postprocess(((x,), (y,)), (False, False)) is x


def test_jacobian_calls_with_tensors_of_the_class_of_the_inputs() -> None:
    class Scaled(Tensor):
        scale = 1.0

        def scaled(self) -> Any:
            return self * self.scale

    x = Tensor([1.0, 2.0]).as_subclass(Scaled)
    x.scale = 3.0
    found = picograd.autograd.functional.jacobian(lambda x: x.scaled().as_subclass(Tensor), x)
    assert found.tolist() == [[1.0, 0.0], [0.0, 1.0]]  # an attribute of one tensor stays behind
