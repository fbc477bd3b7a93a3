"""Gradients, and bases of views, that nobody but their tensor has: others may replace them, unseen.

A write in place is recorded, and what reads the old value, its views and its holders are told. A
gradient that nothing else leads to gets a new value instead, which looks the same and costs less.
A leaf that asks for gradients lets go a base that only it shows: the weights of a loop are made of
those before.
"""

import weakref
from collections.abc import Callable
from typing import Any

from picograd.buffer import Storage
from picograd.engine import foreign, pending
from picograd.engine.carried import ALONE, held, let_go
from picograd.engine.followed import event, noted
from picograd.engine.tracing import RUNNING
from picograd.graph import build


def has_alone(owner: Any, known: int = 0) -> bool:
    """Tell whether no variable, view, hook or array of others leads to a tensor's gradient.

    So many references to it are `known`, and lead nowhere.
    """
    if held(owner, "_grad") != ALONE + known:
        return False
    found = owner._grad
    if found._view is not None or found._hooks is not None or found._tracks:
        return False
    views = found._views or ()
    if any(each() is not None for each in views):
        return False
    return not foreign.is_shared(found._node)


def ask(tensor: Any) -> None:
    """Let a tensor that tracks no gradients be a leaf that asks for them.

    A way that comes meets one that is in memory, and that nobody read, as it is then.
    """
    let_go(tensor)
    node = tensor._node
    is_memory = type(node.arg) is Storage and tensor._view is None and node.leaf is not None
    del node
    if is_memory and not RUNNING.traces and held(tensor, "_node") == ALONE:
        become_asking(tensor)
    else:
        change(tensor)


@event
def change(tensor: Any) -> None:
    """Let a tensor be a leaf that asks for gradients, in a way."""
    noted(become_asking, tensor)


def become_asking(tensor: Any) -> None:
    """Make a leaf of a tensor; one that was detached from what nobody has shows that no more."""
    is_read = held(tensor, "_node") != ALONE  # what was computed of it before takes it for constant
    if tensor._node.leaf is None or is_read:
        before, tensor._node.leaf = tensor._node, None
        tensor._move(build.detach(before.below("detach") if is_read else before))
        tensor._node.leaf = weakref.ref(tensor)
    tensor._tracks = pending.note_start(tensor)
    let_go(tensor)


def change_gradient(owner: Any, change: Callable[[Any], Any]) -> Any:
    """Give a tensor's gradient the value computed of it, in place if somebody else has it too."""
    if has_alone(owner):
        owner.grad = change(owner.grad).cast(owner._grad.dtype)
        return owner.grad
    found = owner.grad.detach() if owner.grad._tracks else owner.grad
    return found.assign(change(found).cast(found.dtype))
