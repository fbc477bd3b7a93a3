"""Weights computed from others before each call: weight_norm and spectral_norm, by a hook.

The parameter `weight` becomes an attribute that the hook computes; what is trained is beside it,
as `weight_g` and `weight_v`, or `weight_orig`. `parametrize` does the same by a property.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from picograd.errors import StateError, ValueRangeError
from picograd.nn.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter, is_lazy
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.tensor import Tensor

M = TypeVar("M", bound=Module)
ADJOINT = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
HOOKS = "_weight_hooks"  # name of a module's attribute: hook and handle by (kind, weight)


def norm_except(value: Tensor, dim: int | None) -> Tensor:
    """Compute the norms over all axes but one; over all of them for None."""
    axes = list(range(value.ndim))
    if dim is not None:
        axes.remove(dim % value.ndim)
    if not axes:
        return value.abs()
    keeps = dim is not None
    squares = value.square().sum(axes, keepdim=keeps)
    return squares.sqrt()


def scaled(direction: Tensor, size: Tensor, dim: int | None) -> Tensor:
    """Compute size * direction / |direction|."""
    return direction * (size / norm_except(direction, dim))


def spread_out(weight: Tensor, dim: int) -> Tensor:
    """Write a weight as a matrix whose rows are along one axis."""
    return weight.unsqueeze(0) if weight.ndim == 1 else weight.movedim(dim, 0).flatten(1)


def unit(vector: Tensor, eps: float) -> Tensor:
    """Divide a vector by its length, or by eps if that is longer."""
    length = vector.square().sum().sqrt()
    return vector / length.maximum(eps)


def attach(module: Module, kind: str, name: str, compute: Callable[[Module], Tensor]) -> None:
    """Compute a weight before each call of a module."""
    hooks = vars(module).setdefault(HOOKS, {})
    key = kind, name
    if key in hooks:
        problem = f"{type(module).__name__} has {kind} on {name} already"
        raise ValueRangeError(kind, problem, f"call remove_{kind} first")

    hooks[key] = compute, module.register_forward_pre_hook(partial(renew, name, compute))


def renew(name: str, compute: Callable[[Module], Tensor], owner: Module, inputs: Any) -> None:
    """Compute a weight: a hook, which is pickled with the module."""
    setattr(owner, name, compute(owner))


def detach(module: M, kind: str, name: str) -> M:
    """Make the computed weight a parameter again."""
    found = vars(module).get(HOOKS, {}).pop((kind, name), None)
    if found is None:
        problem = f"{kind} of {name!r} not found in {type(module).__name__}"
        raise ValueRangeError(f"remove_{kind}", problem, f"call {kind} first")
    compute, handle = found
    handle.remove()
    with no_grad():
        value = compute(module).detach()
    for suffix in ("g", "v", "orig", "u"):
        own = f"{name}_{suffix}"
        if hasattr(module, own):
            delattr(module, own)
    delattr(module, name)
    module.register_parameter(name, Parameter(value))
    return module


def taken(module: Module, kind: str, name: str) -> Tensor:
    """Take a weight that has sizes out of its module."""
    weight: Tensor = getattr(module, name)
    if is_lazy(weight):
        raise StateError(kind, f"{name} has no sizes yet", "call the layer on an input first")
    delattr(module, name)
    return weight


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Train the size and the direction of a weight apart (Salimans and Kingma, 2016).

    >>> from picograd import nn
    >>> layer = nn.utils.weight_norm(nn.Linear(2, 3))
    >>> sorted(name for name, _ in layer.named_parameters())
    ['bias', 'weight_g', 'weight_v']
    """
    weight = taken(module, "weight_norm", name)
    size = norm_except(weight, dim)
    module.register_parameter(f"{name}_g", Parameter(size.detach()))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    compute = partial(normed, name, dim)
    attach(module, "weight_norm", name, compute)
    setattr(module, name, compute(module))
    return module


def normed(name: str, dim: int | None, owner: Module) -> Tensor:
    """Compute the weight of `weight_norm`."""
    return scaled(getattr(owner, f"{name}_v"), getattr(owner, f"{name}_g"), dim)


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make the weight a parameter again. Raises ValueRangeError where weight_norm was not called.

    >>> from picograd import nn
    >>> layer = nn.utils.weight_norm(nn.Linear(2, 3))
    >>> sorted(nn.utils.remove_weight_norm(layer).state_dict())
    ['bias', 'weight']
    """
    return detach(module, "weight_norm", name)


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divide a weight by its largest singular value (Miyato et al., 2018).

    That is estimated by the power method, one step a call in training mode.

    >>> from picograd import nn
    >>> layer = nn.utils.spectral_norm(nn.Linear(2, 3))
    >>> sorted(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    axis = output_axis(module, dim)
    weight = taken(module, "spectral_norm", name)
    own = weight if isinstance(weight, Parameter) else Parameter(weight.detach())
    module.register_parameter(f"{name}_orig", own)
    u, v = first_vectors(spread_out(weight.detach(), axis), eps)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    compute = partial(divided, name, axis, n_power_iterations, eps)
    attach(module, "spectral_norm", name, compute)
    setattr(module, name, own.detach())  # until the first call: a copy may be made before it
    return module


def divided(name: str, axis: int, steps: int, eps: float, owner: Module) -> Tensor:
    """Compute the weight of `spectral_norm`."""
    own, u, v = (getattr(owner, f"{name}_{kind}") for kind in ("orig", "u", "v"))
    matrix = spread_out(own, axis)
    if owner.training:
        advance(matrix, u, v, steps, eps)
    return own / largest(matrix, u, v)  # type: ignore[no-any-return]


def output_axis(module: Module, dim: int | None) -> int:
    """Find the axis of a weight that its outputs are along."""
    return dim if dim is not None else int(isinstance(module, ADJOINT))


def first_vectors(matrix: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Draw the vectors that the power method starts from."""
    u, v = (
        unit(Tensor.randn(size, device=matrix.device, dtype=matrix.dtype), eps)
        for size in matrix.shape
    )
    return u, v


def advance(matrix: Tensor, u: Tensor, v: Tensor, times: int, eps: float) -> None:
    """Take steps of the power method, which changes the vectors."""
    with no_grad():
        fixed = matrix.detach()
        for _ in range(times):
            v.copy_(unit(fixed.T @ u, eps))
            u.copy_(unit(fixed @ v, eps))


def largest(matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Estimate the largest singular value; later steps do not change what it was computed of."""
    return u.clone() @ (matrix @ v.clone())


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make the weight a parameter again. Raises ValueRangeError where spectral_norm was not called.

    >>> from picograd import nn
    >>> layer = nn.utils.spectral_norm(nn.Linear(2, 3))
    >>> sorted(nn.utils.remove_spectral_norm(layer).state_dict())
    ['bias', 'weight']
    """
    return detach(module, "spectral_norm", name)
