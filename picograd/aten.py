"""Operators of PyTorch that programs call by their names there: copies of views, `convolution`.

Also functions of layers with the arguments of PyTorch's operators: `picograd.embedding(weight, x)`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from picograd.dtype import default_float, int32, int64
from picograd.engine.tracing import is_tracing
from picograd.errors import (
    AxisError,
    DTypeError,
    ShapeError,
    ValueRangeError,
    check_known,
    not_a_tensor,
)
from picograd.nn import functional
from picograd.nn.recurrent import advanced
from picograd.tensor import public
from picograd.tensor.core.annotations import DTypeLike
from picograd.tensor.core.guard import guard_functions, guarded
from picograd.tensor.core.subclasses import publish
from picograd.tensor.tensor import Tensor

__all__ = [
    "_assert_async", "as_strided_scatter", "constant_pad_nd", "convolution", "empty_strided",
    "fill", "grid_sampler",
]  # fmt: skip


def slice_of(
    x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Take a slice of an axis."""
    moved = x.movedim(dim, 0)[slice(start, end, step)]
    return moved.movedim(0, dim)


def same(x: Tensor) -> Tensor:
    """Give a tensor."""
    return x


def _safe_softmax(input: Tensor, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Normalise exponentials along an axis; where all are those of -inf, the shares are 0.

    >>> picograd._safe_softmax(Tensor([[1.0, 1.0], [-math.inf, -math.inf]]), 1).tolist()
    [[0.5, 0.5], [0.0, 0.0]]
    """
    is_nothing = (input == -math.inf).all(dim, keepdim=True)
    shares = input.masked_fill(is_nothing, 0.0).softmax(dim, dtype=dtype)
    return shares.masked_fill(is_nothing, 0.0)


def _shape_as_tensor(self: Tensor) -> Tensor:
    """Give the sizes as a tensor of int64.

    >>> picograd._shape_as_tensor(Tensor([[1.0, 2.0]])).tolist()
    [1, 2]
    """
    return Tensor(list(self.shape), dtype=int64)


def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """Multiply matrices of int8; sums are int32.

    >>> x = Tensor([[100, 100]], dtype="int8")
    >>> picograd._int_mm(x, x.T).tolist()
    [[20000]]
    """
    return public.mm(self.to(int32), mat2.to(int32))


def _grouped_mm(
    self: Tensor, mat2: Tensor, offs: Tensor | None = None, bias: Tensor | None = None,
    out_dtype: DTypeLike | None = None,
) -> Tensor:  # fmt: skip
    """Multiply groups of matrices, as `nn.functional.grouped_mm` does."""
    return functional.grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def _scaled_mm(
    self: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None,
    scale_result: Tensor | None = None, out_dtype: DTypeLike | None = None,
    use_fast_accum: bool = False,
) -> Tensor:  # fmt: skip
    """Multiply 8-bit floats with scales, as `picograd.scaled_mm`: in the dtype of `self`."""
    dtype = out_dtype or self.dtype
    return public.scaled_mm(self, mat2, scale_a, scale_b, bias, dtype, use_fast_accum)


def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: DTypeLike
) -> Tensor:
    """Compute the gradient of softmax's input from that of its output."""
    flowing = grad_output * output
    return (flowing - output * flowing.sum(dim, keepdim=True)).to(input_dtype)


def _convert_indices_from_coo_to_csr(self: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Count in how many places rows begin: sorted row numbers become size + 1 offsets.

    >>> picograd._convert_indices_from_coo_to_csr(Tensor([0, 0, 2], dtype="int64"), 3).tolist()
    [0, 2, 2, 3]
    """
    places = public.arange(size + 1, dtype=self.dtype, device=self.device)
    return public.searchsorted(self, places, out_int32=out_int32)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """List row and column of each place, one under the other; the columns first if transposed."""
    dtype = int32 if out_int32 else int64
    places = public.arange(len(col_indices), dtype=crow_indices.dtype, device=col_indices.device)
    rows = public.searchsorted(crow_indices, places, right=True) - 1
    pair = (col_indices, rows) if transpose else (rows, col_indices)
    return public.stack([each.to(dtype) for each in pair])


METHODS = (
    "as_strided", "detach", "diagonal", "expand", "permute", "select", "split",
    "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view",
)  # fmt: skip
OTHERS: dict[str, Callable[..., Any]] = {"alias": same, "slice": slice_of}


def copying(name: str, look: Callable[..., Any]) -> Callable[..., Any]:
    """Make the function that copies what a view shows; `out` takes it instead."""

    def copy(input: Tensor, *args: Any, out: Any = None, **options: Any) -> Any:
        if not isinstance(input, Tensor):
            problem = f"the input must be a Tensor, not {type(input).__name__}"
            raise DTypeError(f"{name}_copy", problem, "wrap it in picograd.Tensor(...)")
        found = look(input, *args, **options)
        if isinstance(found, Tensor):
            return found.clone() if out is None else filled(out, found)
        if out is None:
            return tuple(part.clone() for part in found)
        if not isinstance(out, (list, tuple)) or len(out) != len(found):
            problem = f"out must be a list of {len(found)} tensors, not {type(out).__name__}"
            raise DTypeError(f"{name}_copy", problem, "pass a tensor for each part")
        for target, part in zip(out, found):
            filled(target, part)
        return None

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__doc__ = f"""Copy what `{name}` shows, whose result would share memory.

    Its arguments are those of the method. `out` names where the copy is written.
    """
    return guarded(copy)


def filled(out: Tensor, value: Tensor) -> Tensor:
    """Write a value into a tensor, which takes its shape."""
    if not isinstance(out, Tensor):
        raise not_a_tensor("copy", "out", out)
    return out.resize_(value.shape).copy_(value)


COPIES = {name: getattr(Tensor, name) for name in METHODS} | OTHERS
COPIES |= {name: getattr(public, name) for name in ("view_as_complex", "view_as_real")}
NAMES = tuple(f"{name}_copy" for name in COPIES)


def __getattr__(name: str) -> Any:
    """Make one of the functions that copy. Raises AttributeError for other names."""
    if name in ORDERS:
        globals()[name] = reordered(name, ORDERS[name].split())
    elif name in NAMES:
        plain = name.removesuffix("_copy")
        globals()[name] = copying(plain, COPIES[plain])
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    publish(globals(), (name,))
    return globals()[name]


def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool,
    output_padding: Sequence[int], groups: int,
) -> Tensor:  # fmt: skip
    """Convolve along one, two or three axes, as the size of the weight says; or its adjoint.

    >>> import picograd
    >>> x, w = picograd.ones(1, 1, 3), picograd.ones(1, 1, 2)
    >>> picograd.ops.aten.convolution(x, w, None, [1], [0], [1], False, [0], 1).tolist()
    [[[2.0, 2.0]]]
    """
    axes = weight.ndim - 2
    if axes not in (1, 2, 3):
        problem = f"the weight has {weight.ndim} axes"
        raise ShapeError("convolution", problem, "give it 3 to 5: out, in and the window")
    if not transposed:
        convolve = getattr(functional, f"conv{axes}d")
        return convolve(input, weight, bias, stride, padding, dilation, groups)
    adjoint = getattr(functional, f"conv_transpose{axes}d")
    more = {"output_padding": output_padding, "groups": groups, "dilation": dilation}
    return adjoint(input, weight, bias, stride, padding, **more)


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """Raise ValueRangeError where a tensor of one element is zero; not inside a trace.

    >>> import picograd
    >>> picograd._assert_async(picograd.tensor(True), "it holds")
    """
    if input.numel() != 1:
        problem = f"a tensor of shape {tuple(input.shape)} is no single truth"
        raise ShapeError("_assert_async", problem, "use .all()")
    if not is_tracing() and not input.bool().item():
        problem = assert_msg or "the value is zero"
        raise ValueRangeError("_assert_async", problem, "look at what was asserted")


REDUCTIONS = ("none", "mean", "sum")
NORM = "input weight bias running_mean running_var {} momentum eps"
# functions of `nn.functional` whose arguments stand in another order here
ORDERS = {
    "batch_norm": NORM.format("training"),
    "binary_cross_entropy_with_logits": "input target weight pos_weight reduction",
    "cosine_embedding_loss": "input1 input2 target margin reduction",
    "ctc_loss": "log_probs targets input_lengths target_lengths blank reduction zero_infinity",
    "embedding": "weight input padding_idx scale_grad_by_freq sparse",
    "hinge_embedding_loss": "input target margin reduction",
    "instance_norm": NORM.format("use_input_stats"),
    "kl_div": "input target reduction",
    "margin_ranking_loss": "input1 input2 target margin reduction",
    "poisson_nll_loss": "input target log_input full eps reduction",
    "triplet_margin_loss": "anchor positive negative margin p eps swap reduction",
}


def reordered(name: str, order: Sequence[str]) -> Callable[..., Any]:
    """Make the function of a row: reductions are numbers, too, and -1 pads nothing."""

    def call(*args: Any, **options: Any) -> Any:
        given = dict(zip(order, args)) | options
        given.pop("cudnn_enabled", None)
        if "indices" in given:
            given["input"] = given.pop("indices")
        if isinstance(given.get("reduction"), int):
            given["reduction"] = REDUCTIONS[given["reduction"]]
        if given.get("padding_idx") == -1:
            del given["padding_idx"]
        return getattr(functional, name)(**given)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Call `nn.functional.{name}` by the order of PyTorch's operator: {order}."
    return call


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Pad the last axes with a value: (low, high) of each, the last one first.

    >>> import picograd
    >>> picograd.constant_pad_nd(picograd.tensor([1, 2]), (1, 0), 7).tolist()
    [7, 1, 2]
    """
    return functional.pad(input, tuple(pad), value=value)


def fill(input: Tensor, value: Any) -> Tensor:
    """Make a tensor like this one of one value, a number or a tensor without axes.

    >>> import picograd
    >>> picograd.fill(picograd.tensor([1, 2]), 3).tolist()
    [3, 3]
    """
    return input.clone().fill_(value)


def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:  # fmt: skip
    """Copy a tensor, and write `src` where `as_strided` looks.

    >>> import picograd
    >>> x = picograd.zeros(4)
    >>> picograd.as_strided_scatter(x, picograd.ones(2), (2,), (2,)).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    copied = input.clone()
    copied.as_strided(size, stride, storage_offset).copy_(src)
    return copied


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Call `nn.functional.grid_sample`, whose modes are numbers here.

    >>> import picograd
    >>> x, grid = picograd.ones(1, 1, 2, 2), picograd.zeros(1, 1, 1, 2)
    >>> picograd.grid_sampler(x, grid, 0, 0, False).tolist()
    [[[[1.0]]]]
    """
    check_known("grid_sampler", "interpolation_mode", interpolation_mode, range(3))
    check_known("grid_sampler", "padding_mode", padding_mode, range(3))
    mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
    padding = ("zeros", "border", "reflection")[padding_mode]
    return functional.grid_sample(input, grid, mode, padding, align_corners)


def empty_strided(size: Sequence[int], stride: Sequence[int], **options: Any) -> Tensor:
    """Make a tensor of zeros that shows memory of its own at these strides.

    >>> import picograd
    >>> picograd.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    return Tensor([0]).new_empty_strided(size, stride, **{"dtype": default_float(), **options})


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], **options: Any) -> Tensor:
    """Make a tensor of zeros; the order asked for names every axis once, and changes nothing.

    >>> import picograd
    >>> picograd.empty_permuted((2, 3), (1, 0)).shape
    (2, 3)
    """
    if sorted(physical_layout) != list(range(len(size))):
        text = f"physical_layout={tuple(physical_layout)} does not order {len(size)} axes"
        raise AxisError("empty_permuted", text, "list every axis once")
    return Tensor.zeros(*size, **options)


grid_sampler_2d = grid_sampler_3d = grid_sampler


def stepped(mode: str) -> Callable[..., Any]:
    """Make the step of a recurrent cell: (input, state, weights, biases) -> the next state."""

    def cell(
        input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor,
        b_ih: Tensor | None = None, b_hh: Tensor | None = None,
    ) -> Any:  # fmt: skip
        state = tuple(hx) if mode == "LSTM" else (hx,)
        found = advanced(mode, input, w_ih, w_hh, b_ih, b_hh, *state)
        return found if mode == "LSTM" else found[0]

    cell.__name__ = cell.__qualname__ = f"{mode.lower()}_cell"
    cell.__doc__ = f"Compute the next state of a cell of kind {mode}."
    return cell


lstm_cell, gru_cell = stepped("LSTM"), stepped("GRU")
rnn_tanh_cell, rnn_relu_cell = stepped("RNN_TANH"), stepped("RNN_RELU")

guard_functions(globals(), __all__)
publish(globals(), __all__)
