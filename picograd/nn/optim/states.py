"""State dicts of optimizers in PyTorch's layout: written, and read before anything changes.

Parameters are numbered through all groups: `{"state": {number: {name: tensor}}, "param_groups":
[{option: value, "params": [number, ...]}]}`. A parameter that never took a step has no entry.
"""

import copy
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from picograd.errors import StateError
from picograd.late_methods import dataclass
from picograd.nn.optim.group import ParameterGroup
from picograd.nn.parameter import as_tensor
from picograd.tensor.tensor import Tensor

OP = "Optimizer.load_state_dict"
FIX = "load a state of the same optimizer over the same parameters"


@dataclass(slots=True)
class Loaded:
    """What a state dict says of one group: options, and state for each of its parameters."""

    options: dict[str, Any]
    values: list[dict[str, Tensor] | None]


def export_state(
    state: Mapping[Tensor, Mapping[str, Tensor]],
    groups: Sequence[ParameterGroup],
    hidden: Mapping[str, float],
) -> dict[str, Any]:
    """Write the state dict; tensors are the optimizer's own, not copies."""
    entries: dict[int, dict[str, Tensor]] = {}
    described: list[dict[str, Any]] = []
    number = 0
    for group in groups:
        numbers = list(range(number, number + len(group.parameters)))
        number += len(numbers)
        for at, parameter in zip(numbers, group.parameters):
            known = state.get(parameter, {})
            found = {name: tensor for name, tensor in known.items() if name not in hidden}
            if found:
                entries[at] = found
        described.append({**copy.deepcopy(group.options), "params": numbers})
    return {"state": entries, "param_groups": described}


def import_own(
    state_dict: Mapping[str, Any],
    groups: Sequence[ParameterGroup],
    state: MutableMapping[Tensor, dict[str, Any]],
) -> None:
    """Load a state dict into an optimizer with a `step` of its own: values stay what they are.

    Tensors are copied, to the parameter's device; those of floats to its dtype, but for "step".
    """
    described = described_groups(state_dict, groups)
    state.clear()
    for saved, group in zip(described, groups):
        group.options = {k: copy.deepcopy(v) for k, v in saved.items() if k != "params"}
        for number, parameter in zip(saved["params"], group.parameters):
            entry = _entry(state_dict["state"], number)
            if entry is not None:
                state[parameter] = {k: _own(k, v, parameter) for k, v in entry.items()}


def _own(name: str, value: Any, parameter: Tensor) -> Any:
    if not isinstance(value, Tensor):
        return copy.deepcopy(value)
    is_like = value.dtype.is_differentiable and name != "step"
    return value.detach().clone().to(parameter.device, parameter.dtype if is_like else value.dtype)


def described_groups(state_dict: Mapping[str, Any], groups: Sequence[ParameterGroup]) -> list[Any]:
    """List what a state dict says of these groups. Raises StateError if it does not fit."""
    if not isinstance(state_dict, Mapping) or {"state", "param_groups"} - state_dict.keys():
        raise StateError(OP, "a state dict has the keys 'state' and 'param_groups'", FIX)
    described = list(state_dict["param_groups"])
    if len(described) != len(groups):
        raise StateError(OP, f"{len(described)} groups, not {len(groups)}", FIX)
    for at, (saved, group) in enumerate(zip(described, groups)):
        given, count = len(saved["params"]), len(group.parameters)
        if given != count:
            raise StateError(OP, f"group {at} has {given} parameters, not {count}", FIX)
    return described


def import_state(state_dict: Mapping[str, Any], groups: Sequence[ParameterGroup]) -> list[Loaded]:
    """Read a state dict for these groups. Raises StateError if it does not fit."""
    found = []
    for saved, group in zip(described_groups(state_dict, groups), groups):
        numbers = list(saved["params"])
        options = {k: copy.deepcopy(v) for k, v in saved.items() if k != "params"}
        entries = [_entry(state_dict["state"], number) for number in numbers]
        values = [
            None if entry is None else _values(f"state {number}", entry, parameter)
            for number, entry, parameter in zip(numbers, entries, group.parameters)
        ]
        found.append(Loaded(options, values))
    return found


def _entry(state: Mapping[Any, Any], number: int) -> Any:
    """Find the state of a parameter; JSON turns numbers into text."""
    return state.get(number, state.get(str(number)))


def _values(where: str, entry: Mapping[str, Any], parameter: Tensor) -> dict[str, Tensor]:
    """Read the tensors of one parameter: numbers, or of its shape."""
    found = {}
    for name, value in entry.items():
        if value is None:
            continue
        tensor = as_tensor(value, f"{where} {name}")
        shape = tuple(tensor.shape)
        if shape and shape != tuple(parameter.shape):
            problem = f"{where}: {name} has shape {shape}, not {tuple(parameter.shape)}"
            raise StateError(OP, problem, FIX)
        found[name] = tensor
    return found
