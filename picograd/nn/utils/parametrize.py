"""Parametrizations: a weight that is a function of what is trained, computed whenever it is read.

The class of the module gets a property of the weight's name; what is trained is
`module.parametrizations.weight.original`, and the functions are `[0]`, `[1]`, ... of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from picograd.engine.tracing import note_change
from picograd.errors import MemberError, ShapeError
from picograd.nn.containers import ModuleDict, ModuleList
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.tensor import Tensor

M = TypeVar("M", bound=Module)
CACHE: list[dict[tuple[int, str], Any]] = []  # values read inside `cached`


class ParametrizationList(ModuleList):
    """This class holds what a weight is computed from, and the functions, the first one first."""

    def __init__(self, modules: list[Module], original: Tensor) -> None:
        super().__init__(modules)
        self.is_several = False
        self.take(original, is_first=True)

    def take(self, value: Tensor, is_first: bool = False) -> None:
        """Keep a value that the weight should have, by the right inverses of the functions."""
        found: Any = value.detach()
        for module in reversed(list(self)):
            inverse = getattr(module, "right_inverse", None)
            if inverse is not None:
                with no_grad():
                    found = inverse(found)
        parts = list(found) if isinstance(found, (tuple, list)) else [found]
        self.is_several = isinstance(found, (tuple, list))
        names = [f"original{number}" for number in range(len(parts))]
        for name, part in zip(names if self.is_several else ["original"], parts):
            old = vars(self).get(name)
            if old is None or is_first:
                own = part if isinstance(part, Parameter) else Parameter(part.detach())
                setattr(self, name, own)
            else:
                with no_grad():
                    old.copy_(part)

    def __len__(self) -> int:
        return sum(name.isdecimal() for name in self._modules)

    def originals(self) -> list[Tensor]:
        """List what is trained."""
        names = [name for name in vars(self) if name.startswith("original")]
        return [getattr(self, name) for name in names]

    def forward(self) -> Any:
        """Compute the weight."""
        functions = list(self)
        value = functions[0](*self.originals())
        for function in functions[1:]:
            value = function(value)
        return value


def register_parametrization(
    module: M, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> M:
    """Compute a parameter of a module by a function from now on.

    Raises MemberError for a name that is no parameter, ShapeError for a function that changes the
    shape, unless `unsafe`.

    >>> import picograd
    >>> from picograd import nn
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = nn.Linear(3, 3)
    >>> _ = nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        held = module.parametrizations[tensor_name]  # type: ignore[attr-defined]
        held.append(parametrization)
        note_change()
        return module
    original = vars(module).get(tensor_name)
    if not isinstance(original, Tensor):
        problem = f"{type(module).__name__} has no parameter or buffer {tensor_name!r}"
        raise MemberError("register_parametrization", problem, "name one of its parameters")
    held = ParametrizationList([parametrization], original)
    shape = held().shape
    if not unsafe and shape != original.shape:
        problem = f"{tensor_name} of shape {original.shape} would become {shape}"
        raise ShapeError("register_parametrization", problem, "keep the shape, or pass unsafe=True")
    delattr(module, tensor_name)
    if "parametrizations" not in vars(module):
        module.parametrizations = ModuleDict()  # type: ignore[attr-defined]
        change_class(module)
    module.parametrizations[tensor_name] = held  # type: ignore[attr-defined]
    setattr(type(module), tensor_name, parametrized(tensor_name))
    return module


def change_class(module: Module) -> None:
    """Give a module a class of its own, which can have properties."""
    kind = type(module)
    body = {"__module__": kind.__module__, "__doc__": kind.__doc__, "original_class": kind}
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), body)


def parametrized(name: str) -> property:
    """Make the property that computes a weight."""

    def read(module: Any) -> Any:
        key = id(module), name
        if CACHE and key in CACHE[-1]:
            return CACHE[-1][key]
        value = module.parametrizations[name]()
        if CACHE:
            CACHE[-1][key] = value
        return value

    def write(module: Any, value: Tensor) -> None:
        module.parametrizations[name].take(value)

    return property(read, write)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Tell whether a module computes a weight, or any."""
    found = vars(module).get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: M, tensor_name: str, leave_parametrized: bool = True) -> M:
    """Make a weight a parameter again: with the computed value, or the original one.

    Raises MemberError for a weight that is not computed.
    """
    if not is_parametrized(module, tensor_name):
        problem = f"{type(module).__name__}.{tensor_name} is not computed"
        raise MemberError("remove_parametrizations", problem, "name a parametrized weight")
    held: Any = module.parametrizations[tensor_name]  # type: ignore[attr-defined]
    value = held() if leave_parametrized else held.original
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]  # type: ignore[attr-defined]
    if not len(module.parametrizations):  # type: ignore[attr-defined]
        del module.parametrizations  # type: ignore[attr-defined]
        module.__class__ = type(module).original_class  # type: ignore[attr-defined]
    setattr(module, tensor_name, Parameter(value.detach()))
    return module


@contextmanager
def cached() -> Iterator[None]:
    """Compute each weight once inside a block."""
    CACHE.append({})
    try:
        yield
    finally:
        CACHE.pop()
