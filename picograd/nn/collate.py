"""Collating: a list of samples becomes one batch, whatever they are made of.

It is done in two steps, because only one thread may record tensors: `stack` joins samples on the
host, in any thread; `to_tensors` makes tensors of the arrays, in the caller's.
"""

import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from picograd.errors import DTypeError, ShapeError
from picograd.target import is_host
from picograd.tensor.core.annotations import DeviceLike
from picograd.tensor.public import stack as stack_tensors
from picograd.tensor.tensor import Tensor

np_str_obj_array_pattern = re.compile("[SaUO]")  # arrays that are no tensors
NUMERIC = "biufc"  # kinds of arrays that become tensors
# functions of PyTorch's name that join samples of a program's own classes
default_collate_fn_map: dict[Any, Callable[..., Any]] = {}
NUMBERS = ((bool, np.bool_), (int, np.int64), (float, np.float64))


def default_collate(batch: Sequence[Any]) -> Any:
    """Join samples: numbers, arrays and tensors are stacked, containers are joined by position.

    Python floats become float64 and ints int64, as in PyTorch; strings stay strings; a dict of
    samples becomes a dict of batches. A function in `default_collate_fn_map`, of
    `utils.data._utils.collate`, joins samples of a program's own class. Raises ShapeError for rows
    of different shapes, DTypeError for samples of other types.

    >>> from picograd import nn
    >>> x, names = nn.default_collate([(1, "a"), (2, "b"), (3, "c")])
    >>> x.tolist(), names
    ([1, 2, 3], ('a', 'b', 'c'))
    """
    return to_tensors(stack(batch))


def default_convert(data: Any) -> Any:
    """Make tensors of the arrays in nested containers, and lists of plain tuples.

    >>> import numpy as np
    >>> from picograd.nn.collate import default_convert
    >>> default_convert({"x": np.ones(2), "name": "a"})["x"].tolist()
    [1.0, 1.0]
    """
    return with_lists(to_tensors(data))


def with_lists(value: Any) -> Any:
    """Make lists of the tuples in nested containers, but for those with names."""
    is_plain = isinstance(value, tuple) and not is_named_tuple(value)
    return with_parts(list(value) if is_plain else value, with_lists)


def stack(batch: Sequence[Any]) -> Any:
    """Join samples on the host: arrays for numbers and arrays; see `default_collate`."""
    first = batch[0]
    for known, join in default_collate_fn_map.items():
        if isinstance(first, known):
            return join(batch, collate_fn_map=default_collate_fn_map)
    if isinstance(first, Tensor):
        _check_shapes(batch)
        return stack_tensors(list(batch))
    if isinstance(first, (np.ndarray, np.generic)) and first.dtype.kind in NUMERIC:
        _check_shapes(batch)
        return np.stack([np.asarray(each) for each in batch])
    for kind, dtype in NUMBERS:
        if isinstance(first, kind):
            return np.array(batch, dtype)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return like(first, {key: stack([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        return _stack_columns(batch)
    problem = f"samples contain {type(first).__name__}, which no batch is made of"
    fix = "return arrays, numbers, strings, tuples or dicts, or pass collate_fn"
    raise DTypeError("default_collate", problem, fix)


def _stack_columns(batch: Sequence[Any]) -> Any:
    """Join tuples or lists position by position; other classes than tuples are kept."""
    first = batch[0]
    lengths = sorted({len(sample) for sample in batch})
    if len(lengths) > 1:
        problem = f"samples have {lengths[0]} to {lengths[-1]} elements"
        raise ShapeError("default_collate", problem, "make them equally long, or pass collate_fn")
    columns = [stack(column) for column in zip(*batch)]
    is_plain = isinstance(first, tuple) and not is_named_tuple(first)
    return columns if is_plain else like(first, columns)


def like(container: Any, items: Any) -> Any:
    """Put items in a container of the class of another, where it takes them.

    A mapping keeps its attributes, too: programs call methods of their own of batches.
    """
    kind = type(container)
    try:
        if kind is dict or not isinstance(container, MutableMapping):
            return kind(*items) if is_named_tuple(container) else kind(items)
        made = copy(container)
        made.update(items)
    except TypeError:
        return items
    return made


def is_named_tuple(value: Any) -> bool:
    """Tell whether a tuple has names for its fields."""
    return isinstance(value, tuple) and hasattr(type(value), "_fields")


def _check_shapes(batch: Sequence[Any]) -> None:
    """Raise ShapeError naming the first row whose shape differs."""
    wanted = tuple(batch[0].shape)
    for position, row in enumerate(batch):
        shape = tuple(np.shape(row)) if not isinstance(row, Tensor) else tuple(row.shape)
        if shape != wanted:
            problem = f"sample {position} has shape {shape} and sample 0 has {wanted}"
            raise ShapeError(
                "default_collate", problem, "give samples one shape, or pass collate_fn"
            )


def to_tensors(value: Any, device: DeviceLike | None = None) -> Any:
    """Make tensors of the arrays in nested containers, and move the tensors there to `device`."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in NUMERIC:
        return Tensor.of(value, device=device)
    if isinstance(value, Tensor):
        return value if device is None else value.to(device)
    return with_parts(value, lambda each: to_tensors(each, device))


def with_parts(value: Any, change: Callable[[Any], Any]) -> Any:
    """Change what is directly in a container; anything else stays as it is."""
    if isinstance(value, Mapping):
        return like(value, {key: change(each) for key, each in value.items()})
    is_row = isinstance(value, Sequence) and not isinstance(value, (str, bytes, memoryview))
    return like(value, list(map(change, value))) if is_row else value


def computed(value: Any, as_arrays: bool) -> Any:
    """Compute the tensors in nested containers, and turn those that arrays hold into arrays."""
    if isinstance(value, Tensor):
        is_array = as_arrays and is_host(value.device) and value.dtype.storage == value.dtype.numpy
        return value.numpy() if is_array and not value.requires_grad else value.realize()
    return with_parts(value, lambda each: computed(each, as_arrays))


def holds_tensor(value: Any) -> bool:
    """Tell whether there is a tensor in nested containers."""
    if isinstance(value, Mapping):
        return any(holds_tensor(each) for each in value.values())
    if isinstance(value, (tuple, list)):
        return any(holds_tensor(each) for each in value)
    return isinstance(value, Tensor)


def pin_memory(data: Any, device: Any = None) -> Any:
    """Give data back: copies to a device wait for nothing more."""
    return data
