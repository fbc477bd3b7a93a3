"""PyTorch's `torch.testing`: tensors are compared with the tolerances of their dtypes."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from picograd.dtype import DType, bfloat16, bool_, complex64, complex128, float16, float32, float64
from picograd.errors import DTypeError, ValueRangeError
from picograd.late_methods import dataclass
from picograd.tensor.core.type_info import finfo, iinfo
from picograd.tensor.tensor import Tensor

# PyTorch's: relative, absolute
TOLERANCES: dict[DType, tuple[float, float]] = {
    float16: (1e-3, 1e-5), bfloat16: (1.6e-2, 1e-5), float32: (1.3e-6, 1e-5),
    complex64: (1.3e-6, 1e-5), float64: (1e-7, 1e-7), complex128: (1e-7, 1e-7),
}  # fmt: skip


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    Tensors, numbers, and sequences and mappings of them. Shape, dtype and device must be equal
    too, unless told. Tolerances default to PyTorch's for the dtype: 1.3e-6 and 1e-5 for float32.

    >>> import picograd
    >>> picograd.testing.assert_close(picograd.Tensor([1.0]), picograd.Tensor([1.0 + 1e-7]))
    """
    if (rtol is None) != (atol is None):
        raise DTypeError("assert_close", "one of rtol and atol is given", "give both, or none")
    given = None if rtol is None or atol is None else (rtol, atol)
    checks = {"device": check_device, "dtype": check_dtype}
    attributes = tuple(name for name, is_checked in checks.items() if is_checked)
    problem = difference(actual, expected, Comparison(given, equal_nan, attributes))
    if problem is not None:
        text = msg(problem) if callable(msg) else msg
        raise AssertionError(text or problem)


