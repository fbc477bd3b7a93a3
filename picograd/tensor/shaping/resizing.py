"""Resizing: a tensor shows more or fewer elements of its memory, or other memory, in place."""

from collections.abc import Sequence
from typing import Any

from picograd.errors import DTypeError, GradientError
from picograd.helpers import product, row_major
from picograd.tensor.core import recording
from picograd.tensor.core.annotations import DeviceLike, DTypeLike, Shape, Sizes, Tensor
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.core.function import composed
from picograd.tensor.core.methods_family import UntypedStorage
from picograd.tensor.core.operands import as_shape
from picograd.tensor.core.recording import become, is_view, show_memory
from picograd.tensor.shaping.joining import as_strided


@composed(function=False)
def resize_(input: Tensor, *sizes: Sizes) -> Tensor:
    """Give a tensor another shape in place: it shows the elements that follow in its memory.

    What is beyond the end is new memory, all of it, with zeros there; other views keep the old.
    Raises GradientError for a tensor that tracks gradients.

    >>> import picograd
    >>> x = picograd.Tensor([1, 2, 3, 4])
    >>> x.resize_(2, 1).tolist(), x.resize_(3).tolist()
    ([[1], [2]], [1, 2, 3])
    """
    shape = as_shape(sizes, "resize_")
    if input.requires_grad:
        text = "a tensor that tracks gradients cannot be resized"
        raise GradientError("resize_", text, "resize x.detach()")
    if shape == input.shape:
        return input
    memory, offset = recording.memory_of(input)
    missing = offset + product(shape) - memory.numel()
    if missing > 0:
        grow(input, memory, offset, missing)
        memory, offset = input, 0
    return become("resize_", input, lambda held: shown(held, shape, offset))


def shown(held: Tensor, shape: Shape, offset: int) -> Tensor:
    """Show elements of the memory of a tensor, from an offset on."""
    is_all = not is_view(held) and product(shape) == held.numel()
    return held.view(shape) if is_all else as_strided(held, shape, row_major(shape), offset)


def grow(input: Tensor, memory: Tensor, offset: int, missing: int) -> None:
    """Give a tensor new memory: what it has from an offset on, and some zeros."""
    with no_grad():
        kept = memory.reshape(-1)[offset:]
        fresh = kept.cat(kept.new_zeros(missing))
    input.node = fresh.node


@composed(function=False)
def resize_as_(input: Tensor, the_template: Tensor) -> Tensor:
    """Give a tensor the shape of another in place, as `resize_` does.

    >>> import picograd
    >>> picograd.Tensor([1, 2, 3, 4]).resize_as_(picograd.zeros(2, 2)).tolist()
    [[1, 2], [3, 4]]
    """
    return resize_(input, the_template.shape)


@composed(function=False)
def new_empty_strided(
    x: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    **more: Any,
) -> Tensor:
    """Make a tensor of this dtype and device that shows memory of its own at these strides.

    >>> import picograd
    >>> picograd.ones(1).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    reach = sum((count - 1) * step for count, step in zip(size, stride))
    memory = x.new_zeros(reach + 1 if product(size) else 0, dtype=dtype, device=device, **more)
    is_row_major = tuple(stride) == row_major(tuple(size))
    made = memory.view(size) if is_row_major else as_strided(memory, size, stride)
    return made.requires_grad_(requires_grad)


@composed(function=False)
def set_(
    input: Tensor,
    source: Tensor | UntypedStorage | None = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Let a tensor show the memory of another from now on; without one it is empty.

    A size, with strides, chooses of that memory; a `storage()` is all of it, along one axis. Raises
    DTypeError where the dtypes differ.

    >>> import picograd
    >>> x, y = picograd.Tensor([1, 2, 3]), picograd.Tensor([0])
    >>> y.set_(x, 1, (2,)).mul_(5).tolist(), x.tolist()
    ([10, 15], [1, 10, 15])
    """
    if isinstance(source, UntypedStorage):
        source = source.base.reshape(-1)
    seen: Any = input.new_zeros(0) if source is None else source
    need_tensor("set_", seen)
    if seen.dtype is not input.dtype:
        text = f"the source is {seen.dtype.name} but the tensor is {input.dtype.name}"
        raise DTypeError("set_", text, "cast it first")
    if size is not None:
        strides = row_major(tuple(size)) if stride is None else stride
        seen = as_strided(seen, size, strides, storage_offset)
    if seen is not input:
        show_memory(input, seen)
    return input
