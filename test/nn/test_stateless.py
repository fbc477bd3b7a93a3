"""Modules as functions of their parameters."""

import pytest

import picograd
from picograd import Tensor, func, nn
from picograd.errors import DTypeError, StateError


class Tied(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Linear(2, 2, bias=False)
        self.parts = nn.ParameterList([Tensor.ones(2), Tensor.ones(2)])
        self.again = self.first

    def forward(self, x: Tensor) -> Tensor:
        return self.again(self.first(x)) + self.parts[0] + self.parts[1]


def test_replaces_for_one_call() -> None:
    model = Tied()
    before = dict(model.named_parameters())
    other = {
        "first.weight": Tensor([[2.0, 0.0], [0.0, 2.0]]),
        "parts.0": Tensor([10.0, 10.0]),
        "parts.1": Tensor([1.0, 2.0]),
    }
    assert set(other) == set(before)
    x = Tensor([[1.0, 1.0]])
    assert func.functional_call(model, other, (x,)).tolist() == [[15, 16]]
    assert func.functional_call(model, [other, {"parts.0": Tensor([0.0, 0.0])}], x).tolist() == [
        [5, 6]
    ]
    assert {n: id(p) for n, p in model.named_parameters()} == {n: id(p) for n, p in before.items()}
    with pytest.raises(StateError, match="the module has no weights"):
        func.functional_call(model, {"weights": x}, (x,), strict=True)
    with pytest.raises(StateError, match="missing parts.0"):
        func.functional_call(model, {"first.weight": x, "parts.1": x}, (x,), strict=True)
    with pytest.raises(DTypeError, match="parameters must be a dict"):
        func.functional_call(model, 3, (x,))
    with pytest.raises(ValueError, match="shapes|fit"):
        func.functional_call(model, {"parts.0": Tensor([1.0, 2.0, 3.0])}, (x,))
    assert dict(model.named_parameters())["parts.0"] is before["parts.0"]


class Offset(nn.Module):
    def __init__(self) -> None:
        self.inner = nn.Identity()
        self.plain = Tensor([1.0])

    def forward(self, x: Tensor) -> Tensor:
        return x + self.plain + (self.inner.offset if hasattr(self.inner, "offset") else 0)


def test_unknown_names_are_attributes_for_one_call() -> None:
    model, x = Offset(), Tensor([1.0])
    given = {"plain": Tensor([10.0]), "inner.offset": Tensor([100.0])}
    assert func.functional_call(model, given, x).tolist() == [111]
    assert model(x).tolist() == [2] and not hasattr(model.inner, "offset")
    with pytest.raises(AttributeError, match="has no 'other'"):
        func.functional_call(model, {"plain": x, "other.weight": x}, x)
    with pytest.raises(TypeError, match="inner is an Identity and becomes a Tensor"):
        func.functional_call(model, {"plain": x * 5, "inner": x}, x)
    assert model(x).tolist() == [2]


def test_buffers_and_ensembles() -> None:
    norm = nn.BatchNorm1d(2).eval()
    x = Tensor([[1.0, 2.0]])
    shifted = func.functional_call(norm, {"running_mean": Tensor([1.0, 2.0])}, (x,))
    assert shifted.numpy() == pytest.approx(0)
    models = [nn.Linear(2, 3) for _ in range(4)]
    parameters, buffers = func.stack_module_state(models)
    assert not buffers and parameters["bias"].shape == (4, 3) and parameters["bias"].requires_grad
    out = picograd.vmap(lambda p: func.functional_call(models[0], p, (x,)))(parameters)
    for at, model in enumerate(models):
        assert out[at].numpy() == pytest.approx(model(x).numpy(), abs=1e-6)
    with pytest.raises(StateError, match="there are no models"):
        func.stack_module_state([])
    with pytest.raises(StateError, match="the models differ"):
        func.stack_module_state([nn.Linear(2, 3), nn.Linear(2, 3, bias=False)])


def test_a_block_with_other_parameters() -> None:
    layer, zeros = nn.Linear(2, 1), {"weight": Tensor([[0.0, 0.0]]), "bias": Tensor([1.0])}
    before = layer.weight
    with nn.utils.stateless._reparametrize_module(layer, zeros):
        assert layer(Tensor([3.0, 4.0])).tolist() == [1.0] and layer.weight is zeros["weight"]
    assert layer.weight is before


def test_one_name_of_a_shared_weight_replaces_one_where_they_are_not_tied() -> None:
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    model[0].weight.data.fill_(2.0)
    model[1].weight = model[0].weight
    three, five = Tensor([[3.0]]), Tensor([[5.0]])
    for given, expected in (
        ({"0.weight": three}, 6.0),
        ({"0.weight": three, "1.weight": five}, 15.0),
    ):
        found = func.functional_call(model, given, Tensor([[1.0]]), tie_weights=False)
        assert found.item() == expected
    with pytest.raises(StateError, match="another name"):
        func.functional_call(model, given, Tensor([[1.0]]))
    assert model[0].weight is model[1].weight and model[0].weight.item() == 2.0


def test_a_tensor_is_swapped_for_another() -> None:
    layer = nn.Linear(1, 1)
    old = picograd.nn.stateless.swap_tensor(layer, "bias", None)
    assert isinstance(old, nn.Parameter) and layer.bias is None
    assert picograd.nn.stateless.swap_tensor(layer, "bias", old) is None and layer.bias is old
    assert picograd.nn.stateless.swap_tensor(layer, "kept", old, True) is None and layer.kept is old
    with pytest.raises(DTypeError, match="in_features is an int"):
        picograd.nn.stateless.swap_tensor(layer, "in_features", old)
    with pytest.raises(AttributeError):
        picograd.nn.stateless.swap_tensor(layer, "missing", old)


def test_what_a_call_replaces_is_in_the_dict() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", Tensor(0.0))

        def forward(self, x: Tensor) -> Tensor:
            self.count = self.count + 1
            return x + self.count

    counter, state = Counter(), {"count": Tensor(4.0)}
    for _ in range(2):
        func.functional_call(counter, state, Tensor(0.0))
    assert state["count"].item() == 6.0 and counter.count.item() == 0.0


def test_what_takes_the_place_of_parameters_is_listed_as_they_are() -> None:
    """Models ask `next(self.parameters()).device` in their `forward`."""
    seen: list[list[str]] = []

    class Asking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.register_buffer("shift", picograd.ones(2))

        def forward(self, x: Tensor) -> Tensor:
            first = next(self.parameters())
            seen.append([name for name, _ in self.named_parameters()])
            seen.append([name for name, _ in self.named_buffers()])
            assert first is self.layer.weight and list(self.layer._parameters) == ["weight", "bias"]
            return self.layer(x.to(first.dtype)) + self.shift

    model, x = Asking(), picograd.ones(1, 2)
    given = {name: each.detach() * 2 for name, each in model.named_parameters()}
    call = func.functional_call
    call(model, given, (x,))
    call(model, given, (x,), tie_weights=False)
    func.jvp(lambda weights: call(model, weights, (x,)), (given,), (given,))
    func.grad(lambda weights: call(model, weights, (x,)).sum())(given)
    func.vmap(lambda row: call(model, given, (row,)))(picograd.ones(3, 2))
    assert seen == [["layer.weight", "layer.bias"], ["shift"]] * 5
    assert all(isinstance(each, nn.Parameter) for each in model.parameters())
    assert not model.layer._placed


def test_any_name_of_a_shared_tensor_is_enough_for_strict() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(1, 1)
            self.shift = self.layer.bias

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x) + self.shift

    model, x = Tied(), picograd.ones(1, 1)
    weight = picograd.zeros(1, 1)
    for name in ("layer.bias", "shift"):
        given = {"layer.weight": weight, name: Tensor([5.0])}
        assert func.functional_call(model, given, (x,), strict=True).tolist() == [[10.0]]
    with pytest.raises(StateError, match="missing shift"):
        func.functional_call(model, {"layer.weight": weight}, (x,), strict=True)
