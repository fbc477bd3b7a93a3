"""Hooks of modules beside PyTorch's: the same calls in the same order, the same replacements."""

import copy
import importlib
import pickle
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from nn_support import array, copy_state, torch

from picograd import Tensor, nn
from picograd.errors import DTypeError, GradientError, StateError

Pair = namedtuple("Pair", ["first", "second"])


def pair(device):
    ours, reference = nn.Linear(3, 2).to(device), torch.nn.Linear(3, 2)
    copy_state(ours, reference)
    return ours, reference


def test_forward_hooks_replace_inputs_and_outputs(device):
    ours, reference = pair(device)
    data = array(4, 3)
    for model in (ours, reference):
        model.register_forward_pre_hook(lambda module, inputs: inputs[0] * 2)
        model.register_forward_hook(lambda module, inputs, output: output + inputs[0][:, :2])
        model.register_forward_hook(lambda module, inputs, output: None)
    found, wanted = ours(Tensor(data, device=device)), reference(torch.tensor(data))
    np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_order_prepend_and_removal():
    calls = {}
    for room in (nn, torch.nn):
        seen = calls[room] = []
        model = room.ReLU()
        add, before = model.register_forward_hook, model.register_forward_pre_hook
        before(lambda module, inputs, seen=seen: seen.append("before"))
        add(lambda module, inputs, output, seen=seen: seen.append("a"))
        middle = add(lambda module, inputs, output, seen=seen: seen.append("b"))
        add(lambda module, inputs, output, seen=seen: seen.append("first"), prepend=True)
        x = Tensor([1.0]) if room is nn else torch.ones(1)
        model(x)
        middle.remove()
        middle.remove()
        model(x)
    assert calls[nn] == calls[torch.nn]
    assert calls[nn] == ["before", "first", "a", "b", "before", "first", "a"]


class Sum(nn.Module):
    def forward(self, a, b, scale=1.0):
        if scale == 0.0:
            raise ZeroDivisionError
        return a + b * scale, a * b


def test_hooks_see_options():
    model, x = Sum(), Tensor([3.0])
    seen = []
    pre = dict(with_kwargs=True)
    model.register_forward_pre_hook(lambda m, args, options: (args, {"scale": 2.0}), **pre)
    model.register_forward_hook(lambda m, args, options, y: seen.append(options), **pre)
    assert model(x, x)[0].tolist() == [9.0] and seen == [{"scale": 2.0}]


def test_always_call_survives_an_error():
    model, seen = Sum(), []
    model.register_forward_hook(lambda m, args, y: seen.append(y), always_call=True)
    model.register_forward_hook(lambda m, args, y: seen.append("never"))
    with pytest.raises(ZeroDivisionError):
        model(1.0, 2.0, scale=0.0)
    assert seen == [None]


def test_backward_hooks_see_and_replace_gradients(device):
    ours, reference = pair(device)
    data, direction = array(4, 3), array(4, 2)
    seen = []
    for model, x, flowing in (
        (ours, Tensor(data, device=device), Tensor(direction, device=device)),
        (reference, torch.tensor(data), torch.tensor(direction)),
    ):
        x.requires_grad = True
        model.register_full_backward_pre_hook(lambda module, outputs: (outputs[0] * 3,))

        def hook(module, inputs, outputs):
            seen.append([inputs[0].numpy(), outputs[0].numpy()])
            return (inputs[0] * 2,)

        model.register_full_backward_hook(hook)
        model(x).backward(flowing)
        seen[-1] += [x.grad.numpy(), model.weight.grad.numpy()]
    for mine, theirs in zip(*seen):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("cpu_by_default")
def test_backward_hook_without_gradient_of_the_input():
    ours, reference = pair("cpu")
    seen = []
    for model, x in ((ours, Tensor(array(2, 3))), (reference, torch.ones(2, 3))):
        model.register_full_backward_hook(lambda m, inputs, outputs: seen.append(inputs))
        model(x).sum().backward()
    assert seen == [(None,), (None,)]


