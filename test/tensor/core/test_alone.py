"""A gradient gets another value in place where somebody else has it, and a new one elsewhere."""

import weakref

import pytest

from picograd import Tensor, nn
from picograd.tensor.core.alone import change_gradient, has_alone


def with_gradient() -> Tensor:
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    return x


HOLDERS = {
    "variable": lambda x: x.grad,
    "view": lambda x: x.grad[:1],
    "detached": lambda x: x.grad.detach(),
    "capsule": lambda x: x.grad.__dlpack__(),
    "list": lambda x: [x.grad],
}


@pytest.mark.parametrize("name", HOLDERS)
def test_holders_are_seen(name):
    x = with_gradient()
    assert has_alone(x)
    holder = HOLDERS[name](x)
    assert not has_alone(x)
    before = x.grad
    change_gradient(x, lambda each: each * 2)
    assert x.grad is before and x.grad.tolist() == [4.0, 8.0]
    del holder


def test_what_was_read_and_let_go_is_no_holder():
    x = with_gradient()
    norm = x.grad.norm()
    x.grad[0].item()
    assert has_alone(x)
    before = weakref.ref(x.grad)
    change_gradient(x, lambda each: each / norm)
    assert before() is None, "it was written, where another could take its place"
    assert x.grad.norm().item() == pytest.approx(1)


@pytest.mark.parametrize("is_held", [False, True])
def test_clipping_scaling_adding_and_zeros_reach_holders(is_held):
    x = with_gradient()
    holder = x.grad if is_held else None
    nn.utils.clip_grad_norm_(x, 1.0)
    nn.utils.clip_grad_value_(x, 0.5)
    x.sum().backward()
    assert x.grad.tolist() == pytest.approx([1 + 20**-0.5 * 2, 1.5], rel=1e-4)
    optimizer = nn.optim.SGD([x], lr=0.1)
    assert holder is None or holder is x.grad
    optimizer.zero_grad(set_to_none=False)
    assert x.grad.tolist() == [0.0, 0.0] and (holder is None or holder.tolist() == [0.0, 0.0])
