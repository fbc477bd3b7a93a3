"""Hooks of modules: functions called around `forward`, gradients, and state dicts.

Hooks of state dicts change in place what they are shown. Any other hook that returns something
other than None replaces what it was shown. Backward hooks sit on identities around `forward`: one
on its tensors, one on its results. Gradients are graphs here, so they run while `backward` records,
and see lazy tensors.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from importlib import import_module
from typing import Any

from picograd.engine.tracing import note_change
from picograd.errors import DTypeError, GradientError, StateError
from picograd.graph.build import detach
from picograd.late_methods import dataclass
from picograd.tensor.core.autograd import led
from picograd.tensor.core.gradient_hooks import NUMBERS, HookHandle
from picograd.tensor.core.recording import note_view, wrap
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.custom import Function

Hook = Callable[..., Any]
React = Callable[[list[Tensor]], Sequence[Tensor | None]]


class Kind(dict[int, Hook]):
    """This class holds the hooks of one kind in calling order, and the numbers of what is asked."""

    def __init__(self) -> None:
        self.with_kwargs: set[int] = set()
        self.always_call: set[int] = set()

    def add(self, number: int, hook: Hook, with_kwargs: bool, always_call: bool) -> None:
        """Keep a hook."""
        self[number] = hook
        asked = (self.with_kwargs, with_kwargs), (self.always_call, always_call)
        for numbers, is_asked in asked:
            (numbers.add if is_asked else numbers.discard)(number)


@dataclass
class Hooks:
    """This class holds the hooks of one module, each kind in calling order."""

    before: Kind = field(default_factory=Kind)
    after: Kind = field(default_factory=Kind)
    gradient_before: Kind = field(default_factory=Kind)
    gradient: Kind = field(default_factory=Kind)
    state_before: Kind = field(default_factory=Kind)
    state_after: Kind = field(default_factory=Kind)
    load_before: Kind = field(default_factory=Kind)
    load_after: Kind = field(default_factory=Kind)

    def identities(self) -> tuple[int, ...]:
        """Name the hooks around `forward` and its gradient, in order."""
        kinds = (self.before, self.after, self.gradient_before, self.gradient)
        return tuple(number for kind in kinds for number in kind)

    def functions(self) -> list[Hook]:
        """List the functions around `forward` and its gradient."""
        kinds = (self.before, self.after, self.gradient_before, self.gradient)
        return [hook for kind in kinds for hook in kind.values()]


EVERY, NONE = Hooks(), Hooks()  # those of all modules; none
REGISTRATION = {kind: Kind() for kind in ("parameter", "module", "buffer")}  # of members


class Shown:
    """This class shows the hooks of one kind under PyTorch's name; a dict replaces them.

    >>> import picograd
    >>> layer = picograd.nn.Linear(2, 2)
    >>> handle = layer.register_forward_hook(print)
    >>> layer._forward_hooks.clear()
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __get__(self, module: Any, owner: type) -> Any:
        return self if module is None else getattr(module._own_hooks(), self.kind)

    def __set__(self, module: Any, hooks: dict[int, Any]) -> None:
        kind = getattr(module._own_hooks(), self.kind)
        kind.clear()
        note_change()
        for hook in list(hooks.values()):
            register(kind, hook)


def register(
    kind: Kind,
    hook: Hook,
    prepend: bool = False,
    with_kwargs: bool = False,
    always_call: bool = False,
) -> HookHandle:
    """Add a hook behind, or before, those of its kind."""
    if not callable(hook):
        problem = f"the hook is a {type(hook).__name__}"
        raise DTypeError("register_hook", problem, "pass a function")
    last = max(kind, default=-1)  # a copy has those of its module
    number = max(next(NUMBERS), 1 + last)
    others = dict(kind)
    note_change()
    kind.add(number, hook, with_kwargs, always_call)
    if prepend:
        for other in others:
            kind[other] = kind.pop(other)
    return HookHandle(kind, number)


def register_before_loading(module: Any, hook: Hook, with_module: bool = False) -> HookHandle:
    """Add a hook before loading, which is shown the module only where that is asked for."""
    shown = hook if with_module else WithoutModule(hook)
    return module.register_load_state_dict_pre_hook(shown)


def register_after_saving(module: Any, hook: Hook) -> HookHandle:
    """Add a hook once a state is written, whose answer takes the place of all of it."""
    return module.register_state_dict_post_hook(Replacing(hook))


