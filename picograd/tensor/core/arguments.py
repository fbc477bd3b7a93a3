"""What functions of tensors do to their arguments first: check, promote, bring from the host.

The files by family (arithmetic, joining, partial_writes, statistics, distributions) compose
methods of tensors instead of nodes: a gradient, a device and a promotion come with each method.
`@composed` makes methods and functions of them.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np

from picograd.dtype import bool_, uint8
from picograd.engine import foreign
from picograd.errors import DTypeError, not_a_tensor
from picograd.graph import build
from picograd.number import GivenInt, position_of
from picograd.tensor.core import aliasing
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.function import composed
from picograd.tensor.core.known_values import number_at_hand
from picograd.tensor.core.operands import pair
from picograd.tensor.core.recording import Recorded, read, wrap
from picograd.tensor.core.subclasses import is_asked
from picograd.tensor.indexing import indexing, spans


@composed(method=False)
def is_tensor(obj: Any) -> TypeGuard[Tensor]:
    """Tell whether an object is a tensor.

    >>> picograd.is_tensor([1.0])
    False
    """
    return isinstance(obj, Recorded)


def need_tensor(op: str, *values: Any, **named: Any) -> None:
    """Raise DTypeError for a number, a list or an array where only a tensor will do.

    Values that come by name are called so in the error, others "input". A layer lets what stands
    for a tensor through: the functions that it calls ask it.
    """
    for value in values:
        if not isinstance(value, Recorded):
            raise_unless_asked(op, "input", value)
    for name, value in named.items():
        if not isinstance(value, Recorded):
            raise_unless_asked(op, name, value)


def raise_unless_asked(op: str, name: str, value: Any) -> None:
    """Raise DTypeError for what is no tensor, but for what a layer may hand on."""
    if not (op[:1].isupper() and is_asked(type(value))):
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


def is_tuple_like(items: Sequence[Any]) -> bool:
    """Tell whether a list is read as a tuple of indices: PyTorch's rule, which old NumPy had.

    A short one that holds slices, None, Ellipsis, tensors or lists is; x[[0, 2]] is one index.
    """
    if len(items) >= 32:
        return False
    kinds = (Recorded, slice, list, tuple, range, np.ndarray)
    return any(each is None or each is Ellipsis or isinstance(each, kinds) for each in items)


def selector(items: Any) -> list[Any]:
    """Read an index expression; tensors become nodes, those of uint8 masks as in PyTorch."""
    if type(items) is int:
        return [GivenInt(items)]
    listed = items if isinstance(items, tuple) else (items,)
    if isinstance(items, (list, range)) and is_tuple_like(items):
        warnings.warn("a list of indices is read as a tuple: write x[tuple(indices)]", stacklevel=3)
        listed = tuple(items)
    return [GivenInt(item) if type(item) is int else item_of(item) for item in listed]


def item_of(item: Any) -> Any:
    """Read a slice with tensors in it: a span if its length is known, else numbers.

    A view is recorded again when its base was written: from the same given numbers.
    """
    is_slice = type(item) is slice and item.step is None
    if is_slice and indexing.ENDS.issuperset((type(item.start), type(item.stop))):
        is_fixed = type(item.start) is not int or item.stop is None
        return item if is_fixed else slice(GivenInt(item.start), item.stop)
    if isinstance(item, Recorded):
        return index_node(item)
    if isinstance(item, range):
        return spans.numbers_of(item)
    if not isinstance(item, slice):
        return position_of(item)
    if not any(isinstance(end, Recorded) for end in (item.start, item.stop, item.step)):
        start = position_of(item.start)
        is_fixed = type(start) is not GivenInt or item.stop is None
        return item if is_fixed else slice(start, item.stop, item.step)
    ends = [read(end) for end in (item.start, item.stop, item.step)]
    return spans.span_of(*ends) or item


def index_node(item: "Recorded") -> Any:
    """Give the node of a tensor that indexes, or the one number that it is where that is at hand.

    uint8 is an old spelling of a mask.
    """
    if (number := number_at_hand(item._node)) is not None:
        return position_of(number)
    node = foreign.steady(item._node)
    if item.dtype is not uint8:
        return node
    warnings.warn("an index that is a uint8 tensor selects by mask: call .bool()", stacklevel=5)
    return node.cast(bool_)


def kept_number(item: Any) -> Any:
    """Keep the value of an index that is a tensor: the view that it chose stays that view."""
    if isinstance(item, indexing.Span):
        return replace(item, start=wrap(build.contiguous(item.start), False))
    return wrap(build.contiguous(item), False) if aliasing.is_number(item) else item
