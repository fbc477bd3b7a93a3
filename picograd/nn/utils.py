"""Tools of training: gradient clipping and parameters as one vector; packed sequences."""

import math
from collections.abc import Iterable

from picograd.errors import DTypeError, ShapeError, StateError, ValueRangeError
from picograd.nn.parameter import overwrite
from picograd.nn.recurrent import (
    PackedSequence,
    pack_padded_sequence,
    pad_packed_sequence,
)
from picograd.tensor.tensor import Tensor

__all__ = [
    "PackedSequence",
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "parameters_to_vector",
    "vector_to_parameters",
]
# PyTorch's guard against dividing by a norm of zero.
NORM_EPS = 1e-6


def get_total_norm(tensors: Iterable[Tensor], norm_type: float = 2.0) -> Tensor:
    """Compute the p-norm of all elements of several tensors: ()."""
    values = list(tensors)
    if not values:
        return Tensor(0.0)
    wide = [value.detach().float() for value in values]
    if math.isinf(norm_type):
        largest = [value.abs().amax() for value in wide]
        return Tensor.stack(largest).amax()
    powers = [_power(value, norm_type).sum() for value in wide]
    total = powers[0]
    for power in powers[1:]:
        total = total + power
    return total.sqrt() if norm_type == 2 else total ** (1.0 / norm_type)


def _power(value: Tensor, norm_type: float) -> Tensor:
    return value * value if norm_type == 2 else value.abs() ** norm_type


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale all gradients together so that their norm is at most `max_norm`; returns the norm.

    Nothing is computed until the optimizer's step, unless `error_if_nonfinite` asks: then a norm
    that is not finite raises ValueRangeError. Pascanu et al. (2013).

    >>> from picograd import Tensor, nn
    >>> weight = nn.Parameter(Tensor([3.0, 4.0]))
    >>> (weight * weight / 2).sum().backward()
    >>> nn.utils.clip_grad_norm_(weight, 1.0).item()
    5.0
    """
    owners = _with_gradient("clip_grad_norm_", parameters)
    total = get_total_norm([_gradient(owner) for owner in owners], norm_type)
    if error_if_nonfinite and not math.isfinite(float(total.item())):
        problem = f"the norm of the gradients is {total.item()}"
        raise ValueRangeError("clip_grad_norm_", problem, "lower the learning rate")
    factor = (max_norm / (total + NORM_EPS)).minimum(1.0)
    for owner in owners:
        gradient = _gradient(owner)
        owner.grad = (gradient * factor.to(gradient.device)).cast(gradient.dtype)
    return total


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Limit every element of every gradient to [-clip_value, clip_value]."""
    for owner in _with_gradient("clip_grad_value_", parameters):
        owner.grad = _gradient(owner).clamp(-clip_value, clip_value)


def _with_gradient(op: str, parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    for item in listed:
        if not isinstance(item, Tensor):
            problem = f"{type(item).__name__} is no parameter"
            raise DTypeError(op, problem, "pass model.parameters()")
    return [item for item in listed if item.grad is not None]


def _gradient(owner: Tensor) -> Tensor:
    if owner.grad is None:
        raise StateError("clip_grad", "a gradient disappeared", "do not clear it meanwhile")
    return owner.grad.detach()


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Join tensors to one vector."""
    return Tensor.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the pieces of a vector into tensors. Raises ShapeError if the sizes do not add up."""
    listed = list(parameters)
    sizes = [parameter.numel() for parameter in listed]
    if tuple(vec.shape) != (sum(sizes),):
        problem = f"vector of shape {tuple(vec.shape)}, {(sum(sizes),)} wanted"
        raise ShapeError("vector_to_parameters", problem, "pass one element per parameter")
    pieces = vec.split(sizes)
    overwrite([(p, piece.reshape(p.shape)) for p, piece in zip(listed, pieces)])
