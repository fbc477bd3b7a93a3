"""Hooks of optimizers beside PyTorch's: the same calls in the same order, the same replacements."""

import importlib

import pytest

import picograd
from picograd.errors import StateError

torch = pytest.importorskip("torch")


def made(lib, kind="SGD", **options):
    parameter = lib.nn.Parameter(lib.tensor([1.0, 2.0]))
    return parameter, getattr(lib.optim, kind)([parameter], lr=0.5, **options)


def taking_a_step(lib):
    log = []
    optim = importlib.import_module(f"{lib.__name__}.optim.optimizer")
    parameter, optimizer = made(lib, "Adam")
    handles = [
        optimizer.register_step_pre_hook(lambda o, args, k: log.append((len(args), args[0] is o))),
        optimizer.register_step_post_hook(lambda o, args, k: log.append(("post", list(k)))),
        optim.register_optimizer_step_pre_hook(lambda o, args, k: log.append("every, before")),
        optim.register_optimizer_step_post_hook(lambda o, args, k: log.append("every, after")),
    ]
    counts = len(optimizer._optimizer_step_pre_hooks), len(optimizer._optimizer_step_post_hooks)
    parameter.sum().backward()
    optimizer.step(closure=None)
    for handle in handles:
        handle.remove()
    optimizer.step()
    return log, counts


def replacing(lib):
    seen = []
    optimizer = made(lib)[1]
    optimizer.register_step_pre_hook(lambda o, args, k: (args, {"closure": lambda: seen.append(1)}))
    optimizer.step()
    return seen


def in_own_classes(lib):
    log = []

    class Own(lib.optim.SGD):
        def step(self, closure=None):
            log.append("own")
            return super().step(closure)

    parameter = lib.nn.Parameter(lib.tensor([1.0]))
    optimizer = Own([parameter], lr=0.5)
    optimizer.register_step_post_hook(lambda *rest: log.append("post"))
    optimizer.step()
    return log.count("own"), log[-1]


def of_states(lib):
    log = []
    optimizer = made(lib, momentum=0.9)[1]
    optimizer.register_state_dict_pre_hook(lambda o: log.append("before"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    state = optimizer.state_dict()

    def before(o, shown):
        log.append(sorted(shown))
        del shown["more"]

    optimizer.register_load_state_dict_pre_hook(before)
    optimizer.register_load_state_dict_post_hook(lambda o: log.append("loaded"))
    optimizer.load_state_dict(state)
    return log, sorted(state)


@pytest.mark.parametrize("program", [taking_a_step, replacing, in_own_classes, of_states])
def test_hooks_are_called_as_in_pytorch(program):
    assert program(picograd) == program(torch)


def test_what_a_hook_returns_is_checked():
    optimizer = made(picograd)[1]
    optimizer.register_step_pre_hook(lambda *rest: 5)
    with pytest.raises(StateError, match="before the step returned an int"):
        optimizer.step()
