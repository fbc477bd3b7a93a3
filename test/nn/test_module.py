import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import DTypeError, MemberError, StateError


class Block(nn.Module):
    def __init__(self):
        self.scale = nn.Parameter(Tensor([2.0]))
        self.layers = nn.ModuleList([nn.Linear(3, 4), nn.ModuleDict({"inner": nn.Linear(4, 2)})])
        self.constant = Tensor([1.0])
        self.register_buffer("count", Tensor([0.0]))
        self.register_buffer("scratch", Tensor([0.0]), persistent=False)

    def forward(self, x):
        return self.layers[1]["inner"](self.layers[0](x)) * self.scale


NAMES = [
    "scale",
    "layers.0.weight",
    "layers.0.bias",
    "layers.1.inner.weight",
    "layers.1.inner.bias",
]


def test_parameters_are_found_in_attributes_and_not_in_plain_lists():
    block = Block()
    block.hidden = [nn.Linear(1, 1), (nn.Parameter(Tensor([1.0])), {"inner": nn.Linear(1, 1)})]
    assert [name for name, _ in block.named_parameters()] == NAMES
    assert len(list(block.modules())) == 5 and "hidden" not in repr(block)


def test_buffers_and_state_names():
    block = Block()
    assert [name for name, _ in block.named_buffers()] == ["count", "scratch"]
    assert sorted(block.state_dict()) == sorted([*NAMES, "count"])


def test_shared_parameter_is_listed_once():
    layer = nn.Linear(2, 2)
    model = nn.Sequential(layer, layer)
    assert len(list(model.parameters())) == 2
    assert sorted(model.state_dict()) == ["0.bias", "0.weight", "1.bias", "1.weight"]


def test_train_and_eval_reach_every_module():
    model = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5)))
    assert not any(module.training for module in model.eval().modules())
    assert all(module.training for module in model.train().modules())


def test_apply_visits_children_before_parents():
    model = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    seen = []
    model.apply(lambda module: seen.append(type(module).__name__))
    assert seen[-1] == "Sequential" and len(seen) == 3


def test_load_state_dict_copies_in_place():
    source, target = Block(), Block()
    kept = target.layers[0].weight
    result = target.load_state_dict(source.state_dict())
    assert result == ([], []) and target.layers[0].weight is kept
    for name, value in source.state_dict().items():
        np.testing.assert_array_equal(target.state_dict()[name].numpy(), value.numpy())


def test_load_state_dict_takes_arrays():
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": np.ones((1, 2), np.float32), "bias": [3.0]})
    assert layer(Tensor([[1.0, 1.0]])).tolist() == [[5.0]]


def test_load_state_dict_names_what_differs():
    state = Block().state_dict()
    state["other"] = state.pop("scale")
    message = (
        "load_state_dict: missing scale; unexpected other. "
        "Fix: load a state made by the same model, or pass strict=False."
    )
    with pytest.raises(StateError) as error:
        Block().load_state_dict(state)
    assert str(error.value) == message
    assert Block().load_state_dict(state, strict=False) == (["scale"], ["other"])


def test_load_state_dict_with_a_wrong_shape_changes_nothing():
    layer = nn.Linear(2, 1)
    before = layer.bias.tolist()
    with pytest.raises(StateError, match=r"weight has shape \(2, 2\), the model wants \(1, 2\)"):
        layer.load_state_dict({"bias": [9.0], "weight": np.ones((2, 2))})
    assert layer.bias.tolist() == before


def test_zero_grad_and_freezing():
    layer = nn.Linear(2, 1)
    layer(Tensor([[1.0, 2.0]])).sum().backward()
    assert layer.weight.grad.tolist() == [[1.0, 2.0]]
    layer.zero_grad()
    assert layer.weight.grad is None
    layer.requires_grad_(False)
    assert not any(p.requires_grad for p in layer.parameters())


