"""Parameter groups: parameters that share options, and what of the options lives on the device.

An optimizer turns options into *numbers* (`Optimizer.numbers`): Python floats that its update rule
needs, such as lr or 1 - beta1. Each is a zero-dim tensor beside the parameters, so that setting an
option neither compiles anything nor traces a jitted step again.

State dicts of optimizers in PyTorch's layout: written, and read before anything changes.

Parameters are numbered through all groups: `{"state": {number: {name: tensor}}, "param_groups":
[{option: value, "params": [number, ...]}]}`. A parameter that never took a step has no entry.
"""

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakMethod

from picograd.dtype import DType, float32, float64
from picograd.engine.tracing import (
    RUNNING,
    birth,
    is_born_here,
    note_change,
    note_refusal,
    note_undo,
)
from picograd.errors import DTypeError, GradientError, ShapeError, StateError, ValueRangeError
from picograd.graph.complex_numbers import view_as_complex, view_as_real
from picograd.graph.formula import Formula
from picograd.helpers import Key
from picograd.late_methods import dataclass
from picograd.nn.init import constant_values
from picograd.nn.parameter import as_python, as_tensor, overwrite
from picograd.tensor.core.recording import apply, check_leaf_write, check_write, root_of, write
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.jit_variables import follow, is_followable, plain_of
from picograd.traced_number import TracedNumber

Options = Mapping[str, Any]
Numbers = dict[str, Tensor]
# What schedules keep in a group beside the options of the optimizer.
SCHEDULE_KEYS = ("initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum")
RATES = ("lr", "eps", "weight_decay", "momentum", "lr_decay", "momentum_decay", "rho", "alpha")
ASKED = ("momentum", "weight_decay")  # of which rules ask, on the host, whether they are 0
# What steps recorded, with the numbers of the tensors that it changes: of all optimizers, since
# cross-validation and searches make a new one for each network.
KnownFormula = tuple[Formula, tuple[int, ...], Key]
FORMULAS: dict[Key, KnownFormula] = {}
FORMULA_LIMIT = 64
PAIRS = {"betas": "(0.9, 0.999)", "etas": "(0.5, 1.2)", "step_sizes": "(1e-6, 50)"}
LEFT_OUT = frozenset((*RATES, *PAIRS, *SCHEDULE_KEYS))  # numbers that no rule reads on the host
NO_FLAGS = LEFT_OUT | {"param_names"}


class Expanded(Numbers):
    """This class holds numbers expanded to one shape, each made when it is first read.

    Parameters of equal shape share it, so that a step records an expansion once a shape.
    """

    def __init__(self, numbers: Mapping[str, Tensor], shape: tuple[int, ...]) -> None:
        super().__init__()
        self.numbers = numbers
        self.shape = shape

    def __missing__(self, name: str) -> Tensor:
        self[name] = made = self.numbers[name].expand(self.shape)
        return made


class WeakFormula:
    """This class calls a method of an optimizer without holding the optimizer.

    One that nobody holds is gone at once, with its state; its groups are options alone then.
    """

    def __init__(self, formula: Callable[[Options], dict[str, float]]) -> None:
        self.method = WeakMethod(formula)

    def __call__(self, options: Options) -> dict[str, float]:
        """Compute the numbers that follow from options; none without the optimizer."""
        formula = self.method()
        return {} if formula is None else formula(options)

    def __reduce__(self) -> tuple[Any, ...]:
        return WeakFormula, (self.method(),)


