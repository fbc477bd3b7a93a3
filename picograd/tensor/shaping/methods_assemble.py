"""Methods of `Tensor` by kind. Diagonals, grids, stacks and products made of other tensors.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from typing import Any, Final

from picograd.errors import DTypeError, ShapeError
from picograd.number import position_of
from picograd.tensor.core import aliasing
from picograd.tensor.core.annotations import Sizes, Tensor
from picograd.tensor.core.function import composed
from picograd.tensor.core.operands import as_axis
from picograd.tensor.core.recording import Recorded, Same, apply, showing
from picograd.tensor.math import elementwise
from picograd.tensor.shaping import assembling, movement


class AssemblyMethods(Recorded):
    """This class holds methods of `Tensor`. Diagonals, grids, stacks, products."""

    __slots__ = ()

    # views

    @composed(method=False, in_place=True, view="if")
    @composed("swapdims", in_place=True, view="if")
    def swapaxes(self: Same, axis0: int, axis1: int) -> Same:
        """Swap two axes.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).swapaxes(0, 1).tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """
        return apply(movement.transpose, self, axis0, axis1)

    @composed(method=False)
    def tile(self: Same, *counts: Sizes) -> Same:
        """Repeat along axes; missing counts are 1.

        >>> Tensor([1.0, 2.0]).tile((2, 1)).tolist()
        [[1.0, 2.0], [1.0, 2.0]]
        """
        return apply(assembling.tile, self, counts)

    @composed(method=False)
    def select(self: Same, dim: int, index: int | Tensor) -> Same:
        """Take one slice along an axis, at a number or an integer tensor.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).select(0, 1).tolist()
        [3.0, 4.0]
        """
        if isinstance(index, Recorded):
            return select_at(self, dim, index)
        return apply(assembling.select, self, dim, position_of(index))

    @composed(method=False)
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

    @composed(method=False)
    def fliplr(self: Same) -> Same:
        """Reverse the columns.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).fliplr().tolist()
        [[2.0, 1.0], [4.0, 3.0]]
        """
        return apply(movement.flip, self, (1,))

    @composed(method=False)
    def flipud(self: Same) -> Same:
        """Reverse the rows.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).flipud().tolist()
        [[3.0, 4.0], [1.0, 2.0]]
        """
        if not self.ndim:
            raise ShapeError("flipud", "a zero-dim tensor has no rows", "pass a vector")
        return apply(movement.flip, self, (0,))

    # diagonals and products

    @composed(method=False)
    def inner(self: Same, other: Same) -> Same:
        """Sum the products of the last axes; with a number, multiply.

        >>> Tensor([1.0, 2.0, 3.0]).inner(Tensor([1.0, 1.0, 2.0])).item()
        9.0
        """
        if not self.ndim or not other.ndim:
            return apply(elementwise.arithmetic, "mul", self, other)
        axes = ([-1], [-1])
        return apply(assembling.tensordot, self, other, axes)

    # elements

    @composed(method=False, in_place=True)
    def deg2rad(self: Same) -> Same:
        """Turn degrees into radians.

        >>> Tensor([0.0, 90.0, 180.0]).deg2rad().tolist()
        [0.0, 1.5707..., 3.1415...]
        """
        return apply(assembling.scaled, self, assembling.RADIAN)

    @composed(method=False, in_place=True)
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