def test_what_backward_hooks_watch_keeps_its_memory():
    """Programs follow values from module to module by their address."""

    class Twice(nn.Module):
        def forward(self, x, y):
            self.seen = [x.data_ptr(), y.data_ptr()]
            return x * 2, y * 3

    model, given = Twice(), [Tensor(array(3), requires_grad=True) for _ in range(2)]
    model.register_full_backward_hook(lambda *_: None)
    made = []
    model.register_forward_hook(lambda m, inputs, outputs: made.extend(outputs))
    results = model(*given)
    assert model.seen == [each.data_ptr() for each in given]
    assert [each.data_ptr() for each in results] == [each.data_ptr() for each in made]
    (results[0] + results[1]).sum().backward()
    assert [each.grad.tolist() for each in given] == [[2.0] * 3, [3.0] * 3]


def test_backward_hook_with_several_inputs_and_outputs():
    class Reference(torch.nn.Module):
        forward = Sum.forward

    a, b, seen = array(3), array(2, 3), []
    for model, wrap in ((Sum(), Tensor), (Reference(), torch.tensor)):
        x, y = wrap(a), wrap(b)
        x.requires_grad = y.requires_grad = True

        def hook(module, inputs, outputs):
            seen.append([each.numpy() for each in (*inputs, *outputs)])
            return inputs[0] * 0, inputs[1] * 2

        model.register_full_backward_hook(hook)
        first, second = model(x, y)
        (first * 2 + second * second).sum().backward()
        seen[-1] += [x.grad.numpy(), y.grad.numpy()]
    assert len(seen) == 2
    for mine, theirs in zip(*seen):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_a_hook_is_a_function():
    with pytest.raises(DTypeError, match="register_hook: the hook is an int"):
        nn.ReLU().register_forward_hook(3)


def log_of_state_hooks(room):
    """Nest two modules, watch both, save and load; list the calls with what they were shown."""
    calls = []
    model = room.Sequential(room.Linear(2, 1), room.ReLU())
    for name, module in (("outer", model), ("inner", model[0])):

        def save_before(module, prefix, keep_vars, name=name):
            calls.append((name, "save", prefix))

        def save_after(module, state, prefix, metadata, name=name):
            calls.append((name, "saved", prefix, list(state)))

        def load_before(
            module, state, prefix, metadata, strict, missing, unexpected, errors, name=name
        ):
            calls.append((name, "load", prefix))

        def load_after(module, result, name=name):
            calls.append((name, "loaded", sorted(result.missing_keys)))

        module.register_state_dict_pre_hook(save_before)
        module.register_state_dict_post_hook(save_after)
        module.register_load_state_dict_pre_hook(load_before)
        module.register_load_state_dict_post_hook(load_after)
    state = model.state_dict()
    del state["0.bias"]
    answer = model.load_state_dict(state, strict=False)
    return calls, list(answer.missing_keys)


def test_state_hooks_are_called_as_pytorchs():
    assert log_of_state_hooks(nn) == log_of_state_hooks(torch.nn)


def test_state_hooks_rename_and_forgive():
    """An old name is read, and a missing one is forgiven."""
    for room in (nn, torch.nn):
        model = room.Sequential(room.Linear(2, 1))
        state = dict(model.state_dict())
        state["0.kernel"] = state.pop("0.weight")
        del state["0.bias"]

        def rename(module, state, prefix, *rest):
            state[prefix + "weight"] = state.pop(prefix + "kernel")

        model[0].register_load_state_dict_pre_hook(rename)
        with pytest.raises(RuntimeError, match="0.bias"):
            model.load_state_dict(state)
        handle = model.register_load_state_dict_post_hook(lambda m, r: r.missing_keys.clear())
        assert not model.load_state_dict(state).missing_keys
        handle.remove()
        with pytest.raises(RuntimeError, match="0.bias"):
            model.load_state_dict(state)
    assert "0.kernel" in state, "the caller's dict stays"


