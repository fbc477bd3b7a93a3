"""Methods of `Tensor` by kind. Diagonals, grids, stacks and products made of other tensors.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from collections.abc import Sequence
from typing import Any, Final

from picograd.errors import DTypeError
from picograd.number import position_of
from picograd.tensor.core import aliasing
from picograd.tensor.core.annotations import Scalar, Sizes, Tensor, TensorLike
from picograd.tensor.core.operands import as_axis
from picograd.tensor.core.recording import Recorded, Same, apply, pieces, showing
from picograd.tensor.math import elementwise
from picograd.tensor.shaping import assembling, movement


class AssemblyMethods(Recorded):
    """This class holds methods of `Tensor`. Diagonals, grids, stacks, products."""

    __slots__ = ()

    # views

    def swapaxes(self: Same, axis0: int, axis1: int) -> Same:
        """Swap two axes.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).swapaxes(0, 1).tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """
        return apply(movement.transpose, self, axis0, axis1)

    swapdims: Final = swapaxes

    def movedim(self: Same, source: Sizes, destination: Sizes) -> Same:
        """Move one axis, or several, to other positions.

        >>> Tensor([[[1.0, 2.0]]]).movedim(2, 0).shape
        (2, 1, 1)
        """
        return apply(assembling.move_axes, self, source, destination)

    moveaxis: Final = movedim

    def tile(self: Same, *counts: Sizes) -> Same:
        """Repeat along axes; missing counts are 1.

        >>> Tensor([1.0, 2.0]).tile((2, 1)).tolist()
        [[1.0, 2.0], [1.0, 2.0]]
        """
        return apply(assembling.tile, self, counts)

    def tensor_split(
        self: Same, indices_or_sections: Sizes | Tensor, dim: int = 0
    ) -> tuple[Same, ...]:
        """Cut into nearly equal pieces, or at positions.

        >>> [part.tolist() for part in Tensor([1.0, 2.0, 3.0]).tensor_split(2)]
        [[1.0, 2.0], [3.0]]
        """
        return pieces(assembling.tensor_split, self, indices_or_sections, dim)

    def select(self: Same, dim: int, index: int | Tensor) -> Same:
        """Take one slice along an axis, at a number or an integer tensor.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).select(0, 1).tolist()
        [3.0, 4.0]
        """
        if isinstance(index, Recorded):
            return select_at(self, dim, index)
        return apply(assembling.select, self, dim, position_of(index))

    def ravel(self: Same) -> Same:
        """Flatten to one axis: a view of what is contiguous in memory, a copy of anything else.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).ravel().tolist()
        [1.0, 2.0, 3.0, 4.0]
        """
        flat = apply(movement.flatten, self, 0, -1)
        if flat.numel() > 1 and aliasing.strides_of(flat) != (1,):
            flat._view = None
        return flat

    def reshape_as(self: Same, other: Same) -> Same:
        """Take another tensor's shape.

        >>> Tensor([1.0, 2.0]).reshape_as(Tensor([[0.0], [0.0]])).tolist()
        [[1.0], [2.0]]
        """
        return apply(movement.reshape, self, other.shape)

    view_as: Final = reshape_as

    def fliplr(self: Same) -> Same:
        """Reverse the columns.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).fliplr().tolist()
        [[2.0, 1.0], [4.0, 3.0]]
        """
        return apply(movement.flip, self, (1,))

    def flipud(self: Same) -> Same:
        """Reverse the rows.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).flipud().tolist()
        [[3.0, 4.0], [1.0, 2.0]]
        """
        return apply(movement.flip, self, (0,))

    def rot90(self: Same, k: int = 1, dims: Sequence[int] = (0, 1)) -> Same:
        """Rotate by quarter turns in the plane of two axes.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).rot90().tolist()
        [[2.0, 4.0], [1.0, 3.0]]
        """
        return apply(assembling.rotate, self, k, dims)

    # diagonals and products

    def diag(self: Same, diagonal: int = 0) -> Same:
        """Make a matrix of a vector, or take the diagonal of a matrix.

        >>> Tensor([1.0, 2.0]).diag().tolist()
        [[1.0, 0.0], [0.0, 2.0]]
        """
        return apply(assembling.diag, self, diagonal)

    def diag_embed(self: Same, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Same:
        """Write the last axis onto a diagonal of two new axes.

        >>> Tensor([1.0, 2.0]).diag_embed().tolist()
        [[1.0, 0.0], [0.0, 2.0]]
        """
        return apply(assembling.diag_embed, self, offset, dim1, dim2)

    def trace(self: Same) -> Same:
        """Sum the diagonal of a matrix.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).trace().item()
        5.0
        """
        return apply(assembling.trace, self)

    def kron(self: Same, other: Same) -> Same:
        """Multiply every element with the whole other tensor, as blocks.

        >>> Tensor([[1.0, 2.0]]).kron(Tensor([[1.0, 10.0]])).tolist()
        [[1.0, 10.0, 2.0, 20.0]]
        """
        return apply(assembling.kron, self, other)

    def cross(self: Same, other: Same, dim: int | None = -1) -> Same:
        """Multiply vectors of three: the result is at right angles to both.

        >>> Tensor([1.0, 0.0, 0.0]).cross(Tensor([0.0, 1.0, 0.0])).tolist()
        [0.0, 0.0, 1.0]
        """
        return apply(assembling.cross, self, other, dim)

    def cdist(self: Same, other: Same, p: float = 2.0) -> Same:
        """Measure the distance of each row from each row of other.

        >>> Tensor([[0.0, 0.0]]).cdist(Tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
        [[5.0, 1.0]]
        """
        return apply(assembling.cdist, self, other, p)

    def dist(self: Same, other: Same, p: float = 2) -> Same:
        """Compute the norm of the difference.

        >>> Tensor([0.0, 0.0]).dist(Tensor([3.0, 4.0])).item()
        5.0
        """
        return apply(assembling.distance, self, other, p)

    def tensordot(self: Same, other: Same, dims: int | Sequence[Sequence[int]] = 2) -> Same:
        """Contract the last axes with the first of other, or listed pairs.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).tensordot(Tensor([[1.0, 0.0], [0.0, 1.0]]), 2).item()
        5.0
        """
        return apply(assembling.tensordot, self, other, dims)

    def inner(self: Same, other: Same) -> Same:
        """Sum the products of the last axes; with a number, multiply.

        >>> Tensor([1.0, 2.0, 3.0]).inner(Tensor([1.0, 1.0, 2.0])).item()
        9.0
        """
        if not self.ndim or not other.ndim:
            return apply(elementwise.arithmetic, "mul", self, other)
        axes = ([-1], [-1])
        return apply(assembling.tensordot, self, other, axes)

    def mv(self: Same, vec: Same) -> Same:
        """Multiply a matrix with a vector.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).mv(Tensor([1.0, 1.0])).tolist()
        [3.0, 7.0]
        """
        return apply(assembling.matrix_vector, self, vec)

    def vdot(self: Same, other: Same) -> Same:
        """Sum the products of two vectors.

        >>> Tensor([1.0, 2.0, 3.0]).vdot(Tensor([1.0, 1.0, 2.0])).item()
        9.0
        """
        return apply(assembling.vector_dot, self, other)

    def addmm(self: Same, mat1: Same, mat2: Same, *, beta: Scalar = 1, alpha: Scalar = 1) -> Same:
        """Compute beta * self + alpha * (mat1 @ mat2).

        >>> Tensor([1.0, 1.0]).addmm(Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([[1.0, 0.0], [0.0,
        ...     1.0]])).tolist()
        [[2.0, 3.0], [4.0, 5.0]]
        """
        return apply(assembling.add_product, "addmm", self, mat1, mat2, beta, alpha)

    def addmv(self: Same, mat: Same, vec: Same, *, beta: Scalar = 1, alpha: Scalar = 1) -> Same:
        """Compute beta * self + alpha * (mat @ vec).

        >>> Tensor([1.0, 1.0]).addmv(Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([1.0, 1.0])).tolist()
        [4.0, 8.0]
        """
        return apply(assembling.add_product, "addmv", self, mat, vec, beta, alpha)

    def baddbmm(
        self: Same, batch1: Same, batch2: Same, *, beta: Scalar = 1, alpha: Scalar = 1
    ) -> Same:
        """Compute beta * self + alpha * (batch1 @ batch2).

        >>> Tensor([[[1.0]]]).baddbmm(Tensor([[[1.0, 2.0]]]), Tensor([[[3.0], [4.0]]])).tolist()
        [[[12.0]]]
        """
        return apply(assembling.add_product, "baddbmm", self, batch1, batch2, beta, alpha)

    def addr(self: Same, vec1: Same, vec2: Same, *, beta: Scalar = 1, alpha: Scalar = 1) -> Same:
        """Compute beta * self + alpha * outer(vec1, vec2).

        >>> Tensor([[1.0, 1.0], [1.0, 1.0]]).addr(Tensor([1.0, 2.0]), Tensor([3.0, 4.0])).tolist()
        [[4.0, 5.0], [7.0, 9.0]]
        """
        return apply(assembling.addr, self, vec1, vec2, beta, alpha)

    # elements

    def addcmul(self: Same, tensor1: TensorLike, tensor2: TensorLike, *, value: Scalar = 1) -> Same:
        """Compute self + value * tensor1 * tensor2.

        >>> Tensor([1.0, 1.0]).addcmul(Tensor([4.0, 6.0]), Tensor([2.0, 3.0]), value=0.5).tolist()
        [5.0, 10.0]
        """
        return apply(assembling.addcmul, self, tensor1, tensor2, value)

    def addcdiv(self: Same, tensor1: TensorLike, tensor2: TensorLike, *, value: Scalar = 1) -> Same:
        """Compute self + value * tensor1 / tensor2.

        >>> Tensor([1.0, 1.0]).addcdiv(Tensor([4.0, 6.0]), Tensor([2.0, 3.0]), value=0.5).tolist()
        [2.0, 2.0]
        """
        return apply(assembling.addcdiv, self, tensor1, tensor2, value)

    def isclose(
        self: Same, other: Same, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> Same:
        """Test |self - other| <= atol + rtol |other| for each element.

        >>> Tensor([1.0, 2.0]).isclose(Tensor([1.0 + 1e-7, 2.1])).tolist()
        [True, False]
        """
        return apply(assembling.is_close, self, other, rtol, atol, equal_nan)

    def nan_to_num(
        self: Same, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
    ) -> Same:
        """Replace NaN and infinities by numbers.

        >>> Tensor([1.0, float("nan"), 3.0]).nan_to_num(0.0).tolist()
        [1.0, 0.0, 3.0]
        """
        return apply(assembling.nan_to_num, self, nan, posinf, neginf)

    def frac(self: Same) -> Same:
        """Compute x - trunc(x).

        >>> Tensor([-1.5, 0.25, 2.0]).frac().tolist()
        [-0.5, 0.25, 0.0]
        """
        return apply(assembling.fraction, self)

    def heaviside(self: Same, values: TensorLike) -> Same:
        """Compute 0 below 0, 1 above, and `values` at 0.

        >>> Tensor([-1.0, 0.0, 2.0]).heaviside(Tensor([0.5, 0.5, 0.5])).tolist()
        [0.0, 0.5, 1.0]
        """
        return apply(assembling.heaviside, self, values)

    def logit(self: Same, eps: float | None = None) -> Same:
        """Compute log(x / (1 - x)); with eps, x is limited to [eps, 1 - eps] first.

        >>> Tensor([0.25, 0.5, 0.75]).logit().tolist()
        [-1.0986..., 0.0, 1.0986...]
        """
        return apply(assembling.logit, self, eps)

    def deg2rad(self: Same) -> Same:
        """Turn degrees into radians.

        >>> Tensor([0.0, 90.0, 180.0]).deg2rad().tolist()
        [0.0, 1.5707..., 3.1415...]
        """
        return apply(assembling.scaled, self, assembling.RADIAN)

    def rad2deg(self: Same) -> Same:
        """Turn radians into degrees.

        >>> Tensor([0.0, 1.0, 2.0]).rad2deg().tolist()
        [0.0, 57.2957..., 114.5915...]
        """
        return apply(assembling.scaled, self, 1 / assembling.RADIAN)


showing(assembling.move_axes, assembling.select)


def select_at(tensor: Any, dim: Any, index: Any) -> Any:
    """Take one slice along an axis where an integer tensor says."""
    position = as_axis(dim, tensor.ndim, "select")
    if index.numel() != 1 or not index.dtype.is_integer:
        text = f"the index is a {index.dtype.name} tensor of shape {index.shape}"
        raise DTypeError("select", text, "use an integer tensor of one element")
    before = [slice(None)] * position
    items = (*before, index.reshape(()))
    return tensor[items]
