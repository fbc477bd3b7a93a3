"""Gradients that nobody but their tensor has: another value may replace them, unseen.

A write in place is recorded, and what reads the old value, its views and its holders are told. A
gradient that nothing else leads to gets a new value instead, which looks the same and costs less.
"""

import sys
from collections.abc import Callable
from typing import Any

from picograd.engine import foreign
from picograd.engine.update import Alone


def held(owner: Any, name: str) -> int:
    """Count the references to what an attribute holds."""
    return sys.getrefcount(getattr(owner, name))


ALONE = held(Alone(object()), "_node")  # differs between versions of Python


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


def change_gradient(owner: Any, change: Callable[[Any], Any]) -> Any:
    """Give a tensor's gradient the value computed of it, in place if somebody else has it too."""
    if has_alone(owner):
        owner.grad = change(owner.grad).cast(owner._grad.dtype)
        return owner.grad
    found = owner.grad.detach() if owner.grad._tracks else owner.grad
    return found.assign(change(found).cast(found.dtype))
