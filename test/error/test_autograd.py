"""Gradients asked for where there are none."""

import pytest
from error_support import Case, check, named

import picograd
from picograd import Tensor
from picograd.errors import DTypeError, GradientError, ShapeError

LEAF = Tensor.ones(2, requires_grad=True)


def without_recording() -> None:
    with picograd.no_grad():
        product = LEAF * 2.0
    product.sum().backward()


def change_leaf() -> None:
    leaf = Tensor.ones(2, requires_grad=True)
    leaf += 1.0


def set_in_leaf() -> None:
    leaf = Tensor.ones(2, requires_grad=True)
    leaf[0] = 1.0


def stop_at_result() -> None:
    product = LEAF * 2.0
    product.requires_grad = False


CASES = [
    Case(
        "backward of ints", lambda: Tensor([1, 2]).backward(), GradientError,
        "backward: an int64 tensor has no gradient. Fix: compute the output in floats.",
    ),
    Case(
        "backward of comparison", lambda: (LEAF > 0.0).backward(), GradientError,
        "backward: a bool tensor has no gradient. Fix: compute the output in floats.",
    ),
    Case(
        "backward of argmax", lambda: LEAF.argmax().backward(), GradientError,
        "backward: an int64 tensor has no gradient. Fix: compute the output in floats.",
    ),
    Case(
        "backward without recording", without_recording, GradientError,
        "backward: no tensor in the graph can take a gradient. Fix: make a floating "
        "tensor with requires_grad=True and compute outside no_grad.",
    ),
    Case(
        "gradient of another shape", lambda: LEAF.backward(Tensor.ones(3)), ShapeError,
        "backward: gradient (3,) does not fit the output (2,). Fix: give them the same shape.",
    ),
    Case(
        "grad of unused", lambda: picograd.grad(LEAF.sum(), Tensor.ones(2)), GradientError,
        "grad: input 0 was not used to compute the outputs. Fix: pass allow_unused=True, "
        "or check for detach and no_grad.",
    ),
    Case(
        "grad of comparison", lambda: picograd.grad(LEAF > 0.0, LEAF), GradientError,
        "grad: a bool tensor has no gradient. Fix: compute the output in floats.",
    ),
    Case(
        "grad with respect to number", lambda: picograd.grad(LEAF.sum(), 3), DTypeError,
        "grad: expected tensors, got int. Fix: pass tensors that were computed from others.",
    ),
    Case(
        "grad of number", lambda: picograd.grad(3, LEAF), DTypeError,
        "grad: expected tensors, got int. Fix: pass tensors that were computed from others.",
    ),
    Case(
        "change leaf in place", change_leaf, GradientError,
        "add: a leaf that requires gradients cannot be changed in place. Fix: do it "
        "inside `with picograd.no_grad():`.",
    ),
    Case(
        "set element of leaf", set_in_leaf, GradientError,
        "setitem: a leaf that requires gradients cannot be changed in place. Fix: do it "
        "inside `with picograd.no_grad():`.",
    ),
    Case(
        "requires_grad of bool", lambda: Tensor.of([True]).requires_grad_(), GradientError,
        "requires_grad: a bool tensor cannot have a gradient. Fix: use a float dtype.",
    ),
    Case(
        "requires_grad of ints",
        lambda: Tensor.zeros(2, dtype="int32", requires_grad=True),
        GradientError,
        "requires_grad: an int32 tensor cannot have a gradient. Fix: use a float dtype.",
    ),
    Case(
        "requires_grad of result", stop_at_result, GradientError,
        "requires_grad: only a leaf can turn it off. Fix: use .detach().",
    ),
]  # fmt: skip


@named(CASES)
def test_message(case: Case) -> None:
    check(case)


def test_a_loss_that_lost_what_it_came_from_is_told():
    loss = (Tensor([1.0, 2.0], requires_grad=True) * 2).sum()
    for made in (Tensor(loss.item()), Tensor([loss.item()])):
        with pytest.raises(GradientError, match="nothing computed this tensor"):
            made.backward()
    given = Tensor([1.0], requires_grad=True)
    given.backward()
    assert given.grad.tolist() == [1.0]
