"""What the array API asks about dtypes and devices."""

from typing import Any, NamedTuple

from picograd.dtype import (
    ALL,
    BY_NAME,
    COMPLEX,
    DType,
    default_float,
    int64,
    promote,
    scalar_dtype,
    to_dtype,
)
from picograd.engine.backends import default_device
from picograd.errors import DTypeError, ValueRangeError
from picograd.tensor.core import type_info
from picograd.tensor.core.annotations import DeviceLike, DTypeLike, TensorLike
from picograd.tensor.tensor import Tensor

__all__ = [
    "__array_namespace_info__", "astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type",
]  # fmt: skip

KINDS = {
    "bool": ("bool",),
    "signed integer": ("int",),
    "unsigned integer": ("uint",),
    "real floating": ("float",),
    "complex floating": ("complex",),
    "integral": ("int", "uint"),
    "numeric": ("int", "uint", "float", "complex"),
}
# those of the standard; 8- and 16-bit floats are more
STANDARD = [each for each in (*ALL, *COMPLEX) if not each.is_float or each.bits >= 32]


class FloatLimits(NamedTuple):
    """This class is what `finfo` gives."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntegerLimits(NamedTuple):
    """This class is what `iinfo` gives."""

    bits: int
    max: int
    min: int
    dtype: DType


def dtype_of(value: Any) -> DType:
    """Read a dtype, or that of a tensor."""
    return value.dtype if isinstance(value, Tensor) else to_dtype(value)


def finfo(type: DTypeLike | Tensor, /) -> FloatLimits:
    """Give the limits of a float dtype."""
    found = type_info.finfo(dtype_of(type))
    limits = (found.bits, found.eps, found.max, found.min, found.smallest_normal)
    return FloatLimits(*limits, BY_NAME[found.dtype])


def iinfo(type: DTypeLike | Tensor, /) -> IntegerLimits:
    """Give the limits of an integer dtype."""
    found = type_info.iinfo(dtype_of(type))
    return IntegerLimits(found.bits, found.max, found.min, BY_NAME[found.dtype])


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Tell whether a dtype is another one, or of a kind, or of one of several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            text = f"unknown kind {kind!r}"
            raise ValueRangeError("isdtype", text, f"use one of {', '.join(KINDS)}")
        return to_dtype(dtype).kind in KINDS[kind]
    return to_dtype(dtype) is to_dtype(kind)


def astype(
    x: Tensor, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike | None = None
) -> Tensor:
    """Convert the elements; the tensor itself if nothing changes and `copy=False`."""
    moved = x if device is None else x.to(device)
    result = moved.cast(dtype)
    return result.clone() if copy and result is x else result


def can_cast(from_: DTypeLike | Tensor, to: DTypeLike, /) -> bool:
    """Tell whether promotion turns a dtype into another."""
    wanted = to_dtype(to)
    try:
        return promote(dtype_of(from_), wanted) is wanted
    except DTypeError:
        return False


def result_type(*arrays_and_dtypes: TensorLike | DType) -> DType:
    """Find the dtype that tensors, dtypes and numbers have together."""
    found: DType | None = None
    numbers = []
    for each in arrays_and_dtypes:
        if isinstance(each, (bool, int, float, complex)):
            numbers.append(each)
        else:
            kind = dtype_of(each)
            found = kind if found is None else promote(found, kind)
    for number in numbers:
        found = found and scalar_dtype(number, found)
    if found is None:
        raise DTypeError("result_type", "there is nothing to look at", "pass a tensor or a dtype")
    return found


class NamespaceInfo:
    """This class tells what the namespace can do."""

    def capabilities(self) -> dict[str, Any]:
        """Tell which optional behaviours there are."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> str:
        """Name the device of new tensors."""
        return default_device()

    def default_dtypes(self, *, device: DeviceLike | None = None) -> dict[str, DType]:
        """Give the dtypes of new tensors by kind."""
        return {
            "real floating": default_float(),
            "complex floating": default_float().complex,
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: DeviceLike | None = None, kind: Any = None) -> dict[str, DType]:
        """Give the dtypes by name, all or those of a kind."""
        return {each.name: each for each in STANDARD if kind is None or isdtype(each, kind)}

    def devices(self) -> tuple[str, ...]:
        """Name the devices."""
        return tuple(sorted({"cpu", default_device()}))


def __array_namespace_info__() -> NamespaceInfo:
    """Tell what the namespace can do."""
    return NamespaceInfo()
