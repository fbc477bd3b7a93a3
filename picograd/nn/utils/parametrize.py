"""Parametrizations: a weight that is a function of what is trained, computed whenever it is read.

The class of the module gets a property of the weight's name; what is trained is
`module.parametrizations.weight.original`, and the functions are `[0]`, `[1]`, ... of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from picograd.engine.tracing import note_change
from picograd.errors import ChoiceError, DTypeError, ShapeError, StateError, ValueRangeError
from picograd.nn.containers import ModuleDict, ModuleList
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.tensor import Tensor

M = TypeVar("M", bound=Module)
CACHE: list[dict[tuple[int, str], Any]] = []  # values read inside `cached`


def keep(module: Any, name: str, tensor: Tensor) -> None:
    """Register a tensor as what it is: a parameter, or a buffer."""
    is_trained = isinstance(tensor, Parameter)
    (module.register_parameter if is_trained else module.register_buffer)(name, tensor)


class ParametrizationList(ModuleList):
    """This class holds what a weight is computed from, and the functions, the first one first.

    A weight of one tensor stays the very tensor, so that optimizers that have it go on training it.
    """

    def __init__(self, modules: list[Module], original: Tensor) -> None:
        super().__init__(modules)
        found = self.inverted(original, is_first=True)
        self.is_several = isinstance(found, (tuple, list))
        if not self.is_several:
            original.data = found
            keep(self, "original", original)
            return
        for number, part in enumerate(found):
            own = part.detach()
            if isinstance(original, Parameter):
                own = Parameter(own, original.requires_grad)
            keep(self, f"original{number}", own)

    def inverted(self, value: Tensor, is_first: bool = False) -> Any:
        """Compute what gives a value; what has no right inverse keeps the first one as it is."""
        found: Any = value.detach()
        for module in reversed(list(self)):
            inverse = getattr(module, "right_inverse", None)
            if inverse is None and not is_first:
                problem = f"{type(module).__name__} has no right_inverse to assign a weight by"
                raise StateError("parametrize", problem, "define it, or write the original")
            try:
                with no_grad():
                    found = found if inverse is None else inverse(found)
            except NotImplementedError:
                if not is_first:
                    raise
        return found

    def take(self, value: Tensor) -> None:
        """Keep a value that the weight should have, by the right inverses of the functions.

        Raises ShapeError before any of them is asked: they may keep parts of the value.
        """
        with no_grad():
            wanted = self().shape
        if value.shape != wanted:
            problem = f"a value of shape {value.shape} for a weight of shape {wanted}"
            raise ShapeError("parametrize", problem, "assign one of the weight's shape")
        found = self.inverted(value)
        with no_grad():
            for old, part in zip(self.originals(), found if self.is_several else [found]):
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

    Raises ValueRangeError for a name that is no parameter, ShapeError for a function that changes
    the shape, ChoiceError for one that changes the dtype, unless `unsafe`, and DTypeError for what
    is no module.

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
    if not isinstance(parametrization, Module):
        text = f"{type(parametrization).__name__} is no module"
        raise DTypeError("register_parametrization", text, "give a module: its forward computes it")
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            value = getattr(module, tensor_name)
            check_alike(tensor_name, value, parametrization(value))
        module.parametrizations[tensor_name].append(parametrization)  # type: ignore[attr-defined]
        note_change()
        return module
    original = vars(module).get(tensor_name)
    if not isinstance(original, Tensor):
        problem = f"{type(module).__name__} has no parameter or buffer {tensor_name!r}"
        raise ValueRangeError("register_parametrization", problem, "name one of its parameters")
    held = begun(tensor_name, original, parametrization, unsafe)
    delattr(module, tensor_name)
    if "parametrizations" not in vars(module):
        module.parametrizations = ModuleDict()  # type: ignore[attr-defined]
        change_class(module)
    module.parametrizations[tensor_name] = held  # type: ignore[attr-defined]
    setattr(type(module), tensor_name, parametrized(tensor_name))
    return module


def begun(name: str, original: Tensor, function: Module, unsafe: bool) -> ParametrizationList:
    """Hold a parameter beside its function; where that does not fit, it stays what it was."""
    before = original.data
    held = ParametrizationList([function], original)
    try:
        if not unsafe:
            check_alike(name, before, held())
    except Exception:
        original.data = before
        raise
    return held


def check_alike(name: str, value: Tensor, made: Any) -> None:
    """Raise where a function gives something else than a tensor like the weight."""
    fix = "keep shape and dtype, or pass unsafe=True"
    if not isinstance(made, Tensor) or made.dtype != value.dtype:
        given = made.dtype.name if isinstance(made, Tensor) else type(made).__name__
        problem = f"{name} of {value.dtype.name} would become {given}"
        raise ChoiceError("register_parametrization", problem, fix)
    if made.shape != value.shape:
        problem = f"{name} of shape {value.shape} would become {made.shape}"
        raise ShapeError("register_parametrization", problem, fix)


def change_class(module: Module) -> None:
    """Give a module a class of its own, which can have properties."""
    kind = type(module)
    named: dict[str, Any] = {"__module__": kind.__module__, "__doc__": kind.__doc__}
    body = {**named, "original_class": kind, "__reduce__": reduced}
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), body)


def reduced(module: Any) -> tuple[Any, ...]:
    """Pickle a module by its original class: no file can name the class of its own."""
    names = tuple(module.parametrizations)
    return revived, (type(module).original_class, names), module.__getstate__()


def revived(kind: type[Module], names: tuple[str, ...]) -> Module:
    """Make an empty module with a class of its own that computes weights."""
    module = kind.__new__(kind)
    change_class(module)
    for name in names:
        setattr(type(module), name, parametrized(name))
    return module


def type_before_parametrizations(module: Module) -> type[Module]:
    """Give the class that a module had before its weights were computed.

    >>> from picograd import nn
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
    >>> nn.utils.parametrize.type_before_parametrizations(layer).__name__
    'Linear'
    """
    return getattr(type(module), "original_class", type(module))


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

    It is the very tensor that was trained, if it is computed from one. Raises ValueRangeError for a
    weight that is not computed, ValueRangeError for an original value of several tensors.
    """
    if not is_parametrized(module, tensor_name):
        problem = f"{type(module).__name__}.{tensor_name} is not computed"
        raise ValueRangeError("remove_parametrizations", problem, "name a parametrized weight")
    held: Any = module.parametrizations[tensor_name]  # type: ignore[attr-defined]
    if held.is_several and not leave_parametrized:
        problem = f"{tensor_name} is computed from several tensors"
        fix = "pass leave_parametrized=True"
        raise ValueRangeError("remove_parametrizations", problem, fix)
    value = held() if leave_parametrized else held.original
    if not held.is_several:
        held.original.data, value = value.detach(), held.original
    elif value.requires_grad:
        value = Parameter(value.detach())
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]  # type: ignore[attr-defined]
    if not len(module.parametrizations):  # type: ignore[attr-defined]
        del module.parametrizations  # type: ignore[attr-defined]
        module.__class__ = type(module).original_class  # type: ignore[attr-defined]
    keep(module, tensor_name, value)
    return module


@contextmanager
def cached() -> Iterator[None]:
    """Compute each weight once inside a block."""
    CACHE.append({})
    try:
        yield
    finally:
        CACHE.pop()
