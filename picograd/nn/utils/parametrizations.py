"""Common parametrizations: weight norm, spectral norm, orthogonal matrices."""

from functools import partial
from typing import Any, TypeVar

from picograd.errors import ShapeError, ValueRangeError, check_known
from picograd.nn.module import Module
from picograd.nn.utils.parametrize import register_parametrization
from picograd.nn.utils.reparametrize import (
    advance,
    first_vectors,
    largest,
    norm_except,
    output_axis,
    scaled,
    spread_out,
    unit,
)
from picograd.tensor.linalg import decompositions, reflectors
from picograd.tensor.linalg.systems import matrix_exp
from picograd.tensor.tensor import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)
FIRST_STEPS = 15  # of the power method, when a weight begins to be normalised


class _WeightNorm(Module):
    """This class computes size * direction / |direction|."""

    def __init__(self, dim: int | None) -> None:
        self.dim = dim

    def forward(self, size: Tensor, direction: Tensor) -> Tensor:
        """Compute the weight."""
        return scaled(direction, size, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Take a weight apart."""
        return norm_except(weight, self.dim), weight


class SpectralNorm(Module):
    """This class divides a weight by its largest singular value."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, times: int, dim: int, eps: float) -> None:
        self.times, self.dim, self.eps = times, dim, eps
        if weight.ndim > 1:
            matrix = spread_out(weight.detach(), dim)
            u, v = first_vectors(matrix, eps)
            advance(matrix, u, v, FIRST_STEPS, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def forward(self, weight: Tensor) -> Tensor:
        """Compute the weight."""
        if weight.ndim == 1:
            return unit(weight, self.eps)
        matrix = spread_out(weight, self.dim)
        if self.training:
            advance(matrix, self._u, self._v, self.times, self.eps)
        return weight / largest(matrix, self._u, self._v)

    def right_inverse(self, weight: Tensor) -> Tensor:
        """Keep a weight as it is."""
        return weight


class Orthogonal(Module):
    """This class computes a matrix with orthonormal rows or columns.

    It is a product of reflections, the exponential of a skew-symmetric matrix or the Cayley
    transform of that (Lezcano-Casado and Martinez-Rubio, 2019), after a fixed one if `is_based`.
    """

    def __init__(self, weight: Tensor, kind: str, is_based: bool) -> None:
        self.kind, self.is_based = kind, is_based
        self.is_wide = weight.shape[-2] < weight.shape[-1]
        if is_based:
            self.register_buffer("base", None)

    def forward(self, weight: Tensor) -> Tensor:
        """Compute the matrix."""
        tall = weight.mT if self.is_wide else weight
        turned = self.reflected(tall) if self.kind == "householder" else self.turned(tall)
        turned = self.base @ turned if self.is_based else turned
        return turned.mT if self.is_wide else turned

    def reflected(self, tall: Tensor) -> Tensor:
        """Multiply reflections along the columns; the diagonal has the signs."""
        lower = tall.tril(-1)
        scales = 2.0 / (1.0 + lower.square().sum(-2))
        signs = tall.detach().diagonal(dim1=-2, dim2=-1)
        return reflectors.householder_product(lower, scales) * signs.unsqueeze(-2)

    def turned(self, tall: Tensor) -> Tensor:
        """Compute the exponential or the Cayley transform of the skew-symmetric matrix."""
        lower = tall.tril()
        rows, columns = tall.shape[-2:]
        if rows != columns:
            empty = lower.new_zeros(*lower.shape[:-1], rows - columns)
            lower = Tensor.cat([lower, empty], dim=-1)
        skew = lower - lower.mH
        if self.kind == "matrix_exp":
            return matrix_exp(skew)[..., :columns]
        eye = Tensor.eye(rows, dtype=tall.dtype, device=tall.device)
        return decompositions.solve(eye - skew / 2, eye + skew / 2)[..., :columns]

    def right_inverse(self, weight: Tensor) -> Tensor:
        """Take a matrix over, made orthogonal: as the fixed one, or as reflections."""
        if not self.is_based and self.kind != "householder":
            raise NotImplementedError("orthogonal: without a fixed matrix none can be assigned")
        tall = weight.mT if self.is_wide else weight
        q, r = decompositions.qr(tall, mode="complete")
        signs = r.diagonal(dim1=-2, dim2=-1).sgn()
        if self.is_based:
            columns = tall.shape[-1]
            head = q[..., :columns] * signs.unsqueeze(-2)
            self.base = Tensor.cat([head, q[..., columns:]], dim=-1)
            start = Tensor.eye(tall.shape[-2], tall.shape[-1], dtype=tall.dtype, device=tall.device)
            start = (-start).expand(tall.shape)
        else:
            start, scales = reflectors.geqrf(tall)
            diagonal = start.diagonal(dim1=-2, dim2=-1)
            diagonal.copy_(diagonal.sign() * (1 - 2 * (scales == 0)))
        return start.mT if self.is_wide else start


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Train the size and the direction of a weight apart (Salimans and Kingma, 2016).

    >>> from picograd import nn
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3, bias=False))
    >>> [name for name, _ in layer.named_parameters()]
    ['parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    register_parametrization(module, name, _WeightNorm(dim))
    module.register_load_state_dict_pre_hook(partial(take_older_names, name))
    return module


def take_older_names(name: str, module: Module, state: Any, prefix: str, *_: Any) -> None:
    """Read the state of a layer that `nn.utils.weight_norm` wrote."""
    for number, letter in enumerate("gv"):
        older = f"{prefix}{name}_{letter}"
        if older in state:
            state[f"{prefix}parametrizations.{name}.original{number}"] = state.pop(older)


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divide a weight by its largest singular value (Miyato et al., 2018).

    >>> from picograd import nn
    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(2, 3))
    >>> layer.weight.shape
    (3, 2)
    """
    axis = output_axis(module, dim)
    return register_parametrization(
        module, name, SpectralNorm(getattr(module, name), n_power_iterations, axis, eps)
    )


def orthogonal(
    module: M,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> M:
    """Keep the rows or columns of a weight orthonormal.

    `orthogonal_map` is "matrix_exp", as is None for a square or complex matrix, "cayley", or
    "householder", as is None for others. With `use_trivialization` training begins at the present
    matrix, made orthogonal. Raises ShapeError for less than two axes.

    >>> import picograd
    >>> from picograd import nn
    >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))
    >>> bool((layer.weight @ layer.weight.T).allclose(picograd.eye(3), atol=1e-5))
    True
    """
    maps = (None, "matrix_exp", "cayley", "householder")
    check_known("orthogonal", "orthogonal_map", orthogonal_map, maps)
    weight = getattr(module, name)
    if weight.ndim < 2:
        problem = f"a tensor of shape {weight.shape} is no matrix"
        raise ShapeError("orthogonal", problem, "use a weight with two axes or more")
    is_free = weight.shape[-2] == weight.shape[-1] or weight.dtype.is_complex
    chosen = orthogonal_map or ("matrix_exp" if is_free else "householder")
    if chosen == "householder" and weight.dtype.is_complex:
        problem = "reflections make no complex matrix"
        raise ValueRangeError("orthogonal", problem, 'use orthogonal_map="matrix_exp"')
    made = Orthogonal(weight, chosen, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
