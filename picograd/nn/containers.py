"""Modules that hold modules: Sequential, ModuleList, ModuleDict.

Children are attributes named by position or key, so that state names equal PyTorch's: `0.weight`.
"""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from picograd.errors import AxisError, DTypeError, MemberError
from picograd.nn.members import check_name
from picograd.nn.module import Module
from picograd.tensor.core.annotations import Tensor

Self = TypeVar("Self", bound="Row")
Member = TypeVar("Member")  # of a dict


class Row(Module):
    """This class holds modules in order, numbered from 0: what Sequential and ModuleList share."""

    def append(self: Self, module: Module) -> Self:
        """Add a module at the end."""
        check_module(type(self).__name__, module)
        self.add_module(str(len(self)), module)
        return self

    def extend(self: Self, modules: Iterable[Module]) -> Self:
        """Add several modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self: Self, index: int, module: Module) -> Self:
        """Add a module before a position; those behind it are numbered anew."""
        check_module(type(self).__name__, module)
        modules = list(self)
        if not -len(modules) <= index <= len(modules):
            problem = f"index {index} is out of range for {len(modules)} modules"
            raise AxisError(type(self).__name__, problem, f"use an index up to {len(modules)}")
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: int | slice = -1) -> Any:
        """Take a module out, and return it."""
        taken = self[key]
        del self[key]
        return taken

    def __len__(self) -> int:
        return len(entries(self))

    def __iter__(self) -> Iterator[Module]:
        return iter([module for _, module in entries(self)])

    def __getitem__(self, index: int | slice) -> Any:
        lines = entries(self)
        if isinstance(index, slice):
            return self._part(lines[index])
        return lines[self._position(index)][1]

    def __setitem__(self, index: int, module: Module) -> None:
        check_module(type(self).__name__, module)
        setattr(self, entries(self)[self._position(index)][0], module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        del modules[index if isinstance(index, slice) else self._position(index)]
        self._renumber(modules)

    def __add__(self: Self, other: Iterable[Module]) -> Self:
        return self._part(entries(self))._renumber([*self, *other])

    def __iadd__(self: Self, other: Iterable[Module]) -> Self:
        return self.extend(other)

    def _part(self: Self, lines: Sequence[tuple[str, Module]]) -> Self:
        """Make a container of some of the modules."""
        result = type(self).__new__(type(self))
        for number, (_, module) in enumerate(lines):
            result.add_module(str(number), module)
        return result

    def _renumber(self: Self, modules: Sequence[Module]) -> Self:
        """Hold these modules instead, named by position."""
        for name, _ in entries(self):
            delattr(self, name)
        for number, module in enumerate(modules):
            self.add_module(str(number), module)
        return self

    def _position(self, index: int) -> int:
        """Check an index; count it from the start."""
        op, count = type(self).__name__, len(self)
        try:
            index = operator.index(index)
        except TypeError:
            problem = f"cannot index with {type(index).__name__}"
            raise DTypeError(op, problem, "use ints and slices") from None
        if not -count <= index < count:
            problem = f"index {index} is out of range for {count} modules"
            raise AxisError(op, problem, f"use an index from {-count} to {count - 1}")
        return index % count


class Sequential(Row):
    """This class calls its modules in order, each on the output of the one before.

    Takes modules, or one dict of named modules; a slice keeps the names.

    >>> from picograd import nn
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> len(model[:2]), list(model[1:].state_dict())
    (2, ['2.weight', '2.bias'])
    """

    def __init__(self, *args: Module | Mapping[str, Module]) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                check_module("Sequential", module)
                self.add_module(name, module)
            return
        modules: Any = args
        self.extend(modules)

    def forward(self, input: Any) -> Tensor:
        """Feed the value through all modules."""
        for module in self:
            input = module(input)
        return input

    def __mul__(self, count: int) -> "Sequential":
        return Sequential(*list(self) * count)

    __rmul__ = __mul__

    def _part(self, lines: Sequence[tuple[str, Module]]) -> "Sequential":
        return Sequential(dict(lines))


class ModuleList(Row):
    """This class is a list of modules; write the loop over it yourself.

    >>> from picograd import nn
    >>> parts = nn.ModuleList([nn.Linear(2, 3), nn.ReLU()])
    >>> len(parts), len(list(parts.parameters()))
    (2, 2)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __repr__(self) -> str:
        """Show neighbours that look the same once: (0-2): 3 x ReLU()."""
        runs: list[tuple[int, int, str]] = []
        for number, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], number, text)
            else:
                runs.append((number, number, text))
        lines = [_line(*run) for run in runs]
        name = type(self).__name__
        return f"{name}(\n" + "\n".join(lines) + "\n)" if lines else f"{name}()"


def _line(first: int, last: int, text: str) -> str:
    text = text.replace("\n", "\n  ")
    if first == last:
        return f"  ({first}): {text}"
    return f"  ({first}-{last}): {last - first + 1} x {text}"


class Named(Module, Generic[Member]):
    """This class is the base of dicts of members, in order of insertion."""

    _kind = "module"

    def items(self) -> list[tuple[str, Member]]:
        """List (name, member)."""
        raise NotImplementedError

    def pop(self, key: str) -> Member:
        """Take a member out, and return it."""
        member = self[key]
        delattr(self, key)
        return member

    def clear(self) -> None:
        """Take all members out."""
        for name in self.keys():
            self.pop(name)

    def keys(self) -> list[str]:
        """List the names."""
        return [name for name, _ in self.items()]

    def values(self) -> list[Member]:
        """List the members."""
        return [member for _, member in self.items()]

    def __getitem__(self, key: str) -> Member:
        found = dict(self.items())
        if key not in found:
            problem, fix = f"there is no {self._kind} {key!r}", f"use one of {', '.join(found)}"
            raise MemberError(type(self).__name__, problem, fix)
        return found[key]

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def __contains__(self, key: str) -> bool:
        return key in self.keys()

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())


class ModuleDict(Named[Module]):
    """This class is a dict of modules, in order of insertion.

    >>> from picograd import nn
    >>> parts = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.ReLU()})
    >>> list(parts), len(list(parts.parameters()))
    (['a', 'b'], 2)
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __setitem__(self, key: str, module: Module) -> None:
        check_module("ModuleDict", module)
        if key not in self.keys():
            check_name(self, "ModuleDict", key)
        self.add_module(key, module)

    def update(self, modules: Any) -> None:
        """Add modules of a mapping or of (name, module) pairs; known names are overwritten."""
        items = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        for name, module in items:
            self[name] = module

    def items(self) -> list[tuple[str, Module]]:
        """List (name, module)."""
        return entries(self)


def entries(container: Module) -> list[tuple[str, Any]]:
    """List the modules of a container by name; None stands where a place was left empty."""
    is_row = isinstance(container, Row)
    return [
        (name, value)
        for name, value in vars(container).items()
        if isinstance(value, Module)
        or (value is None and (name.isdigit() if is_row else name[0] != "_"))
    ]


def check_module(op: str, module: Any) -> None:
    """Raise DTypeError for what is neither a module nor None, an empty place."""
    if module is not None and not isinstance(module, Module):
        problem, fix = f"{type(module).__name__} is no module", "nn.Linear(2, 3)"
        if isinstance(module, type):
            problem, fix = f"{module.__name__} is a class", f"{module.__name__}(), an instance"
        raise DTypeError(op, problem, f"pass modules, such as {fix}")
