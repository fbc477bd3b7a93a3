"""Classes and functions that a program declares to be safe: `picograd.load` may call them.

Any other that a file names is refused, unless it is read with `weights_only=False`.
"""

import pickle as pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

# `pickle` is a name of `torch.serialization`, too.
SAFE: dict[str, Any] = {}  # by "module name", as pickles write them


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Let files make objects of these classes; (object, "module.name") is one of another name.

    >>> from fractions import Fraction
    >>> from picograd import serialization
    >>> serialization.add_safe_globals([Fraction])
    >>> serialization.get_safe_globals()
    [<class 'fractions.Fraction'>]
    >>> serialization.clear_safe_globals()
    """
    for each in safe_globals:
        found, path = each if isinstance(each, tuple) else (each, "")
        module, _, name = path.rpartition(".")
        SAFE[f"{module} {name}" if path else f"{found.__module__} {found.__qualname__}"] = found


def get_safe_globals() -> list[Any]:
    """List what was declared."""
    return list(SAFE.values())


def clear_safe_globals() -> None:
    """Forget what was declared."""
    SAFE.clear()


@contextmanager
def safe_globals(safe_globals: Sequence[Any]) -> Iterator[None]:
    """Declare classes inside a `with` block.

    >>> from fractions import Fraction
    >>> from picograd import serialization
    >>> with serialization.safe_globals([Fraction]):
    ...     len(serialization.get_safe_globals())
    1
    """
    before = dict(SAFE)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        SAFE.clear()
        SAFE.update(before)


def is_safe(value: Any) -> bool:
    """Tell whether a class or function was declared."""
    return any(value is each for each in SAFE.values())


def make(kind: Any, args: tuple[Any, ...]) -> Any:
    """Make an object of a class that was declared, without its `__init__`, as pickles do."""
    return kind.__new__(kind, *args)


def set_state(made: Any, state: Any) -> None:
    """Give an object of a class that was declared its attributes."""
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return
    plain, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in {**(plain or {}), **(slots or {})}.items():
        setattr(made, name, value)
