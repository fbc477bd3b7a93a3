"""Parameters, and writing into the tensors a module owns."""

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import DTypeError, StateError
from picograd.nn.parameter import Parameter, as_tensor, overwrite, realize, rebind
from picograd.tensor.core.arguments import need_tensor


def test_a_parameter_asks_for_gradients() -> None:
    assert Parameter([1.0]).requires_grad and not Parameter([1.0], False).requires_grad
    assert "Parameter" in repr(Parameter([1.0])) and nn.Parameter is Parameter


def test_overwrite_converts_and_keeps_the_object() -> None:
    target = Parameter(np.zeros(2, np.float16))
    overwrite([(target, Tensor([1.0, 2.0]))])
    assert target.tolist() == [1, 2] and target.dtype.name == "float16" and target.requires_grad


def test_rebind_moves_in_place() -> None:
    target = Parameter([1.0, 2.0])
    rebind(target, None, "float64")
    assert target.dtype.name == "float64" and target.tolist() == [1, 2]


def test_inputs_that_are_no_tensor() -> None:
    need_tensor("relu", Tensor([1.0]))
    with pytest.raises(DTypeError, match="^relu"):
        need_tensor("relu", [1.0])
    assert as_tensor(np.ones(2), "weight").tolist() == [1, 1]


def test_realize_computes_all() -> None:
    x, y = Tensor([1.0]) + 1, Tensor([2.0]) * 3
    realize([x, y])
    assert x.node.realized is not None or x.node.op == "buffer"
    assert (x.tolist(), y.tolist()) == ([2], [6])


def test_uninitialized_ones_wait_for_their_sizes() -> None:
    layer = nn.Identity()
    layer.weight, layer.mean = nn.UninitializedParameter(), nn.UninitializedBuffer()
    with pytest.raises(StateError, match="UninitializedParameter: it has no sizes yet"):
        layer.weight.shape
    assert repr(layer.weight) == "<UninitializedParameter>"
    layer.weight.materialize((2, 3))
    layer.mean.materialize(4, dtype="float64")
    assert type(layer.weight) is Parameter and type(layer.mean) is nn.Buffer
    assert layer.mean.dtype.name == "float64" and not layer.mean.requires_grad
    assert {n: tuple(x.shape) for n, x in layer.state_dict().items()} == {
        "weight": (2, 3),
        "mean": (4,),
    }
    (layer.weight * 2).sum().backward()
    assert layer.weight.grad is not None and layer.weight.grad.shape == (2, 3)


def test_arrays_of_integers_become_floats() -> None:
    assert Parameter(Tensor([1, 2])).dtype.name == Parameter([[1, 2]]).dtype.name == "float32"
    assert Parameter(Tensor([1, 2]), requires_grad=False).dtype.name == "int64"


def test_a_parameter_shares_the_memory_that_it_is_made_of() -> None:
    values, more = Tensor([1.0, 2.0]), Tensor([1.0, 2.0])
    weight, buffer = Parameter(values), nn.Buffer(more)
    values.mul_(3)
    more[0] = 9.0
    assert (weight.tolist(), buffer.tolist()) == ([3.0, 6.0], [9.0, 2.0])
    weight.sum().backward()
    nn.optim.SGD([weight], lr=1.0).step()
    assert values.tolist() == weight.tolist() == [2.0, 5.0] and not values.requires_grad


@pytest.mark.parametrize("name", ["detach", "data"])
@pytest.mark.parametrize("trains", [True, False])
def test_a_parameter_made_of_what_is_detached_shares_its_memory(name: str, trains: bool) -> None:
    source = Tensor([1.0, 2.0], requires_grad=trains)
    shown = source.data if name == "data" else source.detach().detach()
    tied = Parameter(shown)
    with picograd.no_grad():
        source.add_(1)
        assert tied.tolist() == shown.tolist() == [2.0, 3.0]
        tied.mul_(2)
        assert source.tolist() == shown.tolist() == [4.0, 6.0]
        shown[0] = 0.0
    (tied * tied).sum().backward()
    nn.optim.SGD([tied], lr=0.5).step()
    assert source.tolist() == tied.tolist() == shown.tolist() == [0.0, 0.0]
    assert source.grad is None and not shown.requires_grad