class ParameterGroup(MutableMapping[str, Any]):
    """This class holds parameters that share options; `group["lr"] = x` sets an option.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=0.1)
    >>> optimizer.param_groups[0]["lr"] = 0.5
    >>> optimizer.param_groups[0]["lr"]
    0.5
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        options: Options,
        formula: Callable[[Options], dict[str, float]] | None,
    ) -> None:
        self.birth: Any = birth()
        self.parameters: list[Tensor] = list(parameters)
        # None for an optimizer with a step of its own
        self.formula = None if formula is None else WeakFormula(formula)
        self.host: dict[str, float] = {}  # the numbers as they are on the devices
        self.numbers: dict[tuple[str, DType], Numbers] = {}
        self.read: set[str] = set()  # options that a jitted function read, and no trace follows
        self.tensors: dict[str, tuple[Tensor, int]] = {}  # options given so, and versions read
        if formula is None:  # options of an optimizer with a step of its own
            self.options: dict[str, Any] = dict(options)
            return
        self.options = {name: self.as_number(name, value) for name, value in options.items()}
        check_options(self.options)
        self.host = formula(self.own_options())
        for parameter in self.parameters:
            self.numbers_beside(parameter)

    def numbers_beside(self, parameter: Tensor) -> Numbers:
        """Find the numbers on a parameter's device; float64 for float64, else float32."""
        dtype = math_dtype(parameter)
        key = parameter.device, dtype
        if key not in self.numbers:
            made = {k: filled((), v, parameter.device, dtype) for k, v in self.host.items()}
            self.numbers[key] = made
        return self.numbers[key]

    def __getitem__(self, name: str) -> Any:
        if RUNNING.traces and name in self.options:
            self.follow(name)
        elif name in self.tensors:
            return self.tensors[name][0]
        return self.parameters if name == "params" else self.options[name]

    def as_number(self, name: str, value: Any) -> Any:
        """Read a learning rate that is a tensor, and remember it: it may change in place.

        Numbers of NumPy's, and pairs of them, become Python's, which files may have.
        """
        self.tensors.pop(name, None)
        value = as_python(value)
        if not isinstance(value, Tensor) or value.numel() != 1:
            return value
        if name not in SCHEDULE_KEYS:
            self.tensors[name] = value, value._version
        return value.item()

    def read_tensors(self) -> None:
        """Read options again whose tensors were changed in place; a trace does not see them."""
        changed = {k: x for k, (x, seen) in self.tensors.items() if x._version != seen}
        if changed and not RUNNING.traces:
            self.set_options(changed)

    def follow(self, name: str) -> None:
        """Let a trace follow an option that is a number; else it depends on the value."""
        if is_born_here(self.birth):
            return
        if not follow(self, options_of, name, f"param_groups[...][{name!r}]"):
            self.read.add(name)

    def follow_all(self) -> None:
        """Let a trace follow all options: a rule of the user's own may read any of them."""
        for name in self.options if RUNNING.traces else ():
            self.follow(name)

    def __setitem__(self, name: str, value: Any) -> None:
        """Change an option; what wraps an optimizer may keep numbers of its own here."""
        self.set_options({name: value})

    def __delitem__(self, name: str) -> None:
        if self.formula is not None and name in self.own_options():
            raise ValueRangeError("optim", f"option {name!r} cannot be deleted", "set its value")
        del self.options[name]
        note_change()

    def __iter__(self) -> Iterator[str]:
        return iter(["params", *self.options])

    def __len__(self) -> int:
        return len(self.options) + 1

    def flags(self) -> tuple[str, ...]:
        """List what of the options a rule of picograd's reads on the host."""
        exact = [f"{k} {v!r}" for k, v in self.options.items() if k not in NO_FLAGS]
        return (*exact, *[f"{k} {bool(self.options.get(k))}" for k in ASKED])

    def set_options(self, values: Options, least: float = 0.0) -> None:
        """Change options, and the numbers on the devices that follow from them.

        Schedules may set rates below zero, as a line does that is followed beyond its end.
        """
        if RUNNING.traces:
            self.follow_all()
        if self.formula is None:
            self.options |= values
            note_change()
            return
        given = {name: self.as_number(name, value) for name, value in values.items()}
        if RUNNING.traces and RUNNING.traces[-1].numbers is not None:
            check_options(given, least)
            self.set_traced(given)
            return
        if RUNNING.traces:
            note_refusal(f"the option {', '.join(values)} is set in it")
            note_undo(partial(self.put_back, self.options, self.host))
        check_options({**self.options, **given}, least)
        before_state = self._trace_state()
        before, self.options = self.host, {**self.options, **given}
        if self._trace_state() != before_state:
            note_change()
        self.host = self.formula(self.own_options())
        self.move([name for name, value in self.host.items() if value != before.get(name)])

    def set_traced(self, given: Options) -> None:
        """Change options in a trace: every replay sets them, and writes the numbers on the devices.

        What does not follow from the options that are set is not written.
        """
        made = given.keys() - self.options.keys()
        if made and not is_born_here(self.birth):
            note_refusal(f"the option {', '.join(made)} is made in it")
        before = self.computed()
        self.options.update(given)
        after = self.computed()
        moved = [k for k, v in after.items() if not is_alike(v, before.get(k))]
        for name in moved if not is_born_here(self.birth) else ():
            follow(self, host_of, name, name)
        self.host.update({name: after[name] for name in moved})
        self.move(moved)

    def computed(self) -> dict[str, float]:
        """Compute the numbers that follow from the options."""
        return {} if self.formula is None else self.formula(self.own_options())

    def put_back(self, options: dict[str, Any], host: dict[str, float]) -> None:
        """Give back the options of before a trace that failed; it gives back the tensors itself."""
        self.options, self.host = options, host

    def move(self, names: Sequence[str]) -> None:
        """Write numbers to the devices."""
        pairs = []
        for (device, dtype), numbers in self.numbers.items():
            fresh = {name: filled((), self.host[name], device, dtype) for name in names}
            pairs += [(numbers[name], value) for name, value in fresh.items() if name in numbers]
            numbers.update({k: v for k, v in fresh.items() if k not in numbers})
        overwrite(pairs)

    def _trace_state(self, is_own: bool = False) -> dict[str, Any]:
        """List what a jitted step depends on: not the numbers that the device holds.

        Nor those that a trace follows when they are read: in rules of the user's own, `is_own`, all
        are. Of some, rules only ask whether they are 0.
        """
        options = {name: plain_of(value) for name, value in self.options.items()}
        left = {k for k, v in options.items() if is_followable(v)} if is_own else set(LEFT_OUT)
        left -= self.read
        state = {k: v for k, v in options.items() if k not in left}
        state |= {k: bool(options[k]) for k in ASKED if k in options and k in left}
        return {**state, "params": tuple(id(each) for each in self.parameters)}

    def own_options(self) -> dict[str, Any]:
        """List the options without what schedules keep here."""
        return {k: v for k, v in self.options.items() if k not in SCHEDULE_KEYS}


