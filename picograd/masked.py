"""PyTorch's `torch.masked`: reductions and shares of the elements that a mask chooses.

`mask` broadcasts to the input; where it is False an element counts as what changes no result (0 of
a sum). Without a mask all elements count.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from picograd.dtype import DType, bool_
from picograd.errors import ShapeError, ValueRangeError, not_a_tensor
from picograd.graph.shape import broadcast_shapes
from picograd.nn import functional
from picograd.tensor import public
from picograd.tensor.core.guard import guard_functions
from picograd.tensor.core.type_info import iinfo
from picograd.tensor.linalg.decompositions import vector_norm
from picograd.tensor.tensor import Tensor

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp",
    "logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum",
    "var",
]  # fmt: skip

Axes = int | Sequence[int] | None
Mask = Tensor | None
Filled = Callable[..., Tensor]


def chosen(op: str, x: Tensor, mask: Mask, neutral: float, dtype: DType | None = None) -> Tensor:
    """Put a neutral number where a mask is False. ShapeError if the mask does not broadcast."""
    if not isinstance(x, Tensor):
        raise not_a_tensor(op, "the input", x)
    if dtype is not None:
        x = x.to(dtype)
    if mask is None:
        return x
    mask = as_mask(op, x, mask)
    if not x.dtype.is_differentiable and math.isinf(neutral):
        limits = iinfo(x.dtype)
        neutral = limits.max if neutral > 0 else limits.min
    return x.masked_fill(~mask, neutral)


def as_mask(op: str, x: Tensor, mask: Tensor) -> Tensor:
    """Read a mask, in which 0 is False. Raises unless it is a tensor that broadcasts to `x`."""
    if not isinstance(mask, Tensor):
        raise not_a_tensor(op, "the mask", mask)
    if broadcast_shapes(x.shape, mask.shape, op=op) != x.shape:
        text = f"the mask {mask.shape} does not broadcast to the input {x.shape}"
        raise ShapeError(op, text, "reshape the mask")
    return mask.to(bool_)


def axes_of(x: Tensor, dim: Axes) -> tuple[int, ...]:
    """List the axes that are reduced: all of them without `dim`."""
    if dim is None or dim == ():
        return tuple(range(x.dim()))
    return (dim,) if isinstance(dim, int) else tuple(dim)


def counts(x: Tensor, mask: Mask, dim: Axes, keepdim: bool) -> Tensor:
    """Count the elements that each place of a reduction has."""
    ones = public.ones_like(x).detach()
    return chosen("mask", ones, mask, 0.0).sum(axes_of(x, dim), keepdim=keepdim)


def sum(
    input: Tensor, dim: Axes = None, *, keepdim: bool = False, dtype: Any = None, mask: Mask = None
) -> Tensor:
    """Add what a mask chooses along axes, or all of it; nothing gives 0.

    >>> import picograd
    >>> mask = picograd.tensor([True, False, True])
    >>> picograd.masked.sum(picograd.tensor([1.0, 2.0, 3.0]), 0, mask=mask).tolist()
    4.0
    """
    x = chosen("masked.sum", input, mask, 0.0, dtype)
    return x.sum(axes_of(x, dim), keepdim=keepdim)


def prod(
    input: Tensor, dim: Axes = None, *, keepdim: bool = False, dtype: Any = None, mask: Mask = None
) -> Tensor:
    """Multiply what a mask chooses along axes, or all of it; nothing gives 1."""
    x = chosen("masked.prod", input, mask, 1.0, dtype)
    for axis in sorted((axis % x.dim() for axis in axes_of(x, dim)), reverse=True):
        x = x.prod(axis, keepdim=keepdim)
    return x


def amax(
    input: Tensor, dim: Axes = None, *, keepdim: bool = False, dtype: Any = None, mask: Mask = None
) -> Tensor:
    """Find the largest of what a mask chooses; nothing gives -inf, or the least whole number."""
    x = chosen("masked.amax", input, mask, -math.inf, dtype)
    return x.amax(axes_of(x, dim), keepdim=keepdim)


def amin(
    input: Tensor, dim: Axes = None, *, keepdim: bool = False, dtype: Any = None, mask: Mask = None
) -> Tensor:
    """Find the smallest of what a mask chooses; nothing gives inf, or the largest whole number."""
    x = chosen("masked.amin", input, mask, math.inf, dtype)
    return x.amin(axes_of(x, dim), keepdim=keepdim)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Mask = None,
) -> Tensor:
    """Find where the largest of what a mask chooses is."""
    return chosen("masked.argmax", input, mask, -math.inf, dtype).argmax(dim, keepdim)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Mask = None,
) -> Tensor:
    """Find where the smallest of what a mask chooses is."""
    return chosen("masked.argmin", input, mask, math.inf, dtype).argmin(dim, keepdim)


def mean(
    input: Tensor, dim: Axes = None, *, keepdim: bool = False, dtype: Any = None, mask: Mask = None
) -> Tensor:
    """Average what a mask chooses along axes, or all of it; nothing gives NaN.

    >>> import picograd
    >>> mask = picograd.tensor([True, False, True])
    >>> picograd.masked.mean(picograd.tensor([1.0, 2.0, 3.0]), 0, mask=mask).tolist()
    2.0
    """
    if not (dtype or input.dtype).is_differentiable:
        text = f"the input is {input.dtype.name}, an average has fractions"
        raise ValueRangeError("masked.mean", text, "pass dtype=picograd.float32")
    x = chosen("masked.mean", input, mask, 0.0, dtype)
    return x.sum(axes_of(x, dim), keepdim=keepdim) / counts(x, mask, dim, keepdim)


def var(
    input: Tensor,
    dim: Axes = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Mask = None,
) -> Tensor:
    """Find the variance of what a mask chooses; one is taken off its count, or `correction`.

    Raises ValueRangeError if both `unbiased` and `correction` are given.
    """
    if unbiased is not None and correction is not None:
        problem = "unbiased and correction were given"
        raise ValueRangeError("masked.var", problem, "pass one of them")
    x = input if input.dtype.is_differentiable else input.float()
    x = chosen("masked.var", x, mask, 0.0, dtype)
    centre = mean(x, dim, keepdim=True, mask=mask)
    apart = chosen("masked.var", x - centre, mask, 0.0)
    less = correction if correction is not None else float(unbiased is not False)
    number = (counts(x, mask, dim, keepdim) - less).clamp(min=0)
    return apart.square().sum(axes_of(x, dim), keepdim=keepdim) / number


def std(input: Tensor, dim: Axes = None, unbiased: bool | None = None, **options: Any) -> Tensor:
    """Find the deviation of what a mask chooses: the root of `var`, whose options these are."""
    return var(input, dim, unbiased, **options).sqrt()


def norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Axes = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Mask = None,
) -> Tensor:
    """Find the p-norm of what a mask chooses; `ord` is p, also infinite."""
    x = chosen("masked.norm", input, mask, math.inf if ord == -math.inf else 0.0, dtype)
    return vector_norm(x, ord, axes_of(x, dim), keepdim)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Mask = None
) -> Tensor:
    """Divide by the p-norm of what a mask chooses along an axis, or by `eps` where it is less."""
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask).clamp(min=eps)
    return chosen("masked.normalize", input, mask, 0.0, dtype) / length


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Mask = None
) -> Tensor:
    """Find the lower median of what a mask chooses along an axis; nothing gives NaN."""
    x = chosen("masked.median", input, mask, math.nan, dtype)
    return x.nanmedian(dim, keepdim).values


def along(compute: Filled, neutral: float, reads: str) -> Filled:
    """Make a function along an axis of what a mask chooses; what it leaves out is neutral."""
    name = compute.__name__

    def function(input: Tensor, dim: int, *, dtype: Any = None, mask: Mask = None) -> Tensor:
        x = chosen(f"masked.{name}", input, mask, neutral, dtype)
        return compute(x, dim)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Compute `{name}` along an axis, in which {reads}.

    `dtype` is that of the result; where the mask is False it has no meaning.
    """
    return function


softmax = along(functional.softmax, -math.inf, "what the mask leaves out has no share")
log_softmax = along(functional.log_softmax, -math.inf, "what the mask leaves out has no share")
softmin = along(functional.softmin, math.inf, "what the mask leaves out has no share")
cumsum = along(public.cumsum, 0.0, "what the mask leaves out is 0")
cumprod = along(public.cumprod, 1.0, "what the mask leaves out is 1")


def logsumexp(
    input: Tensor, dim: Axes = None, *, keepdim: bool = False, dtype: Any = None, mask: Mask = None
) -> Tensor:
    """Find log of the sum of exponentials of what a mask chooses; nothing gives -inf."""
    x = input if input.dtype.is_differentiable else input.float()
    x = chosen("masked.logsumexp", x, mask, -math.inf, dtype)
    return x.logsumexp(axes_of(x, dim), keepdim)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Mask = None,
    other_mask: Mask = None,
) -> Tensor:
    """Find log of the sum of two exponentials, each of which counts where its mask is True."""
    left = chosen("masked.logaddexp", input, input_mask, -math.inf, dtype)
    right = chosen("masked.logaddexp", other, other_mask, -math.inf, dtype)
    return public.logaddexp(left, right)


guard_functions(globals(), __all__)
