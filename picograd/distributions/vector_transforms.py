"""Transforms of vectors and matrices, and those that join, stack or reshape."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from picograd.distributions import constraints
from picograd.distributions.distribution import sum_last
from picograd.distributions.transform import SameKind, Shape, Transform, need_axes
from picograd.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from picograd.errors import ShapeError, ValueRangeError
from picograd.tensor.core.type_info import finfo
from picograd.tensor.linalg.decompositions import cholesky
from picograd.tensor.linalg.decompositions import diagonal as diagonal_of
from picograd.tensor.tensor import Tensor

Parts = Iterable[Callable[[Tensor], Tensor]]


def clipped_sigmoid(x: Tensor) -> Tensor:
    """Compute the sigmoid, off 0 and 1: its logarithms are finite."""
    info = finfo(x.dtype)
    return x.sigmoid().clamp(info.tiny, 1.0 - info.eps)


def shifted(x: Tensor) -> Tensor:
    """Move the last axis by one place: 1 comes in, the last entry falls out."""
    return padded_by_one(x[..., :-1], (1, 0))


def padded_by_one(x: Tensor, places: tuple[int, int]) -> Tensor:
    """Put so many ones before and after the entries of the last axis."""
    edges = [(0, 0)] * x.ndim
    edges[-1] = places
    return x.pad(edges, value=1.0)


def is_axis(dim: int, x: Tensor) -> bool:
    """Tell whether a tensor has an axis of this number."""
    return -x.ndim <= dim < x.ndim


def applied(parts: Parts, pieces: list[Tensor]) -> list[Tensor]:
    """Apply each part to its piece."""
    return [part(piece) for part, piece in zip(parts, pieces)]


class SoftmaxTransform(SameKind):
    """This class computes the softmax of vectors."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of results."""
        need_axes(shape, 1)
        return tuple(shape)

    inverse_shape = forward_shape


