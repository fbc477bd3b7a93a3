"""Convolutions of tensors and their adjoints, by PyTorch's names; `convolution.py` has the nodes.

Inputs are (N, C, *S) or (C, *S). Sizes are one int, or one per spatial axis; padding may also be
"same", "valid", or (low, high) pairs. 16-bit floats accumulate in float32. ShapeError for channels
that do not fit and kernels larger than the padded input, ValueRangeError for wrong sizes.
"""

from collections.abc import Callable
from typing import Any

from picograd.tensor.core.annotations import Sizes, Tensor
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.function import composed, within
from picograd.tensor.core.recording import Same, apply
from picograd.tensor.network import convolution

Definition = Callable[..., Any]


def by_rank(make: Callable[[int], Definition], **seen: Any) -> Callable[[Definition], Definition]:
    """Show what `make` makes for a number of axes, the digit in a name, under the name.

    What it stands on has the documentation alone.
    """

    def decorate(named: Definition) -> Definition:
        made = make(int(named.__name__[-2]))
        made.__name__, made.__doc__ = named.__name__, named.__doc__
        vars(made)["is_event"] = True  # as it is called, before its arguments are looked at
        return composed(**seen)(within("functional")(made))

    return decorate


def convolve(rank: int) -> Definition:
    """Make the convolution over `rank` axes."""
    op = f"conv{rank}d"

    def conv(
        input: Same,
        weight: Same,
        bias: Same | None = None,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> Same:
        need_tensor(op, input)
        options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
        return apply(convolution.convolve, op, rank, input, weight, bias, options)

    return conv


@by_rank(convolve)
def conv1d() -> None:
    """Cross-correlate (N, C, L) with (O, C / groups, K).

    >>> Tensor([[[1.0, 2.0, 3.0]]]).conv1d(Tensor([[[1.0, 1.0]]])).tolist()
    [[[3.0, 5.0]]]
    """


@by_rank(convolve)
def conv2d() -> None:
    """Cross-correlate (N, C, H, W) with (O, C / groups, KH, KW).

    >>> Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).conv2d(Tensor([[[[1.0, 1.0]]]])).tolist()
    [[[[3.0], [7.0]]]]
    """


@by_rank(convolve)
def conv3d() -> None:
    """Cross-correlate (N, C, D, H, W) with (O, C / groups, KD, KH, KW).

    >>> Tensor([[[[[1.0, 2.0], [3.0, 4.0]]]]]).conv3d(Tensor([[[[[1.0, 1.0]]]]])).tolist()
    [[[[[3.0], [7.0]]]]]
    """


@composed(method=False)
@within("functional")
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Cross-correlate time, batch, channels (T, N, C) with (K, C, O), padded by zeros in time.

    >>> x = Tensor([[[1.0]], [[2.0]], [[3.0]]])
    >>> picograd.conv_tbc(x, Tensor.ones(2, 1, 1), Tensor.zeros(1)).flatten().tolist()
    [3.0, 5.0]
    """
    need_tensor("conv_tbc", input, weight=weight)
    found = input.permute(1, 2, 0).conv1d(weight.permute(2, 1, 0), bias, padding=pad)
    return found.permute(2, 0, 1)


def convolve_transposed(rank: int) -> Definition:
    """Make the adjoint of a convolution over `rank` axes."""
    op = f"conv_transpose{rank}d"

    def conv(
        input: Same, weight: Same, bias: Same | None = None, stride: Sizes = 1, padding: Sizes = 0,
        output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1,
    ) -> Same:  # fmt: skip
        need_tensor(op, input)
        options = dict(stride=stride, padding=padding, output_padding=output_padding)
        options |= dict(groups=groups, dilation=dilation)
        return apply(convolution.convolve_transposed, op, rank, input, weight, bias, options)

    return conv


@by_rank(convolve_transposed)
def conv_transpose1d() -> None:
    """Apply the adjoint of conv1d: (N, C, L) with (C, O / groups, K).

    >>> Tensor([[[1.0, 2.0]]]).conv_transpose1d(Tensor([[[1.0, 1.0]]])).tolist()
    [[[1.0, 3.0, 2.0]]]
    """


@by_rank(convolve_transposed)
def conv_transpose2d() -> None:
    """Apply the adjoint of conv2d: (N, C, H, W) with (C, O / groups, KH, KW).

    >>> Tensor([[[[1.0, 2.0]]]]).conv_transpose2d(Tensor([[[[1.0, 1.0]]]])).tolist()
    [[[[1.0, 3.0, 2.0]]]]
    """


@by_rank(convolve_transposed)
def conv_transpose3d() -> None:
    """Apply the adjoint of conv3d: (N, C, D, H, W) with (C, O / groups, KD, KH, KW).

    >>> Tensor([[[[[1.0, 2.0]]]]]).conv_transpose3d(Tensor([[[[[1.0, 1.0]]]]])).tolist()
    [[[[[1.0, 3.0, 2.0]]]]]
    """
