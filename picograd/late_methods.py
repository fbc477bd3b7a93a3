"""Dataclasses whose methods are written when the first is called.

`dataclasses.dataclass` writes and compiles a function for each method, 0.16 to 0.31 ms a class: a
fifth of `import picograd`, for classes of which most programs make no object. Here a class has its
fields and slots at once, and for each method one that has all of them written, once.

    @dataclass(frozen=True, slots=True)
    class Range: ...

    Range.__init__           # writes __init__, __repr__, __eq__ and __hash__ of dataclasses'
    Range(0, 4)              # calls it, and is called no more
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass

METHODS = ("__init__", "__repr__")
COMPARED = ("__eq__", "__hash__")


def late_class(
    cls: Any = None, /, *, frozen: bool = False, eq: bool = True, slots: bool = False
) -> Any:
    """Make a dataclass; options as those of `dataclasses.dataclass`."""
    if cls is None:
        return partial(late_class, frozen=frozen, eq=eq, slots=slots)
    own = vars(cls).keys() - {"__hash__" if cls.__hash__ is None else ""}
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    names: tuple[str, ...] = METHODS
    if eq:
        names += COMPARED if frozen else COMPARED[:1]
    options = {"frozen": frozen, "eq": eq}
    late: dict[str, Callable[..., Any]] = {}
    for name in names:
        if name not in own:
            late[name] = late_method(made, name, late, options)
            setattr(made, name, late[name])
    if eq and not frozen and "__hash__" not in own:
        made.__hash__ = None
    if frozen:
        names = tuple(each.name for each in dataclasses.fields(made))
        freeze(made, names, slots)
    return made


if not TYPE_CHECKING:
    dataclass = late_class


def late_method(
    cls: type, name: str, late: Mapping[str, Callable[..., Any]], options: Mapping[str, bool]
) -> Callable[..., Any]:
    """Make the method that has all of a class written, and calls what takes its place."""

    def call(self: Any, *args: Any, **given: Any) -> Any:
        write(cls, late, options)
        return getattr(cls, name)(self, *args, **given)

    call.__name__ = name
    call.__qualname__ = f"{cls.__qualname__}.{name}"
    return call


def write(cls: Any, late: Mapping[str, Callable[..., Any]], options: Mapping[str, bool]) -> None:
    """Put the methods that `dataclasses` writes for the fields of a class in their places."""
    given = cls.__dataclass_fields__
    space = {"__annotations__": {name: each.type for name, each in given.items()}, **given}
    space |= {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": "written"}
    if hasattr(cls, "__post_init__"):
        space["__post_init__"] = cls.__post_init__
    written: Any = dataclasses.dataclass(**options)(type(cls.__name__, (), space))
    for name, method in late.items():
        if vars(cls).get(name) is method:  # not where another thread wrote it
            setattr(cls, name, vars(written)[name])


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

    cls.__setattr__ = __setattr__
    cls.__delattr__ = __delattr__
    if is_slotted:
        cls.__getstate__ = __getstate__
        cls.__setstate__ = __setstate__
