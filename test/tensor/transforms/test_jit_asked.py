"""What code asks of arguments beside their values, and what functions and classes are made of."""

import copy
import pickle

import pytest

import picograd
from picograd import Tensor, nn


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x.is_contiguous(),
        lambda x: x.stride(0),
        lambda x: x.stride()[1],
        lambda x: x.storage_offset(),
        lambda x: x.t().stride(0),
        lambda x: x.t()[1:].storage_offset(),
        lambda x: x.is_leaf,
        lambda x: getattr(x, "scale", 1),
        lambda x: hasattr(x, "scale"),
    ],
)
def test_what_lies_beside_the_values_is_asked_at_every_call(ask):
    traced, whole = picograd.jit(lambda x: x * int(ask(x))), picograd.arange(32.0).reshape(4, 8)
    noted = picograd.ones(3, 3)
    noted.scale = 3
    tracking = picograd.ones(3, 3, requires_grad=True)
    given = [whole[:3, :3], whole[:3, :3].t(), whole[1:, 2:5], noted, picograd.ones(3, 3)]
    for x in (*given, tracking, tracking * 1, *given):
        assert traced(x).tolist() == (x * int(ask(x))).tolist()


def test_a_copy_in_row_major_order_is_written_alone():
    def function(x):
        copy = x.contiguous()
        copy.add_(1)
        return copy * 2

    traced = picograd.jit(function)
    for is_turned in (False, True, False, True):
        ours, theirs = picograd.ones(2, 3), picograd.ones(2, 3)
        result = traced(ours.t() if is_turned else ours)
        assert result.tolist() == function(theirs.t() if is_turned else theirs).tolist()
        assert ours.tolist() == theirs.tolist()


def test_attributes_of_arguments_and_captured_tensors_may_change():
    weight, x = picograd.ones(2), picograd.ones(2)
    weight.scale, x.mask = 2.0, Tensor([1.0, 0.0])
    traced = picograd.jit(lambda x: x * weight * weight.scale * x.mask)
    assert traced(x).tolist() == [2.0, 0.0]
    weight.scale = 5.0
    assert traced(x).tolist() == [5.0, 0.0]
    x.mask = Tensor([0.0, 1.0])
    assert traced(x).tolist() == [0.0, 5.0]
    x.mask.add_(1)
    assert traced(x).tolist() == [5.0, 10.0]


def doubled(x, by=2.0, *, more=0.0):
    return x * by + more


def tripled(x, by=3.0, *, more=0.0):
    return x * by * 10 + more


@pytest.mark.parametrize("name", ["__defaults__", "__kwdefaults__", "__code__"])
@pytest.mark.parametrize("is_inner", [False, True])
def test_a_function_that_is_reloaded_is_traced_again(name, is_inner):
    def function(x, by=2.0, *, more=0.0):
        return doubled(x, by, more=more)

    def outer(x):
        return function(x)

    traced, x = picograd.jit(outer if is_inner else function), picograd.ones(2)
    assert [traced(x).tolist() for _ in range(20)] == [[2.0, 2.0]] * 20
    other = {"__defaults__": (5.0,), "__kwdefaults__": {"more": 3.0}, "__code__": tripled.__code__}
    setattr(function, name, other[name])
    assert traced(x).tolist() == function(x).tolist() != [2.0, 2.0]


def test_attributes_of_functions_and_methods_of_classes_may_be_replaced():
    class Scale(nn.Module):
        def forward(self, x):
            return x * 2

    def function(x):
        return model(x) * function.factor

    function.factor, model, x = 1.0, Scale(), picograd.ones(2)
    traced = picograd.jit(function)
    assert [traced(x).tolist() for _ in range(20)] == [[2.0, 2.0]] * 20
    function.factor = 3.0
    assert traced(x).tolist() == [6.0, 6.0]
    Scale.forward = lambda self, x: x * 5
    assert traced(x).tolist() == [15.0, 15.0]


