"""Methods of `Tensor` by kind. Views, padding, joining and splitting.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

import operator
from collections.abc import Sequence
from typing import Any, cast

from picograd.dtype import to_dtype
from picograd.errors import DTypeError, ShapeError
from picograd.graph.shape import reshaped_strides
from picograd.number import position_of
from picograd.tensor.core import aliasing
from picograd.tensor.core.annotations import Axis, DTypeLike, Scalar, Shape, Sizes, Tensor
from picograd.tensor.core.function import composed
from picograd.tensor.core.operands import as_axis
from picograd.tensor.core.recording import Recorded, Same, apply, read, showing
from picograd.tensor.indexing import spans
from picograd.tensor.shaping import assembling, bits, movement
from picograd.traced_number import TracedNumber


class MovementMethods(Recorded):
    """This class holds methods of `Tensor`. Views, padding, joining and splitting."""

    __slots__ = ()

    # movement

    @composed(method=False)
    def reshape(self: Same, *sizes: Sizes, shape: Sequence[int] | None = None) -> Same:
        """Give the same elements another shape; one size may be -1.

        >>> Tensor([1.0, 2.0, 3.0, 4.0]).reshape(2, -1).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
        """
        return apply(movement.reshape, self, sizes if shape is None else (shape,))

    def view(
        self: Same, *sizes: Sizes, dtype: DTypeLike | None = None, size: Sequence[int] | None = None
    ) -> Same:
        """Give the same elements another shape, or read the same bits as another dtype.

        With a dtype, of another width too: the last axis shrinks or grows. No gradient passes.
        Raises ShapeError where only a copy has that shape, as of what is transposed: use `reshape`.

        >>> Tensor([1.0, 2.0]).view(2, 1).tolist(), Tensor([1.0]).view("int16").tolist()
        ([[1.0], [2.0]], [0, 16256])
        """
        if dtype is None and len(sizes) == 1 and bits.is_dtype(sizes[0]):
            dtype = cast(DTypeLike, sizes[0])
        if dtype is not None:
            return apply(bits.show_bits, self, to_dtype(dtype))
        found = apply(movement.view, self, sizes if size is None else (size,))
        if self._view is not None:
            check_view(self, found.shape)
        return found

    @composed(method=False)
    def permute(self: Same, *axes: Sizes, dims: Sequence[int] | None = None) -> Same:
        """Reorder the axes.

        >>> Tensor([[[1.0, 2.0]]]).permute(2, 0, 1).shape
        (2, 1, 1)
        """
        return apply(movement.permute, self, axes if dims is None else (dims,))

    @composed(method=False, in_place=True, view="if")
    def t(self: Same) -> Same:
        """Transpose a matrix.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).t().tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """
        if self.ndim > 2:
            problem = f"{tuple(self.shape)} has more than two axes"
            raise ShapeError("t", problem, "use .mT or .transpose(a, b)")
        return apply(movement.permute, self, tuple(reversed(range(self.ndim))))

    @property
    def T(self: Same) -> Same:
        """This tensor with its axes reversed: the transpose of a matrix.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).T.tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """
        return apply(movement.permute, self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self: Same) -> Same:
        """This tensor with its last two axes swapped.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).mT.tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """
        if not self.ndim:  # a number is its own transpose, as for T
            return apply(movement.permute, self, ())
        return apply(movement.transpose, self, -2, -1)

    @composed("broadcast_to")
    def expand(self: Same, *sizes: Sizes) -> Same:
        """Repeat axes of size 1 without copying; -1 keeps a size.

        >>> Tensor([[1.0], [2.0]]).expand(2, 3).tolist()
        [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
        """
        return apply(movement.expand, self, sizes)

    def expand_as(self: Same, other: Same) -> Same:
        """Expand to another tensor's shape.

        >>> Tensor([[1.0], [2.0]]).expand_as(Tensor([[0.0, 0.0], [0.0, 0.0]])).tolist()
        [[1.0, 1.0], [2.0, 2.0]]
        """
        return apply(movement.expand, self, (other.shape,))

    @composed(method=False)
    def flip(self: Same, *axes: Sizes, dims: Axis = None, axis: Axis = None) -> Same:
        """Reverse the order along axes.

        >>> Tensor([1.0, 2.0, 3.0]).flip(0).tolist()
        [3.0, 2.0, 1.0]
        """
        named = dims if axis is None else axis
        if named is None and not axes:
            raise DTypeError("flip", "no axis is given", "name the axes: x.flip(0)")
        return apply(movement.flip, self, axes if named is None else (named,))

    def pad(
        self: Same, padding: int | Sequence[Any], mode: str = "constant", value: Scalar = 0
    ) -> Same:
        """Pad: PyTorch's flat list (last axis first), or one (low, high) pair or None per axis.

        Modes are constant, reflect, replicate and circular; negative padding cuts off.

        >>> Tensor([1.0, 2.0, 3.0]).pad((1, 2), value=9).tolist()
        [9.0, 1.0, 2.0, 3.0, 9.0, 9.0]
        """
        if mode == "constant":
            return apply(movement.pad, self, padding, value)
        return apply(movement.pad_mode, self, padding, mode)

    def repeat(self: Same, *counts: Sizes) -> Same:
        """Tile copies along each axis.

        >>> Tensor([1.0, 2.0]).repeat(2).tolist()
        [1.0, 2.0, 1.0, 2.0]
        """
        return apply(movement.repeat, self, counts)

    @composed(method=False)
    def repeat_interleave(
        self: Same, repeats: int | Tensor | None = None, dim: int | None = None, *,
        output_size: int | None = None,
    ) -> Same:  # fmt: skip
        """Repeat each element in place; of numbers alone, repeat their positions so often.

        `output_size` is the size that is expected; another is an error.

        >>> Tensor([1.0, 2.0]).repeat_interleave(2).tolist()
        [1.0, 1.0, 2.0, 2.0]
        """
        if repeats is None:
            positions: Any = Recorded.kind.arange(self.shape[0], device=self.device)
            return positions.repeat_interleave(self, output_size=output_size)  # type: ignore
        each = (
            assembling.repeat_each if isinstance(repeats, Recorded) else movement.repeat_interleave
        )
        found = apply(each, self, repeats, dim)
        if output_size is not None and found.shape[dim or 0] != output_size:
            text = f"output_size={output_size}, the repeats give {found.shape[dim or 0]}"
            raise ShapeError("repeat_interleave", text, "leave output_size out")
        return found

    @composed(method=False)
    def narrow(self: Same, dim: int, start: int | Tensor, length: int) -> Same:
        """Take `length` elements from `start` along an axis: a number, or an integer tensor.

        >>> Tensor([1.0, 2.0, 3.0]).narrow(0, 1, 2).tolist()
        [2.0, 3.0]
        """
        if isinstance(start, Recorded):
            return narrow_from(self, dim, start, length)
        return apply(movement.narrow, self, dim, position_of(start), length)


@composed("reshape_as", "view_as", function=False)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Take another tensor's shape.

    >>> Tensor([1.0, 2.0]).reshape_as(Tensor([[0.0], [0.0]])).tolist()
    [[1.0], [2.0]]
    """
    return apply(movement.reshape, input, other.shape)


@composed()
def tile(input: Tensor, *counts: Sizes) -> Tensor:
    """Repeat along axes; missing counts are 1.

    >>> Tensor([1.0, 2.0]).tile((2, 1)).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """
    return apply(assembling.tile, input, counts)


@composed()
def ravel(input: Tensor) -> Tensor:
    """Flatten to one axis: a view of what is contiguous in memory, a copy of anything else.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).ravel().tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    flat: Any = apply(movement.flatten, input, 0, -1)
    strides = aliasing.strides_of(flat)
    if flat.numel() > 1 and strides != (1,):
        flat._view = None
    return flat


@composed()
def select(input: Tensor, dim: int, index: int | Tensor) -> Tensor:
    """Take one slice along an axis, at a number or an integer tensor.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).select(0, 1).tolist()
    [3.0, 4.0]
    """
    if not isinstance(index, Recorded):
        return apply(assembling.select, input, dim, position_of(index))
    position = as_axis(dim, input.ndim, "select")
    is_one = index.numel() == 1
    if not is_one or not index.dtype.is_integer:
        text = f"the index is a {index.dtype.name} tensor of shape {index.shape}"
        raise DTypeError("select", text, "use an integer tensor of one element")
    before = [slice(None)] * position
    items = (*before, index.reshape(()))
    return input[items]


showing(
    movement.reshape, movement.permute, movement.transpose, movement.expand, movement.squeeze,
    movement.unsqueeze, movement.flatten, movement.unflatten, movement.narrow, assembling.select,
    always=(movement.diagonal, movement.unfold, movement.view),
)  # fmt: skip


def check_view(tensor: Any, shape: Shape) -> None:
    """Raise ShapeError unless a shape is a view of the memory that a tensor shows."""
    strides = aliasing.strides_of(tensor)
    if any(type(size) is TracedNumber for size in (*tensor.shape, *strides, *shape)):
        return
    if reshaped_strides(tensor.shape, strides, shape) is None:
        text = f"shape {shape} is no view of {tensor.shape} with strides {strides}"
        raise ShapeError("view", text, "use reshape, which copies where it must")


def narrow_from(tensor: Any, dim: Any, start: Recorded, length: Any) -> Any:
    """Take `length` elements from where an integer tensor says."""
    position = as_axis(dim, tensor.ndim, "narrow")
    span = spans.narrow_span(read(start), operator.index(length), tensor.shape[position])
    before = [slice(None)] * position
    items = (*before, span)
    return tensor[items]