@pytest.mark.parametrize("convert", [lambda m: m.double(), lambda m: m.to(dtype="float16")])
def test_a_change_of_dtype_keeps_gradients(convert):
    layer = nn.Linear(2, 1)
    layer(Tensor([[1.0, 2.0]])).sum().backward()
    kept = layer.weight.grad
    convert(layer)
    assert layer.weight.grad is kept and kept.dtype == layer.weight.dtype
    layer(Tensor([[1.0, 2.0]]).cast(layer.weight.dtype)).sum().backward()
    assert layer.weight.grad.tolist() == [[2.0, 4.0]]


def test_to_keeps_the_parameter_objects():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    before = list(model.parameters())
    model.to(dtype="float64")
    assert all(a is b for a, b in zip(before, model.parameters()))
    assert model[0].weight.dtype.name == "float64"
    assert model[1].num_batches_tracked.dtype.name == "int64"
    assert model(Tensor.ones(3, 2, dtype="float64")).dtype.name == "float64"


def test_repr_is_like_pytorch():
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Conv2d(1, 2, 3, padding=1)))
    assert repr(model) == (
        "Sequential(\n"
        "  (0): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (1): Sequential(\n"
        "    (0): ReLU()\n"
        "    (1): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n"
        "  )\n"
        ")"
    )


def test_forward_must_be_defined():
    with pytest.raises(NotImplementedError, match="Module does not define forward.*Fix: define it"):
        nn.Module()(1)


def tie(model, room):
    """Share a weight between two modules, and use one module twice."""
    model.first, model.second = room.Linear(3, 3), room.Linear(3, 3)
    model.second.weight = model.first.weight
    model.norm = room.BatchNorm1d(3)
    model.again = model.norm


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        tie(self, nn)


def named(pairs):
    return [name for name, _ in pairs]


def test_walks_equal_pytorch():
    torch = pytest.importorskip("torch")
    ours, reference = Tied(), type("Tied", (torch.nn.Module,), {})()
    tie(reference, torch.nn)
    for options in (
        {},
        {"prefix": "m"},
        {"recurse": False},
        {"remove_duplicate": False, "prefix": "m"},
    ):
        for walk in ("named_parameters", "named_buffers"):
            found = named(getattr(ours, walk)(**options))
            assert found == named(getattr(reference, walk)(**options)), (walk, options)
        options.pop("recurse", None)
        assert named(ours.named_modules(**options)) == named(reference.named_modules(**options))
    assert named(ours.named_children()) == named(reference.named_children())
    assert list(ours.state_dict(prefix="m.")) == list(reference.state_dict(prefix="m."))
    assert repr(ours) == repr(reference)
    assert repr(ours.load_state_dict(ours.state_dict())) == "<All keys matched successfully>"


class Wrapped(nn.Module):
    """A module that passes names on to another, as wrappers of users do."""

    def __init__(self):
        super().__init__()
        self.base = nn.Linear(2, 2)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.base, name)

    def __setstate__(self, state):
        super().__setstate__(state)
        self.is_read = True


def test_a_wrapper_that_passes_names_on_is_pickled():
    found = pickle.loads(pickle.dumps(Wrapped()))
    assert found.is_read and found.in_features == 2
    del Wrapped.__setstate__
    assert pickle.loads(pickle.dumps(Wrapped())).weight.shape == (2, 2)


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_keep_what_is_shared_and_nothing_else(copier):
    model = Tied().eval()
    made = copier(model)
    assert made.second.weight is made.first.weight and made.again is made.norm
    assert made.first.weight is not model.first.weight and not made.norm.training
    assert made.first.weight.requires_grad
    x = Tensor.ones(2, 3)
    np.testing.assert_array_equal(made.first(x).numpy(), model.first(x).numpy())
    with picograd.no_grad():
        made.first.weight.zero_()
    assert model.first.weight.numpy().any()


