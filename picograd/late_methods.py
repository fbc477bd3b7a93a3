"""Dataclasses whose methods are written when they are first called.

`dataclasses.dataclass` writes and compiles a function for each method, 0.16 to 0.31 ms a class: a
fifth of `import picograd`, for classes of which most programs make no object. Here a class has its
fields and slots at once, and methods that have `dataclasses` write them, once.

    @dataclass(frozen=True, slots=True)
    class Range: ...

    made = Range(0, 4)       # the __init__ of `dataclasses` takes the place of ours
    made == Range(0, 8)      # its __eq__ does
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass

# what makes `dataclasses` write a method
METHODS = {"__init__": "init", "__eq__": "eq", "__hash__": "unsafe_hash"}


def late_class(
    cls: Any = None, /, *, frozen: bool = False, eq: bool = True, slots: bool = False
) -> Any:
    """Make a dataclass; options as those of `dataclasses.dataclass`."""
    if cls is None:
        return partial(late_class, frozen=frozen, eq=eq, slots=slots)
    own = set(vars(cls))
    if cls.__hash__ is None:
        own.discard("__hash__")
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    late = ["__init__"]
    late += ["__eq__"] if eq else []
    late += ["__hash__"] if eq and frozen else []
    for name in late:
        if name not in own:
            is_strict = frozen and name == "__init__"
            setattr(made, name, late_method(made, name, is_strict))
    if eq and not frozen and "__hash__" not in own:
        made.__hash__ = None
    if "__repr__" not in own:
        made.__repr__ = shown
    if frozen:
        names = [each.name for each in dataclasses.fields(made)]
        freeze(made, names, slots)
    return made


if not TYPE_CHECKING:
    dataclass = late_class


@recursive_repr()
def shown(self: Any) -> str:
    """Show an object as it is made."""
    fields = [each.name for each in dataclasses.fields(self) if each.repr]
    values = [f"{name}={getattr(self, name)!r}" for name in fields]
    return f"{type(self).__qualname__}({', '.join(values)})"


def late_method(cls: Any, name: str, is_frozen: bool) -> Callable[..., Any]:
    """Make the method that puts what `dataclasses` writes in its place, and calls that."""

    def call(self: Any, *args: Any, **given: Any) -> Any:
        method = written(cls, name, is_frozen)
        if vars(cls)[name] is call:  # else somebody put another there, which calls this one
            setattr(cls, name, method)
        return method(self, *args, **given)

    call.__name__, call.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return call


def written(cls: Any, name: str, is_frozen: bool) -> Any:
    """Let `dataclasses` write a method, for a class that has the same fields and no more."""
    fields = cls.__dataclass_fields__
    space = dict(fields)
    space["__annotations__"] = {each.name: each.type for each in fields.values()}
    space["__module__"] = cls.__module__
    space["__qualname__"] = cls.__qualname__
    space["__doc__"] = "The fields of another class."
    if hasattr(cls, "__post_init__"):
        space["__post_init__"] = cls.__post_init__
    options = {"init": False, "repr": False, "eq": False, "frozen": is_frozen, METHODS[name]: True}
    options["slots"] = "__slots__" in vars(cls)  # which have no defaults: `__init__` sets those
    alike = type(cls.__name__, (), space)
    made: Any = dataclasses.dataclass(**options)(alike)
    return vars(made)[name]


def freeze(cls: Any, names: Sequence[str], is_slotted: bool) -> None:
    """Let no field of an object be set or deleted; copies and pickles set them past that."""

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: Sequence[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__
    if is_slotted:
        cls.__getstate__, cls.__setstate__ = __getstate__, __setstate__
