"""Modules as functions of their parameters, for gradients and vmap over them."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from picograd.engine.tracing import note_change
from picograd.errors import DTypeError, StateError
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
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
    stays. `args` is a tuple of inputs, or one input. The module itself is unchanged afterwards; a
    tensor that it put into a place that one dict names is in the dict then. What is shared is
    replaced by all its names, of which one may be given, unless `tie_weights=False`. An unknown
    name is an attribute during the call. Raises StateError for two tensors in one place, with
    `strict` for an unknown name or a missing one, MemberError for an unknown module.

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
    if isinstance(parameters, dict):
        return parameters
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
    module: Module, given: dict[str, Any], strict: bool = False, tie_weights: bool = True
) -> Iterator[None]:
    """Put tensors into the places of parameters and buffers inside the block.

    With `tie_weights` one goes to all places of what is shared.
    """
    own: dict[str, Any] = dict(module.named_parameters())
    own.update(module.named_buffers())
    state = module.state_dict(keep_vars=True)
    aliases = {name: each for name, each in state.items() if name not in own}
    own.update(aliases)
    unknown = [name for name in given if name not in own]
    if strict and unknown:
        text = f"the module has no {', '.join(unknown)}"
        raise StateError("functional_call", text, "use the names of named_parameters()")
    named = [name for name in own if name in given]
    reached = {id(own[name]) for name in named} if tie_weights else set()
    left = own.keys() - aliases.keys() - given.keys()
    missing = [name for name in own if name in left and id(own[name]) not in reached]
    if strict and missing:
        text = f"missing {', '.join(missing)}"
        raise StateError("functional_call", text, "use strict=False")
    substitutes: dict[int, Any] = {}
    for name in own.keys() & given.keys() if tie_weights else ():
        if substitutes.setdefault(id(own[name]), given[name]) is not given[name]:
            text = f"{name} is another name of a tensor that is given already"
            raise StateError("functional_call", text, "give one of them, or tie_weights=False")
    undo: list[Any] = []  # (attributes of a module, name, value before)
    try:
        for name in unknown if tie_weights else given:
            add(module, name, given[name], undo)
        for part in module.modules():
            exchange(part, substitutes, undo)
        yield
    finally:
        for holder, key, value in reversed(undo):
            now = holder.get(key)
            if now is not substitutes.get(id(value), now):  # the module put another there
                given.update({name: now for name in given if own.get(name) is value})
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
    place(part, name, value, undo)


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put a tensor, or None, in the place of a module's own, and give that, as PyTorch's helper.

    >>> from picograd import nn
    >>> layer = nn.Linear(1, 1)
    >>> old = swap_tensor(layer, "weight", picograd.ones(1, 1))
    >>> layer.weight.tolist(), isinstance(old, nn.Parameter)
    ([[1.0]], True)
    """
    old = getattr(module, name, None) if allow_missing else getattr(module, name)
    for each in (old, tensor):
        if each is not None and not isinstance(each, Tensor):
            problem = f"{name} is a {type(each).__name__}"
            raise DTypeError("swap_tensor", problem, "use the name of a tensor, and a tensor")
    note_change()
    place(module, name, tensor, [])
    return old


def exchange(part: Module, substitutes: Mapping[int, Any], undo: list[Any]) -> None:
    """Replace tensors among the attributes of a module."""
    for key, value in list(vars(part).items()):
        if id(value) in substitutes:
            undo.append((vars(part), key, value))
            place(part, key, substitutes[id(value)], undo)


def place(part: Module, name: str, value: Any, undo: list[Any]) -> None:
    """Set an attribute; what takes a parameter's place is listed as one: `next(m.parameters())`."""
    held = vars(part)
    if isinstance(held.get(name), Parameter) and isinstance(value, Tensor):
        undo.append((held, "_placed", held.get("_placed", undo)))
        held["_placed"] = {*part._placed, name}
    held[name] = value


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


class FunctionalModuleWithBuffers(Module):
    """This class is a model as a function of (parameters, buffers, inputs)."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.stateless_model = module
        self.param_names = tuple(name for name, _ in module.named_parameters())
        self.buffer_names = tuple(name for name, _ in module.named_buffers())

    def forward(
        self, params: Iterable[Any], buffers: Iterable[Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Call the model with these in the places of its own."""
        names = self.param_names + self.buffer_names
        state = dict(zip(names, (*params, *buffers), strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """This class is a model without buffers as a function of (parameters, inputs)."""

    def forward(self, params: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """Call the model with these in the places of its own."""
        return super().forward(params, (), *args, **kwargs)


Parts = tuple[Tensor, ...]


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, Parts, Parts]:
    """Take a model apart: a function of (parameters, buffers, inputs), and copies of both.

    >>> from picograd import func, nn
    >>> call, parameters, buffers = func.make_functional_with_buffers(nn.BatchNorm1d(2))
    >>> call(parameters, buffers, picograd.ones(3, 2)).shape, len(parameters), len(buffers)
    ((3, 2), 2, 3)
    """
    module = copy.deepcopy(model)
    parameters = tuple(module.parameters())
    for each in parameters if disable_autograd_tracking else ():
        each.requires_grad = False
    return FunctionalModuleWithBuffers(module), parameters, tuple(module.buffers())


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, Parts]:
    """Take a model without buffers apart: a function of (parameters, inputs), and copies of them.

    >>> from picograd import func, nn
    >>> call, parameters = func.make_functional(nn.Linear(2, 3))
    >>> call(parameters, picograd.ones(4, 2)).shape
    (4, 3)
    """
    whole, parameters, buffers = make_functional_with_buffers(model, disable_autograd_tracking)
    if buffers:
        fix = "use make_functional_with_buffers"
        raise StateError("make_functional", "the model has buffers", fix)
    return FunctionalModule(whole.stateless_model), parameters


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, Parts, Parts]:
    """Give the function of one of several equal models, and the stacked states of all, for vmap."""
    parameters, buffers = stack_module_state(models)
    call, _, _ = make_functional_with_buffers(models[0])
    return call, tuple(parameters.values()), tuple(buffers.values())


def stacked(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Stack the tensors of every name."""
    if any(state.keys() != states[0].keys() for state in states):
        raise StateError("stack_module_state", "the models differ", "use models of one class")
    return {
        name: Tensor.stack([state[name].detach() for state in states]).detach()
        for name in states[0]
    }