def test_registering():
    model = nn.Module()
    model.register_parameter("weight", nn.Parameter(Tensor([1.0])))
    model.register_parameter("bias", None)
    model.register_buffer("later", None)
    model.add_module("inner", nn.Linear(1, 1))
    assert list(model.state_dict()) == ["weight", "inner.weight", "inner.bias"]
    model.later = Tensor([2.0])
    assert "later" in model.state_dict()
    del model.later
    assert "later" not in model.state_dict()
    assert model.get_submodule("") is model and model.get_submodule("inner") is model.inner
    assert model.get_parameter("inner.bias") is model.inner.bias
    model.register_buffer("later", Tensor([3.0]))
    assert model.get_buffer("later").tolist() == [3.0]
    for find in (model.get_parameter, model.get_submodule, model.get_buffer):
        with pytest.raises(AttributeError, match="Module has no 'inner.other'"):
            find("inner.other")
    for register in (model.register_parameter, model.register_buffer, model.add_module):
        taken = "inner" if register == model.register_parameter else "weight"
        for name in (taken, "a.b", "", "forward"):
            with pytest.raises(MemberError):
                register(name, None)
        with pytest.raises(DTypeError):
            register("fresh", 3)


def test_registering_again_replaces_a_member_of_the_same_kind():
    model = nn.Module()
    model.register_parameter("weight", None)
    model.register_buffer("mean", None)
    model.add_module("inner", None)
    model.bias = nn.Parameter(Tensor([1.0]))
    for size in (1, 2):
        model.register_parameter("weight", nn.Parameter(Tensor.ones(size)))
        model.register_buffer("mean", Tensor.ones(size), persistent=size == 1)
        model.add_module("inner", nn.Linear(size, 1))
        assert model.weight.shape == model.mean.shape == (size,)
        assert ("mean" in model.state_dict()) == (size == 1)
    assert [name for name, _ in model.named_parameters(recurse=False)] == ["weight", "bias"]
    model.weight = None
    assert model._parameters["weight"] is None and "weight" not in model.state_dict()
    with pytest.raises(DTypeError, match="weight is a Parameter and cannot become a Tensor"):
        model.weight = Tensor.ones(2)
    model.register_parameter("weight", nn.Parameter(Tensor.ones(3)))
    with pytest.raises(MemberError):
        model.register_buffer("weight", Tensor.ones(2))
    layer = nn.Linear(2, 2, bias=False)
    layer.register_parameter("bias", nn.Parameter(Tensor.ones(2)))
    assert layer(Tensor.zeros(2)).tolist() == [1, 1] and len(layer.state_dict()) == 2
    model.mean = nn.Linear(1, 1)  # a buffer may become a module, a module a parameter
    model.inner = nn.Parameter(Tensor.ones(4))
    assert [name for name, _ in model.named_parameters(recurse=False)][-1] == "inner"


def test_parameters_are_not_hidden_by_accident():
    layer = nn.Linear(2, 2)
    with pytest.raises(DTypeError, match="weight is a Parameter and cannot become a Tensor"):
        layer.weight = Tensor.ones(2, 2)
    with pytest.raises(DTypeError, match="0 is a Module and cannot become an int"):
        setattr(nn.Sequential(layer), "0", 3)
    norm = nn.BatchNorm1d(2)
    with pytest.raises(DTypeError, match="running_mean is a Tensor and cannot become a list"):
        norm.running_mean = [1.0]
    layer.bias = None
    assert list(layer.state_dict()) == ["weight"]
    del layer.weight
    layer.weight = Tensor.ones(2, 2)
    assert not list(layer.parameters())


def test_apply_goes_through_children_in_order():
    seen = []
    model = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU(), nn.Tanh()))
    assert model.apply(lambda module: seen.append(type(module).__name__)) is model
    assert seen == ["Linear", "ReLU", "Tanh", "Sequential", "Sequential"]


