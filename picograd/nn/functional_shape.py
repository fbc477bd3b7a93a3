"""Functions that rearrange: pixel shuffles, padding, channel shuffles."""

from collections.abc import Sequence

from picograd.errors import ShapeError
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.function import within
from picograd.tensor.core.recording import apart
from picograd.tensor.tensor import Tensor


@within("functional")
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    """Pad: (low, high) of the last axis first. Modes constant, reflect, replicate, circular.

    >>> from picograd import Tensor, nn
    >>> nn.functional.pad(Tensor([[1.0, 2.0, 3.0]]), (1, 1), "reflect").tolist()
    [[2.0, 1.0, 2.0, 3.0, 2.0]]
    """
    need_tensor("pad", input)
    return input.pad(tuple(pad), mode=mode, value=value)


@within("functional")
def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    """Move channels into space: (..., C r r, H, W) -> (..., C, H r, W r) (Shi et al., 2016).

    >>> from picograd import Tensor, nn
    >>> nn.functional.pixel_shuffle(Tensor([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]), 2).tolist()
    [[[[1.0, 2.0], [3.0, 4.0]]]]
    """
    need_tensor("pixel_shuffle", x)
    r = upscale_factor
    *batch, channels, height, width = x.shape
    if channels % (r * r):
        problem = f"{channels} channels do not divide by {r} * {r}"
        raise ShapeError("pixel_shuffle", problem, "choose another upscale_factor")
    first = len(batch)
    left = channels // (r * r)
    cut = x.reshape(*batch, left, r, r, height, width)  # ... C r r H W
    order = (*range(first + 1), first + 3, first + 1, first + 4, first + 2)
    ordered = cut.permute(*order)
    result = ordered.reshape(*batch, left, height * r, width * r)
    return apart(result)


@within("functional")
def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    """Move space into channels: (..., C, H r, W r) -> (..., C r r, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.functional.pixel_unshuffle(Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), 2).tolist()
    [[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]
    """
    need_tensor("pixel_unshuffle", x)
    r = downscale_factor
    *batch, channels, height, width = x.shape
    if height % r or width % r:
        problem = f"image {height} x {width} does not divide by {r}"
        raise ShapeError("pixel_unshuffle", problem, "choose another downscale_factor")
    first = len(batch)
    high = height // r
    wide = width // r
    cut = x.reshape(*batch, channels, high, r, wide, r)  # ... C H r W r
    order = (*range(first + 1), first + 2, first + 4, first + 1, first + 3)
    ordered = cut.permute(*order)
    result = ordered.reshape(*batch, channels * r * r, high, wide)
    return apart(result)


@within("functional")
def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Interleave groups of channels: channel g * n + i goes to i * groups + g.

    >>> from picograd import Tensor, nn
    >>> nn.functional.channel_shuffle(Tensor([[[1.0], [2.0], [3.0], [4.0]]]), 2).tolist()
    [[[1.0], [3.0], [2.0], [4.0]]]
    """
    need_tensor("channel_shuffle", x)
    batch, channels, *rest = x.shape
    if channels % groups:
        problem = f"{channels} channels do not divide into {groups} groups"
        raise ShapeError("channel_shuffle", problem, "choose a divisor")
    cut = x.reshape(batch, groups, channels // groups, *rest)
    result = cut.transpose(1, 2).reshape(x.shape)
    return apart(result)