def make_tensor(
    *shape: Any,
    dtype: DType,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Draw a tensor from [low, high): of any dtype, at will in memory with gaps.

    Bools are 0 or 1, unsigned integers 0 to 9, others from [-9, 9) or, signed integers, to 9. A
    zero becomes the smallest normal number (1 of integers) where `exclude_zero` asks for it.

    >>> import picograd
    >>> x = picograd.testing.make_tensor(2, 3, dtype=picograd.int64, low=5, high=6)
    >>> x.tolist()
    [[5, 5, 5], [5, 5, 5]]
    """
    if noncontiguous and memory_format is not None:
        raise ValueRangeError("make_tensor", "memory is given both gaps and a format", "give one")
    sizes = tuple(shape[0]) if len(shape) == 1 and is_listed(shape[0]) else shape
    has_gaps = noncontiguous and math.prod(sizes) > 1
    least, most = drawn_range(dtype, low, high)
    wide_sizes = (*sizes[:-1], sizes[-1] * 2) if has_gaps else sizes
    drawn: Any = draw(wide_sizes, dtype, device, least, most)
    if has_gaps:
        drawn = drawn[..., ::2]
    if memory_format is not None:
        drawn = drawn.contiguous(memory_format=memory_format)
    if exclude_zero:
        tiny = finfo(dtype).tiny if dtype.is_differentiable else 1
        one = complex(tiny, tiny) if dtype.is_complex else tiny
        drawn.masked_fill_(drawn == 0, one)
    return drawn.requires_grad_(requires_grad)


def drawn_range(dtype: DType, low: float | None, high: float | None) -> tuple[float, float]:
    """Choose the numbers that are drawn between, within those that a dtype has."""
    op, is_float = "make_tensor", dtype.is_differentiable
    if dtype is bool_:
        lowest, highest, usual = 0.0, 2.0, (0.0, 2.0)
    elif is_float:
        lowest, highest, usual = finfo(dtype).min, finfo(dtype).max, (-9.0, 9.0)
    else:
        lowest, highest = iinfo(dtype).min, iinfo(dtype).max + 1
        usual = (-9.0, 10.0) if lowest else (0.0, 10.0)
    least, most = usual[0] if low is None else low, usual[1] if high is None else high
    if not (least < most or (least == most and is_float)):  # NaN is refused, too
        raise ValueRangeError(op, f"low {least} is not below high {most}", "give a lower low")
    if most < lowest or least >= highest:
        text = f"no {dtype.name} is in [{least}, {most})"
        raise ValueRangeError(op, text, f"stay within [{lowest}, {highest})")
    least, most = max(least, lowest), min(most, highest)
    return (least, most) if is_float else (math.ceil(least), math.ceil(most))


def draw(sizes: tuple[int, ...], dtype: DType, device: Any, low: float, high: float) -> Tensor:
    """Draw a tensor between two numbers."""
    if dtype.is_complex:
        parts = float32 if dtype is complex64 else float64
        real, imaginary = (draw(sizes, parts, device, low, high) for _ in range(2))
        return (real + imaginary * 1j).to(dtype)
    if not dtype.is_differentiable:
        return Tensor.empty(sizes, dtype=dtype, device=device).random_(int(low), int(high))
    if high - low > finfo(float64).max:
        return Tensor.empty(sizes, dtype=dtype, device=device).uniform_(low / 2, high / 2).mul_(2)
    return Tensor.empty(sizes, dtype=float64, device=device).uniform_(low, high).to(dtype)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How tensors are compared: tolerances are those of their dtypes unless given."""

    tolerances: tuple[float, float] | None
    equal_nan: bool
    attributes: tuple[str, ...]  # that must be equal too


def difference(actual: Any, expected: Any, how: Comparison) -> str | None:
    """Say how two values differ, or None."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            return f"the keys differ: {sorted(actual)} and {sorted(expected)}"
        pairs = [(f"[{key!r}]", actual[key], expected[key]) for key in expected]
    elif is_listed(actual) and is_listed(expected):
        if len(actual) != len(expected):
            return f"the lengths differ: {len(actual)} and {len(expected)}"
        pairs = [(f"[{n}]", a, b) for n, (a, b) in enumerate(zip(actual, expected, strict=True))]
    else:
        return tensor_difference(actual, expected, how)
    for where, a, b in pairs:
        found = difference(a, b, how)
        if found is not None:
            return f"item {where}: {found}"
    return None


def is_listed(value: Any) -> bool:
    """Tell whether a value is a sequence of others."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def tensor_difference(actual: Any, expected: Any, how: Comparison) -> str | None:
    """Say how two tensors or numbers differ, or None."""
    if actual is None or expected is None:
        return None if actual is expected else f"{actual} is not {expected}"
    a, b = (x if isinstance(x, Tensor) else Tensor.of(x) for x in (actual, expected))
    if a.shape != b.shape:
        return f"the shapes differ: {a.shape} and {b.shape}"
    if isinstance(actual, Tensor) and isinstance(expected, Tensor):
        for name in how.attributes:
            one, other = getattr(a, name), getattr(b, name)
            if one != other:
                return f"the {name}s differ: {one} and {other}"
    relative, absolute = how.tolerances or widest(a, b)
    found, wanted = (wide(x) for x in (a, b))
    is_close = np.isclose(found, wanted, relative, absolute, how.equal_nan)
    if is_close.all():
        return None
    apart = np.abs(found - wanted)
    worst = np.unravel_index(int(np.argmax(np.where(is_close, 0, apart))), apart.shape)
    count = int(is_close.size - is_close.sum())
    where = tuple(int(place) for place in worst)
    return (
        f"{count} of {is_close.size} elements are not close: at {where} {found[worst]} for"
        f" {wanted[worst]} (rtol={relative}, atol={absolute})"
    )


def widest(*tensors: Tensor) -> tuple[float, float]:
    """Take the larger tolerances of the dtypes; integers and bools must be equal."""
    found = [TOLERANCES.get(tensor.dtype, (0.0, 0.0)) for tensor in tensors]
    return max(r for r, _ in found), max(a for _, a in found)


def wide(tensor: Tensor) -> "np.ndarray[Any, Any]":
    """Read a tensor in the widest dtype of its kind."""
    array = tensor.detach().numpy()
    kind = array.dtype.kind
    if kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.float64) if kind != "b" else array.astype(np.int64)


assert_allclose = assert_close  # the older name