def test_extra_state_is_saved_and_loaded():
    def classes(room):
        class Counter(room.Module):
            def __init__(self, count):
                super().__init__()
                self.count = count

            def get_extra_state(self):
                return {"count": self.count}

            def set_extra_state(self, state):
                self.count = state["count"]

        return room.Sequential(Counter(3), room.Linear(1, 1)), room.Sequential(
            Counter(0), room.Linear(1, 1)
        )

    for room in (nn, torch.nn):
        first, second = classes(room)
        state = first.state_dict()
        assert list(state) == ["0._extra_state", "1.weight", "1.bias"]
        second.load_state_dict(state)
        assert second[0].count == 3
        del state["0._extra_state"]
        with pytest.raises(RuntimeError, match=r"0\._extra_state"):
            second.load_state_dict(state)
        with pytest.raises(RuntimeError, match="_extra_state"):
            room.Linear(1, 1).load_state_dict({**room.Linear(1, 1).state_dict(), "_extra_state": 1})


def test_wrong_state_hooks_are_named():
    layer = nn.Linear(1, 1)
    handle = layer.register_state_dict_post_hook(lambda module, state, prefix, metadata: state)
    with pytest.raises(StateError, match="a hook returned a value"):
        layer.state_dict()
    handle.remove()
    layer.register_state_dict_pre_hook(lambda *shown: "is not looked at")
    layer.register_load_state_dict_pre_hook(lambda *shown: "is not looked at")
    layer.load_state_dict(layer.state_dict())
    layer.register_load_state_dict_pre_hook(lambda *shown: shown[-1].append("too old"))
    with pytest.raises(StateError, match="load_state_dict: too old"):
        layer.load_state_dict(layer.state_dict())
    with pytest.raises(StateError, match="get_extra_state: there is none"):
        layer.get_extra_state()


@pytest.mark.parametrize("library", [nn, torch.nn], ids=["picograd", "torch"])
def test_hooks_before_loading_without_the_module(library):
    layer, seen = library.Linear(1, 1), []
    layer._register_load_state_dict_pre_hook(lambda *shown: seen.append(len(shown)))
    layer._register_load_state_dict_pre_hook(lambda *shown: seen.append(shown[0]), True)
    layer.load_state_dict(layer.state_dict())
    assert seen == [7, layer]


def test_hooks_are_found_under_the_names_that_programs_clear() -> None:
    layer, seen = nn.Linear(2, 2), []
    layer.register_forward_hook(lambda *shown: seen.append("a"))
    layer.register_forward_pre_hook(lambda *shown: seen.append("b"))
    assert len(layer._forward_hooks) == len(layer._forward_pre_hooks) == 1
    layer._forward_hooks.clear()
    layer._forward_pre_hooks = {7: lambda *shown: seen.append("c")}
    layer(Tensor([[1.0, 2.0]]))
    assert seen == ["c"] and not layer._backward_hooks and not layer._backward_pre_hooks


def test_hooks_are_the_functions_that_were_registered_as_programs_ask_for_their_class() -> None:
    class Adding:
        def __call__(self, module: Any, inputs: Any, options: Any, result: Any) -> Any:
            return result + options["scale"]

    class Scaled(nn.Module):
        def forward(self, x: Tensor, scale: float) -> Tensor:
            return x * scale

    layer = Scaled()
    layer.register_forward_hook(Adding(), with_kwargs=True)
    layer.register_forward_pre_hook(kept := lambda module, inputs: None)
    assert list(layer._forward_pre_hooks.values()) == [kept]
    assert copy.deepcopy(layer)(Tensor([1.0]), scale=2.0).tolist() == [4.0]
    for number, hook in list(layer._forward_hooks.items()):
        if isinstance(hook, Adding):
            del layer._forward_hooks[number]
    assert layer(Tensor([1.0]), scale=2.0).tolist() == [2.0]


