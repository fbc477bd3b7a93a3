"""Clipping of gradients: by their common norm, or element by element. `nn.utils` exports it."""

import math
from collections.abc import Iterable
from functools import reduce
from typing import Any

from picograd.dtype import float32, promote
from picograd.errors import DTypeError, GradientError, ValueRangeError
from picograd.tensor.core.alone import change_gradient
from picograd.tensor.tensor import Tensor

# PyTorch's guard against dividing by a norm of zero.
NORM_EPS = 1e-6


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Compute the norm of the norms of several tensors: (), in the first one's dtype.

    `norm_type` p may be inf (the largest size), -inf (the smallest) or 0 (a count). 16-bit floats
    are summed in float32. Raises GradientError if asked to and the norm is not finite.

    >>> from picograd import Tensor, nn
    >>> nn.utils.get_total_norm([Tensor([3.0]), Tensor([[4.0]])]).item()
    5.0
    """
    values = _read_list("get_total_norm", tensors)
    power = read_limit("get_total_norm", "norm_type", norm_type)
    if not values:
        return Tensor(0.0)
    first = values[0]
    norms = [_norm(value, power).to(first.device) for value in values]
    total = norms[0] if len(norms) == 1 else _norm(Tensor.stack(norms), power)
    if error_if_nonfinite and not math.isfinite(float(total.item())):
        problem = f"the norm of the gradients is {total.item()}"
        raise GradientError("get_total_norm", problem, "lower the learning rate")
    return total.cast(reduce(promote, [value.dtype.real for value in values]))


def _norm(value: Tensor, power: float) -> Tensor:
    """Compute the p-norm of all elements, at least in float32; it is real."""
    wide = value.detach().cast(promote(value.dtype, float32))
    if wide.dtype.is_complex:
        wide = wide.abs()
    if power == 2.0:
        return wide.square().sum().sqrt()
    if math.isinf(power):
        return wide.abs().amax() if power > 0 else wide.abs().amin()
    if power == 0.0:
        return (wide != 0.0).cast(wide.dtype).sum()
    total = (wide.abs() ** power).sum()
    return total if power == 1.0 else total ** (1.0 / power)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients together so that their norm is at most `max_norm`; returns the norm.

    Nothing is computed until the optimizer's step, unless `error_if_nonfinite` asks: then a norm
    that is not finite raises GradientError. Pascanu et al. (2013).

    >>> from picograd import Tensor, nn
    >>> weight = nn.Parameter(Tensor([3.0, 4.0]))
    >>> (weight * weight / 2).sum().backward()
    >>> nn.utils.clip_grad_norm_(weight, 1.0).item()
    5.0
    """
    owners = _read_list("clip_grad_norm_", parameters)
    max_norm = read_limit("clip_grad_norm_", "max_norm", max_norm)
    given = (owner.grad for owner in owners if owner.grad is not None)  # held by no variable here
    total = get_total_norm(given, norm_type, error_if_nonfinite)
    clip_grads_with_norm_(owners, max_norm, total)
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scale gradients by max_norm / total_norm where that is less than 1.

    >>> from picograd import Tensor, nn
    >>> x = Tensor([0.0, 0.0], requires_grad=True)
    >>> (x * Tensor([3.0, 4.0])).sum().backward()
    >>> nn.utils.clip_grads_with_norm_([x], 1.0, Tensor(5.0))
    >>> [round(value, 4) for value in x.grad.tolist()]
    [0.6, 0.8]
    """
    factor = (max_norm / (total_norm.detach() + NORM_EPS)).minimum(1.0)
    for owner in _owners("clip_grads_with_norm_", parameters):
        change_gradient(owner, lambda gradient: gradient * factor.to(gradient.device))


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Limit every element of every gradient to [-clip_value, clip_value].

    >>> from picograd import Tensor, nn
    >>> weight = nn.Parameter(Tensor([1.0, 2.0]))
    >>> weight.grad = Tensor([3.0, -0.5])
    >>> nn.utils.clip_grad_value_(weight, 1.0)
    >>> weight.grad.tolist()
    [1.0, -0.5]
    """
    bound = read_limit("clip_grad_value_", "clip_value", clip_value)
    for owner in _owners("clip_grad_value_", parameters):
        change_gradient(owner, lambda gradient: gradient.clamp(-bound, bound))


def _owners(op: str, parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    """List the tensors that have gradients."""
    return [owner for owner in _read_list(op, parameters) if owner.grad is not None]


def read_limit(op: str, name: str, value: Any) -> float:
    """Read a number. Raises ValueRangeError for what is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        problem = f"{name} must be a number, not {value!r}"
        raise ValueRangeError(op, problem, "pass a float") from None


def _read_list(op: str, tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    if not isinstance(tensors, Iterable):
        problem = f"{type(tensors).__name__} is no list of parameters"
        raise DTypeError(op, problem, "pass model.parameters()")
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    for item in listed:
        if not isinstance(item, Tensor):
            problem = f"{type(item).__name__} is no parameter"
            raise DTypeError(op, problem, "pass model.parameters()")
    return listed
