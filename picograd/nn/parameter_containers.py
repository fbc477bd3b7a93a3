"""ParameterList and ParameterDict: parameters in a row or under names, found by the module."""

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from picograd.errors import AxisError
from picograd.nn.containers import Named
from picograd.nn.members import check_name
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.tensor import Tensor


def as_parameter(value: Any) -> Any:
    """Make a tensor a parameter; other values stay themselves."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _held(name: Any, value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"  ({name}): Object of type: {type(value).__name__}"
    sizes = "x".join(map(str, value.shape))
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"  ({name}): {kind} containing: [{value.dtype!r} of size {sizes}]"


class ParameterList(Module):
    """This class is a list of parameters: state names 0, 1, ...; tensors become parameters.

    >>> from picograd import Tensor, nn
    >>> weights = nn.ParameterList([Tensor.ones(2), Tensor.zeros(3)])
    >>> [name for name, _ in weights.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        self._count = 0
        self.extend(values or ())

    def append(self, value: Any) -> "ParameterList":
        """Add a value at the end."""
        setattr(self, str(self._count), as_parameter(value))
        self._count += 1
        return self

    def extend(self, values: Iterable[Any]) -> "ParameterList":
        """Add several values at the end."""
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        return iter([self[number] for number in range(len(self))])

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return ParameterList(list(self)[index])
        return getattr(self, self._name(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._name(index), as_parameter(value))

    def __iadd__(self, values: Iterable[Any]) -> "ParameterList":
        return self.extend(values)

    def _name(self, index: Any) -> str:
        index = operator.index(index)  # it may be a tensor
        if not -self._count <= index < self._count:
            problem = f"index {index} is out of range for {self._count} values"
            raise AxisError("ParameterList", problem, "use a smaller index")
        return str(index % self._count)

    def extra_repr(self) -> str:
        """List the values, a line each."""
        return "\n".join(_held(number, value) for number, value in enumerate(self))


class ParameterDict(Named[Any]):
    """This class is a dict of parameters, in the order of `update`; tensors become parameters.

    >>> from picograd import Tensor, nn
    >>> parts = nn.ParameterDict({"a": nn.Parameter(Tensor([1.0, 2.0]))})
    >>> list(parts)
    ['a']
    """

    _kind = "parameter"

    def __init__(self, parameters: Any = None) -> None:
        self._names: list[str] = []
        self.update(parameters or {})

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self._names:
            check_name(self, "ParameterDict", key)
            self._names.append(key)
        setattr(self, key, as_parameter(value))

    def update(self, parameters: Any) -> None:
        """Add values of a mapping or of (name, value) pairs; known names are overwritten.

        Those of a plain dict in the order of their names, as in PyTorch: states of optimizers
        go by the order of parameters.
        """
        pairs = parameters.items() if hasattr(parameters, "items") else parameters
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs = sorted(pairs, key=itemgetter(0))
        for name, value in pairs:
            self[name] = value

    def __or__(self, other: Any) -> "ParameterDict":
        return ParameterDict([*self.items(), *ParameterDict(other).items()])

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**other, **self}

    def __ior__(self, other: Any) -> "ParameterDict":
        self.update(other)
        return self

    def get(self, key: str, default: Any = None) -> Any:
        """Look a value up, or give the default."""
        return self[key] if key in self._names else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Look a value up; store the default where there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Take a value out, and return it."""
        value = super().pop(key)
        self._names.remove(key)
        return value

    def items(self) -> list[tuple[str, Any]]:
        """List (name, value)."""
        return [(name, getattr(self, name)) for name in self._names]

    def extra_repr(self) -> str:
        """List the values, a line each."""
        return "\n".join(_held(name, value) for name, value in self.items())
