"""Modules that hold modules: Sequential, ModuleList, ModuleDict.

Children are attributes named by position or key, so that state names equal PyTorch's: `0.weight`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from picograd.errors import AxisError, DTypeError
from picograd.nn.module import Module


class Sequential(Module):
    """This class calls its modules in order, each on the output of the one before."""

    def __init__(self, *modules: Module) -> None:
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> "Sequential":
        """Add a module at the end."""
        _check_module("Sequential", module)
        setattr(self, str(len(self)), module)
        return self

    def forward(self, value: Any) -> Any:
        """Feed the value through all modules."""
        for module in self:
            value = module(value)
        return value

    def __len__(self) -> int:
        return sum(1 for _ in self.children())

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def __getitem__(self, index: int | slice) -> Module:
        if isinstance(index, slice):
            return Sequential(*list(self)[index])
        return _pick("Sequential", list(self), index)


class ModuleList(Module):
    """This class is a list of modules; write the loop over it yourself."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self.extend(modules)

    def append(self, module: Module) -> "ModuleList":
        """Add a module at the end."""
        _check_module("ModuleList", module)
        setattr(self, str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> "ModuleList":
        """Add several modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def __len__(self) -> int:
        return sum(1 for _ in self.children())

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return ModuleList(list(self)[index])
        return _pick("ModuleList", list(self), index)


class ModuleDict(Module):
    """This class is a dict of modules, in order of insertion."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        for name, module in (modules or {}).items():
            self[name] = module

    def __setitem__(self, name: str, module: Module) -> None:
        _check_module("ModuleDict", module)
        setattr(self, name, module)

    def __getitem__(self, name: str) -> Module:
        return dict(self.named_children())[name]

    def __contains__(self, name: str) -> bool:
        return name in self.keys()

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:
        """List the names."""
        return [name for name, _ in self.named_children()]

    def values(self) -> list[Module]:
        """List the modules."""
        return list(self.children())

    def items(self) -> list[tuple[str, Module]]:
        """List (name, module)."""
        return list(self.named_children())


def _check_module(op: str, module: Any) -> None:
    if not isinstance(module, Module):
        problem = f"{type(module).__name__} is no module"
        raise DTypeError(op, problem, "pass modules, such as nn.Linear(2, 3)")


def _pick(op: str, modules: list[Module], index: int) -> Module:
    if not isinstance(index, int):
        raise DTypeError(op, f"cannot index with {type(index).__name__}", "use ints and slices")
    if not -len(modules) <= index < len(modules):
        problem = f"index {index} is out of range for {len(modules)} modules"
        raise AxisError(op, problem, f"use an index from {-len(modules)} to {len(modules) - 1}")
    return modules[index]