@dataclass(frozen=True)
class Replacing:
    """This class makes a state what a hook answered, unless that is None."""

    hook: Hook

    def __call__(self, module: Any, state: Any, *rest: Any) -> None:
        """Call the hook."""
        answer = self.hook(module, state, *rest)
        if answer is not None and answer is not state:
            found = dict(answer)
            state.clear()
            state.update(found)


@dataclass(frozen=True)
class WithoutModule:
    """This class calls a hook without the module it belongs to; it can be pickled if that can."""

    hook: Hook

    def __call__(self, module: Any, *rest: Any) -> Any:
        """Call the hook."""
        return self.hook(*rest)


def tell(kind: Kind, *shown: Any) -> None:
    """Call hooks that change in place what they are shown, whatever they return."""
    for hook in list(kind.values()):
        hook(*shown)


def show(kind: Kind, op: str, *shown: Any) -> None:
    """Call hooks that change in place what they are shown; what they return would be lost."""
    for hook in list(kind.values()):
        if hook(*shown) is not None:
            problem = "a hook returned a value"
            raise StateError(op, problem, "change in place what the hook is given")


def of_every_module(kind: str) -> Callable[..., HookHandle]:
    """Make the function that registers a hook of all modules, called before a module's own.

    >>> from picograd.nn.modules.module import register_module_forward_hook
    >>> handle = register_module_forward_hook(lambda module, inputs, output: print(module))
    >>> output = picograd.nn.ReLU()(Tensor([1.0]))
    ReLU()
    >>> handle.remove()
    """

    def add(hook: Hook, *, with_kwargs: bool = False, always_call: bool = False) -> HookHandle:
        """Call a hook around `forward`, or the gradient, of every module."""
        base: Any = import_module("picograd.nn.module").Module
        base._hooks = EVERY
        return register(getattr(EVERY, kind), hook, False, with_kwargs, always_call)

    return add


def of_registration(kind: str) -> Callable[[Hook], HookHandle]:
    """Make the function that registers a hook of all members of a kind.

    >>> from picograd.nn.modules.module import register_module_parameter_registration_hook
    >>> handle = register_module_parameter_registration_hook(lambda *shown: print(shown[1]))
    >>> layer = picograd.nn.Linear(2, 3)
    weight
    bias
    >>> handle.remove()
    """

    def add(hook: Hook) -> HookHandle:
        """Call hook(module, name, member) before a module gets one; a result replaces it."""
        return register(REGISTRATION[kind], hook)

    return add


def at_registration(kind: str, module: Any, name: str, value: Any) -> Any:
    """Call the hooks of all members of a kind; give what the module shall have."""
    for hook in list(REGISTRATION[kind].values()) if kind else ():
        answer = hook(module, name, value)
        value = value if answer is None else answer
    return value


def at_assignment(module: Any, name: str, value: Any) -> Any:
    """Call the hooks of what an assignment registers: a parameter, a module or a buffer."""
    base: Any = import_module("picograd.nn.module")
    kinds = {"parameter": base.Parameter, "module": base.Module, "buffer": base.Buffer}
    known = [kind for kind, members in kinds.items() if isinstance(value, members)]
    kind = "buffer" if name in module._persistence else known[0] if known else ""
    return at_registration(kind, module, name, value)


def joined(hooks: Hooks) -> Hooks:
    """Put those of all modules before a module's own."""
    kinds = ("before", "after", "gradient_before", "gradient")
    whole = Hooks()
    for kind in kinds:
        found = getattr(whole, kind)
        for part in (getattr(EVERY, kind), getattr(hooks, kind)):
            for number, hook in part.items():
                asked = number in part.with_kwargs, number in part.always_call
                found.add(len(found), hook, *asked)
    return whole


