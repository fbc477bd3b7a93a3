"""Shapes that do not fit."""

from error_support import Case, check, named

import picograd
from picograd import Tensor
from picograd.errors import DTypeError, ShapeError, ValueRangeError

X = Tensor.ones(2, 3)
IMAGE = Tensor.ones(2, 3, 8, 8)
KERNEL = Tensor.ones(4, 3, 3, 3)


def add_in_place() -> None:
    x = Tensor.ones(3)
    x += Tensor.ones(4, 3)


CASES = [
    Case(
        "matmul transposed", lambda: Tensor.ones(32, 784) @ Tensor.ones(128, 784), ShapeError,
        "matmul: inner sizes differ: (32, 784) @ (128, 784). Fix: transpose the second "
        "operand with .T.",
    ),
    Case(
        "matmul first transposed",
        lambda: Tensor.ones(784, 32) @ Tensor.ones(784, 128),
        ShapeError,
        "matmul: inner sizes differ: (784, 32) @ (784, 128). Fix: transpose the first "
        "operand with .T.",
    ),
    Case(
        "matmul inner", lambda: Tensor.ones(3, 4) @ Tensor.ones(5, 6), ShapeError,
        "matmul: inner sizes differ: (3, 4) @ (5, 6). Fix: the last size of the left "
        "operand must equal the second-last of the right one.",
    ),
    Case(
        "matmul vectors", lambda: Tensor.ones(3) @ Tensor.ones(4), ShapeError,
        "matmul: inner sizes differ: (3,) @ (4,). Fix: the last size of the left operand "
        "must equal the second-last of the right one.",
    ),
    Case(
        "matmul scalar", lambda: X @ 3.0, ShapeError,
        "matmul: zero-dim operand: (2, 3) @ (). Fix: use * for scalars.",
    ),
    Case(
        "matmul batches", lambda: Tensor.ones(2, 3, 4) @ Tensor.ones(5, 4, 6), ShapeError,
        "matmul: batch sizes do not broadcast: (2, 3, 4) @ (5, 4, 6). Fix: make the "
        "leading sizes equal or 1.",
    ),
    Case(
        "mm rank", lambda: X.mm(Tensor.ones(3)), ShapeError,
        "mm: needs 2-d operands, got shape (3,). Fix: use matmul for other ranks.",
    ),
    Case(
        "bmm batches", lambda: Tensor.ones(2, 3, 4).bmm(Tensor.ones(3, 4, 5)), ShapeError,
        "bmm: batch sizes differ: (2, 3, 4) @ (3, 4, 5). Fix: use matmul, which "
        "broadcasts batches.",
    ),
    Case(
        "dot", lambda: X.dot(X), ShapeError,
        "dot: inner sizes differ: (2, 3) @ (2, 3) (in matmul). Fix: transpose the second operand "
        "with .T.",
    ),
    Case(
        "linear bias", lambda: X.linear(Tensor.ones(4, 3), Tensor.ones(5)), ShapeError,
        "linear: bias (5,) does not fit (4,) outputs. Fix: give one bias per output.",
    ),
    Case(
        "add", lambda: X + Tensor.ones(4), ShapeError,
        "add: shapes (2, 3) and (4,) do not broadcast. Fix: make sizes equal or 1, "
        "counted from the right.",
    ),
    Case(
        "mul", lambda: X * Tensor.ones(3, 2), ShapeError,
        "mul: shapes (2, 3) and (3, 2) do not broadcast. Fix: make sizes equal or 1, "
        "counted from the right.",
    ),
    Case(
        "less", lambda: X < Tensor.ones(4), ShapeError,
        "less: shapes (2, 3) and (4,) do not broadcast. Fix: make sizes equal or 1, "
        "counted from the right.",
    ),
    Case(
        "where", lambda: picograd.where(Tensor.ones(2) > 0, Tensor.ones(3), 0.0), ShapeError,
        "where: shapes (2,) and (3,) do not broadcast. Fix: make sizes equal or 1, "
        "counted from the right.",
    ),
    Case(
        "masked_fill",
        lambda: Tensor.ones(3, 2).masked_fill(Tensor.ones(2, 2) > 0, 1.0),
        ShapeError,
        "masked_fill: shapes (2, 2) and (3, 2) do not broadcast (in where). Fix: make sizes equal "
        "or 1, counted from the right.",
    ),
    Case(
        "add in place", add_in_place, ShapeError,
        "add: value of shape (4, 3) does not fit a tensor of shape (3,). Fix: reshape or "
        "expand the value.",
    ),
    Case(
        "assign", lambda: X.assign(Tensor.ones(3, 2)), ShapeError,
        "assign: value of shape (3, 2) does not fit a tensor of shape (2, 3). Fix: "
        "reshape or expand the value.",
    ),
    Case(
        "reshape", lambda: X.reshape(4, 2), ShapeError,
        "reshape: cannot reshape (2, 3) (6 elements) to (4, 2). Fix: keep the number of "
        "elements, with at most one -1.",
    ),
    Case(
        "reshape two unknown", lambda: X.reshape(-1, -1), ShapeError,
        "reshape: cannot reshape (2, 3) (6 elements) to (-1, -1). Fix: keep the number "
        "of elements, with at most one -1.",
    ),
    Case(
        "reshape unknown", lambda: X.reshape(-1, 4), ShapeError,
        "reshape: cannot reshape (2, 3) (6 elements) to (-1, 4). Fix: keep the number of "
        "elements, with at most one -1.",
    ),
    Case(
        "view", lambda: X.view(7), ShapeError,
        "view: cannot reshape (2, 3) (6 elements) to (7,). Fix: keep the number of "
        "elements, with at most one -1.",
    ),
    Case(
        "unflatten", lambda: X.unflatten(1, (2, 2)), ShapeError,
        "unflatten: cannot reshape (3,) (3 elements) to (2, 2). Fix: keep the number of "
        "elements, with at most one -1.",
    ),
    Case(
        "expand", lambda: X.expand(4, 3), ShapeError,
        "expand: cannot expand (2, 3) to (4, 3). Fix: only axes of size 1 can be expanded.",
    ),
    Case(
        "addmm", lambda: X.addmm(Tensor.ones(2, 2), Tensor.ones(2, 4)), ShapeError,
        "addmm: cannot expand (2, 3) to (2, 4). Fix: only axes of size 1 can be expanded.",
    ),
    Case(
        "expand fewer axes", lambda: X.expand(3), ShapeError,
        "expand: cannot expand (2, 3) to fewer axes (3,). Fix: give a size for every axis.",
    ),
    Case(
        "expand new axis", lambda: Tensor.ones(5).expand(-1, 5), ShapeError,
        "expand: an axis of (-1, 5) has a negative size. "
        "Fix: give new axes a size, and others one or -1.",
    ),
    Case(
        "repeat", lambda: X.repeat(2), ShapeError,
        "repeat: counts (2,) do not fit shape (2, 3). Fix: give one count of at least 0 "
        "per axis.",
    ),
    Case(
        "repeat_interleave", lambda: X.repeat_interleave(-1), ShapeError,
        "repeat_interleave: -1 repeats are not possible. Fix: use at least 0.",
    ),
    Case(
        "roll", lambda: X.roll((1, 2), (0,)), ShapeError,
        "roll: 2 shifts for 1 axes. Fix: give one shift per axis.",
    ),
    Case(
        "unfold", lambda: Tensor.ones(3).unfold(0, 5, 1), ShapeError,
        "unfold: window 5 with step 1 does not fit an axis of 3. Fix: use 0 <= size <= "
        "length and step >= 1.",
    ),
    Case(
        "tril", lambda: Tensor.ones(3).tril(), ShapeError,
        "tril: needs at least 2 axes, got shape (3,). Fix: add axes with .unsqueeze(0).",
    ),
    Case(
        "outer", lambda: X.outer(X), ShapeError,
        "outer: needs 1-d operands, got shape (2, 3). Fix: use matmul for other ranks.",
    ),
    Case(
        "pad odd", lambda: X.pad((1, 1, 1)), ShapeError,
        "pad: padding (1, 1, 1) does not fit 2 axes. Fix: give (low, high) of the last "
        "axis, then of the one before.",
    ),
    Case(
        "pad cuts too much", lambda: X.pad((-2, -2)), ShapeError,
        "pad: cannot cut 2 + 2 elements off an axis of size 3. Fix: use smaller negative "
        "padding.",
    ),
    Case(
        "cat sizes", lambda: picograd.cat([X, Tensor.ones(2, 4)]), ShapeError,
        "cat: shapes (2, 3) and (2, 4) differ outside axis 0. Fix: make all sizes but "
        "axis 0 equal.",
    ),
    Case(
        "cat scalars", lambda: picograd.cat([Tensor(1.0), Tensor(2.0)]), ShapeError,
        "cat: zero-dim tensors cannot be joined. Fix: use picograd.stack.",
    ),
    Case(
        "cat nothing", lambda: picograd.cat([]), ShapeError,
        "cat: there are no tensors. Fix: pass at least one.",
    ),
    Case(
        "stack", lambda: picograd.stack([Tensor.ones(2), Tensor.ones(3)]), ShapeError,
        "stack: shapes (2,) and (3,) differ. Fix: make all shapes equal.",
    ),
    Case(
        "split sizes", lambda: X.split([1, 1], dim=1), ShapeError,
        "split: sizes (1, 1) do not add up to 3. Fix: they must cover axis 1.",
    ),
    Case(
        "split zero", lambda: X.split(0), ShapeError,
        "split: piece size 0 is not positive. Fix: use at least 1.",
    ),
    Case(
        "chunk zero", lambda: X.chunk(0), ShapeError,
        "chunk: 0 chunks are not possible. Fix: use at least 1.",
    ),
    Case(
        "einsum sizes", lambda: picograd.einsum("ij,jk->ik", X, Tensor.ones(4, 5)), ShapeError,
        "einsum: label 'j' has sizes 3 and 4. Fix: make them equal.",
    ),
    Case(
        "einsum output",
        lambda: picograd.einsum("ij,jk->iz", X, Tensor.ones(3, 5)),
        ValueRangeError,
        "einsum: the output of 'ij,jk->iz' has unknown or repeated labels. Fix: use each "
        "label of the operands at most once.",
    ),
    Case(
        "einsum terms", lambda: picograd.einsum("ij->i", X, X), ValueRangeError,
        "einsum: 'ij->i' has 1 terms for 2 operands. Fix: write one term per operand.",
    ),
    Case(
        "einsum rank", lambda: picograd.einsum("ijk->i", X), ShapeError,
        "einsum: term 'ijk' of 'ijk->i' does not fit 2 axes. Fix: write one letter per axis.",
    ),
    Case(
        "conv2d channels", lambda: IMAGE.conv2d(Tensor.ones(4, 5, 3, 3)), ShapeError,
        "conv2d: input (2, 3, 8, 8) has 3 channels, the weight takes 5. Fix: channels "
        "are axis 1 of the input.",
    ),
    Case(
        "conv2d groups", lambda: IMAGE.conv2d(KERNEL, groups=2), ShapeError,
        "conv2d: input (2, 3, 8, 8) has 3 channels, the weight takes 6. Fix: channels "
        "are axis 1 of the input.",
    ),
    Case(
        "conv2d kernel", lambda: IMAGE.conv2d(Tensor.ones(4, 3, 9, 9)), ShapeError,
        "conv2d: kernel (9, 9) is larger than the padded input (8, 8). Fix: pad more or "
        "use a smaller kernel.",
    ),
    Case(
        "conv2d bias", lambda: IMAGE.conv2d(KERNEL, Tensor.ones(5)), ShapeError,
        "conv2d: bias (5,) does not fit 4 output channels. Fix: give one bias per output "
        "channel.",
    ),
    Case(
        "conv2d stride", lambda: IMAGE.conv2d(KERNEL, stride=0), ValueRangeError,
        "conv2d: stride=0 does not fit 2 spatial axes. Fix: pass one int >= 1, or 2 of them.",
    ),
    Case(
        "conv2d padding", lambda: IMAGE.conv2d(KERNEL, padding=(1, 2, 3)), ValueRangeError,
        "conv2d: padding=(1, 2, 3) does not fit 2 spatial axes. Fix: pass one int >= 0, "
        "or 2 of them.",
    ),
    Case(
        "max_pool2d kernel", lambda: IMAGE.max_pool2d(9), ShapeError,
        "max_pool2d: kernel (9, 9) is larger than the padded input (8, 8). Fix: pad more "
        "or use a smaller kernel.",
    ),
    Case(
        "max_pool2d zero", lambda: IMAGE.max_pool2d(0), ValueRangeError,
        "max_pool2d: kernel_size=0 does not fit 2 spatial axes. Fix: pass one int >= 1, "
        "or 2 of them.",
    ),
    Case(
        "max_pool2d rank", lambda: Tensor.ones(2).max_pool2d(2), ShapeError,
        "max_pool2d: input (2,) has fewer than 3 axes. Fix: it needs a channel axis and "
        "the spatial axes.",
    ),
    Case(
        "avg_pool2d kernel", lambda: IMAGE.avg_pool2d(9), ShapeError,
        "avg_pool2d: kernel (9, 9) is larger than the padded input (8, 8). Fix: pad more "
        "or use a smaller kernel.",
    ),
    Case(
        "item", lambda: X.item(), ShapeError,
        "item(): a tensor of shape (2, 3) has 6 elements, not one. Fix: index it, or use "
        ".tolist().",
    ),
    Case(
        "bool", lambda: bool(X), ShapeError,
        "bool(): the truth value of a tensor of shape (2, 3) is ambiguous. Fix: use "
        ".any() or .all().",
    ),
    Case(
        "float", lambda: float(X), ShapeError,
        "item(): a tensor of shape (2, 3) has 6 elements, not one. Fix: index it, or use "
        ".tolist().",
    ),
    Case(
        "negative size", lambda: Tensor.zeros(-1, 2), ShapeError,
        "zeros: negative size in (-1, 2). Fix: sizes count elements.",
    ),
    Case(
        "too many elements", lambda: Tensor.zeros(10**12, 10**12), ShapeError,
        "zeros: (1000000000000, 1000000000000) has more than 2**60 elements. Fix: use "
        "smaller sizes.",
    ),
    Case(
        "allclose", lambda: X.allclose(Tensor.ones(4)), ShapeError,
        "allclose: shapes (2, 3) and (4,) do not broadcast. Fix: make sizes equal or 1, "
        "counted from the right.",
    ),
    Case(
        "rearrange names", lambda: X.rearrange("a b -> b"), ShapeError,
        "rearrange: 'a b -> b': 'a' is on one side only. Fix: name the same axes on both.",
    ),
    Case(
        "rearrange rank", lambda: X.rearrange("a b c -> c b a"), ShapeError,
        "rearrange: 'a b c -> c b a': it has 3 axes, the tensor 2. Fix: name every axis, or "
        "write ....",
    ),
    Case(
        "shrink", lambda: X.shrink(((0, 3), None)), ShapeError,
        "shrink: (0, 3) is no part of an axis of size 2. Fix: use 0 <= start <= stop <= size.",
    ),
    Case(
        "batchnorm", lambda: X.batchnorm(None, None, X[0], X[:, 0]), ShapeError,
        "batchnorm: (2,) does not fit axis 1 of (2, 3). Fix: give 3 elements.",
    ),
    Case(
        "one_hot of nothing", lambda: Tensor([], dtype="int64").one_hot(), ShapeError,
        "one_hot: an empty tensor does not say how many classes there are. Fix: pass num_classes.",
    ),
    Case(
        "cat arguments", lambda: Tensor.cat([X], 0, 1), DTypeError,
        "cat: 2 arguments follow the list. Fix: pass the axis alone.",
    ),
    Case(
        "randint bounds", lambda: Tensor.randint(1, 2, 3, (2,)), DTypeError,
        "randint: 3 bounds were given. Fix: pass randint(low, high, size).",
    ),
]  # fmt: skip


@named(CASES)
def test_message(case: Case) -> None:
    check(case)
