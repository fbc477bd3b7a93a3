"""Dataclasses whose fields and methods are made when they are first asked for.

`dataclasses.dataclass` takes 0.1 ms for the fields of a class, and writes and compiles a function
for each method, 0.16 to 0.31 ms: a quarter of `import picograd`, for classes of which most programs
make no object. Here a class has its slots at once. `dataclasses` reads its fields when somebody
asks for them, and a method is written, as `dataclasses` would, when it is first called.

    @dataclass(frozen=True, slots=True)
    class Range: ...

    made = Range(0, 4)       # a new __init__ takes the place of the one that writes it
    made == Range(0, 8)      # so does __eq__
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, ClassVar, get_origin

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from enum import Enum as Enum

FIELDS = "__dataclass_fields__"
MISSING: Any = dataclasses.MISSING
PARAMETERS: Any = vars(dataclasses.dataclass(type("Plain", (), {"__doc__": ""})))[
    "__dataclass_params__"
]


def late_class(
    cls: Any = None, /, *, frozen: bool = False, eq: bool = True, slots: bool = False
) -> Any:
    """Make a dataclass; options as those of `dataclasses.dataclass`."""
    if cls is None:
        return partial(late_class, frozen=frozen, eq=eq, slots=slots)
    own = set(vars(cls))
    if cls.__hash__ is None:
        own.discard("__hash__")
    fields = Fields(cls)
    made: Any = with_slots(cls, fields.own) if slots else cls
    fields.owner = made
    setattr(made, FIELDS, fields)
    made.__dataclass_params__ = PARAMETERS
    names = list(dict.fromkeys([*inherited(made), *fields.own]))
    made.__match_args__ = tuple(names)  # type: ignore[misc]
    late = ["__init__"]
    late += ["__eq__"] if eq else []
    late += ["__hash__"] if eq and frozen else []
    for name in late:
        if name not in own:
            is_strict = frozen and name == "__init__"
            setattr(made, name, late_method(made, name, fields, is_strict))
    if eq and not frozen and "__hash__" not in own:
        made.__hash__ = None
    if "__repr__" not in own:
        made.__repr__ = shown
    if frozen:
        freeze(made, names, slots)
    return made


class Members:
    """This class gives a class members, as an Enum has: they are read in a third of the time."""

    name: str
    value: str

    def __init_subclass__(cls) -> None:
        for name, value in [*vars(cls).items()]:
            if name.isupper():
                member = cls()
                member.name, member.value = name, value
                setattr(cls, name, member)


if not TYPE_CHECKING:
    dataclass, Enum = late_class, Members


def inherited(cls: Any) -> list[str]:
    """Name the fields of the classes that one is made of."""
    bases = [vars(base) for base in cls.__mro__[-1:0:-1]]
    return [name for base in bases if FIELDS in base for name in base["__match_args__"]]


class Fields:
    """This class stands for the fields of a class until somebody asks for them."""

    def __init__(self, cls: Any) -> None:
        self.owner: Any = cls
        self.known: dict[str, Any] = {}
        kinds = cls.__annotations__.items()
        self.own = {name: kind for name, kind in kinds if ClassVar not in (kind, get_origin(kind))}
        self.defaults = {name: vars(cls)[name] for name in self.own if name in vars(cls)}
        for name, value in self.defaults.items():
            if not isinstance(value, dataclasses.Field):
                continue
            if value.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, value.default)

    def __get__(self, instance: Any, cls: Any) -> dict[str, Any]:
        """Give the fields, by name, as `dataclasses` asks for them."""
        if not self.known:
            owner = self.owner
            space = {**self.defaults, "__annotations__": self.own, "__module__": owner.__module__}
            space["__doc__"] = "The fields of another class."
            alike = type(owner.__name__, (), space)
            made: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(alike)
            known: dict[str, Any] = {}
            for base in reversed(owner.__mro__[1:]):
                known |= base.__dataclass_fields__ if FIELDS in vars(base) else {}
            self.known = known | made.__dataclass_fields__  # at once: other threads ask, too
        return self.known


def with_slots(cls: Any, own: Iterable[str]) -> Any:
    """Make a class again, with slots for its own fields."""
    slots = [vars(base).get("__slots__", ()) for base in cls.__mro__[1:]]
    taken = {name for each in slots for name in ([each] if isinstance(each, str) else each)}
    left_out = {*own, "__dict__", "__weakref__"}
    space = {name: value for name, value in vars(cls).items() if name not in left_out}
    space["__slots__"] = tuple([name for name in own if name not in taken])
    made = type(cls)(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    return made


@recursive_repr()
def shown(self: Any) -> str:
    """Show an object as it is made."""
    fields = [each.name for each in dataclasses.fields(self) if each.repr]
    values = [f"{name}={getattr(self, name)!r}" for name in fields]
    return f"{type(self).__qualname__}({', '.join(values)})"


def late_method(cls: Any, name: str, fields: Fields, is_frozen: bool) -> Callable[..., Any]:
    """Make the method that puts the real one in its place, and calls that."""

    def call(self: Any, *args: Any, **given: Any) -> Any:
        method = written(cls, name, list(fields.__get__(None, cls).values()), is_frozen)
        if vars(cls)[name] is call:  # else somebody put another there, which calls this one
            setattr(cls, name, method)
        return method(self, *args, **given)

    call.__name__, call.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return call


def written(cls: Any, name: str, fields: Sequence[Any], is_frozen: bool) -> Any:
    """Write a method as `dataclasses` would."""
    space: dict[str, Any] = {"unset": object(), "put": object.__setattr__}
    if name == "__init__":
        text = init_text(cls, fields, is_frozen, space)
    elif name == "__hash__":
        hashed = [each for each in fields if (each.compare if each.hash is None else each.hash)]
        text = f"def __hash__(self): return hash({row_of('self', hashed)})"
    else:
        same = [each for each in fields if each.compare]
        text = f"""def __eq__(self, other):
            if other.__class__ is not self.__class__:
                return NotImplemented
            return {row_of("self", same)} == {row_of("other", same)}"""
    exec(text, space)
    method = space.pop(name)
    method.__module__, method.__qualname__ = cls.__module__, f"{cls.__qualname__}.{name}"
    return method


def row_of(what: str, fields: Sequence[Any]) -> str:
    """Write the tuple of some fields of an object."""
    return f"({''.join([f'{what}.{each.name}, ' for each in fields])})"


def init_text(cls: Any, fields: Sequence[Any], is_frozen: bool, space: dict[str, Any]) -> str:
    """Write `__init__`; what it reads beside its arguments goes to `space`.

    def __init__(self, start, end=default_end, parts=unset):
        put(self, 'start', start)
        put(self, 'end', end)
        put(self, 'parts', make_parts() if parts is unset else parts)
    """
    given, lines = ["self"], []
    for each in fields:
        name, value = each.name, each.name
        is_made, has_default = each.default_factory is not MISSING, each.default is not MISSING
        space |= {f"default_{name}": each.default, f"make_{name}": each.default_factory}
        if each.init:
            default = "=unset" if is_made else f"=default_{name}" if has_default else ""
            given.append(f"{name}{default}")
            value = f"make_{name}() if {name} is unset else {name}" if is_made else name
        elif is_made or (has_default and "__slots__" in vars(cls)):
            value = f"make_{name}()" if is_made else f"default_{name}"
        else:
            continue
        lines.append(f"put(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "".join([f"\n    {line}" for line in lines or ["pass"]])
    return f"def __init__({', '.join(given)}):{body}"


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
