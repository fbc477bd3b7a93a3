"""Modules as functions of their parameters, for gradients and vmap over them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from picograd.errors import DTypeError, StateError
from picograd.nn.module import Module
from picograd.tensor.tensor import Tensor


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the places of its parameters and buffers.

    The dict has paths (`named_parameters`) and tensors, or there are several; what they do not name
    stays. `args` is a tuple of inputs, or one input. The module itself is unchanged
    afterwards. An unknown name is an attribute during the call. Raises StateError with `strict`
    for an unknown or a missing one, MemberError for an unknown module.

    >>> import picograd
    >>> from picograd import nn
    >>> zeros = {"weight": picograd.zeros(1, 2), "bias": picograd.ones(1)}
    >>> picograd.func.functional_call(nn.Linear(2, 1), zeros, picograd.ones(3, 2)).tolist()
    [[1.0], [1.0], [1.0]]
    """
    given = joined(parameter_and_buffer_dicts)
    inputs = args if isinstance(args, tuple) else (args,)
    if args is None:
        inputs = ()
    with replaced(module, given, strict, tie_weights):
        return module(*inputs, **(kwargs or {}))


def joined(parameters: Any) -> dict[str, Any]:
    """Read one dict or several."""
    listed = parameters if isinstance(parameters, (tuple, list)) else [parameters]
    result: dict[str, Any] = {}
    for each in listed:
        if not isinstance(each, Mapping):
            text = f"parameters must be a dict of tensors, not {type(each).__name__}"
            raise DTypeError("functional_call", text, "pass dict(model.named_parameters())")
        result.update(each)
    return result


@contextmanager
def replaced(
    module: Module, given: Mapping[str, Any], strict: bool = False, tie_weights: bool = True
) -> Iterator[None]:
    """Put tensors into the places of parameters and buffers inside the block; shared ones too."""
    own: dict[str, Any] = dict(module.named_parameters())
    own.update(module.named_buffers())
    state = module.state_dict(keep_vars=True)
    aliases = {name: each for name, each in state.items() if name not in own}
    own.update(aliases)
    unknown = [name for name in given if name not in own]
    if strict and unknown:
        text = f"the module has no {', '.join(unknown)}"
        raise StateError("functional_call", text, "use the names of named_parameters()")
    missing = [name for name in own if name not in given and name not in aliases]
    if strict and missing:
        text = f"missing {', '.join(missing)}"
        raise StateError("functional_call", text, "use strict=False")
    substitutes = {id(own[name]): value for name, value in given.items() if name in own}
    undo: list[Any] = []  # (attributes of a module, name, value before)
    try:
        for name in unknown:
            add(module, name, given[name], undo)
        for part in module.modules():
            exchange(vars(part), substitutes, undo)
        yield
    finally:
        for holder, key, value in reversed(undo):
            holder[key] = value
            if value is undo:
                del holder[key]


_reparametrize_module = replaced  # PyTorch's name


def add(module: Module, path: str, value: Any, undo: list[Any]) -> None:
    """Make a tensor an attribute of a module; what was not there is undone by `undo` itself."""
    inside, _, name = path.rpartition(".")
    part = module.get_submodule(inside)
    old = getattr(part, name, value)
    if not isinstance(old, Tensor) or not isinstance(value, Tensor):
        text = f"{path} is a {type(old).__name__} and becomes a {type(value).__name__}"
        raise DTypeError("functional_call", text, "use the names of named_parameters()")
    undo.append((vars(part), name, vars(part).get(name, undo)))
    vars(part)[name] = value


def exchange(holder: dict[str, Any], substitutes: Mapping[int, Any], undo: list[Any]) -> None:
    """Replace tensors among the attributes of a module."""
    for key, value in list(holder.items()):
        if id(value) in substitutes:
            undo.append((holder, key, value))
            holder[key] = substitutes[id(value)]


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack the parameters and the buffers of equal models along a new first axis, for vmap.

    >>> from picograd import func, nn
    >>> parameters, buffers = func.stack_module_state([nn.Linear(2, 3), nn.Linear(2, 3)])
    >>> parameters["weight"].shape
    (2, 3, 2)
    """
    if not models:
        raise StateError("stack_module_state", "there are no models", "pass at least one")
    parameters = stacked([dict(model.named_parameters()) for model in models])
    buffers = stacked([dict(model.named_buffers()) for model in models])
    for each in parameters.values():
        each.requires_grad = True
    return parameters, buffers


def stacked(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Stack the tensors of every name."""
    if any(state.keys() != states[0].keys() for state in states):
        raise StateError("stack_module_state", "the models differ", "use models of one class")
    return {
        name: Tensor.stack([state[name].detach() for state in states]).detach()
        for name in states[0]
    }
