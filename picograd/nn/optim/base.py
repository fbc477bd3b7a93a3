"""The base of optimizers: groups, steps, gradients, state dicts.

An optimizer is four small functions: `slots` (state per parameter), `shared` (numbers that count
steps), `numbers` (what of the options lives on the device) and `update`, the formula of its paper.
All updates of one step are recorded and realised together, so that they share a kernel; what was
recorded once is stamped out at later steps (`graph/formula.py`), unless a subclass of a user's
decides at each step. State is made at a parameter's first step; parameters that step together
share their step count.

A subclass may instead define `step`, as optimizers written for PyTorch do: its options and state
are its own, `self.state[p]` begins as an empty dict, and nothing is checked or put on the device.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from picograd.engine.collector import undisturbed
from picograd.engine.pending import compute_starts, compute_updates, locked
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import buffer_to_numpy
from picograd.engine.tracing import (
    RUNNING,
    birth,
    is_born_here,
    note_change,
    note_kept,
    note_object,
    note_undo,
)
from picograd.engine.update import Update
from picograd.errors import DTypeError, MemberError, ValueRangeError
from picograd.graph.formula import Formula, formula_of
from picograd.graph.node import Node
from picograd.helpers import Key
from picograd.nn.init import constant_values
from picograd.nn.optim.group import (
    FORMULAS,
    Batch,
    Entries,
    Expanded,
    Loaded,
    Numbers,
    Options,
    ParameterGroup,
    check_members,
    export_state,
    filled,
    gradient_of,
    import_own,
    import_state,
    in_parts,
    is_number,
    keep_formula,
    math_dtype,
    of_parts,
    read_groups,
    read_members,
    turns_of,
    write_tracked,
)
from picograd.nn.optim.hooks import Hooked, hooked
from picograd.nn.parameter import overwrite, realize
from picograd.number import converted
from picograd.tensor.core.alone import change_gradient
from picograd.tensor.core.autograd import enable_grad
from picograd.tensor.core.following import following
from picograd.tensor.core.recording import check_write, is_plain, write
from picograd.tensor.tensor import Tensor
from picograd.traced_number import value_of

Slots = dict[str, Tensor]
Change = tuple[Tensor, Node]  # and its new value
Result = tuple[Tensor, Slots]


class Optimizer(Hooked):
    """This class is the base of optimizers; see the module docstring.

    `params` are tensors, (name, tensor) pairs, or dicts with "params" and options of their own.

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.SGD([x], lr=0.1)
    >>> optimizer.param_groups[0]["lr"]
    0.1
    """

    # State that only this process needs, with its value after the first step.
    hidden: Mapping[str, float] = {}
    # What `slots` and `shared` give, where no option changes it.
    _slots: Mapping[str, float] = {}
    _shared: Mapping[str, float] = {}
    is_formula: bool = True  # steps by `update`, rather than by a `step` of its own

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" not in vars(cls):
            return
        cls.step = hooked(cls.step)  # type: ignore[method-assign]
        if cls.update is Optimizer.update and "is_formula" not in vars(cls):
            cls.is_formula = False

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self._birth = birth()
        self.defaults: dict[str, Any] = dict(defaults)
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(Entries)
        self.param_groups: list[ParameterGroup] = []
        self.found_inf: Tensor | None = None  # set by GradScaler: a true value skips the step
        for group in read_groups(params):
            self.add_param_group(group)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        note_change()

    def _trace_state(self) -> dict[str, Any]:
        """List what a trace of `picograd.jit` in which this optimizer steps may depend on."""
        is_own = self.is_own_rule()
        hooks = self._hooks.identities() if self._hooks else ()
        state = {**self.__dict__, "is_formula": self.is_formula, "_hooks": hooks}
        for number, group in enumerate(self.param_groups):
            found = group._trace_state(is_own)
            values = [v for p in group.parameters for v in dict(self.state.get(p, ())).values()]
            state[f"state of group {number}"] = tuple(
                each if isinstance(each, (int, float, str)) else id(each) for each in values
            )
            state |= {f"param_groups[{number}][{k!r}]": value for k, value in found.items()}
        return state

    def is_own_rule(self) -> bool:
        """Tell whether the rule is the user's: it may read any option on the host."""
        return not (self.is_formula and type(self).__module__.startswith("picograd."))

    def slots(self, options: Options) -> dict[str, float]:
        """Name the state of one parameter, tensors of its shape, with the value they start from."""
        return dict(self._slots)

    def shared(self, options: Options) -> dict[str, float]:
        """Name the zero-dim state of parameters that step together, with its first values."""
        return dict(self._shared)

    def numbers(self, options: Options) -> dict[str, float]:
        """Compute, on the host, the numbers that `update` reads from the device."""
        numbers = {
            name: converted(float, value) for name, value in options.items() if is_number(value)
        }
        if "weight_decay" in numbers:
            numbers["keep"] = 1.0 - numbers["lr"] * numbers["weight_decay"]
        return numbers

    def prepare(self, n: Numbers, shared: Slots) -> tuple[Numbers, Slots]:
        """Record what is computed once a step: more numbers, and the new shared state."""
        return n, {name: value + 1.0 for name, value in shared.items()}

    def decay(self, p: Tensor, g: Tensor, n: Numbers, options: Options) -> tuple[Tensor, Tensor]:
        """Apply weight decay: to the gradient g, or with `decoupled_weight_decay` to p."""
        if not options.get("weight_decay") or "weight_decay" not in self.defaults:
            return p, g
        if options.get("decoupled_weight_decay"):
            return p * n["keep"], g
        return p, g + p * n["weight_decay"]

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula: the new value of a parameter p with gradient g, and its new state.

        All tensors have the parameter's shape, numbers too.
        """
        raise NotImplementedError

    @property
    def lr(self) -> float:
        """Learning rate of the first group; assigning sets it for every group."""
        return converted(float, self.param_groups[0]["lr"])

    @lr.setter
    def lr(self, value: float) -> None:
        for group in self.param_groups:
            group["lr"] = value

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Train more parameters, with options of their own: `{"params": tensors, "lr": 0.1}`."""
        fix = 'write {"params": tensors, "lr": 0.1}'
        if not isinstance(param_group, Mapping):
            raise DTypeError("optim", f"a parameter group is a {type(param_group).__name__}", fix)
        if "params" not in param_group:
            raise MemberError("optim", "a parameter group has no 'params'", fix)
        members, names = read_members(param_group["params"])
        options = {**self.defaults, **{k: v for k, v in param_group.items() if k != "params"}}
        if names:
            options["param_names"] = names
        if any(("param_names" in group) != bool(names) for group in self.param_groups):
            problem = "some groups have names of their parameters and some have not"
            raise ValueRangeError("optim", problem, "pass model.named_parameters() for all")
        seen = {id(p) for group in self.param_groups for p in group.parameters}
        check_members(members, seen, options.get("differentiable"))
        formula = self.numbers if self.is_formula else None
        self.param_groups.append(ParameterGroup(members, options, formula))
        note_change()

    def _cuda_graph_capture_health_check(self) -> None:
        """Check nothing: copies of PyTorch's optimizers call it."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or overwrite them with zeros."""
        usual, is_unseen = Tensor.grad, set_to_none and not RUNNING.traces
        for group in self.param_groups:
            for parameter in group.parameters:
                if is_unseen and type(parameter).grad is usual:  # no class of the user's is asked
                    parameter._grad = None
                elif set_to_none or parameter.grad is None:
                    parameter.grad = None
                else:
                    parameter.grad.detach_()
                    change_gradient(parameter, Tensor.zeros_like)

    @hooked
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient, in one realisation.

        `closure` computes the loss again, with its gradients; its value is returned. Without any
        gradient nothing happens.

        >>> from picograd import Tensor, nn
        >>> weight = nn.Parameter(Tensor([1.0, 2.0]))
        >>> (weight * 3.0).sum().backward()
        >>> nn.optim.SGD([weight], lr=0.1).step()
        >>> [round(value, 3) for value in weight.tolist()]
        [0.7, 1.7]
        """
        loss = None
        note_object(self)
        if closure is not None:
            with enable_grad():
                loss = closure()
        if not self.state and not RUNNING.traces:
            self._store_parameters()
        for group in self.param_groups:
            if group.tensors:
                group.read_tensors()
        self._update()
        return loss

    @undisturbed
    @locked
    @following
    def _update(self) -> bool:
        """Record the update of every group, and write it; tells whether by updates alone."""
        turns = turns_of(self.param_groups)
        is_usual = False
        for group in self.param_groups:
            if self.is_own_rule():
                group.follow_all()
        for turn in sorted({0, *chain.from_iterable(turns.values())}):
            found: list[tuple[ParameterGroup, Batch]] = []
            for group in self.param_groups:
                found += [(group, batch) for batch in self._batches(group, turns, turn)]
            is_usual = self._write([self._record(*each) for each in found])
        return is_usual and not turns

    def _write(self, recorded: Sequence[Update | list[Change]]) -> bool:
        """Compute a step and write what it changes: by a node each, unless all are updates."""
        updates = [each for each in recorded if isinstance(each, Update)]
        if len(updates) == len(recorded) > 0 and compute_updates(updates):
            return True
        pairs = [each.pairs() if isinstance(each, Update) else each for each in recorded]
        if changed := list(chain.from_iterable(pairs)):
            realize(self._assign(changed))
        return False

    def _store_parameters(self) -> None:
        """Compute what parameters begin with before the first step.

        Else it would be part of the step's plan, which no other step has, and a loss that is read
        after the step would compute it, and itself, again. What the forward pass wrote (statistics)
        waits for the step: alone it would be a forward pass of its own.
        """
        members = [each for group in self.param_groups for each in group.parameters]
        pending = [each.node for each in members if leaf_buffer(each.node) is None]
        if pending:
            compute_starts(pending)

    def _assign(self, changed: list[Change]) -> list[Tensor]:
        """Record the in-place writes."""
        for tensor, node in changed:
            node = node.cast(tensor.dtype)
            check_write("step", tensor, node)
            write(tensor, node, False, is_one=False)
        return [tensor for tensor, _ in changed]

    def _batches(self, group: ParameterGroup, turns: Mapping[int, Any], turn: int) -> list[Batch]:
        """Sort the due that have a gradient into batches, making state that is missing."""
        each_once = list(dict.fromkeys(group.parameters)) if turns else group.parameters
        names = list(self.shared(group.options))
        wanted = {*names, *self.slots(group.options)}
        states = [self.state.get(parameter, {}) for parameter in each_once]
        keys = [tuple([id(s[name]) for name in names if name in s]) for s in states]
        owners = Counter(keys)
        is_traced = bool(RUNNING.traces)
        kinds = {parameter._node.dtype: parameter for parameter in each_once}
        dtypes = {dtype: math_dtype(parameter) for dtype, parameter in kinds.items()}
        sorted_members: dict[Any, list[Tensor]] = {}
        complete: dict[int, dict[str, Any]] = {}  # states, by the identity of the parameter
        for parameter, state, key in zip(each_once, states, keys):
            is_due = not turns or turn in turns.get(id(parameter), (0,))
            if is_due and (parameter.grad if is_traced else parameter._grad) is not None:
                node = parameter._node
                kind = node.device, dtypes[node.dtype], key
                sorted_members.setdefault(kind, []).append(parameter)
            if wanted <= state.keys():
                complete[id(parameter)] = state
        batches = []
        for (_, dtype, key), members in sorted_members.items():
            is_whole = bool(key) and len(members) == owners[key]
            shared = self._shared_state(group, members[0], is_whole)
            for parameter in members:
                if is_traced or not is_whole or id(parameter) not in complete:
                    self.make_state(group, parameter, shared)
                    complete[id(parameter)] = self.state[parameter]
            own = [complete[id(parameter)] for parameter in members]
            numbers = group.numbers_beside(members[0])
            batches.append(Batch(members, dtype, numbers, shared, own))
        return batches

    def _shared_state(self, group: ParameterGroup, member: Tensor, is_whole: bool) -> Slots:
        """Find the shared state of a batch; parameters that stepped less get their own copy."""
        state, start = self.state.get(member, {}), self.shared(group.options)
        if is_whole and all(name in state for name in start):
            return {name: state[name] for name in start}
        values = {k: _host_value(state[k]) if k in state else v for k, v in start.items()}
        return scalars_beside(self, member, values)

    def make_state(self, group: ParameterGroup, parameter: Tensor, shared: Slots) -> None:
        """Give a parameter the state it lacks."""
        if RUNNING.traces and not is_born_here(self._birth):
            before = Entries(self.state.get(parameter, {}))
            note_undo(partial(put_back, self.state, parameter, before))
        state = self.state[parameter]
        state.update(shared)
        for name, value in self.slots(group.options).items():
            if name not in state:
                is_own = is_born_here(self._birth)  # else later calls find it as it is then
                start = value if is_own else value_of(value)
                if parameter.dtype.is_complex:
                    start = complex(start, start)
                state[name] = filled(parameter.shape, start, parameter.device, parameter.dtype)
                self.note_state(state[name])

    def note_state(self, tensor: Tensor) -> None:
        """Let later calls of a jitted function find state; an optimizer made in it has its own."""
        note_kept(tensor, self if is_born_here(self._birth) else None)

    def _record(self, group: ParameterGroup, batch: Batch) -> Update | list[Change]:
        """Record the update of one batch, of parameters and state.

        The rules of picograd compute the same at every step: what was recorded is stamped out.
        """
        if group.options.get("differentiable"):
            with enable_grad():
                write_tracked(self._recorded(group, batch))
            return []
        sources = self._sources(group, batch)
        nodes = [tensor._node for tensor in sources]
        if self.is_own_rule() or not is_plain(nodes):
            return [(tensor, value.node) for tensor, value in self._recorded(group, batch)]
        kinds = [(node.shape, node.dtype.name, node.device) for node in nodes]
        kind: Any = type(self)
        rule = kind, kind.prepare, kind.decay, kind.update
        key = Key((*rule, group.flags(), tuple(batch.numbers), tuple(kinds)))
        known = FORMULAS.get(key)
        if known is None:
            changed = [(tensor, value.node) for tensor, value in self._recorded(group, batch)]
            found = formula_of(nodes, [value for _, value in changed])
            if found is None:
                return changed
            numbers = {id(tensor): number for number, tensor in enumerate(sources)}
            targets = tuple([numbers[id(tensor)] for tensor, _ in changed])
            known = keep_formula(key, found, targets)
        return stamped(*known, sources, nodes)

    def _sources(self, group: ParameterGroup, batch: Batch) -> list[Tensor]:
        """List the tensors that the update of a batch reads, those that it changes among them."""
        sources = [*batch.numbers.values(), *batch.shared.values(), *batch.members]
        for name in self.slots(group.options):
            sources += [state[name] for state in batch.states]
        return [*sources, *map(gradient_of, batch.members), *self._found(batch)]

    def _found(self, batch: Batch) -> list[Tensor]:
        """Give what tells whether the step is to be skipped, where a batch is; or nothing."""
        return [] if self.found_inf is None else [self.found_inf.to(batch.members[0].device)]

    def _recorded(self, group: ParameterGroup, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        """Record the update of one batch by the formula of the class."""
        options, names = group.options, list(self.slots(group.options))
        is_tracked = options.get("differentiable")
        numbers, new_shared = self.prepare(batch.numbers, batch.shared)
        changed = [(batch.shared[name], value) for name, value in new_shared.items()]
        expanded: dict[tuple[int, ...], Numbers] = {}
        for parameter in batch.members:
            gradient = in_parts(gradient_of(parameter), batch.dtype, is_tracked)
            n = expanded.setdefault(gradient.shape, Expanded(numbers, gradient.shape))
            gradient = -gradient if options.get("maximize") else gradient
            own = {name: self.state[parameter][name] for name in names}
            wide = {k: in_parts(x, batch.dtype, is_tracked) for k, x in own.items()}
            value = in_parts(parameter, batch.dtype, is_tracked)
            value, gradient = self.decay(value, gradient, n, options)
            value, new = self.update(value, gradient, wide, n, options)
            changed += [(own[name], of_parts(new[name], own[name])) for name in own]
            changed.append((parameter, of_parts(value, parameter)))
        for found in self._found(batch):
            pairs, changed = changed, []
            for tensor, value in pairs:
                kept = tensor.detach().where(found, value)
                changed.append((tensor, kept))
        return changed

    def state_dict(self) -> dict[str, Any]:
        """Describe state and options in PyTorch's layout, for `nn.save` or another optimizer.

        `{"state": {0: {"step": ...}, ...}, "param_groups": [{"lr": ..., "params": [0, ...]}]}`.
        """
        self._replaced("state_before")
        state = export_state(self.state, self.param_groups, self.hidden)
        return self._replaced("state_after", state)  # type: ignore[no-any-return]

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state dict: of this class, or of PyTorch's with arrays for tensors.

        Raises StateError, with nothing changed, if it does not fit.
        """
        state_dict = self._replaced("load_before", copy(state_dict))
        if self.is_formula:
            self._load_all(import_state(state_dict, self.param_groups))
        else:
            import_own(state_dict, self.param_groups, self.state)
        self._replaced("load_after")

    def _load_all(self, found: Sequence[Loaded]) -> None:
        """Write options and values that were read over those of all groups."""
        pairs: list[tuple[Tensor, Tensor]] = []
        for group, loaded in zip(self.param_groups, found):
            group.set_options(loaded.options, -math.inf)
            together: dict[Any, Slots] = {}
            for parameter, values in zip(group.parameters, loaded.values):
                if values is None:
                    pairs += self._reset(group, parameter)
                    continue
                pairs += self._load(group, parameter, values, together)
        overwrite(pairs)

    def _reset(self, group: ParameterGroup, parameter: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Give a parameter that the loaded state does not know the state of the beginning."""
        start = {**self.shared(group.options), **self.slots(group.options)}
        state = self.state.get(parameter, {})
        return [
            (state[name], constant_values(state[name].shape, value, parameter.device))
            for name, value in start.items()
            if name in state
        ]

    def _load(
        self,
        group: ParameterGroup,
        parameter: Tensor,
        values: dict[str, Tensor],
        together: dict[Any, Slots],
    ) -> list[tuple[Tensor, Tensor]]:
        """Write loaded values over a parameter's state, in place where there is one."""
        start = self.shared(group.options)
        numbers = {name: self.hidden.get(name, first) for name, first in start.items()}
        numbers |= {name: float(values[name].item()) for name in start if name in values}
        key = parameter.device, math_dtype(parameter), tuple(numbers.values())
        if key not in together:
            held = self.state.get(parameter, {})
            taken = {id(tensor) for shared in together.values() for tensor in shared.values()}
            own = {k: t for k, t in held.items() if id(t) not in taken}
            fresh = scalars_beside(self, parameter, numbers)
            together[key] = {name: own.get(name, tensor) for name, tensor in fresh.items()}
        self.state[parameter].update(together[key])
        self.make_state(group, parameter, together[key])
        pairs = [(together[key][name], Tensor.of(number)) for name, number in numbers.items()]
        slots = self.slots(group.options)
        return pairs + [
            (self.state[parameter][name], value) for name, value in values.items() if name in slots
        ]

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines += ([""] if number else []) + [f"Parameter Group {number}"]
            lines += [f"    {name}: {group.options[name]}" for name in sorted(group.options)]
        return "\n".join([*lines, ")"])


def stamped(
    formula: Formula, targets: tuple[int, ...], kind: Key, sources: list[Tensor],
    nodes: Sequence[Node],
) -> Update | list[Change]:  # fmt: skip
    """Record by a formula what a step computes of the sources: each target, its new value."""
    tensors = [sources[number] for number in targets]
    if formula.is_plain:
        return Update(formula.over(nodes), targets, tensors, kind, sources)
    return list(zip(tensors, formula.stamp(nodes)))


def put_back(
    state: dict[Tensor, dict[str, Any]], parameter: Tensor, before: dict[str, Any]
) -> None:
    """Give a parameter the state that it had before a trace that failed."""
    state.pop(parameter, None)
    if before:
        state[parameter] = before


def scalars_beside(optimizer: Optimizer, member: Tensor, values: Mapping[str, float]) -> Slots:
    """Put numbers of an optimizer's state on a parameter's device."""
    dtype = math_dtype(member)
    made = {
        name: constant_values((), value, member.device, dtype) for name, value in values.items()
    }
    for tensor in made.values():
        optimizer.note_state(tensor)
    return made


def _host_value(tensor: Tensor) -> float:
    """Read a computed number, also while `jit` traces."""
    buffer = leaf_buffer(tensor.node)
    array = tensor.numpy() if buffer is None else buffer_to_numpy(buffer, tensor.shape)
    return float(np.asarray(array).reshape(-1)[0])
