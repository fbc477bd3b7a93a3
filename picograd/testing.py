"""PyTorch's `torch.testing`: tensors are compared with the tolerances of their dtypes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from picograd.dtype import DType, bfloat16, complex64, complex128, float16, float32, float64
from picograd.errors import DTypeError
from picograd.late_methods import dataclass
from picograd.tensor.tensor import Tensor

# PyTorch's: relative, absolute
TOLERANCES: dict[DType, tuple[float, float]] = {
    float16: (1e-3, 1e-5),
    bfloat16: (1.6e-2, 1e-5),
    float32: (1.3e-6, 1e-5),
    complex64: (1.3e-6, 1e-5),
    float64: (1e-7, 1e-7),
    complex128: (1e-7, 1e-7),
}


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