class StickBreakingTransform(SameKind):
    """This class breaks a stick of length one: each number says which part of the rest comes off.

    A vector of n numbers becomes n + 1 positive ones that sum to one.

    >>> from picograd import Tensor
    >>> from picograd.distributions import StickBreakingTransform
    >>> StickBreakingTransform()(Tensor([0.0])).tolist()
    [0.5, 0.5]
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    def centred(self, x: Tensor) -> Tensor:
        """Move numbers so that zeros break off equal parts."""
        size = x.shape[-1]
        parts = Tensor.arange(size, 0, -1, dtype=x.dtype, device=x.device)
        return x - parts.log()

    def _call(self, x: Tensor) -> Tensor:
        share = clipped_sigmoid(self.centred(x))
        rest = (1.0 - share).cumprod(-1)
        return padded_by_one(share, (0, 1)) * padded_by_one(rest, (1, 0))

    def _inverse(self, y: Tensor) -> Tensor:
        cut = y[..., :-1]
        left = 1.0 - cut.cumsum(-1)
        rest = left.clamp(min=finfo(y.dtype).tiny)
        odds = cut.log() - rest.log()
        return odds - self.centred(Tensor.zeros_like(odds))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute log |dy / dx| of all but the last part."""
        moved = self.centred(x)
        log_of_rest = moved.logsigmoid() - moved  # log(1 - sigmoid(x))
        return (log_of_rest + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of results."""
        need_axes(shape, 1)
        *batch, size = shape
        return (*batch, size + 1)

    def inverse_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of arguments."""
        need_axes(shape, 1)
        *batch, size = shape
        return (*batch, size - 1)


class CorrCholeskyTransform(SameKind):
    """This class makes lower factors of correlation matrices of size n from n (n - 1) / 2 numbers.

    tanh of them fills the places below the diagonal by rows; in each row a stick of length one is
    broken by their squares.
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        most = 1.0 - finfo(x.dtype).eps
        bounded = x.tanh().clamp(-most, most)
        part = vec_to_tril_matrix(bounded, diag=-1)
        left = 1.0 - part.square()
        rest = left.sqrt().cumprod(-1)
        eye = Tensor.eye(part.shape[-1], dtype=x.dtype, device=x.device)
        return (part + eye) * shifted(rest)

    def _inverse(self, y: Tensor) -> Tensor:
        rest = shifted(1.0 - y.square().cumsum(-1))
        left = tril_matrix_to_vec(rest, diag=-1)
        part = tril_matrix_to_vec(y, diag=-1) / left.sqrt()
        return (part.log1p() - (-part).log1p()) / 2.0

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        """Compute log |dy / dx| of the places below the diagonal."""
        rest = 1.0 - y.square().cumsum(-1)
        sticks = 0.5 * tril_matrix_to_vec(rest, diag=-2).log().sum(-1)
        log_cosh = x + (-2.0 * x).softplus() - math.log(2.0)
        slopes = -2.0 * log_cosh.sum(-1)
        return sticks + slopes

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of results."""
        need_axes(shape, 1)
        *batch, count = shape
        size = round(math.sqrt(0.25 + 2 * count) + 0.5)
        if size * (size - 1) // 2 != count:
            text = f"{count} numbers fill no triangle"
            raise ShapeError("CorrCholeskyTransform", text, "pass n (n - 1) / 2 numbers")
        return (*batch, size, size)

    def inverse_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of arguments."""
        need_axes(shape, 2)
        *batch, rows, columns = shape
        if rows != columns:
            text = f"matrices of shape {tuple(shape)} are not square"
            raise ShapeError("CorrCholeskyTransform", text, "pass square matrices")
        return (*batch, (rows * (rows - 1) // 2))


class LowerCholeskyTransform(SameKind):
    """This class keeps the lower triangle of matrices, and takes exp of the diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + diagonal_of(x).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + diagonal_of(y).log().diag_embed()


class PositiveDefiniteTransform(SameKind):
    """This class makes positive definite matrices, of lower factors."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(cholesky(y))


class ReshapeTransform(Transform):
    """This class gives events another shape."""

    bijective = True

    def __init__(
        self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.in_shape = tuple(in_shape)
        self.out_shape = tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            text = f"{self.in_shape} and {self.out_shape} differ in their number of elements"
            raise ShapeError("ReshapeTransform", text, "pass shapes of as many elements")

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """Numbers of the first shape."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """Numbers of the second shape."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(*self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(*self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Give zeros."""
        axes = x.ndim - len(self.in_shape)
        return Tensor.zeros(*x.shape[:axes], dtype=x.dtype, device=x.device)

    def exchanged(self, shape: Sequence[int], before: Shape, after: Shape) -> Shape:
        """Exchange the end of a shape. Raises ShapeError for another end."""
        need_axes(shape, len(before))
        cut = len(shape) - len(before)
        if tuple(shape[cut:]) != before:
            text = f"shape {tuple(shape)} does not end with {before}"
            raise ShapeError("ReshapeTransform", text, "pass events of that shape")
        return (*shape[:cut], *after)

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of results."""
        return self.exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Shape:
        """Give the shape of arguments."""
        return self.exchanged(shape, self.out_shape, self.in_shape)


class PiecesTransform(Transform):
    """This class cuts tensors along an axis: each piece has a transform of its own."""

    lengths: list[int]

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        super().__init__(cache_size)
        self.transforms = list(tseq)
        if cache_size:
            self.transforms = [each.with_cache(cache_size) for each in self.transforms]
        self.dim = dim

    @property
    def inverses(self) -> list[Transform]:
        """The inverse of each part."""
        return [part.inv for part in self.transforms]

    @property
    def domains(self) -> list[Any]:
        """What each part takes."""
        return [part.domain for part in self.transforms]

    @property
    def codomains(self) -> list[Any]:
        """What each part gives."""
        return [part.codomain for part in self.transforms]

    @property
    def bijective(self) -> bool:
        """Whether all parts have inverses."""
        return all(part.bijective for part in self.transforms)

    def pieces(self, value: Tensor) -> list[Tensor]:
        """Cut a tensor. Raises ShapeError for another size of the axis."""
        size = sum(self.lengths)
        if not is_axis(self.dim, value) or value.shape[self.dim] != size:
            text = f"axis {self.dim} of shape {value.shape} does not have size {size}"
            raise ShapeError(type(self).__name__, text, "pass all pieces")
        return list(value.split(self.lengths, self.dim))


class CatTransform(PiecesTransform):
    """This class transforms the pieces of tensors that were joined along an axis."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        if lengths is None:
            lengths = [1] * len(self.transforms)
        self.lengths = list(lengths)
        if len(self.lengths) != len(self.transforms):
            text = f"{len(self.lengths)} lengths for {len(self.transforms)} transforms"
            raise ValueRangeError("CatTransform", text, "pass one length a transform")

    @property
    def event_dim(self) -> int:
        """The most axes that a part reads together."""
        return max(part.event_dim for part in self.transforms)

    @property
    def length(self) -> int:
        """The size of the axis."""
        return sum(self.lengths)

    @constraints.dependent_property
    def domain(self) -> Any:
        """What the parts take."""
        return constraints.cat(self.domains, self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """What the parts give."""
        return constraints.cat(self.codomains, self.dim, self.lengths)

    def _call(self, x: Tensor) -> Tensor:
        found = applied(self.transforms, self.pieces(x))
        return Tensor.cat(found, dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        found = applied(self.inverses, self.pieces(y))
        return Tensor.cat(found, dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Join those of the parts, or add them where the axis is one of the event."""
        found = []
        rows = zip(self.transforms, self.pieces(x), self.pieces(y))
        for part, before, after in rows:
            slope = part.log_abs_det_jacobian(before, after)
            more_axes = self.event_dim - part.event_dim
            found.append(sum_last(slope, more_axes))
        from_end = self.dim - x.ndim if self.dim >= 0 else self.dim
        axis = from_end + self.event_dim
        if axis < 0:
            return Tensor.cat(found, dim=axis)
        first, *others = found
        return sum(others, first)


class StackTransform(PiecesTransform):
    """This class transforms tensors that were stacked along an axis."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms)

    @constraints.dependent_property
    def domain(self) -> Any:
        """What the parts take."""
        return constraints.stack(self.domains, self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """What the parts give."""
        return constraints.stack(self.codomains, self.dim)

    def layers(self, value: Tensor) -> list[Tensor]:
        """Take a tensor apart."""
        return [piece.squeeze(self.dim) for piece in self.pieces(value)]

    def _call(self, x: Tensor) -> Tensor:
        found = applied(self.transforms, self.layers(x))
        return Tensor.stack(found, dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        found = applied(self.inverses, self.layers(y))
        return Tensor.stack(found, dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Stack those of the parts."""
        rows = zip(self.transforms, self.layers(x), self.layers(y))
        found = [part.log_abs_det_jacobian(before, after) for part, before, after in rows]
        return Tensor.stack(found, dim=self.dim)
