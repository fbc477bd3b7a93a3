"""Methods of `Tensor` by kind. Diagonals, grids, stacks and products made of other tensors.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from collections.abc import Sequence
from typing import Any

from picograd.tensor import assembling, elementwise, linalg, movement, reduce
from picograd.tensor.operands import UNSET, either
from picograd.tensor.recording import Other, Recorded, Same, apply, read, several


class AssemblyMethods(Recorded):
    """This class holds methods of `Tensor`. Diagonals, grids, stacks, products."""

    __slots__ = ()

    # views

    def swapaxes(
        self: Same,
        axis0: Any,
        axis1: Any,
    ) -> Same:
        """Swap two axes."""
        return apply(movement.transpose, self, axis0, axis1)

    swapdims = swapaxes

    def movedim(
        self: Same,
        source: Any,
        destination: Any,
    ) -> Same:
        """Move one axis, or several, to other positions."""
        return apply(assembling.move_axes, self, source, destination)

    moveaxis = movedim

    def tile(
        self: Same,
        *counts: Any,
    ) -> Same:
        """Repeat along axes; missing counts are 1."""
        return apply(assembling.tile, self, counts)

    def tensor_split(
        self: Same,
        indices_or_sections: Any,
        dim: Any = 0,
    ) -> tuple[Same, ...]:
        """Cut into nearly equal pieces, or at positions."""
        pieces = assembling.tensor_split(read(self), indices_or_sections, dim)
        return several(self, pieces)

    def select(
        self: Same,
        dim: Any,
        index: Any,
    ) -> Same:
        """Take one slice along an axis."""
        return apply(assembling.select, self, dim, index)

    def ravel(self: Same) -> Same:
        """Flatten to one axis."""
        return apply(movement.flatten, self, 0, -1)

    def reshape_as(
        self: Same,
        other: Same,
    ) -> Same:
        """Take another tensor's shape."""
        return apply(movement.reshape, self, other.shape)

    view_as = reshape_as

    def fliplr(self: Same) -> Same:
        """Reverse the columns."""
        return apply(movement.flip, self, (1,))

    def flipud(self: Same) -> Same:
        """Reverse the rows."""
        return apply(movement.flip, self, (0,))

    def rot90(
        self: Same,
        k: int = 1,
        dims: Sequence[int] = (0, 1),
    ) -> Same:
        """Rotate by quarter turns in the plane of two axes."""
        return apply(assembling.rotate, self, k, dims)

    def diff(
        self: Same,
        n: int = 1,
        dim: Any = -1,
    ) -> Same:
        """Subtract neighbours along an axis, n times."""
        return apply(assembling.difference, self, n, dim)

    # diagonals and products

    def diag(
        self: Same,
        diagonal: int = 0,
    ) -> Same:
        """Make a matrix of a vector, or take the diagonal of a matrix."""
        return apply(assembling.diag, self, diagonal)

    def diag_embed(
        self: Same,
        offset: int = 0,
        dim1: Any = -2,
        dim2: Any = -1,
    ) -> Same:
        """Write the last axis onto a diagonal of two new axes."""
        return apply(assembling.diag_embed, self, offset, dim1, dim2)

    def trace(self: Same) -> Same:
        """Sum the diagonal of a matrix."""
        return apply(assembling.trace, self)

    def kron(
        self: Same,
        other: Same,
    ) -> Same:
        """Multiply every element with the whole other tensor, as blocks."""
        return apply(assembling.kron, self, other)

    def cross(
        self: Same,
        other: Same,
        dim: Any = -1,
    ) -> Same:
        """Multiply vectors of three: the result is at right angles to both."""
        return apply(assembling.cross, self, other, dim)

    def cdist(
        self: Same,
        other: Same,
        p: float = 2.0,
    ) -> Same:
        """Measure the distance of each row from each row of other."""
        return apply(assembling.cdist, self, other, p)

    def dist(
        self: Same,
        other: Same,
        p: float = 2,
    ) -> Same:
        """Compute the norm of the difference."""
        gap = apply(elementwise.subtract, self, other)
        return apply(reduce.norm, gap, p, None, False)

    def tensordot(
        self: Same,
        other: Same,
        dims: Any = 2,
    ) -> Same:
        """Contract the last axes with the first of other, or listed pairs."""
        return apply(assembling.tensordot, self, other, dims)

    def inner(
        self: Same,
        other: Same,
    ) -> Same:
        """Sum the products of the last axes."""
        axes = ([-1], [-1])
        return apply(assembling.tensordot, self, other, axes)

    def mv(
        self: Same,
        vec: Same,
    ) -> Same:
        """Multiply a matrix with a vector."""
        return apply(assembling.matrix_vector, self, vec)

    def vdot(
        self: Same,
        other: Same,
    ) -> Same:
        """Sum the products of two vectors."""
        return apply(assembling.vector_dot, self, other)

    def addmm(
        self: Same,
        mat1: Same,
        mat2: Same,
        *,
        beta: Any = 1,
        alpha: Any = 1,
    ) -> Same:
        """Compute beta * self + alpha * (mat1 @ mat2)."""
        return apply(assembling.add_product, "addmm", self, mat1, mat2, beta, alpha)

    def addmv(
        self: Same,
        mat: Same,
        vec: Same,
        *,
        beta: Any = 1,
        alpha: Any = 1,
    ) -> Same:
        """Compute beta * self + alpha * (mat @ vec)."""
        return apply(assembling.add_product, "addmv", self, mat, vec, beta, alpha)

    def baddbmm(
        self: Same,
        batch1: Same,
        batch2: Same,
        *,
        beta: Any = 1,
        alpha: Any = 1,
    ) -> Same:
        """Compute beta * self + alpha * (batch1 @ batch2)."""
        return apply(assembling.add_product, "baddbmm", self, batch1, batch2, beta, alpha)

    def addr(
        self: Same,
        vec1: Same,
        vec2: Same,
        *,
        beta: Any = 1,
        alpha: Any = 1,
    ) -> Same:
        """Compute beta * self + alpha * outer(vec1, vec2)."""
        product = apply(linalg.outer, vec1, vec2)
        return apply(assembling.weighted_sum, self, product, beta, alpha)

    def cov(
        self: Same,
        *,
        correction: int = 1,
    ) -> Same:
        """Compute the covariance of the rows."""
        return apply(assembling.covariance, self, correction)

    def corrcoef(self: Same) -> Same:
        """Compute the correlation coefficients of the rows."""
        return apply(assembling.correlation, self)

    # elements

    def addcmul(
        self: Same,
        tensor1: Other,
        tensor2: Other,
        *,
        value: Any = 1,
    ) -> Same:
        """Compute self + value * tensor1 * tensor2."""
        product = apply(elementwise.arithmetic, "mul", tensor1, tensor2)
        return apply(assembling.weighted_sum, self, product, 1, value)

    def addcdiv(
        self: Same,
        tensor1: Other,
        tensor2: Other,
        *,
        value: Any = 1,
    ) -> Same:
        """Compute self + value * tensor1 / tensor2."""
        ratio = apply(elementwise.divide, tensor1, tensor2)
        return apply(assembling.weighted_sum, self, ratio, 1, value)

    def isclose(
        self: Same,
        other: Same,
        rtol: Any = 1e-5,
        atol: Any = 1e-8,
        equal_nan: Any = False,
    ) -> Same:
        """Test |self - other| <= atol + rtol |other| for each element."""
        return apply(assembling.is_close, self, other, rtol, atol, equal_nan)

    def nan_to_num(
        self: Same,
        nan: Any = 0.0,
        posinf: Any = None,
        neginf: Any = None,
    ) -> Same:
        """Replace NaN and infinities by numbers."""
        return apply(assembling.nan_to_num, self, nan, posinf, neginf)

    def frac(self: Same) -> Same:
        """Compute x - trunc(x)."""
        return apply(assembling.fraction, self)

    def heaviside(
        self: Same,
        values: Other,
    ) -> Same:
        """Compute 0 below 0, 1 above, and `values` at 0."""
        return apply(assembling.heaviside, self, values)

    def logit(
        self: Same,
        eps: Any = None,
    ) -> Same:
        """Compute log(x / (1 - x)); with eps, x is limited to [eps, 1 - eps] first."""
        return apply(assembling.logit, self, eps)

    def deg2rad(self: Same) -> Same:
        """Turn degrees into radians."""
        return apply(assembling.scaled, self, assembling.RADIAN)

    def rad2deg(self: Same) -> Same:
        """Turn radians into degrees."""
        return apply(assembling.scaled, self, 1 / assembling.RADIAN)

    # statistics

    def std_mean(
        self: Same,
        axis: Any = UNSET,
        keepdim: bool = False,
        *,
        correction: Any = 1,
        dim: Any = UNSET,
    ) -> tuple[Same, Same]:
        """Compute the standard deviation and the mean."""
        chosen = either("std_mean", "axis", axis, "dim", dim)
        spread = apply(reduce.deviation, self, chosen, keepdim, correction)
        return spread, apply(reduce.mean, self, chosen, keepdim)

    def var_mean(
        self: Same,
        axis: Any = UNSET,
        keepdim: bool = False,
        *,
        correction: Any = 1,
        dim: Any = UNSET,
    ) -> tuple[Same, Same]:
        """Compute the variance and the mean."""
        chosen = either("var_mean", "axis", axis, "dim", dim)
        spread = apply(reduce.variance, "var", self, chosen, keepdim, correction)
        return spread, apply(reduce.mean, self, chosen, keepdim)

    def aminmax(
        self: Same,
        *,
        dim: Any = None,
        keepdim: bool = False,
    ) -> tuple[Same, Same]:
        """Find the smallest and the largest elements."""
        least = apply(reduce.extreme, "min", self, dim, keepdim)
        return least, apply(reduce.extreme, "max", self, dim, keepdim)

    def count_nonzero(
        self: Same,
        dim: Any = None,
    ) -> Same:
        """Count the elements that are not zero."""
        return apply(assembling.count_nonzero, self, dim)

    def nansum(
        self: Same,
        axis: Any = UNSET,
        keepdim: bool = False,
        *,
        dim: Any = UNSET,
    ) -> Same:
        """Add up what is not NaN."""
        return apply(assembling.nan_sum, self, either("nansum", "axis", axis, "dim", dim), keepdim)

    def nanmean(
        self: Same,
        axis: Any = UNSET,
        keepdim: bool = False,
        *,
        dim: Any = UNSET,
    ) -> Same:
        """Average what is not NaN."""
        return apply(
            assembling.nan_mean, self, either("nanmean", "axis", axis, "dim", dim), keepdim
        )
