"""Common parametrizations: weight norm, spectral norm, orthogonal matrices."""

from typing import TypeVar

from picograd.errors import ShapeError, check_known
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
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.linalg import decompositions
from picograd.tensor.linalg.systems import matrix_exp
from picograd.tensor.tensor import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)
FIRST_STEPS = 15  # of the power method, when a weight begins to be normalised


class WeightNorm(Module):
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

    It is a fixed one times the exponential of a skew-symmetric matrix, or the Cayley transform of
    that (Lezcano-Casado and Martinez-Rubio, 2019).
    """

    def __init__(self, weight: Tensor, is_cayley: bool) -> None:
        self.is_cayley, self.is_wide = is_cayley, weight.shape[-2] < weight.shape[-1]
        self.register_buffer("base", None)

    def forward(self, weight: Tensor) -> Tensor:
        """Compute the matrix."""
        tall = weight.mT if self.is_wide else weight
        rows, columns = tall.shape[-2:]
        lower = tall.tril()
        if rows != columns:
            empty = lower.new_zeros(*lower.shape[:-1], rows - columns)
            lower = Tensor.cat([lower, empty], dim=-1)
        skew = lower - lower.mT
        eye = Tensor.eye(rows, dtype=weight.dtype, device=weight.device)
        if self.is_cayley:
            turned = decompositions.solve(eye - skew / 2, eye + skew / 2)
        else:
            turned = matrix_exp(skew)
        turned = turned[..., :columns] if self.base is None else self.base @ turned[..., :columns]
        return turned.mT if self.is_wide else turned

    def right_inverse(self, weight: Tensor) -> Tensor:
        """Take a matrix over as the fixed one, made orthogonal."""
        with no_grad():
            tall = weight.mT if self.is_wide else weight
            q, r = decompositions.qr(tall, mode="complete")
            signs = r.diagonal(dim1=-2, dim2=-1).sign()
            columns = tall.shape[-1]
            head = q[..., :columns] * signs.unsqueeze(-2)
            self.base = Tensor.cat([head, q[..., columns:]], dim=-1)
            return weight * 0.0


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Train the size and the direction of a weight apart (Salimans and Kingma, 2016).

    >>> from picograd import nn
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3, bias=False))
    >>> [name for name, _ in layer.named_parameters()]
    ['parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    return register_parametrization(module, name, WeightNorm(dim))


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

    `orthogonal_map` is "matrix_exp" or "cayley". Raises ShapeError for less than two axes.

    >>> import picograd
    >>> from picograd import nn
    >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))
    >>> bool((layer.weight @ layer.weight.T).allclose(picograd.eye(3), atol=1e-5))
    True
    """
    check_known("orthogonal", "orthogonal_map", orthogonal_map, (None, "matrix_exp", "cayley"))
    weight = getattr(module, name)
    if weight.ndim < 2:
        problem = f"a tensor of shape {weight.shape} is no matrix"
        raise ShapeError("orthogonal", problem, "use a weight with two axes or more")
    is_cayley = orthogonal_map == "cayley"
    return register_parametrization(module, name, Orthogonal(weight, is_cayley))
