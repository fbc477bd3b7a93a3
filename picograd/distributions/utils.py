"""What PyTorch's programs import from `torch.distributions.utils` to write distributions."""

import itertools
from collections.abc import Callable
from typing import Any

from picograd.distributions.distribution import as_tensors, sum_last
from picograd.tensor.core.autograd import enable_grad
from picograd.tensor.core.type_info import finfo
from picograd.tensor.tensor import Tensor


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Give numbers and tensors one shape.

    >>> from picograd import Tensor
    >>> [each.shape for each in broadcast_all(Tensor([1.0, 2.0]), 3.0)]
    [(2,), (2,)]
    """
    return tuple(as_tensors(*values))


def clamp_probs(probs: Tensor) -> Tensor:
    """Keep probabilities off 0 and 1 by the dtype's epsilon."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Turn probabilities into logits: of one chance each, or of classes along the last axis."""
    known = clamp_probs(probs)
    return known.log() if not is_binary else known.log() - (-known).log1p()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Turn logits into probabilities."""
    if is_binary:
        return logits.sigmoid()
    return logits.softmax(-1)


def lower_places(size: int, diag: int) -> list[tuple[int, int]]:
    """List the places of a lower triangle by rows."""
    places = itertools.product(range(size), repeat=2)
    return [(row, column) for row, column in places if column <= row + diag]


def standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Draw from the standard normal distribution, as distributions written for PyTorch do."""
    return Tensor.randn(*shape, dtype=dtype, device=device)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """List the entries of the lower triangle, by rows, along the last axis."""
    rows, columns = zip(*lower_places(mat.shape[-1], diag))
    return mat[..., list(rows), list(columns)]


def size_of_triangle(count: int, diag: int) -> int:
    """Find the least size of matrices whose lower triangle has so many places."""
    size = 1
    while len(lower_places(size, diag)) < count:
        size += 1
    return size


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Fill lower triangles by rows from what `tril_matrix_to_vec` lists.

    >>> from picograd import Tensor
    >>> vec_to_tril_matrix(Tensor([1.0, 2.0, 3.0])).tolist()
    [[1.0, 0.0], [2.0, 3.0]]
    """
    count = vec.shape[-1]
    size = size_of_triangle(count, diag)
    # places above the triangle read the zero that is added at the end
    order = [[count] * size for _ in range(size)]
    for number, (row, column) in enumerate(lower_places(size, diag)):
        order[row][column] = number
    edges = [(0, 0)] * vec.ndim
    edges[-1] = (0, 1)
    return vec.pad(edges)[..., Tensor.of(order, device=vec.device)]


class lazy_property:
    """This class computes an attribute at its first use, and keeps it."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        """Compute the value, with gradients, and put it in the place of this property."""
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


_standard_normal, _sum_rightmost = standard_normal, sum_last
