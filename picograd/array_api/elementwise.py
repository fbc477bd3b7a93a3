"""Elementwise functions of the array API: tensors meet by their dtypes alone, numbers by kind."""

from collections.abc import Callable
from typing import Any

from picograd.dtype import promote
from picograd.errors import DTypeError
from picograd.tensor.core.annotations import TensorLike
from picograd.tensor.tensor import Tensor

# names of the standard -> those of the methods that compute them
UNARY = {
    name: name
    for name in (
        "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "conj", "cos",
        "cosh", "exp", "expm1", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2",
        "logical_not", "neg", "positive", "reciprocal", "signbit", "sin", "sinh",
        "sqrt", "square", "tan", "tanh",
    )
}  # fmt: skip
UNARY |= {"bitwise_invert": UNARY.pop("bitwise_not"), "negative": UNARY.pop("neg")}
BINARY = {
    name: name
    for name in (
        "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
        "bitwise_xor", "copysign", "divide", "equal", "greater", "greater_equal",
        "hypot", "less", "less_equal", "logaddexp", "logical_and", "logical_or", "logical_xor",
        "maximum", "minimum", "multiply", "nextafter", "not_equal", "pow", "subtract",
    )
}  # fmt: skip
BINARY |= {"equal": "eq"}
ROUNDING = ("ceil", "floor", "round", "trunc")
__all__ = [
    *UNARY, *BINARY, *ROUNDING, "clip", "floor_divide", "imag", "real", "remainder", "sign",
]  # fmt: skip


def together(*values: TensorLike) -> list[Any]:
    """Cast tensors to the dtype of them all: axes do not count, unlike in PyTorch's promotion."""
    tensors = [each for each in values if isinstance(each, Tensor)]
    if not tensors:
        raise DTypeError("array_api", "there is no tensor", "pass one beside the number")
    dtype = tensors[0].dtype
    for each in tensors[1:]:
        dtype = promote(dtype, each.dtype)
    return [each.cast(dtype) if isinstance(each, Tensor) else each for each in values]


def named(call: Any, name: str, meaning: str) -> Any:
    """Name a function that is made for this room, after what it computes."""
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Compute `{meaning}`."
    return call


def unary(name: str, method: str) -> Callable[[Tensor], Tensor]:
    """Make a function of one tensor."""
    compute: Callable[[Tensor], Tensor] = getattr(Tensor, method)

    def call(x: Tensor, /) -> Tensor:
        return compute(x)

    return named(call, name, f"Tensor.{method}")  # type: ignore[no-any-return]


def operands(x1: TensorLike, x2: TensorLike) -> tuple[Tensor, Any]:
    """Bring two operands together, the first of them as a tensor."""
    first, second = together(x1, x2)
    if not isinstance(first, Tensor):
        first = Tensor.full((), first, second.dtype, second.device)
    return first, second


def binary(name: str, method: str) -> Callable[[TensorLike, TensorLike], Tensor]:
    """Make a function of two tensors, or a tensor and a number."""
    compute: Callable[[Any, Any], Tensor] = getattr(Tensor, method)

    def call(x1: TensorLike, x2: TensorLike, /) -> Tensor:
        return compute(*operands(x1, x2))

    return named(call, name, f"Tensor.{method}")  # type: ignore[no-any-return]


def rounding(name: str) -> Callable[[Tensor], Tensor]:
    """Make a function that leaves whole numbers as they are."""
    compute: Callable[[Tensor], Tensor] = getattr(Tensor, name)

    def call(x: Tensor, /) -> Tensor:
        return x.clone() if x.dtype.is_integer else compute(x)

    return named(call, name, f"Tensor.{name}")  # type: ignore[no-any-return]


globals().update({name: unary(name, method) for name, method in UNARY.items()})
globals().update({name: binary(name, method) for name, method in BINARY.items()})
globals().update({name: rounding(name) for name in ROUNDING})


def sign(x: Tensor, /) -> Tensor:
    """Compute -1, 0 or 1, of complex numbers x / |x|; NaN stays."""
    found = x.sgn()
    return x.isnan().where(x, found) if x.dtype.is_float else found


def floor_divide(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Divide and round down; where a number is 0 or infinite, the quotient is what it is."""
    first, second = operands(x1, x2)
    found = first.floor_divide(second)
    if not found.dtype.is_float:
        return found
    quotient = first / second
    is_edge = (first == 0) | first.isinf() | (quotient == 0)
    return is_edge.where(quotient, found)


def remainder(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Compute what is left of a division that rounds down; 0 has the sign of the divisor."""
    first, divisor = operands(x1, x2)
    found = first.remainder(divisor)
    if not found.dtype.is_float:
        return found
    return (found == 0).where(found.copysign(divisor), found)


def real(x: Tensor, /) -> Tensor:
    """Give the real parts."""
    return x.real


def imag(x: Tensor, /) -> Tensor:
    """Give the imaginary parts."""
    return x.imag


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Limit elements to a range; the dtype stays."""
    result = x
    for compute, bound in ((Tensor.maximum, min), (Tensor.minimum, max)):
        if bound is not None:
            is_tensor = isinstance(bound, Tensor)
            limit = bound if is_tensor else Tensor.full((), bound, x.dtype, x.device)
            result = compute(result, limit.cast(x.dtype))
    return result
