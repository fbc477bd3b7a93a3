"""`x.size` is a number in the array API, and in NumPy, and a method in PyTorch: here it is both."""

import functools
from typing import Any, overload

from picograd.errors import DTypeError
from picograd.tensor.core.annotations import Shape
from picograd.tensor.core.operands import own_axis
from picograd.tensor.core.sizes import Size


class Count(int):
    """This class is the number of elements; called, it gives the shape, or the size of an axis."""

    shape: Shape

    @overload
    def __call__(self, dim: None = None) -> Shape: ...

    @overload
    def __call__(self, dim: int) -> int: ...

    def __call__(self, dim: int | None = None) -> Shape | int:
        """Give the shape, or the size of one axis."""
        return size_of(self, dim)


class SizeAttribute:
    """This class is the attribute `size` of tensors."""

    @overload
    def __get__(self, tensor: None, kind: Any = None) -> Any: ...

    @overload
    def __get__(self, tensor: object, kind: Any = None) -> Count: ...

    def __get__(self, tensor: Any, kind: Any = None) -> Any:
        """Count the elements; of the class, and where sizes are followed, give the method."""
        if tensor is None:
            return size_of
        node = tensor._node
        if any(type(size) is not int for size in node.shape):
            return functools.partial(size_of, tensor)  # a count would be the size of this call
        count = Count(node.size)
        count.shape = Size(node.shape)
        return count


def size_of(tensor: Any, dim: int | None = None) -> Any:
    """Give the shape, or the size of one axis.

    >>> Tensor([[1.0, 2.0]]).size(), Tensor([[1.0, 2.0]]).size(1), Tensor([[1.0, 2.0]]).size
    ((1, 2), 2, 2)
    """
    if not hasattr(tensor, "shape"):
        raise DTypeError("size", f"takes a tensor, not {tensor!r}", "call it of a tensor")
    shape: Shape = tensor.shape
    return shape if dim is None else shape[own_axis(dim, len(shape), "size")]
