"""What sits in the attributes of a module, as the dicts that PyTorch's programs look into."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import partial
from typing import Any

from picograd.engine.tracing import note_change
from picograd.errors import DTypeError, MemberError
from picograd.nn.parameter import Parameter
from picograd.tensor.tensor import Tensor


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

    `type(module._parameters)(pairs)` is a dict, which that is in PyTorch.
    """

    def __new__(cls, given: Any = (), *more: Any, **options: Any) -> Any:
        """Make the view of a module's attributes, or a dict."""
        return super().__new__(cls) if more or "belongs" in options else dict(given, **options)

    def __init__(
        self,
        module: Any,
        belongs: Callable[[str, Any], bool],
        store: Callable[[str, Any], None] | None = None,
        replaces: bool = False,
    ) -> None:
        self.module, self.belongs, self.store = module, belongs, store
        self.replaces = replaces  # is `store` for what is there already, too?

    def __getitem__(self, name: str) -> Any:
        held = vars(self.module)
        name = name if name in held else Covered(name)
        value = held[name]
        if not self.belongs(name, value):
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        if self.store is not None and (self.replaces or name not in self):
            self.store(name, value)
        else:
            setattr(self.module, name, value)

    def __delitem__(self, name: str) -> None:
        self[name]
        delattr(self.module, name)

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

    def __reversed__(self) -> Iterator[str]:
        return reversed(self.copy())

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr(dict(self))


def check_name(module: Any, op: str, name: Any, is_replaced: bool = False) -> None:
    """Raise unless a name may be given to something new inside a module."""
    if not isinstance(name, str):
        raise DTypeError(op, f"the name is a {type(name).__name__}", "pass a string")
    if not name or "." in name:
        raise MemberError(op, f"the name {name!r} is empty or has a dot", "use a plain name")
    if not is_replaced and hasattr(module, name):  # a property may say that there is none
        problem = f"{type(module).__name__} has an attribute {name!r} already"
        raise MemberError(op, problem, "use another name, or delete it first")


def parameters_of(module: Any) -> Members:
    """Show the parameters of a module, and what was put among them."""
    placed = module._placed
    return Members(
        module,
        lambda name, value: isinstance(value, Parameter) or name in placed,
        partial(place, module),
        replaces=True,
    )


def place(module: Any, name: str, value: Tensor | None) -> None:
    """Put a tensor among the parameters: weights that a step of MAML computed, for example."""
    if value is not None and not isinstance(value, Tensor):
        problem = f"{name} is a {type(value).__name__}"
        raise DTypeError("_parameters", problem, "pass a Tensor or None")
    is_computed = value is not None and not isinstance(value, Parameter)
    vars(module)["_placed"] = module._placed | {name} if is_computed else module._placed - {name}
    object.__setattr__(module, name, value)
    note_change()


def exchange(members: Members, wanted: Mapping[str, Any]) -> None:
    """Make the members those of another dict."""
    new = dict(wanted)
    for name in [name for name in members if name not in new]:
        del members[name]
    members.update(new)
