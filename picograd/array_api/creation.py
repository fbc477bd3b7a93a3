"""Functions of the array API that make tensors."""

from picograd.dtype import default_float
from picograd.tensor.core.annotations import DeviceLike, DTypeLike, Scalar, Sizes
from picograd.tensor.making.from_data import asarray
from picograd.tensor.shaping.joining import meshgrid as grids
from picograd.tensor.tensor import Tensor

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
    "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


Dtype = DTypeLike | None
Device = DeviceLike | None
from_dlpack = Tensor.from_dlpack


def arange(
    start: Scalar,
    /,
    stop: Scalar | None = None,
    step: Scalar = 1,
    *,
    dtype: Dtype = None,
    device: Device = None,
) -> Tensor:
    """Count from start, or 0, up to but not including stop; empty if step leads away from it."""
    first, last = (0, start) if stop is None else (start, stop)
    if (last - first) * step <= 0:
        whole = float not in map(type, (first, last, step))
        return Tensor.zeros(0, dtype=dtype or ("int64" if whole else None), device=device)
    return Tensor.arange(first, last, step, dtype=dtype, device=device)


def linspace(
    start: Scalar,
    stop: Scalar,
    /,
    num: int,
    *,
    dtype: Dtype = None,
    device: Device = None,
    endpoint: bool = True,
) -> Tensor:
    """Space numbers evenly, with or without the last one."""
    if endpoint:
        return Tensor.linspace(start, stop, num, dtype=dtype, device=device)
    longer = Tensor.linspace(start, stop, num + 1, dtype=dtype, device=device)
    return longer[:num]


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Dtype = None,
    device: Device = None,
) -> Tensor:
    """Make a matrix with ones on its k-th diagonal."""
    columns = n_rows if n_cols is None else n_cols
    k = max(-n_rows, min(k, columns))
    rows = Tensor.arange(n_rows, device=device).unsqueeze(1)
    places = Tensor.arange(columns, device=device)
    found = rows + k == places
    return found.cast(dtype or default_float())


def zeros(shape: Sizes, *, dtype: Dtype = None, device: Device = None) -> Tensor:
    """Make zeros."""
    return Tensor.zeros(shape, dtype=dtype, device=device)


def ones(shape: Sizes, *, dtype: Dtype = None, device: Device = None) -> Tensor:
    """Make ones."""
    return Tensor.ones(shape, dtype=dtype, device=device)


def empty(shape: Sizes, *, dtype: Dtype = None, device: Device = None) -> Tensor:
    """Make a tensor whose values nobody promises."""
    return Tensor.empty(shape, dtype=dtype, device=device)


def full(shape: Sizes, fill_value: Scalar, *, dtype: Dtype = None, device: Device = None) -> Tensor:
    """Fill a shape with one value."""
    return Tensor.full(shape, fill_value, dtype=dtype, device=device)


def full_like(
    x: Tensor, /, fill_value: Scalar, *, dtype: Dtype = None, device: Device = None
) -> Tensor:
    """Fill the shape of a tensor with one value."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def zeros_like(x: Tensor, /, *, dtype: Dtype = None, device: Device = None) -> Tensor:
    """Make zeros in the shape of a tensor."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Dtype = None, device: Device = None) -> Tensor:
    """Make ones in the shape of a tensor."""
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Dtype = None, device: Device = None) -> Tensor:
    """Make a tensor in the shape of another, whose values nobody promises."""
    return full_like(x, 0, dtype=dtype, device=device)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Repeat coordinates over the grid they span."""
    return tuple(grids(*arrays, indexing=indexing))


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Keep the lower triangle of matrices."""
    return x.tril(k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Keep the upper triangle of matrices."""
    return x.triu(k)
