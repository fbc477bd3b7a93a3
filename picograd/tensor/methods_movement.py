"""Methods of `Tensor` by kind. Views, padding, joining and splitting.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from typing import Any

from picograd.tensor import assembling, movement
from picograd.tensor.operands import UNSET, Scalar, either
from picograd.tensor.recording import Recorded, Same, apply, read, several


class MovementMethods(Recorded):
    """This class holds methods of `Tensor`. Views, padding, joining and splitting."""

    __slots__ = ()

    # movement

    def reshape(
        self: Same,
        *sizes: Any,
    ) -> Same:
        """Give the same elements another shape; one size may be -1."""
        return apply(movement.reshape, self, sizes)

    view = reshape

    def permute(
        self: Same,
        *axes: Any,
    ) -> Same:
        """Reorder the axes."""
        return apply(movement.permute, self, axes)

    def transpose(
        self: Same,
        dim0: Any = 0,
        dim1: Any = 1,
    ) -> Same:
        """Swap two axes."""
        return apply(movement.transpose, self, dim0, dim1)

    def t(self: Same) -> Same:
        """Transpose a matrix."""
        return apply(movement.permute, self, tuple(reversed(range(self.ndim))))

    @property
    def T(self: Same) -> Same:
        """This tensor with its axes reversed: the transpose of a matrix."""
        return apply(movement.permute, self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self: Same) -> Same:
        """This tensor with its last two axes swapped."""
        return apply(movement.transpose, self, -2, -1)

    def expand(
        self: Same,
        *sizes: Any,
    ) -> Same:
        """Repeat axes of size 1 without copying; -1 keeps a size."""
        return apply(movement.expand, self, sizes)

    broadcast_to = expand

    def expand_as(
        self: Same,
        other: Same,
    ) -> Same:
        """Expand to another tensor's shape."""
        return apply(movement.expand, self, (other.shape,))

    def squeeze(
        self: Same,
        axis: Any = UNSET,
        *,
        dim: Any = UNSET,
    ) -> Same:
        """Drop axes of size 1."""
        return apply(movement.squeeze, self, either("squeeze", "axis", axis, "dim", dim))

    def unsqueeze(
        self: Same,
        axis: Any = UNSET,
        *,
        dim: Any = UNSET,
    ) -> Same:
        """Insert an axis of size 1."""
        return apply(movement.unsqueeze, self, either("unsqueeze", "axis", axis, "dim", dim, 0))

    def flatten(
        self: Same,
        start_dim: Any = 0,
        end_dim: Any = -1,
    ) -> Same:
        """Merge axes into one."""
        return apply(movement.flatten, self, start_dim, end_dim)

    def unflatten(
        self: Same,
        dim: Any,
        sizes: Any,
    ) -> Same:
        """Split one axis into several."""
        return apply(movement.unflatten, self, dim, sizes)

    def flip(
        self: Same,
        *axes: Any,
    ) -> Same:
        """Reverse the order along axes."""
        return apply(movement.flip, self, axes)

    def pad(
        self: Same,
        padding: Any,
        mode: str = "constant",
        value: Scalar = 0,
    ) -> Same:
        """Pad: PyTorch's flat list (last axis first) or one (low, high) pair per axis."""
        if mode == "constant":
            return apply(movement.pad, self, padding, value)
        return apply(movement.pad_mode, self, padding, mode)

    def repeat(
        self: Same,
        *counts: Any,
    ) -> Same:
        """Tile copies along each axis."""
        return apply(movement.repeat, self, counts)

    def repeat_interleave(
        self: Same,
        repeats: Any,
        dim: Any = None,
    ) -> Same:
        """Repeat each element in place."""
        if isinstance(repeats, Recorded):
            return apply(assembling.repeat_each, self, repeats, dim)
        return apply(movement.repeat_interleave, self, repeats, dim)

    def roll(
        self: Same,
        shifts: Any,
        dims: Any = None,
    ) -> Same:
        """Rotate elements along axes."""
        return apply(movement.roll, self, shifts, dims)

    def unfold(
        self: Same,
        dimension: Any,
        size: Any,
        step: Any,
    ) -> Same:
        """Slide windows along an axis."""
        return apply(movement.unfold, self, dimension, size, step)

    def narrow(
        self: Same,
        dim: Any,
        start: Any,
        length: Any,
    ) -> Same:
        """Take `length` elements from `start` along an axis."""
        return apply(movement.narrow, self, dim, start, length)

    def tril(
        self: Same,
        diagonal: Any = 0,
    ) -> Same:
        """Zero the elements above a diagonal."""
        return apply(movement.triangle, self, diagonal, True)

    def triu(
        self: Same,
        diagonal: Any = 0,
    ) -> Same:
        """Zero the elements below a diagonal."""
        return apply(movement.triangle, self, diagonal, False)

    def diagonal(
        self: Same,
        offset: Any = 0,
        dim1: Any = 0,
        dim2: Any = 1,
    ) -> Same:
        """Take a diagonal of two axes as the last axis."""
        return apply(movement.diagonal, self, offset, dim1, dim2)

    def split(
        self: Same,
        sizes: Any,
        dim: Any = 0,
    ) -> tuple[Same, ...]:
        """Cut into pieces of one size, or of listed sizes."""
        return several(self, movement.split(read(self), sizes, dim))

    def chunk(
        self: Same,
        chunks: Any,
        dim: Any = 0,
    ) -> tuple[Same, ...]:
        """Cut into at most `chunks` equal pieces."""
        return several(self, movement.chunk(read(self), chunks, dim))

    def unbind(
        self: Same,
        dim: Any = 0,
    ) -> tuple[Same, ...]:
        """Take an axis apart."""
        return several(self, movement.unbind(read(self), dim))