def test_dtypes_and_devices(device):
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    for method in ("half", "bfloat16", "double", "float"):
        getattr(model, method)()
        wanted = {"half": "float16", "double": "float64", "float": "float32"}
        assert model[0].weight.dtype.name == wanted.get(method, method)
        assert model[1].num_batches_tracked.dtype.name == "int64"
    assert model.to(device, picograd.float64)[0].weight.device.startswith(device)
    assert model.to(Tensor([1.0]))[0].weight.dtype.name == "float32"
    assert model.to("cpu").type("float16")[0].bias.dtype.name == "float16"
    with pytest.raises(DTypeError, match="parameters need a float or complex dtype, got int32"):
        model.to("int32")


def test_tied_parameters_move_once():
    model = Tied()
    assert model.double().first.weight is model.second.weight
    assert model.second.weight.dtype.name == "float64"


def test_zero_grad_with_zeros():
    layer = nn.Linear(2, 1)
    layer(Tensor([[1.0, 2.0]])).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.tolist() == [[0.0, 0.0]]
    with pytest.raises(ValueError, match="mode=1 is no bool"):
        layer.train(1)


def test_assign_takes_the_dtype_over():
    layer = nn.Linear(2, 1)
    kept = layer.weight
    state = {"weight": Tensor([[1.0, 2.0]], dtype="float64"), "bias": Tensor([3.0])}
    layer.load_state_dict(state, assign=True)
    assert layer.weight is kept and kept.dtype.name == "float64" and kept.requires_grad
    assert isinstance(kept, nn.Parameter) and kept.tolist() == [[1.0, 2.0]]


def parameters_of(kind):
    return [name for name in inspect.signature(kind.forward).parameters if name != "self"]