def call(module: Any, hooks: Hooks, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a module's forward and its hooks."""
    result = None
    if hooks is not EVERY and EVERY != NONE:
        hooks = joined(hooks)
    called: set[int] = set()
    try:
        inputs, options = _before(module, hooks, inputs, options)
        watch = Watch(module, hooks, len(inputs))
        is_watched = bool(hooks.gradient or hooks.gradient_before)
        if is_watched:
            inputs = watch.enter(inputs)
        result = module.forward(*inputs, **options)
        for number, hook in list(hooks.after.items()):
            called.add(number)
            inside = (inputs, options) if number in hooks.after.with_kwargs else (inputs,)
            result = _after(hook, module, *inside, result)
        return watch.leave(result) if is_watched else result
    except Exception:
        for number in sorted(hooks.after.always_call & set(hooks.after) - called):
            inside = (inputs, options) if number in hooks.after.with_kwargs else (inputs,)
            _after(hooks.after[number], module, *inside, result)
        raise


def _before(
    module: Any, hooks: Hooks, inputs: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    for number, hook in list(hooks.before.items()):
        if number in hooks.before.with_kwargs:
            answer = hook(module, inputs, options)
            if answer is not None:
                inputs, options = answer
            continue
        answer = hook(module, inputs)
        if answer is not None:
            inputs = answer if isinstance(answer, tuple) else (answer,)
    return inputs, options


def _after(hook: Hook, *shown: Any) -> Any:
    """Call a hook with what it is shown, the result last; give the result, or its answer."""
    answer = hook(*shown)
    return shown[-1] if answer is None else answer


class Watch:
    """This class brings the gradients of a call's results and of its inputs together."""

    def __init__(self, module: Any, hooks: Hooks, count: int) -> None:
        self.module = module
        self.hooks = hooks
        self.count = count
        self.has_inputs: bool = False
        self.gradients: tuple[Any, ...] = ()  # of the results

    def enter(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Put the identity on the inputs that track gradients."""
        places = _tracking(inputs)
        self.has_inputs = bool(places)

        def react(found: list[Tensor]) -> Sequence[Tensor | None]:
            replaced = self._run(_spread(found, places, len(inputs)))
            return [replaced[place] for place in places]

        return _watched(inputs, places, react)

    def leave(self, result: Any) -> Any:
        """Put the identity on the results that track gradients."""
        results = result if isinstance(result, tuple) else (result,)
        places = _tracking(results)

        def react(found: list[Tensor]) -> Sequence[Tensor | None]:
            gradients = _spread(found, places, len(results))
            for hook in list(self.hooks.gradient_before.values()):
                gradients = _replaced(hook(self.module, gradients), gradients)
            self.gradients = gradients
            if not self.has_inputs:
                self._run((None,) * self.count)
            return [gradients[place] for place in places]

        results = _watched(results, places, react)
        if hasattr(result, "_fields"):
            return type(result)(*results)  # a named tuple stays one
        return results if isinstance(result, tuple) else results[0]

    def _run(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(self.hooks.gradient.values()):
            inputs = _replaced(hook(self.module, inputs, self.gradients), inputs)
        return inputs


def _tracking(values: tuple[Any, ...]) -> list[int]:
    return [at for at, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad]


def _spread(found: list[Tensor], places: list[int], count: int) -> tuple[Any, ...]:
    at = dict(zip(places, found))
    return tuple(at.get(place) for place in range(count))


def _replaced(answer: Any, old: tuple[Any, ...]) -> tuple[Any, ...]:
    if answer is None:
        return old
    found = answer if isinstance(answer, tuple) else (answer,)
    if len(found) != len(old):
        text = f"a hook returned {len(found)} gradients for {len(old)}"
        raise GradientError("register_full_backward_hook", text, "return one for each, or None")
    return found


def _watched(values: tuple[Any, ...], places: list[int], react: React) -> tuple[Any, ...]:
    """Replace the values at some places by what the identity gives."""
    if not places:
        return values
    tensors = [values[place] for place in places]
    joined = Identity.apply(react, *tensors)
    pieces = [joined] if len(tensors) == 1 else _pieces(joined, tensors)
    shown = dict(zip(places, map(_showing, pieces, tensors)))
    return tuple(shown.get(at, x) for at, x in enumerate(values))


def _showing(piece: Tensor, x: Tensor) -> Tensor:
    """Give the memory of a tensor the gradient of a piece: programs know values by its address."""
    found: Tensor = wrap(led(x._node, piece._node), True)
    note_view(found, x, detach)
    return found


def _pieces(joined: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    parts = joined.split([x.numel() for x in like])
    return [part.reshape(x.shape).cast(x.dtype) for part, x in zip(parts, like)]


class Identity(Function):
    """This class passes tensors on, several as one vector, so that their gradients come at once."""

    @staticmethod
    def forward(ctx: Any, react: React, *tensors: Tensor) -> Tensor:
        """Give the tensor itself, or the elements of all: (sum of sizes,)."""
        ctx.react, ctx.tensors = react, tensors
        if len(tensors) == 1:
            return tensors[0]
        rows = [x.reshape(-1) for x in tensors]
        return Tensor.cat(rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Show the gradients to `react`, which may replace them."""
        single = len(ctx.tensors) == 1
        found = [gradient] if single else _pieces(gradient, ctx.tensors)
        return (None, *ctx.react(found))
