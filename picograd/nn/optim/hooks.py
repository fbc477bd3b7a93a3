"""Hooks of optimizers: functions called around `step`, `state_dict` and `load_state_dict`.

They are kept, registered and taken away as those of modules (`nn/hooks.py`). A hook that returns
something other than None replaces what it was shown.
"""

import functools
from collections.abc import Callable
from typing import Any

from picograd.errors import StateError
from picograd.nn.hooks import Hook, Hooks, Shown, register
from picograd.tensor.core.gradient_hooks import HookHandle

EVERY = Hooks()  # those of all optimizers


def hooked(step: Callable[..., Any]) -> Any:
    """Make a `step` that calls hooks around it, where it is an optimizer's own, not its base's."""

    @functools.wraps(step)
    def call(optimizer: Any, *args: Any, **options: Any) -> Any:
        if not optimizer._opt_called:
            optimizer._opt_called = True
        own = optimizer._hooks
        if not (own or EVERY.before or EVERY.after) or type(optimizer).step is not call:
            return step(optimizer, *args, **options)
        own, shown = own or Hooks(), (optimizer, *args)
        for hook in (*EVERY.before.values(), *own.before.values()):
            answer = hook(optimizer, shown, options)
            if answer is not None:
                if not isinstance(answer, tuple) or len(answer) != 2:
                    problem = f"a hook before the step returned a {type(answer).__name__}"
                    raise StateError("step", problem, "return None, or new (args, kwargs)")
                shown, options = answer
        result = step(*shown, **options)
        for hook in (*own.after.values(), *EVERY.after.values()):
            hook(optimizer, shown, options)
        return result

    return call


def of_every_optimizer(kind: str) -> Callable[[Hook], HookHandle]:
    """Make the function that registers a hook of all optimizers."""
    return lambda hook: register(getattr(EVERY, kind), hook)


def registering(kind: str) -> Callable[..., HookHandle]:
    """Make the method that registers a hook of one optimizer."""

    def add(optimizer: Any, hook: Hook, prepend: bool = False) -> HookHandle:
        """Call a hook; see the class docstring."""
        return register(getattr(optimizer._own_hooks(), kind), hook, prepend)

    return add


class Hooked:
    """This class gives optimizers their hooks.

    Around a step they are called as hook(optimizer, args, kwargs), where `args` begin with the
    optimizer, and may answer (args, kwargs) before it. `state_dict` and `load_state_dict` show
    (optimizer, state) to those after the one and before the other, the optimizer alone to the rest.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=0.1)
    >>> with optimizer.register_step_post_hook(lambda optimizer, args, options: print("stepped")):
    ...     optimizer.step()
    stepped
    """

    _hooks: Hooks | None = None
    _opt_called: bool = False  # PyTorch's name: whether it stepped, which schedules ask
    _optimizer_step_pre_hooks = Shown("before")
    _optimizer_step_post_hooks = Shown("after")
    register_step_pre_hook = registering("before")
    register_step_post_hook = registering("after")
    register_state_dict_pre_hook = registering("state_before")
    register_state_dict_post_hook = registering("state_after")
    register_load_state_dict_pre_hook = registering("load_before")
    register_load_state_dict_post_hook = registering("load_after")

    def _own_hooks(self) -> Hooks:
        return vars(self).setdefault("_hooks", Hooks())

    def _replaced(self, kind: str, *shown: Any) -> Any:
        """Let the hooks of one kind see a state, and replace it."""
        if self._hooks is not None:
            for hook in list(getattr(self._hooks, kind).values()):
                answer = hook(self, *shown)
                shown = shown if answer is None else (answer,)
        return shown[0] if shown else None
