"""The words of signatures: what arguments may be, for readers, editors and type checkers.

The class `Tensor` is built on the files that name it in their signatures, so these names stand for
types only where types are checked; when the code runs they are names that signatures show.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NewType, Protocol, TypeAlias

import numpy as np

from picograd.dtype import DType

Scalar = bool | int | float
Shape = tuple[int, ...]


class ArrayExporter(Protocol):
    """This class is an object that NumPy can read."""

    def __array__(self) -> Any:
        """Give the values as a NumPy array."""


class MemoryExporter(Protocol):
    """This class is an object that shares its memory by the DLPack protocol."""

    def __dlpack__(self) -> Any:
        """Give a capsule of the memory."""


if TYPE_CHECKING:
    from picograd.tensor.tensor import Tensor as Tensor

    # what stands beside a tensor in an operation: numbers, arrays, nested lists
    TensorLike: TypeAlias = "Tensor | Scalar | complex | np.generic | Sequence[Any] | ArrayExporter"
    # what a tensor is made of
    Data: TypeAlias = TensorLike | MemoryExporter
    Sizes: TypeAlias = int | Sequence[int]  # one size for all axes, or one each
    Axis: TypeAlias = int | Sequence[int] | None  # one, several, or all of them
    DTypeLike: TypeAlias = DType | str | type | np.dtype[Any]
    DeviceLike: TypeAlias = str | int  # "cpu", "cuda", "cuda:1"; 1
else:
    Tensor = NewType("Tensor", object)
    TensorLike = NewType("TensorLike", object)
    Data = NewType("Data", object)
    Sizes = NewType("Sizes", object)
    Axis = NewType("Axis", object)
    DTypeLike = NewType("DTypeLike", object)
    DeviceLike = NewType("DeviceLike", object)