def test_inputs_have_their_names_of_pytorch():
    torch = pytest.importorskip("torch")
    own = {"Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "DataParallel"}
    own |= {"RNNBase", "RNNCellBase"}  # which define no forward
    names = [name for name in dir(torch.nn) if name not in own and hasattr(nn, name)]
    kinds = [name for name in names if isinstance(getattr(nn, name), type)]
    layers = [name for name in kinds if issubclass(getattr(nn, name), nn.Module)]
    assert len(layers) > 120
    for name in layers:
        ours, theirs = (parameters_of(getattr(library.nn, name)) for library in (picograd, torch))
        if ours != ["tensors", "named"]:
            assert ours == theirs, name


@pytest.mark.parametrize("name", ["CrossEntropyLoss", "MSELoss", "L1Loss", "KLDivLoss", "NLLLoss"])
def test_losses_take_their_inputs_by_name(name):
    scores, target = Tensor([[0.25, 0.5], [0.5, 0.25]]), Tensor([[0.5, 0.5], [0.0, 1.0]])
    target = Tensor([0, 1]) if name == "NLLLoss" else target
    loss = getattr(nn, name)()
    wanted = loss(scores, target).item()
    assert loss(input=scores, target=target).item() == wanted
    assert loss(scores, target=target).item() == wanted
    with pytest.raises(TypeError, match="inputs"):
        loss(inputs=scores, target=target)
    counts = nn.PoissonNLLLoss()
    assert counts(log_input=scores, target=scores).item() == counts(scores, scores).item()


def test_a_property_may_show_the_parameter_it_hides():
    class Base(nn.Module):
        def __init__(self, k):
            super().__init__()
            self.k = nn.Parameter(Tensor([k]))

    class Shown(Base):
        @property
        def k(self):
            return self._parameters["k"] * 2

    model = Shown(3.0)
    assert model.k.tolist() == [6.0] and list(model.state_dict()) == ["k"]
    del model.k
    assert not list(model.parameters())


def test_members_are_in_the_order_in_which_they_became_members():
    class Late(nn.Module):
        def __init__(self):
            self.parts, self.last = [], None
            self.first = nn.Linear(1, 1, bias=False)
            self.parts = nn.ModuleList([nn.Linear(1, 1, bias=False)])
            self.last = nn.Parameter(Tensor([1.0]))

    names = [name for name, _ in Late().named_modules()]
    assert names == ["", "first", "parts", "parts.0"]


def test_what_follows_a_module_among_the_bases_is_set_up_by_the_class():
    class Adapter:
        def __init__(self, base):
            self.base = base

    class Layer(nn.Module, Adapter):
        def __init__(self):
            super().__init__()
            Adapter.__init__(self, 3)

    class Both(nn.Module, Adapter):
        call_super_init = True

    assert Layer().base == 3 and Both(4).base == 4
    with pytest.raises(TypeError):
        nn.Module(3)


def test_a_module_inside_is_replaced() -> None:
    model = nn.Sequential(nn.Sequential(nn.ReLU()), nn.ReLU())
    model.set_submodule("0.0", nn.Tanh())
    assert isinstance(model[0][0], nn.Tanh)
    for path in ("", "7", "0.x"):
        with pytest.raises(MemberError):
            model.set_submodule(path, nn.Tanh(), strict=True)
    model.set_submodule("2", nn.Tanh())
    assert isinstance(model[2], nn.Tanh)


def test_a_dict_that_is_given_takes_the_state() -> None:
    given: dict[str, object] = {"epoch": 3}
    model = nn.Sequential(nn.Linear(1, 1, bias=False))
    assert model.state_dict(destination=given, prefix="model.") is given
    assert list(given) == ["epoch", "model.0.weight"] and model._version == 1


def test_a_state_dict_notes_versions():
    torch = pytest.importorskip("torch")

    def described(framework):
        layers = framework.nn
        model = layers.Sequential(layers.Linear(2, 2), layers.BatchNorm1d(2))
        seen = []

        def look(module, state, prefix, version, *others):
            seen.append((list(state), prefix, version))

        model[1]._register_load_state_dict_pre_hook(look, with_module=True)
        state = model.state_dict()
        model.load_state_dict(state)
        return type(state).__name__, dict(state._metadata), seen

    assert described(picograd) == described(torch)


def test_an_older_state_lacks_the_count_of_batches():
    for framework in (picograd, pytest.importorskip("torch")):
        norm = framework.nn.BatchNorm1d(2)
        norm(framework.ones(3, 2))
        older = {k: v for k, v in norm.state_dict().items() if k != "num_batches_tracked"}
        assert framework.nn.Sequential(norm)[0].load_state_dict(older).missing_keys == []
        assert norm.num_batches_tracked.item() == 1


def test_a_part_is_asked_to_apply() -> None:
    class Part(nn.Module):
        def apply(self, fn: Any) -> Any:
            names.append("own")
            return super().apply(fn)

    names: list[str] = []
    part = nn.ReLU()
    model = nn.Sequential(Part(), nn.Sequential(part), nn.Sequential(part))
    model.apply(lambda module: names.append(type(module).__name__))
    wanted = ["own", "Part", "ReLU", "Sequential", "ReLU", "Sequential", "Sequential"]
    assert names == wanted


def test_a_module_whose_name_a_method_has() -> None:
    class Covered(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(2, 3)
            self.parameters = list(self.first.parameters())
            self.parameters = nn.ParameterList(self.parameters)
            self.eval = nn.Linear(3, 1)

    model = Covered()
    names = ["first.weight", "first.bias", "eval.weight", "eval.bias"]
    assert [name for name, _ in model.named_parameters()] == names
    kept = [*names[:2], "parameters.0", "parameters.1", *names[2:]]
    assert list(model.state_dict()) == kept and len(list(model.parameters())) == 4
    assert not model.eval().training and not model._modules["eval"].training
    model.load_state_dict({name: x * 0 for name, x in model.state_dict().items()})
    twin = copy.deepcopy(model)
    assert list(twin.state_dict()) == kept and not twin.first.weight.any()


def test_a_class_may_move_in_terms_of_cpu_and_float() -> None:
    class Own(nn.Linear):
        def to(self, device: Any) -> Any:  # type: ignore[override]
            return self.cpu().float()

    assert Own(1, 1).double().to("cpu").weight.dtype is picograd.float32
