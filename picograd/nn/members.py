"""What sits in the attributes of a module, as the dicts that PyTorch's programs look into."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from inspect import isroutine
from typing import Any
from weakref import ref

from picograd.engine.tracing import note_change
from picograd.errors import DTypeError, MemberError, StateError
from picograd.nn.parameter import Parameter
from picograd.nn.walks import Inner


class Covered(str):
    """This class names a member that has a method's name: the attribute stays the method.

    `self.parameters = ParameterList(...)` is found by who lists members, and by nobody else, as
    in PyTorch: a dict does not find this name when it is asked for an equal text.
    """

    __slots__ = ()
    __eq__ = str.__eq__

    def __hash__(self) -> int:
        return ~str.__hash__(self)


class Members(MutableMapping[str, Any]):
    """This class shows the attributes of one kind; storing and deleting changes the module.

    `type(module._parameters)(pairs)` is a dict, which that is in PyTorch. Neither asks a
    `__setattr__` of the module's class, which may itself store here.
    """

    def __new__(cls, given: Any = (), **options: Any) -> Any:
        """Make the view of the module that a function or weak reference gives, or a dict."""
        return super().__new__(cls) if callable(given) else dict(given, **options)

    def __init__(self, module: Callable[[], Any]) -> None:
        self._module = module

    @property
    def module(self) -> Any:
        """The module whose attributes are shown. Raises StateError if it is gone."""
        module = self._module()
        if module is None:
            problem = "the module whose members are shown is gone"
            raise StateError("nn.Module", problem, "keep the module in a variable")
        return module

    def belongs(self, name: str, value: Any) -> bool:
        """Tell whether an attribute is of the kind."""
        raise NotImplementedError

    def note(self, name: str, value: Any) -> None:
        """Remember that a name is of the kind."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> Any:
        held = vars(self.module)
        name = name if name in held else Covered(name)
        value = held[name]
        if not self.belongs(name, value):
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        kind = type(self.module)
        if isroutine(getattr(kind, name, None)):
            name = Covered(name)
        self.note(name, value)
        vars(self.module)[name] = value
        note_change()

    def __delitem__(self, name: str) -> None:
        self[name]
        del vars(self.module)[name if name in vars(self.module) else Covered(name)]
        forget(self.module, name)

    def __iter__(self) -> Iterator[str]:
        return iter(
            [name for name, value in vars(self.module).items() if self.belongs(name, value)]
        )

    def keys(self) -> Any:
        """List the names as they are now; PyTorch's views can be walked from the end."""
        return self.copy().keys()

    def values(self) -> Any:
        """List the values as they are now."""
        return self.copy().values()

    def items(self) -> Any:
        """List both as they are now."""
        return self.copy().items()

    def copy(self) -> dict[str, Any]:
        """Copy them into a dict."""
        return {name: self[name] for name in self}

    __copy__ = copy

    def __reduce__(self) -> Any:
        """Go along with a module that is copied; alone, as a dict."""
        of_module = isinstance(self._module, ref)
        return (view, (type(self), self.module)) if of_module else (dict, (self.copy(),))

    def __reversed__(self) -> Iterator[str]:
        return reversed(self.copy())

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr(dict(self))


class Modules(Members):
    """This class shows the modules in attributes."""

    def belongs(self, name: str, value: Any) -> bool:
        """Tell whether a module was assigned in the usual way."""
        return isinstance(value, Inner) and name in self.module._inside

    def note(self, name: str, value: Any) -> None:
        """Remember that there is a module."""
        vars(self.module).setdefault("_inside", set()).add(name)


class Parameters(Members):
    """This class shows the parameters, and what was put among them: a step of MAML's weights."""

    def belongs(self, name: str, value: Any) -> bool:
        """Tell whether a value is a parameter or was put here."""
        return isinstance(value, Parameter) or name in self.module._placed

    def note(self, name: str, value: Any) -> None:
        """Remember what would not be taken for a parameter; programs put more than tensors here."""
        placed, is_computed = self.module._placed, not isinstance(value, Parameter | None)
        vars(self.module)["_placed"] = placed | {name} if is_computed else placed - {name}


class Buffers(Members):
    """This class shows the buffers; what is added is a part of the state dict."""

    def belongs(self, name: str, value: Any) -> bool:
        """Tell whether a buffer was registered under a name."""
        return name in self.module._persistence

    def note(self, name: str, value: Any) -> None:
        """Remember that there is a buffer."""
        known = self.module._persistence
        vars(self.module)["_persistence"] = {name: True, **known}


class Shown:
    """This class is an attribute of a module that shows members of a kind, and exchanges them."""

    def __init__(self, kind: type[Members]) -> None:
        self.kind = kind

    def __get__(self, module: Any, owner: Any = None) -> Members:
        return self.kind(lambda: module)

    def __set__(self, module: Any, wanted: Mapping[str, Any]) -> None:
        exchange(self.kind(lambda: module), wanted)


VIEWS = {"_parameters": Parameters, "_buffers": Buffers, "_modules": Modules}


def view(kind: type[Members], module: Any) -> Members:
    """Show members of a module that holds the view: no cycle keeps the module from going."""
    return kind(ref(module))


def show_members(module: Any) -> None:
    """Put the views where programs look without asking for attributes: `vars(module)`."""
    vars(module).update({name: view(kind, module) for name, kind in VIEWS.items()})


def without_views(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the attributes of a module but for the views, which say nothing more."""
    copied = dict(attributes)
    for name in VIEWS:
        copied.pop(name, None)
    return copied


def forget(module: Any, name: str) -> None:
    """Note that an attribute is gone."""
    note_change()
    vars(module)["_placed"] = module._placed - {name}
    if name in module._persistence:
        others = module._persistence.items()
        vars(module)["_persistence"] = {key: kept for key, kept in others if key != name}


def check_name(module: Any, op: str, name: Any, is_replaced: bool = False) -> None:
    """Raise unless a name may be given to something new inside a module."""
    if not isinstance(name, str):
        raise DTypeError(op, f"the name is a {type(name).__name__}", "pass a string")
    if not name or "." in name:
        raise MemberError(op, f"the name {name!r} is empty or has a dot", "use a plain name")
    if not is_replaced and hasattr(module, name):  # a property may say that there is none
        problem = f"{type(module).__name__} has an attribute {name!r} already"
        raise MemberError(op, problem, "use another name, or delete it first")


def exchange(members: Members, wanted: Mapping[str, Any]) -> None:
    """Make the members those of another dict."""
    new = dict(wanted)
    for name in [name for name in members if name not in new]:
        del members[name]
    members.update(new)
