"""Pools of tensors, their partial inverses, and patches, by PyTorch's names.

Inputs are (N, C, *S) or (C, *S). Sizes are one int, or one per spatial axis. ShapeError for windows
larger than the padded input, ValueRangeError for arguments out of range. With `return_indices` a
pool also gives the flat position of each element over the spatial axes, in int64.
"""

from collections.abc import Sequence
from typing import Any

from picograd.engine import pending
from picograd.tensor.core.annotations import Sizes, Tensor
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.function import composed, within
from picograd.tensor.core.recording import Same, apply, apply_each
from picograd.tensor.network import convolution, pooling
from picograd.tensor.network.convolution_functions import Definition, by_rank


def max_pool(rank: int) -> Definition:
    """Make the pool of the largest elements, with their positions if they are wanted."""
    op = f"max_pool{rank}d"

    @pending.locked
    def pool(
        input: Same,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Tensor:
        need_tensor(op, input)
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options |= dict(dilation=dilation, ceil_mode=ceil_mode)
        if return_indices:  # a pair, which the signature leaves out, as PyTorch's does
            return apply_each(pooling.max_pool_indices, rank, input, options)
        return apply(convolution.max_pool, rank, input, options)

    return pool


@by_rank(max_pool)
def max_pool1d() -> None:
    """Take the largest element of each window; the first one gets the gradient.

    >>> Tensor([[[1.0, 2.0, 3.0, 4.0]]]).max_pool1d(2).tolist()
    [[[2.0, 4.0]]]
    """


@by_rank(max_pool)
def max_pool2d() -> None:
    """Take the largest element of each window; the first one gets the gradient.

    >>> Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).max_pool2d(2).tolist()
    [[[[4.0]]]]
    """


@by_rank(max_pool)
def max_pool3d() -> None:
    """Take the largest element of each window; the first one gets the gradient.

    >>> Tensor([[[[[1.0, 2.0], [3.0, 4.0]]]]]).max_pool3d((1, 2, 2)).tolist()
    [[[[[4.0]]]]]
    """


def average_pool(rank: int) -> Definition:
    """Make the pool of averages."""
    op = f"avg_pool{rank}d"

    def pool(
        input: Same,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Same:
        need_tensor(op, input)
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options |= dict(ceil_mode=ceil_mode, count_include_pad=count_include_pad)
        options |= dict(divisor=divisor_override)
        return apply(convolution.average_pool, rank, input, options)

    return pool


@by_rank(average_pool)
def avg_pool1d() -> None:
    """Average each window; `divisor_override` replaces the number of elements.

    >>> Tensor([[[1.0, 2.0, 3.0, 4.0]]]).avg_pool1d(2).tolist()
    [[[1.5, 3.5]]]
    """


@by_rank(average_pool)
def avg_pool2d() -> None:
    """Average each window; `divisor_override` replaces the number of elements.

    >>> Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).avg_pool2d(2).tolist()
    [[[[2.5]]]]
    """


@by_rank(average_pool)
def avg_pool3d() -> None:
    """Average each window; `divisor_override` replaces the number of elements.

    >>> Tensor([[[[[1.0, 2.0], [3.0, 4.0]]]]]).avg_pool3d((1, 2, 2)).tolist()
    [[[[[2.5]]]]]
    """


def adaptive_average(rank: int) -> Definition:
    """Make the pool of averages that gives sizes."""
    op = f"adaptive_avg_pool{rank}d"

    def pool(input: Same, output_size: int | Sequence[int | None] | None) -> Same:
        need_tensor(op, input)
        return apply(convolution.adaptive_average_pool, rank, input, output_size)

    return pool


def adaptive_extreme(rank: int) -> Definition:
    """Make the pool of the largest elements that gives sizes."""
    op = f"adaptive_max_pool{rank}d"

    @pending.locked
    def pool(
        input: Same, output_size: int | Sequence[int | None] | None, return_indices: bool = False
    ) -> Tensor:
        need_tensor(op, input)
        pair: Any = apply_each(pooling.adaptive_max_pool, rank, input, output_size)
        return pair if return_indices else pair[0]

    return pool


@by_rank(adaptive_average)
def adaptive_avg_pool1d() -> None:
    """Average so that the spatial axes get the given sizes; None keeps a size.

    >>> Tensor([[[1.0, 2.0, 3.0, 4.0]]]).adaptive_avg_pool1d(2).tolist()
    [[[1.5, 3.5]]]
    """


@by_rank(adaptive_extreme)
def adaptive_max_pool1d() -> None:
    """Take the largest elements so that the spatial axes get the given sizes.

    >>> Tensor([[[1.0, 2.0, 3.0, 4.0]]]).adaptive_max_pool1d(2).tolist()
    [[[2.0, 4.0]]]
    """


def max_unpool(rank: int) -> Definition:
    """Make the partial inverse of the pool of the largest elements."""
    op = f"max_unpool{rank}d"

    def unpool(
        input: Same,
        indices: Same,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        output_size: Sequence[int] | None = None,
    ) -> Same:
        need_tensor(op, input, indices)
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding)
        options |= dict(output_size=output_size)
        return apply(pooling.max_unpool, rank, input, indices, options)

    return unpool


@by_rank(max_unpool, function=False)
def max_unpool1d() -> None:
    """Put each element at its position in zeros: the partial inverse of max_pool1d.

    >>> values, places = Tensor([[[1.0, 3.0, 2.0, 4.0]]]).max_pool1d(2, return_indices=True)
    >>> values.max_unpool1d(places, 2).tolist()
    [[[0.0, 3.0, 0.0, 4.0]]]
    """


@by_rank(adaptive_average)
def adaptive_avg_pool2d() -> None:
    """Average so that the spatial axes get the given sizes; None keeps a size.

    >>> Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).adaptive_avg_pool2d(1).tolist()
    [[[[2.5]]]]
    """


@by_rank(adaptive_extreme)
def adaptive_max_pool2d() -> None:
    """Take the largest elements so that the spatial axes get the given sizes.

    >>> Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).adaptive_max_pool2d(1).tolist()
    [[[[4.0]]]]
    """


@by_rank(max_unpool, function=False)
def max_unpool2d() -> None:
    """Put each element at its position in zeros: the partial inverse of max_pool2d.

    >>> values, places = Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).max_pool2d(2, return_indices=True)
    >>> values.max_unpool2d(places, 2).tolist()
    [[[[0.0, 0.0], [0.0, 4.0]]]]
    """


@by_rank(adaptive_average)
def adaptive_avg_pool3d() -> None:
    """Average so that the spatial axes get the given sizes; None keeps a size.

    >>> Tensor([[[[[1.0, 2.0], [3.0, 4.0]]]]]).adaptive_avg_pool3d(1).tolist()
    [[[[[2.5]]]]]
    """


@by_rank(adaptive_extreme)
def adaptive_max_pool3d() -> None:
    """Take the largest elements so that the spatial axes get the given sizes.

    >>> Tensor([[[[[1.0, 2.0], [3.0, 4.0]]]]]).adaptive_max_pool3d(1).tolist()
    [[[[[4.0]]]]]
    """


@by_rank(max_unpool, function=False)
def max_unpool3d() -> None:
    """Put each element at its position in zeros: the partial inverse of max_pool3d.

    >>> values, places = Tensor([[[[[1.0, 2.0]]]]]).max_pool3d((1, 1, 2), return_indices=True)
    >>> values.max_unpool3d(places, (1, 1, 2)).tolist()
    [[[[[0.0, 2.0]]]]]
    """


def norm_pool(rank: int) -> Definition:
    """Make the pool of the norms of windows."""
    op = f"lp_pool{rank}d"

    def pool(
        input: Same,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> Same:
        need_tensor(op, input)
        options = dict(kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode)
        return apply(pooling.norm_pool, rank, input, norm_type, options)

    return pool


@by_rank(norm_pool, function=False)
def lp_pool1d() -> None:
    """Compute sum(x^p)^(1/p) over each window.

    >>> Tensor([[[3.0, 4.0]]]).lp_pool1d(2, 2).tolist()
    [[[5.0]]]
    """


@by_rank(norm_pool, function=False)
def lp_pool2d() -> None:
    """Compute sum(x^p)^(1/p) over each window.

    >>> Tensor([[[[3.0, 4.0]]]]).lp_pool2d(2, (1, 2)).tolist()
    [[[[5.0]]]]
    """


@by_rank(norm_pool, function=False)
def lp_pool3d() -> None:
    """Compute sum(x^p)^(1/p) over each window.

    >>> Tensor([[[[[3.0, 4.0]]]]]).lp_pool3d(2, (1, 1, 2)).tolist()
    [[[[[5.0]]]]]
    """


# patches


@composed("im2col", function=False)
@within("functional")
def unfold(
    input: Same, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Same:
    """Lay windows out as columns: (N, C, H, W) -> (N, C * KH * KW, places).

    The method is `im2col`: `Tensor.unfold` slides windows along one axis.

    >>> Tensor([[[[1.0, 2.0, 3.0]]]]).im2col((1, 2)).tolist()
    [[[1.0, 2.0], [2.0, 3.0]]]
    """
    need_tensor("unfold", input)
    options = dict(kernel_size=kernel_size, dilation=dilation)
    options |= dict(padding=padding, stride=stride)
    return apply(pooling.patches, input, options)


@composed("col2im", function=False)
@within("functional")
def fold(
    input: Same,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Same:
    """Add columns back to images, (N, C * KH * KW, places) -> (N, C, H, W): the method `col2im`.

    >>> Tensor([[[1.0, 2.0], [2.0, 3.0]]]).col2im((1, 3), (1, 2)).tolist()
    [[[[1.0, 4.0, 3.0]]]]
    """
    need_tensor("fold", input)
    options = dict(kernel_size=kernel_size, dilation=dilation)
    options |= dict(padding=padding, stride=stride)
    return apply(pooling.overlay, input, output_size, options)
