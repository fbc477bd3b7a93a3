"""Making tensors of what is at hand, without a copy where that is possible."""

from array import array as arrays
from typing import Any

import numpy as np

from picograd.dtype import DType
from picograd.errors import ExportError
from picograd.graph import build
from picograd.target import is_host
from picograd.tensor.core import exchange
from picograd.tensor.core.annotations import Data, DeviceLike, DTypeLike, Tensor
from picograd.tensor.core.function import composed
from picograd.tensor.core.operands import optional_dtype
from picograd.tensor.core.recording import Recorded, made
from picograd.tensor.making import creation, tensors_like


def tensor(
    data: Data,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor of data: numbers, nested lists, an array, a Tensor.

    Host memory is what the device's library gives: `pin_memory` changes nothing.

    >>> picograd.tensor([1, 2]).dtype
    picograd.int64
    """
    return Recorded.kind.of(data, dtype=dtype, device=device, requires_grad=requires_grad)


@composed(method=False)
def asarray(
    obj: Data,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Make a tensor of an array, tensor, number or nested list, sharing memory where possible.

    A tensor of the wanted dtype and device is returned as it is. NumPy arrays and arrays of other
    libraries (DLPack) share their memory unless the dtype or device differs; so do buffers, whose
    bytes are read as the dtype. `copy=True` always copies; `copy=False` makes a copy an
    ExportError.

    >>> array = numpy.zeros(2)
    >>> tensor = picograd.asarray(array, device="cpu")
    >>> array[0] = 5
    >>> tensor.tolist()
    [5.0, 0.0]
    """
    wanted = optional_dtype(dtype)
    place = None if device is None else creation.device_named(device)
    result = shared(obj, place, wanted)
    if result is None:
        if copy is False:
            text = f"a {type(obj).__name__} must be copied to become a tensor"
            raise ExportError("asarray", text, "leave out copy=False")
        is_narrowed = isinstance(obj, np.ndarray) and obj.dtype.kind == "c"
        result = Recorded.kind.of(obj, None if is_narrowed else wanted, place)
    elif copy and isinstance(obj, Recorded):
        result = Recorded.kind.clone(obj)  # with its gradients
    elif copy:
        now: Any = build.contiguous(result.detach()._node)
        result = Recorded.kind.of(now).realize()  # as it is now
    moved = result.to(dtype=wanted, device=place)
    if moved is not result and copy is False:
        text = f"the {result.dtype.name} tensor on {result.device} must be converted"
        raise ExportError("asarray", text, "leave out copy=False")
    if requires_grad is not None:
        moved = moved.detach() if moved is obj or not moved.is_leaf else moved
        moved.requires_grad = requires_grad
    return moved


def shared(obj: Any, device: str | None, dtype: DType | None) -> Any:
    """Make a tensor that shares memory with `obj`; None where that is impossible."""
    if isinstance(obj, Recorded):
        return obj
    if exchange.is_exporter(obj) or exchange.is_capsule(obj):
        return made(exchange.imported(obj))
    if dtype and isinstance(obj, (bytearray, memoryview, arrays)) and len(obj):
        return tensors_like.frombuffer(obj, dtype=dtype)
    if isinstance(obj, np.ndarray) and is_host(device or creation.device_named(None)):
        is_known = obj.dtype.kind in creation.SUPPORTED and obj.dtype.isnative
        return made(exchange.imported(obj)) if is_known and obj.dtype.itemsize <= 8 else None
    return None


@composed(method=False)
def as_tensor(
    data: Data, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Make a tensor of data, sharing memory where possible: `asarray` in PyTorch's order.

    >>> picograd.as_tensor([1, 2], dtype="float32").tolist()
    [1.0, 2.0]
    """
    return asarray(data, dtype=dtype, device=device)
