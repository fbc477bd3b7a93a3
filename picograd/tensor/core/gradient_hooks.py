"""Hooks of tensors: what is called with a gradient, before and after it is added."""

import weakref
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from picograd.engine.followed import leave
from picograd.engine.tracing import RUNNING, caller_of, note_change, note_refusal
from picograd.errors import GradientError, check_callable
from picograd.graph.gradient import AFTER, HOOKS
from picograd.graph.node import Node
from picograd.tensor.core.autograd import WALKS, first
from picograd.tensor.core.recording import Recorded, wrap

NUMBERS = count()  # of hooks, in the order of their registration


class HookHandle:
    """This class takes a hook away again."""

    def __init__(self, hooks: dict[int, Any], number: int, leaf: Any = None) -> None:
        self.hooks: dict[int, Any] = hooks
        self.id: int = number
        self.leaf: Any = None if leaf is None else weakref.ref(leaf)

    def remove(self) -> None:
        """Stop calling the hook."""
        note_change()
        self.hooks.pop(self.id, None)
        leaf = self.leaf and self.leaf()
        if leaf is not None and leaf._hooks is not None and not leaf._hooks.numbers():
            leaf._hooks = None  # what steps quickly asks for no more than that

    def __enter__(self) -> "HookHandle":
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class Hooks:
    """This class keeps what is called with a tensor's gradient: before, after it is added.

    `keep` retains the gradient of a computed tensor, as hooks of the tensor left it; those of what
    computed it, `step`, come behind.
    """

    __slots__ = ("after", "before", "keep", "step")

    def __init__(self) -> None:
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}
        self.step: dict[int, Callable[..., Any]] = {}
        self.keep: Callable[..., Any] | None = None

    def numbers(self) -> tuple[int, ...]:
        """Name the hooks, in order: no other hook ever has one of these numbers."""
        kept = () if self.keep is None else (-1,)
        return *self.before, *self.step, *kept, *self.after

    def run(self, gradient: Node) -> Node:
        """Let hooks see a gradient, and replace it."""
        gradient = self.called(self.before, gradient)
        if self.keep is not None:
            self.keep(shown(gradient))
        return self.called(self.step, gradient)

    def called(self, hooks: dict[int, Callable[..., Any]], gradient: Node) -> Node:
        """Call hooks one after the other, with one tensor until one replaces it."""
        seen: Any = shown(gradient) if hooks else None
        for hook in list(hooks.values()):
            answer = hook(seen)
            if answer is None:
                continue
            if not isinstance(answer, Recorded) or answer.shape != gradient.shape:
                text = f"a hook returned {getattr(answer, 'shape', type(answer).__name__)}"
                fix = f"return None, or a tensor of shape {gradient.shape}"
                raise GradientError("register_hook", text, fix)
            seen = answer
            seen = seen.cast(gradient.dtype)
        return gradient if seen is None else seen._node

    def run_step(self, parts: Sequence[Any], gradient: Node) -> Sequence[Any]:
        """Let hooks see the gradients of the inputs of what was computed, and replace them."""
        seen = tuple(shown(each) if isinstance(each, Node) else None for each in parts)
        for hook in list(self.after.values()):
            answer = hook(seen, (shown(gradient),))
            seen = seen if answer is None else answer
        kept = [old if x is None else x._node.cast(old.dtype) for x, old in zip(seen, parts)]
        return [*kept, *parts[len(kept) :]]


def shown(gradient: Node) -> Any:
    """Make the tensor of a gradient that a hook sees; it may be written over, and has its own."""
    return wrap(gradient, not WALKS.is_final)


def hooks_of(tensor: Recorded) -> Hooks:
    """Find the hooks of a tensor; `backward` runs those of leaves, the walk all others.

    Those of an argument of a trace are the caller's tensor's.
    """
    leave()
    if RUNNING.traces and id(tensor) not in RUNNING.traces[-1].own:
        note_refusal("it registers a hook on a tensor from outside")
        if (passed := caller_of(tensor)) is not tensor:
            tensor._hooks = hooks_of(passed)
    if tensor._hooks is None:
        tensor._hooks = Hooks() if tensor.is_leaf else hooks_at(tensor._node)
    return tensor._hooks


def hooks_at(node: Node) -> Hooks:
    """Find the hooks that the walk runs at a computed node."""
    leave()
    if node not in HOOKS:
        HOOKS[node] = Hooks().run
    return HOOKS[node].__self__  # type: ignore[attr-defined]


def add_step_hook(node: Node, hook: Callable[..., Any]) -> HookHandle:
    """Call a hook with the gradients of a node's inputs and its own."""
    hooks = hooks_at(node)
    AFTER[node] = hooks.run_step
    return register(hooks.after, hook)


def add_step_prehook(node: Node, hook: Callable[..., Any]) -> HookHandle:
    """Call a hook with the gradient of a node, as a tuple."""
    return register(hooks_at(node).step, lambda gradient: first(hook((gradient,))))


def register(
    hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any], tensor: Any = None
) -> HookHandle:
    """Add a hook after those there are, of a tensor or a step."""
    check_callable("register_hook", hook)
    number = next(NUMBERS)
    note_change()
    hooks[number] = hook
    is_leaf = tensor is not None and tensor.is_leaf
    return HookHandle(hooks, number, caller_of(tensor) if is_leaf else None)


def add_hook(tensor: Recorded, hook: Callable[..., Any]) -> HookHandle:
    """Call a hook with the gradient of a tensor; what it returns, unless None, replaces it."""
    if not tensor._tracks:
        text = "the tensor does not ask for gradients"
        raise GradientError("register_hook", text, "set requires_grad=True first")
    return register(hooks_of(tensor).before, hook, tensor)


def retain(tensor: Recorded) -> None:
    """Let the walk add the gradient of a computed tensor to its `grad`."""
    if not tensor._tracks:
        text = "the tensor does not ask for gradients"
        raise GradientError("retain_grad", text, "set requires_grad=True on what it comes from")
    if tensor.is_leaf or is_retained(tensor):
        return
    owner = weakref.ref(caller_of(tensor))  # the hook must not keep the tensor alive

    def keep(gradient: Any) -> None:
        kept = owner()
        if kept is not None:
            found = gradient.detach() if WALKS.is_final else gradient
            kept.grad = found if kept.grad is None else kept.grad + found

    note_change()
    hooks_of(tensor).keep = keep


def is_retained(tensor: Any) -> bool:
    """Tell whether a computed tensor keeps its gradient."""
    return tensor._hooks is not None and tensor._hooks.keep is not None


def leave_behind(tensor: Recorded) -> None:
    """Let hooks stay with the value that they saw; what retains gradients goes on to the next."""
    found, tensor._hooks = tensor._hooks, None
    if found.keep is not None:
        hooks_of(tensor).keep, found.keep = found.keep, None
