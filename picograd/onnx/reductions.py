"""ONNX operators along axes: reductions, softmaxes, running sums, the largest elements."""

import math
from typing import Any

import numpy as np

import picograd.nn.functional as functional
from picograd.dtype import bool_
from picograd.onnx.shaping import places_along
from picograd.onnx.table import Call, ints, operator
from picograd.tensor.public import where
from picograd.tensor.tensor import Tensor

REDUCED = {
    "ReduceSum": lambda x, axes, keep: x.sum(axes, keep),
    "ReduceMean": lambda x, axes, keep: x.mean(axes, keep),
    "ReduceMax": lambda x, axes, keep: extreme(x, axes, keep, "amax"),
    "ReduceMin": lambda x, axes, keep: extreme(x, axes, keep, "amin"),
    "ReduceProd": lambda x, axes, keep: product_of(x, axes, keep),
    "ReduceL1": lambda x, axes, keep: x.abs().sum(axes, keep),
    "ReduceL2": lambda x, axes, keep: (x * x).sum(axes, keep).sqrt(),
    "ReduceSumSquare": lambda x, axes, keep: (x * x).sum(axes, keep),
    "ReduceLogSum": lambda x, axes, keep: x.sum(axes, keep).log(),
    "ReduceLogSumExp": lambda x, axes, keep: x.logsumexp(axes, keep),
}


def extreme(x: Tensor, axes: list[int], keep: bool, method: str) -> Tensor:
    """Find the largest or smallest; of nothing, what is below or above all numbers."""
    if math.prod(x.shape[axis] for axis in axes) == 0:
        shape = [
            1 if n in axes else size for n, size in enumerate(x.shape) if keep or n not in axes
        ]
        number = -math.inf if method == "amax" else math.inf
        number = max(number, 0.0) if x.dtype is bool_ else number
        return Tensor(np.full(shape, number, np.float32)).to(x.dtype)
    return getattr(x, method)(axes, keep)


def product_of(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """Multiply over several axes, the last one first."""
    for axis in sorted(axes, reverse=True):
        x = x.prod(axis, keep)
    return x


def reduced(kind: str) -> Any:
    """Make the row of a reduction: axes by attribute or input, all of them by default."""

    def row(
        x: Tensor,
        by: list[int] | None = None,
        axes: Any = None,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Tensor:
        given = by or ints([] if axes is None else axes)
        if not given and noop_with_empty_axes:
            return REDUCED[kind](x.unsqueeze(0), [0], False).to(x.dtype)
        which = [axis % x.ndim for axis in given] or list(range(x.ndim))
        if not which:  # a number is the sum of itself
            return REDUCED[kind](x.unsqueeze(0), [0], False).to(x.dtype)
        return REDUCED[kind](x, which, bool(keepdims)).to(x.dtype)

    return row


for each in REDUCED:
    operator(each)(reduced(each))


@operator("ArgMax", "ArgMin")
def arg_extreme(
    call: Call, x: Tensor, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
) -> Tensor:
    """Find where the largest or smallest lies; the first such, or the last."""
    method = call.node.op_type.lower()
    if not select_last_index:
        return getattr(x, method)(axis, bool(keepdims))
    return x.shape[axis] - 1 - getattr(x.flip(axis), method)(axis, bool(keepdims))


def hardmax(x: Tensor, axis: int) -> Tensor:
    """1 at the first of the largest elements, 0 elsewhere."""
    return (places_along(x.shape[axis], axis, x.ndim) == x.argmax(axis, True)).to(x.dtype)


def as_matrix(x: Tensor, axis: int) -> Tensor:
    """Make a matrix: the axes before `axis` are the rows."""
    return x.reshape(math.prod(x.shape[: axis % max(x.ndim, 1)]), -1)


NORMALISED = {"Softmax": Tensor.softmax, "LogSoftmax": Tensor.log_softmax, "Hardmax": hardmax}
for each, function in NORMALISED.items():  # before opset 13 over an axis and all after it
    operator(each, since=13)(lambda x, axis=-1, function=function: function(x, axis))
    operator(each)(
        lambda x, axis=1, function=function: function(as_matrix(x, axis), 1).reshape(x.shape)
    )


@operator("CumSum", "CumProd")
def running(call: Call, x: Tensor, axis: int, exclusive: int = 0, reverse: int = 0) -> Tensor:
    """Add or multiply up to each element, without it for `exclusive`, from either end."""
    method = call.node.op_type.lower()
    x = x.flip(axis) if reverse else x
    if exclusive:
        widths = [0] * (2 * x.ndim)
        widths[2 * (x.ndim - 1 - axis % x.ndim)] = 1
        first = int(method == "cumprod")
        x = functional.pad(x.narrow(axis, 0, x.shape[axis] - 1), widths, value=first)
    found = getattr(x, method)(axis).to(x.dtype)
    return found.flip(axis) if reverse else found


@operator("LpNormalization")
def lp_normalization(x: Tensor, axis: int = -1, p: int = 2) -> Tensor:
    """Divide by the norm along an axis; 0 stays 0."""
    norm = x.abs().sum(axis, True) if p == 1 else (x * x).sum(axis, True).sqrt()
    return where(norm == 0, x.zeros_like(), x / norm)


@operator("MeanVarianceNormalization")
def mean_variance_normalization(x: Tensor, axes: Any = (0, 2, 3)) -> Tensor:
    """Take the mean away and divide by the deviation."""
    kept = list(axes)
    centred = x - x.mean(kept, True)
    return centred / ((centred * centred).mean(kept, True).sqrt() + 1e-9)


@operator("TopK")
def top_k(
    x: Tensor, k: int, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Tensor, Tensor]:
    """Find the largest elements along an axis, and where they are; of equals the first."""
    values, places = x.sort(dim=axis, descending=bool(largest), stable=True)
    return values.narrow(axis, 0, k), places.narrow(axis, 0, k)