def test_hooks_that_come_and_go_between_calls_are_seen():
    """Also those of a leaf whose values nothing reads, and of a later hook at the same address."""

    @picograd.jit
    def slope(x):
        layer.weight.grad = None
        layer(x).sum().backward()
        return layer.weight.grad.sum()

    layer, x = picograd.nn.Linear(1, 1, bias=False), picograd.ones(3, 1)
    every = picograd.nn.modules.module.register_module_forward_hook
    for register, wanted in (
        (lambda: layer.weight.register_hook(lambda gradient: gradient * 2), 6.0),
        (lambda: layer.register_forward_hook(lambda module, args, result: result * 3), 9.0),
        (lambda: layer.register_forward_pre_hook(lambda module, args: (args[0] * 4,)), 12.0),
        (lambda: every(lambda module, args, result: result * 5), 15.0),
    ):
        assert slope(x).item() == 3.0
        handle = register()
        assert [slope(x).item(), slope(x).item()] == [wanted] * 2
        handle.remove()


def test_hooks_that_a_traced_function_registers_see_gradients():
    def on_made(x):
        made = weight * x
        made.register_hook(lambda gradient: gradient * 10)
        return made.sum()

    def on_argument(weight):
        weight.register_hook(lambda gradient: gradient * 3)
        return (weight * 2).sum()

    weight = picograd.ones(3, requires_grad=True)
    traced = picograd.jit(on_made)
    for k in (1.0, 2.0, 3.0):
        weight.grad = None
        traced(picograd.ones(3) * k).backward()
        assert weight.grad.tolist() == [10 * k] * 3
    traced = picograd.jit(on_argument)
    for _ in range(3):
        leaf = picograd.ones(3, requires_grad=True)
        traced(leaf).backward()
        assert leaf.grad.tolist() == [6.0] * 3
        leaf.grad = None
        traced(leaf * 1).backward()
        assert leaf.grad.tolist() == [18.0] * 3


def test_attributes_that_a_traced_function_sets_are_set_at_every_call():
    def count(x):
        x.seen = getattr(x, "seen", 0) + 1
        x.double = x * 2
        weight.last = x * 3
        return x * x.seen

    weight, traced = picograd.ones(2), picograd.jit(count)
    first, second = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    found = [traced(x).tolist() for x in (first, first, second, first)]
    assert found == [[1.0, 2.0], [2.0, 4.0], [3.0, 4.0], [3.0, 6.0]]
    assert (first.seen, second.seen, second.double.tolist()) == (3, 1, [6.0, 8.0])
    assert weight.last.tolist() == [3.0, 6.0]


@pytest.mark.parametrize("is_tracking", [False, True])
def test_attributes_of_what_a_traced_function_returns_are_there(is_tracking):
    def function(x, tag):
        double, triple = x * weight, x * 3
        double.tag, triple.beside = tag, x * 4
        return double, triple

    weight, traced = picograd.ones(2, requires_grad=is_tracking), picograd.jit(function)
    for k in range(6):
        tag = "abc"[k % 3]
        double, triple = traced(picograd.ones(2) * k, tag)
        assert (double.tag, double.tolist()) == (tag, [k, k])
        assert triple.beside.tolist() == [4.0 * k] * 2


@picograd.jit
def squared(x):
    return x * x


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.step, self.jitted = picograd.jit(self.calls), self.marked

    def calls(self, x):
        return self.layer(x)

    @picograd.jit
    def marked(self, x):
        return self.layer(x) + 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("is_called", [False, True])
def test_a_copy_of_a_module_that_holds_jitted_functions_calls_itself(copied, is_called):
    model, x = Steps(), Tensor([[1.0, 2.0]])
    for _ in range(3 * is_called):
        model.step(x), model.jitted(x)
    twin = copied(model)
    with picograd.no_grad():
        twin.layer.weight.zero_()
        twin.layer.bias.fill_(5)
        for _ in range(3):
            assert twin.step(x).tolist() == [[5, 5]] and twin.jitted(x).tolist() == [[6, 6]]
            assert model.step(x).tolist() == model.layer(x).tolist() != [[5, 5]]


def test_copies_of_a_jitted_function_are_itself():
    squared(Tensor([2.0]))
    assert copy.deepcopy(squared) is copy.copy(squared) is squared
    assert pickle.loads(pickle.dumps(squared)) is squared
    layer = picograd.jit(nn.Linear(2, 2))
    layer(Tensor([1.0, 2.0]))
    assert copy.deepcopy(layer).function is not layer.function
