"""Size: the shape of a tensor as programs see it, a tuple that counts elements."""

from collections.abc import Iterable
from typing import Any, SupportsIndex, overload

from picograd.helpers import product


class SizeKind(type):
    """This class knows shapes, which any tuple of ints may be."""

    def __instancecheck__(cls, instance: Any) -> bool:
        """Tell whether something is a tuple of ints."""
        is_tuple = isinstance(instance, tuple)
        return is_tuple and all(isinstance(each, int) for each in instance)


class Size(tuple[int, ...], metaclass=SizeKind):
    """This class is a tuple of sizes that counts elements; parts and sums of one are sizes too.

    >>> import picograd
    >>> shape = picograd.zeros(2, 3, 4).shape
    >>> shape, shape.numel(), shape[:2].numel(), (shape + (5,)).numel()
    ((2, 3, 4), 24, 6, 120)
    """

    __slots__ = ()

    def numel(self) -> int:
        """Count the elements of a tensor of these sizes."""
        return product(self)

    @overload  # type: ignore[override]
    def __getitem__(self, index: SupportsIndex) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> "Size": ...

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if type(index) is slice else found

    def __add__(self, other: Iterable[int]) -> "Size":  # type: ignore[override]
        return Size((*self, *other))

    def __radd__(self, other: tuple[int, ...]) -> "Size":  # of a list too, `+=` would make a Size
        return Size((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> "Size":
        return Size(tuple(self) * count)

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a tuple, which every program reads."""
        return tuple, (tuple(self),)
