"""PyTorch's function spelling: `picograd.exp(x)` is `x.exp()`, and so on."""

from collections.abc import Sequence
from typing import Final

from picograd.graph.shape import broadcast_shapes
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.arguments import need_tensors
from picograd.tensor.core.guard import guard_functions
from picograd.tensor.core.recording import apply_all
from picograd.tensor.core.recording import grad as grad
from picograd.tensor.core.spelling import spell_functions
from picograd.tensor.math import special
from picograd.tensor.shaping import assembling
from picograd.tensor.tensor import Tensor
from picograd.tensor.tensor import where as where

zeros: Final = Tensor.zeros
ones: Final = Tensor.ones
empty: Final = Tensor.empty
full: Final = Tensor.full
arange: Final = Tensor.arange
linspace: Final = Tensor.linspace
eye: Final = Tensor.eye
from_numpy: Final = Tensor.from_numpy
rand: Final = Tensor.rand
randn: Final = Tensor.randn
randint: Final = Tensor.randint
randperm: Final = Tensor.randperm
manual_seed: Final = Tensor.manual_seed
cat: Final = Tensor.cat
stack: Final = Tensor.stack
einsum: Final = Tensor.einsum
concat: Final = cat
concatenate: Final = cat

neg: Final = Tensor.neg
round: Final = Tensor.round
allclose: Final = Tensor.allclose
add: Final = Tensor.add
sub: Final = Tensor.sub
mul: Final = Tensor.mul
div: Final = Tensor.div


reshape: Final = Tensor.reshape
permute: Final = Tensor.permute
flip: Final = Tensor.flip
matmul: Final = Tensor.matmul
dot: Final = Tensor.dot

polygamma: Final = special.polygamma
swapaxes: Final = Tensor.swapaxes
swapdims: Final = Tensor.swapdims
tile: Final = Tensor.tile
select: Final = Tensor.select
ravel: Final = Tensor.ravel
fliplr: Final = Tensor.fliplr
flipud: Final = Tensor.flipud
inner: Final = Tensor.inner
deg2rad: Final = Tensor.deg2rad
rad2deg: Final = Tensor.rad2deg
repeat_interleave: Final = Tensor.repeat_interleave
narrow: Final = Tensor.narrow
subtract: Final = Tensor.subtract
multiply: Final = Tensor.multiply
divide: Final = Tensor.divide
true_divide: Final = Tensor.true_divide
floor_divide: Final = Tensor.floor_divide
remainder: Final = Tensor.remainder
negative: Final = Tensor.negative
bitwise_and: Final = Tensor.bitwise_and
bitwise_or: Final = Tensor.bitwise_or
bitwise_xor: Final = Tensor.bitwise_xor
bitwise_not: Final = Tensor.bitwise_not
bitwise_left_shift: Final = Tensor.bitwise_left_shift
bitwise_right_shift: Final = Tensor.bitwise_right_shift
eq: Final = Tensor.eq
ne: Final = Tensor.ne
lt: Final = Tensor.lt
le: Final = Tensor.le
gt: Final = Tensor.gt
ge: Final = Tensor.ge
less: Final = Tensor.less
less_equal: Final = Tensor.less_equal
greater: Final = Tensor.greater
greater_equal: Final = Tensor.greater_equal
not_equal: Final = Tensor.not_equal
from_dlpack: Final = Tensor.from_dlpack


def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Repeat tensors to their common shape: views of them.

    >>> x, y = picograd.broadcast_tensors(Tensor([1.0, 2.0]), Tensor([[3.0], [4.0]]))
    >>> x.tolist(), y.tolist()
    ([[1.0, 2.0], [1.0, 2.0]], [[3.0, 3.0], [4.0, 4.0]])
    """
    listed = need_tensors("broadcast_tensors", tensors)
    shape = broadcast_shapes(*(each.shape for each in listed), op="broadcast_tensors")
    return tuple(each.expand(shape) for each in listed)


def block_diag(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """Put matrices on the diagonal of a larger one.

    >>> picograd.block_diag(Tensor([[1.0]]), Tensor([[2.0, 3.0]])).tolist()
    [[1.0, 0.0, 0.0], [0.0, 2.0, 3.0]]
    """
    return apply_all(assembling.block_diag, tensors)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join along axis 0 after making everything at least 2-d.

    >>> picograd.vstack([Tensor([1.0, 2.0]), Tensor([3.0, 4.0])]).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return apply_all(assembling.stack_along, tensors, 2, 0)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join along axis 1, or along axis 0 for vectors.

    >>> picograd.hstack([Tensor([1.0, 2.0]), Tensor([3.0])]).tolist()
    [1.0, 2.0, 3.0]
    """
    return apply_all(assembling.stack_along, tensors, 1, 1)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join along axis 2 after making everything at least 3-d.

    >>> picograd.dstack([Tensor([1.0, 2.0]), Tensor([3.0, 4.0])]).tolist()
    [[[1.0, 3.0], [2.0, 4.0]]]
    """
    return apply_all(assembling.stack_along, tensors, 3, 2)


def tril_indices(
    row: int,
    col: int | None = None,
    offset: int = 0,
    device: DeviceLike | None = None,
    dtype: DTypeLike = "int64",
) -> Tensor:
    """List the positions of a lower triangle, (2, count) in int64.

    >>> picograd.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return Tensor(assembling.triangle_indices(row, col, offset, True), dtype, device)


def triu_indices(
    row: int,
    col: int | None = None,
    offset: int = 0,
    device: DeviceLike | None = None,
    dtype: DTypeLike = "int64",
) -> Tensor:
    """List the positions of an upper triangle, (2, count) in int64.

    >>> picograd.triu_indices(2, 2).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    return Tensor(assembling.triangle_indices(row, col, offset, False), dtype, device)


row_stack: Final = vstack

OWN = [name for name, value in globals().items() if getattr(value, "__module__", "") == __name__]
guard_functions(globals(), [*OWN, "where"])
spell_functions(globals(), [name for name in globals() if name not in ("apply_all", "several_of")])