def test_hooks_of_all_modules_come_before_a_module_s_own() -> None:
    names: Any = importlib.import_module("picograd.nn.modules.module")
    seen: list[Any] = []
    kinds = [
        names.register_module_forward_pre_hook(lambda module, inputs: seen.append("before")),
        names.register_module_forward_hook(lambda module, inputs, result: result * 2),
        names.register_module_full_backward_pre_hook(lambda *shown: seen.append("gradient")),
        names.register_module_full_backward_hook(lambda *shown: seen.append("passed")),
    ]
    layer, x = nn.ReLU(), Tensor([1.0], requires_grad=True)
    own = layer.register_forward_hook(lambda module, inputs, result: result + 1)
    layer(x).backward()
    assert nn.Tanh()(Tensor([0.0])).item() == 0 and layer(x).item() == 3
    for each in kinds:
        each.remove()
    assert seen == ["before", "gradient", "passed", "before", "before"] and layer(x).item() == 2
    own.remove()
    assert layer(x).item() == 1


def test_backward_hooks_have_an_older_name() -> None:
    layer = nn.ReLU()
    layer.register_backward_hook(lambda module, inputs, outputs: (outputs[0] * 3,))
    x = Tensor([1.0, -1.0], requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_hooks_of_registration() -> None:
    names: Any = importlib.import_module("picograd.nn.modules.module")
    seen: list[Any] = []

    def note(kind: str) -> Any:
        return lambda module, name, value: seen.append((kind, name))

    def doubled(module: Any, name: str, value: Any) -> Any:
        return nn.Parameter(value.detach() * 2)

    handles = [
        names.register_module_parameter_registration_hook(note("parameter")),
        names.register_module_parameter_registration_hook(doubled),
        names.register_module_buffer_registration_hook(note("buffer")),
        names.register_module_module_registration_hook(note("module")),
    ]
    model = nn.Module()
    model.layer = nn.ReLU()
    model.weight = nn.Parameter(Tensor([3.0]))
    model.register_buffer("mean", None)
    model.mean, model.number = Tensor([1.0]), 3
    for handle in handles:
        handle.remove()
    model.other = nn.ReLU()
    assert model.weight.item() == 6.0
    wanted = [("module", "layer"), ("parameter", "weight"), ("buffer", "mean"), ("buffer", "mean")]
    assert seen == wanted


def count(*shown: Any) -> None:
    shown[0]["count"] = Tensor([float(len(shown))])


def test_private_hooks_of_loading_are_pickled() -> None:
    layer = nn.ReLU()
    layer._register_load_state_dict_pre_hook(count)
    again = pickle.loads(pickle.dumps(layer))
    with pytest.raises(StateError, match="count"):
        again.load_state_dict({})


def test_a_hook_replaces_the_state():
    for framework in (nn, torch.nn):
        model = framework.Sequential(framework.Linear(1, 1), framework.ReLU())
        model._register_state_dict_hook(lambda m, state, *_: {f"w.{k}": state[k] for k in state})
        assert list(model.state_dict()) == ["w.0.weight", "w.0.bias"]
        members = model._named_members(lambda module: module._parameters.items(), prefix="net")
        assert [name for name, _ in members] == ["net.0.weight", "net.0.bias"]


def test_hooks_return_as_many_gradients_as_they_get():
    layer = nn.Sigmoid()
    for hook in (lambda m, into, out: into[:-1], lambda m, into, out: (*into, into[0])):
        x, wrong = Tensor.ones(2, requires_grad=True), "gradients for 1"
        with layer.register_full_backward_hook(hook), pytest.raises(GradientError, match=wrong):
            layer(x).sum().backward()


@pytest.mark.parametrize("kind", ["full_backward_pre_hook", "full_backward_hook"])
def test_named_results_keep_their_names_under_hooks_of_gradients(kind: str) -> None:
    class Two(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return Pair(x * 2, x * 3)

    model, seen = Two(), []
    getattr(model, f"register_{kind}")(lambda *shown: seen.append(len(shown)))
    x = Tensor.ones(2, requires_grad=True)
    found = model(x)
    assert type(found) is Pair and found.second.tolist() == [3.0, 3.0]
    (found.first + found.second).sum().backward()
    assert seen and x.grad is not None and x.grad.tolist() == [5.0, 5.0]
