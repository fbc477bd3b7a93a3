"""PyTorch's `torch._foreach_*`: one function for each tensor of a list, as optimizers call them.

    torch._foreach_add_(params, updates, alpha=-0.1)

Kernels of many tensors are merged anyway, so each calls the function tensor by tensor.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from picograd.device_name import device as device_named
from picograd.dtype import to_dtype
from picograd.errors import ShapeError, ValueRangeError
from picograd.tensor.tensor import Tensor

PREFIX = "_foreach_"
OPERANDS = ("tensor1", "tensor2", "other", "scalar", "scalars", "exponent")  # by name, in order
_foreach_supported_types = [Tensor]  # PyTorch's name in `utils._foreach_utils`


def bounded(method: str, bound: str) -> Callable[[Tensor, Any], Tensor]:
    """Compare with a tensor by one method, with a number by another."""

    def compare(x: Tensor, y: Any) -> Tensor:
        name = method if isinstance(y, Tensor) else bound
        return getattr(x, name)(y)

    return compare


def norm_of(x: Tensor, *order: Any, **named: Any) -> Tensor:
    """Give a norm; which one, PyTorch calls `ord` here and `p` elsewhere."""
    if "ord" in named:
        named["p"] = named.pop("ord")
    return x.norm(*order, **named)


# functions that take other operands than the method of their name
OTHERS: dict[str, Callable[..., Any]] = {
    "addcdiv": lambda x, a, b, value=1: x.addcdiv(a, b, value=value),
    "addcmul": lambda x, a, b, value=1: x.addcmul(a, b, value=value),
    "copy": lambda x, source, non_blocking=False: source,
    "maximum": bounded("maximum", "clamp_min"),
    "minimum": bounded("minimum", "clamp_max"),
    "norm": norm_of,
    "pow": lambda x, y: x**y,
    "zero": lambda x: x * 0 if x.dtype.is_complex else x.zeros_like(),
}


def find_foreach(name: str) -> Callable[..., Any]:
    """Make the function of a name such as `_foreach_add_`. Raises AttributeError.

    >>> import picograd
    >>> xs = [picograd.Tensor([1.0]), picograd.Tensor([2.0, 3.0])]
    >>> picograd._foreach_mul_(xs, 2)
    >>> [x.tolist() for x in picograd._foreach_add(xs, xs, alpha=10)]
    [[22.0], [44.0, 66.0]]
    """
    base = name.removeprefix(PREFIX)
    bare = base.removesuffix("_")
    one = OTHERS.get(bare) or getattr(Tensor, bare)

    def over_each(first: Any, *others: Any, **options: Any) -> Any:
        others += tuple(options.pop(each) for each in OPERANDS if each in options)
        rows = rows_of(name, first, others)
        if base == bare:
            return [one(*row, **options) for row in rows]
        for row in rows:  # one after the other: they may share memory
            row[0].copy_(one(*row, **options))
        return None

    over_each.__name__ = name
    return over_each


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False
) -> dict[Any, Any]:
    """Group parallel lists by device and dtype of the first: {key: (lists, places)}."""
    groups: dict[Any, Any] = {}
    count = len(tensorlistlist[0])
    filled = [each or [None] * count for each in tensorlistlist]
    for place in range(count):
        row = [each[place] for each in filled]
        first = row[0]
        key = first.device, first.dtype
        if key not in groups:
            groups[key] = [[] for _ in row], []
        lists, places = groups[key]
        places.append(place)
        for column, each in zip(lists, row):
            column.append(each)
    return groups


def rows_of(name: str, first: Any, others: Sequence[Any]) -> list[tuple[Any, ...]]:
    """List the operands of each call; what is no list serves all. Raises ShapeError."""
    operands = (first, *others)
    is_list = [isinstance(each, (list, tuple)) for each in operands]
    lists = [each for each, many in zip(operands, is_list) if many]
    counts = set(map(len, lists))
    if len(counts) != 1:
        problem = f"lists of {sorted(counts)} tensors" if counts else "there is no list"
        raise ShapeError(name, problem, "give lists of one length")
    count = counts.pop()
    columns = [each if many else [each] * count for each, many in zip(operands, is_list)]
    return list(zip(*columns))


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Join the elements of tensors, one tensor behind the other."""
    return Tensor.cat([each.reshape(-1) for each in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Cut what was joined into tensors of the shapes of others.

    >>> like = [Tensor([1.0, 2.0]), Tensor([[3.0]])]
    >>> [each.tolist() for each in _unflatten_dense_tensors(Tensor([4, 5, 6]), like)]
    [[4, 5], [[6]]]
    """
    parts = flat.split([each.numel() for each in tensors])
    return tuple(part.view(each.shape) for part, each in zip(parts, tensors))


def _take_tensors(tensors: Sequence[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Cut a list of tensors into lists of one dtype and device, of up to so many bytes.

    >>> [len(each) for each in _take_tensors([Tensor([1.0, 2.0])] * 5, 16)]
    [2, 2, 1]
    """
    waiting: dict[Any, list[Tensor]] = {}
    room: dict[Any, int] = {}
    for tensor in tensors:
        kind = tensor.dtype, tensor.device
        if kind in waiting and tensor.nbytes > room[kind]:
            yield waiting.pop(kind)
        waiting.setdefault(kind, []).append(tensor)
        room[kind] = (size_limit if len(waiting[kind]) == 1 else room[kind]) - tensor.nbytes
    yield from waiting.values()


def _get_device_index(device: Any = None, optional: bool = False, allow_cpu: bool = False) -> int:
    """Give the number of a device. Raises ValueError for one without, unless it is `optional`."""
    index = device if isinstance(device, int) else device_named(device or "cuda").index
    if index is None and not (optional or allow_cpu):
        raise ValueRangeError("device", f"{device} has no number", 'write it: "cuda:0"')
    return 0 if index is None else index


def _element_size(dtype: Any) -> int:
    """Count the bytes of an element."""
    return to_dtype(dtype).itemsize