def test_data_of_a_leaf_that_trains_is_shared() -> None:
    first, second = Parameter(Tensor([1.0])), Parameter(Tensor([2.0]))
    second.data = first
    with picograd.no_grad():
        first.add_(1)
        assert second.tolist() == [2.0]
        second.mul_(4)
    (first * second).sum().backward()
    assert first.tolist() == first.grad.tolist() == second.grad.tolist() == [8.0]


def test_what_is_assigned_from_a_state_is_shared() -> None:
    layer, weight = nn.Linear(1, 1, bias=False), Tensor([[1.0]])
    layer.load_state_dict({"weight": weight}, assign=True)
    weight.fill_(4)
    assert layer.weight.tolist() == [[4.0]] and layer.weight.requires_grad


def test_classes_of_users_make_their_parameters() -> None:
    """Quantised weights of other packages pass data on in `__new__` and keep more beside it."""

    class Tagged(nn.Parameter):
        def __new__(cls, data=None, requires_grad=True, tag=None):
            made = super().__new__(cls, data, requires_grad)
            made.tag = tag
            return made

    layer = nn.Identity()
    layer.weight = Tagged(Tensor([1.0, 2.0]), False, tag="here")
    assert [name for name, _ in layer.named_parameters()] == ["weight"]
    assert layer.weight.tolist() == [1.0, 2.0] and layer.weight.tag == "here"
    assert not layer.weight.requires_grad and isinstance(layer.weight, Tagged)
    assert nn.Parameter().shape == (0,) == Tagged().shape
    with pytest.raises(TypeError, match="data and requires_grad"):
        nn.Parameter(Tensor([1.0]), True, 3)


def test_parameters_of_views_share_their_memory() -> None:
    """Tied weights, and rows of one matrix: what writes one is seen in the others."""
    first, second = nn.Linear(3, 2), nn.Linear(2, 3)
    second.weight = nn.Parameter(first.weight.t())
    with picograd.no_grad():
        first.weight.fill_(2.0)
        second.weight[0, 1] = 5.0
    assert second.weight.tolist() == [[2.0, 5.0], [2.0, 2.0], [2.0, 2.0]]
    assert first.weight.tolist() == [[2.0, 2.0, 2.0], [5.0, 2.0, 2.0]]
    alone = nn.Parameter(Tensor([[1.0, 2.0]]).T)
    assert alone._view is None  # of what nobody can name: a copy


@pytest.mark.parametrize("names", ["wt", "qk", "wqk", "qwk"])
def test_steps_of_parameters_of_one_memory_equal_pytorchs(names: str) -> None:
    torch = pytest.importorskip("torch")
    start = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    parts = {"w": lambda w: w, "t": lambda w: w.T, "q": lambda w: w[:2], "k": lambda w: w[2:]}
    found = []
    for library in (torch, picograd):
        memory = library.tensor(start)
        trained = [library.nn.Parameter(parts[name](memory)) for name in names]
        optimizer = library.optim.SGD(trained, lr=0.1, momentum=0.5)
        for _ in range(3):
            optimizer.zero_grad()
            sum(((x - at) ** 2).sum() for at, x in enumerate(trained)).backward()
            optimizer.step()
        found.append([memory.numpy(), *[x.detach().numpy() for x in trained]])
    for theirs, ours in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("act", [
    lambda p: p + 1, lambda p: Tensor([1.0]) * p, lambda p: p @ p, lambda p: p[0], lambda p: -p,
    lambda p: p.sum(), lambda p: p.numpy(), lambda p: p.mul_(2),
])  # fmt: skip
def test_what_has_no_sizes_yet_is_not_computed_with(act) -> None:
    for kind in (nn.UninitializedParameter, nn.UninitializedBuffer):
        waiting = kind()
        assert nn.parameter.is_lazy(waiting)
        with pytest.raises(ValueError, match=f"an {kind.__name__} has no sizes.*Fix: call the la"):
            act(waiting)
        waiting.materialize((1, 1))
        assert not nn.parameter.is_lazy(waiting)
        with picograd.no_grad():
            act(waiting)