class Entries(dict[str, Any]):
    """This class holds the state of a parameter; a tensor that is put there tells traces of it.

    They know by themselves when the tensor that they read is gone, but not where others have it.
    """

    def __setitem__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def update(self, *given: Any, **named: Any) -> None:
        """Put values in the place of others."""
        values = dict(*given, **named)
        for name, value in values.items():
            if isinstance(value, Tensor) and self.get(name) is not value:
                note_change()
        super().update(values)


def given_options(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Read the options of a constructor from its `locals()`: all but `self` and `params`."""
    others = ("self", "params", "__class__")
    return {name: value for name, value in parameters.items() if name not in others}


def keep_formula(key: Key, formula: Formula, targets: tuple[int, ...]) -> KnownFormula:
    """Keep what a step recorded for the steps that will record the same."""
    if len(FORMULAS) >= FORMULA_LIMIT:
        FORMULAS.clear()
    FORMULAS[key] = known = formula, targets, key
    return known


def options_of(group: ParameterGroup) -> dict[str, Any]:
    """Give the options of a group."""
    return group.options


def host_of(group: ParameterGroup) -> dict[str, float]:
    """Give the numbers of a group as they are on the devices."""
    return group.host


def is_alike(first: Any, second: Any) -> bool:
    """Tell whether two numbers are one, or one number of a trace."""
    if type(first) is TracedNumber and type(second) is TracedNumber:
        return first.slot == second.slot
    return type(first) is type(second) and bool(first == second)


def filled(shape: tuple[int, ...], value: Any, device: str, dtype: DType) -> Tensor:
    """Fill a tensor with a number; one that is traced is a number of the plan."""
    if type(value) in (TracedNumber, complex):
        return Tensor.full(shape, value, dtype=dtype, device=device)
    return constant_values(shape, value, device, dtype)


def math_dtype(parameter: Tensor) -> DType:
    """Choose the dtype an update computes in: at least float32."""
    return float64 if parameter.dtype.real is float64 else float32


def is_number(value: Any) -> bool:
    """Tell whether an option is a number, and not a flag."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_options(options: Options, least: float = 0.0) -> None:
    """Raise unless rates are numbers of at least `least` and betas lie in [0, 1).

    Below 0 any pair will do, as it does for schedules.
    """
    for name in RATES:
        check_rate(name, options.get(name, 0.0), least)
    for name, example in PAIRS.items():
        value = options.get(name, (0.0, 0.5))
        if least >= 0.0 and not is_pair(name, value):
            problem = f"{name}={value} are not in [0, 1)"
            if name == "etas":
                problem = f"etas={value} are not 0 < etaminus < 1 < etaplus"
            elif name == "step_sizes":
                problem = f"step_sizes={value} are no pair of numbers"
            raise ValueRangeError("optim", problem, f"use {example}")
    if options.get("foreach") and options.get("fused"):
        problem = "foreach and fused cannot both be True"
        raise ValueRangeError("optim", problem, "leave both out: a step is always fused")


def is_pair(name: str, value: Any) -> bool:
    """Tell whether an option of two numbers is what its name asks for."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        return False
    if not all(is_number(each) for each in value):
        return False
    if name == "etas":
        return bool(0.0 < value[0] < 1.0 < value[1]) or tuple(value) == (0.0, 0.5)
    return name != "betas" or all(0.0 <= beta < 1.0 for beta in value)


def check_rate(name: str, value: Any, least: float = 0.0) -> None:
    """Raise unless a rate is a number of at least `least`."""
    if not is_number(value):
        problem = f"{name} must be a number, not {type(value).__name__}"
        raise DTypeError("optim", problem, "pass a float")
    if not value >= least:  # NaN too
        what = "negative" if value < 0.0 else "not a number"
        raise ValueRangeError("optim", f"{name}={value} is {what}", "use 0 or more")


def check_members(members: Sequence[Any], seen: set[int], is_any: Any = False) -> None:
    """Raise unless the members of a group are floating leaves (or any) that no other group has."""
    if not members:
        raise ValueRangeError("optim", "a parameter group is empty", "pass at least one tensor")
    for member in members:
        if not isinstance(member, Tensor):
            problem = f"cannot train a {type(member).__name__}"
            raise DTypeError("optim", problem, "pass floating tensors")
        if not member.dtype.is_differentiable:
            raise ValueRangeError("optim", f"cannot train {member!r}", "pass floating tensors")
        if not (is_any or member.is_leaf):
            problem = "a parameter was computed from others"
            raise ValueRangeError("optim", problem, "pass leaf tensors, such as nn.Parameter")
        if id(member) in seen:
            problem = "a parameter is in two groups"
            raise ValueRangeError("optim", problem, "pass each one once")
    if len(set(map(id, members))) < len(members):
        problem = "optim: a parameter appears twice in a group, and is updated twice in a step"
        warnings.warn(problem, stacklevel=4)


@dataclass(slots=True)
class Batch:
    """Parameters of a group that are updated alike: one device, one dtype, one step count."""

    members: list[Tensor]
    dtype: DType
    numbers: Numbers
    shared: dict[str, Tensor]
    states: list[dict[str, Any]]  # of the members


Turns = Mapping[int, Sequence[int]]  # in which turns a parameter is updated, by its identity


def turns_of(groups: Iterable[ParameterGroup]) -> Turns:
    """Number the parameters that show one memory, by identity; none where none does.

    Each adds to what the one before made of it, as in PyTorch: tied weights are such, and what a
    group lists twice. Parts of one memory wait for what shows all of it alone.
    """
    members = [each for group in groups for each in group.parameters]
    if all(each._view is None for each in members) and len(set(map(id, members))) == len(members):
        return {}
    last: dict[int, tuple[int, bool]] = {}  # by the memory: a turn, and whether it wrote all of it
    turns: dict[int, list[int]] = {}
    for each in members:
        root = root_of(each)
        is_whole = root._node.size == each._node.size
        turn, was_whole = last.get(id(root), (-1, True))
        turn += is_whole or was_whole
        turns.setdefault(id(each), []).append(turn)
        last[id(root)] = turn, is_whole
    return turns if any(map(any, turns.values())) else {}


def in_parts(tensor: Tensor, dtype: DType, is_tracked: Any = False) -> Tensor:
    """Give what an update computes with: complex numbers are trained as their parts are."""
    value = tensor.clone() if is_tracked else tensor.detach()
    if value.dtype.is_complex:
        value = apply(view_as_real, value)
    return value.cast(dtype)


def of_parts(value: Tensor, like: Tensor) -> Tensor:
    """Give a new value back to a tensor, which may be complex."""
    return apply(view_as_complex, value.cast(like.dtype.real)) if like.dtype.is_complex else value


def write_tracked(changed: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Write what a step gave that gradients pass through: `differentiable=True`."""
    for tensor, value in changed:
        check_leaf_write("step", tensor)
        node = value.node.cast(tensor.dtype)
        check_write("step", tensor, node)
        write(tensor, node, value.requires_grad)


def gradient_of(parameter: Tensor) -> Tensor:
    """Read the gradient of a parameter. Raises ShapeError if it does not fit."""
    found = parameter.grad
    if found is None:
        raise GradientError("optim", "a gradient disappeared", "do not clear it meanwhile")
    gradient: Tensor = found
    if gradient._node.shape != parameter._node.shape:
        problem = f"gradient {gradient.shape} does not fit its parameter {parameter.shape}"
        raise ShapeError("optim", problem, "give them the same shape")
    return gradient


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
    known_as: dict[int, int] = {}  # the first number of a parameter, by its identity
    number = 0
    for group in groups:
        own = enumerate(group.parameters, number)
        numbers = [known_as.setdefault(id(parameter), at) for at, parameter in own]
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


def read_groups(params: Any) -> list[dict[str, Any]]:
    """Read tensors, (name, tensor) pairs, or dicts with "params" and options, into groups."""
    if not isinstance(params, Iterable) or isinstance(params, Tensor):
        problem = f"a {type(params).__name__} is no list of parameters"
        raise DTypeError("optim", problem, "pass model.parameters(), or a list of tensors")
    items: list[Any] = list(params)
    if not items:
        raise ValueRangeError("optim", "there are no parameters", "pass model.parameters()")
    return items if isinstance(items[0], Mapping) else [{"params": items}]


def read_members(params: Any) -> tuple[list[Any], list[str]]:
    """Read the tensors of a group, and their names if they were given in pairs."""
    if isinstance(params, (set, frozenset)):
        raise DTypeError("optim", "a set of parameters has no order", "pass a list")
    members = [params] if isinstance(params, Tensor) else list(params)
    named = [member for member in members if isinstance(member, tuple)]
    if named and len(named) != len(members):
        problem = "some parameters have names and some have not"
        raise ValueRangeError("optim", problem, "pass model.named_parameters()")
    names = [str(name) for name, _ in named]
    return ([member for _, member in named] if named else members), names
