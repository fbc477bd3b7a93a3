"""What functions of tensors do to their arguments first: check, promote, bring from the host.

The files by family (arithmetic, joining, partial_writes, statistics, distributions) compose
methods of tensors instead of nodes: a gradient, a device and a promotion come with each method.
`@composed` makes methods and functions of them.
"""

from typing import Any, TypeGuard

import numpy as np

from picograd.errors import DTypeError, not_a_tensor
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.function import composed
from picograd.tensor.core.operands import pair
from picograd.tensor.core.recording import Recorded, read, wrap


@composed(method=False)
def is_tensor(obj: Any) -> TypeGuard[Tensor]:
    """Tell whether an object is a tensor.

    >>> picograd.is_tensor([1.0])
    False
    """
    return isinstance(obj, Recorded)


def need_tensor(op: str, *values: Any, **named: Any) -> None:
    """Raise DTypeError for a number, a list or an array where only a tensor will do.

    Values that come by name are called so in the error, others "input".
    """
    for value in values:
        if not isinstance(value, Recorded):
            raise not_a_tensor(op, "input", value)
    for name, value in named.items():
        if not isinstance(value, Recorded):
            raise not_a_tensor(op, name, value)


def need_tensors(op: str, values: Any) -> list[Tensor]:
    """Read `f(a, b)` and `f([a, b])` alike."""
    is_list = len(values) == 1 and isinstance(values[0], (list, tuple))
    listed = list(values[0] if is_list else values)
    if not listed:
        raise DTypeError(op, "there are no tensors", "pass at least one")
    need_tensor(op, *listed)
    return listed


def promoted(op: str, a: Any, b: Any, floating: bool = False) -> tuple[Tensor, Tensor]:
    """Bring two operands, one of them a tensor, to one dtype and shape."""
    if not isinstance(a, Recorded):
        need_tensor(op, b)
    tracks = MODE.enabled and any(isinstance(x, Recorded) and x._tracks for x in (a, b))
    first, second = pair(op, read(a), read(b), floating)
    tracks = tracks and first.dtype.is_differentiable
    return wrap(first, tracks), wrap(second, tracks)


def as_float(x: Tensor) -> Tensor:
    """Turn bool and integers into float32."""
    return x if x.dtype.is_differentiable else x.float()


def from_host(array: Any, like: Tensor) -> Tensor:
    """Bring host values to the device of a tensor."""
    return Recorded.kind.of(np.asarray(array, order="C"), device=like.device)


def along(values: Any, axis: int, like: Tensor) -> Tensor:
    """Bring a vector of host values to a tensor's dtype and device, along one of its axes."""
    shape = [1] * len(like.shape)
    shape[axis] = -1
    return from_host(np.asarray(values), like).cast(like.dtype).reshape(*shape)


def positions(size: int, like: Tensor, axis: int = 0) -> Tensor:
    """Count 0, 1, ... along an axis of a tensor, in int64."""
    shape = [1] * max(len(like.shape), 1)
    shape[axis] = size
    return Recorded.kind.arange(size, device=like.device).reshape(*shape)
