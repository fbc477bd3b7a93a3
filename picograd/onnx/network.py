"""ONNX operators of networks: products, convolutions, pools, norms, losses."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import picograd.nn.functional as functional
from picograd.late_methods import dataclass
from picograd.onnx.table import Call, Value, formulas, operator
from picograd.tensor.public import stack
from picograd.tensor.tensor import Tensor

LOW = -math.inf

FORMULAS: dict[str, Callable[..., Value]] = {  # pools over all places of a channel
    "MatMul": lambda x, y: x @ y,
    "GlobalAveragePool": lambda x: x.mean(list(range(2, x.ndim)), True),
    "GlobalMaxPool": lambda x: x.amax(list(range(2, x.ndim)), True),
    "GlobalLpPool": lambda x, p=2: (x.abs() ** p).sum(list(range(2, x.ndim)), True) ** (1 / p),
}
formulas(FORMULAS)


@operator("Gemm")
def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    """`alpha * a @ b + beta * c`."""
    found = (a.T if transA else a) @ (b.T if transB else b)
    found = found if alpha == 1 else (found * alpha).to(a.dtype)
    if c is None:
        return found
    return found + (c if beta == 1 else (c * beta).to(a.dtype))


@dataclass(frozen=True)
class Windows:
    """This class is how windows move over the axes of space, from the attributes of a node."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    widths: list[tuple[int, int]]  # of the padding before and after
    extra: list[tuple[int, int]]  # the same, and what `ceil_mode` adds


def windows(
    x: Tensor,
    kernel_shape: Any,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Windows:
    """Read the attributes of a convolution or pool; `ceil_mode` is more padding at the end."""
    order, space = x.ndim - 2, x.shape[2:]
    strides, dilations = strides or [1] * order, dilations or [1] * order
    widths = [(0, 0)] * order
    if auto_pad == "NOTSET" and pads:
        widths = [(pads[n], pads[n + order]) for n in range(order)]
    reach = [(width - 1) * dilation + 1 for width, dilation in zip(kernel_shape, dilations)]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        for n, (size, stride) in enumerate(zip(space, strides)):
            total = max(0, (-(-size // stride) - 1) * stride + reach[n] - size)
            widths[n] = halves(total, auto_pad == "SAME_UPPER")
    extra = list(widths)
    for n in range(order if ceil_mode else 0):
        before, after = widths[n]
        size = space[n] + before + after - reach[n]
        steps = -(-size // strides[n])
        if steps * strides[n] >= space[n] + before:  # the last window begins beyond
            steps -= 1
        extra[n] = (before, after + max(0, steps * strides[n] - size))
    return Windows(tuple(kernel_shape), tuple(strides), tuple(dilations), widths, extra)


def pad_space(x: Tensor, widths: list[tuple[int, int]], value: float) -> Tensor:
    """Pad the last axes."""
    flat = [n for pair in reversed(widths) for n in pair]
    return functional.pad(x, flat, value=value) if any(flat) else x


@operator("Conv")
def conv(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    group: int = 1,
    kernel_shape: Any = None,
    **settings: Any,
) -> Tensor:
    """Convolution over one, two or three axes."""
    how = windows(x, w.shape[2:], **settings)
    padding = [before for before, _ in how.widths]
    if any(before != after for before, after in how.widths):
        x, padding = pad_space(x, how.widths, 0), [0] * len(padding)
    function = getattr(functional, f"conv{len(padding)}d")
    return function(x, w, bias, how.strides, tuple(padding), how.dilations, group)


@operator("ConvTranspose")
def conv_transpose(
    x: Tensor, w: Tensor, bias: Tensor | None = None, auto_pad: str = "NOTSET", group: int = 1,
    kernel_shape: Any = None, output_padding: Any = None, output_shape: Any = None, **settings: Any,
) -> Tensor:  # fmt: skip
    """Transposed convolution; what `pads` says is cut off."""
    how, order = windows(x, w.shape[2:], **settings), x.ndim - 2
    extra = list(output_padding or [0] * order)
    full = [
        stride * (size - 1) + dilation * (width - 1) + 1 + more
        for size, stride, width, dilation, more in zip(
            x.shape[2:], how.strides, how.kernel, how.dilations, extra
        )
    ]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER") and output_shape is None:
        output_shape = [size * stride for size, stride in zip(x.shape[2:], how.strides)]
    cuts = how.widths
    if output_shape is not None:
        totals = [size - wanted for size, wanted in zip(full, output_shape[-order:])]
        ends_later = [auto_pad == "SAME_UPPER" or total < 0 for total in totals]
        cuts = [halves(each, later) for each, later in zip(totals, ends_later)]
    function = getattr(functional, f"conv_transpose{order}d")
    found = function(x, w, None, how.strides, 0, 0, group, how.dilations)
    grow = [(0, size - have) for size, have in zip(full, found.shape[2:])]
    widths = [(g[0] - c[0], g[1] - c[1]) for g, c in zip(grow, cuts)]
    found = pad_space(found, widths, 0)
    return found if bias is None else found + bias.reshape(-1, *[1] * order)


def halves(total: int, later: bool) -> tuple[int, int]:
    """Divide what is padded, or cut off (added, below 0), between the two ends of an axis."""
    small = max(total, 0) // 2
    return (small, total - small) if later else (total - small, small)


@operator("MaxPool")
def max_pool(
    call: Call, x: Tensor, kernel_shape: Any, storage_order: int = 0, **settings: Any
) -> Any:
    """Take the largest of each window, and where it lies in the whole tensor."""
    how = windows(x, kernel_shape, **settings)
    order, space = x.ndim - 2, x.shape[2:]
    low = LOW if x.is_floating_point() else np.iinfo(x.dtype.numpy).min
    whole = pad_space(x, how.extra, low)
    pool = getattr(functional, f"max_pool{order}d")
    steps = dict(stride=how.strides, dilation=how.dilations)
    if not x.is_floating_point():
        return pool(whole.float(), how.kernel, **steps).to(x.dtype)
    if call.outputs < 2:
        return pool(whole, how.kernel, **steps)
    found, places = pool(whole, how.kernel, return_indices=True, **steps)
    flat, step, rest = places * 0, 1, places
    axes = []
    for n in reversed(range(order)):
        axes.append(rest % whole.shape[2 + n] - how.extra[n][0])
        rest = rest // whole.shape[2 + n]
    numbers = list(zip(axes, reversed(space)))
    for place, size in numbers if not storage_order else reversed(numbers):
        flat, step = flat + place * step, step * size
    samples = Tensor(np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * order))
    return found, flat + samples * math.prod(space)


@operator("AveragePool")
def average_pool(
    x: Tensor, kernel_shape: Any, count_include_pad: int = 0, **settings: Any
) -> Tensor:
    """Average each window; of what is padded only for `count_include_pad`."""
    how = windows(x, kernel_shape, **settings)
    ones = pad_space(x.zeros_like() + 1, how.widths, 1 if count_include_pad else 0)
    more = [(0, after - before) for (_, before), (_, after) in zip(how.widths, how.extra)]
    total = window_sum(pad_space(x, how.extra, 0), how)
    return total / window_sum(pad_space(ones, more, 0), how)


def window_sum(x: Tensor, how: Windows) -> Tensor:
    """Sum the windows of every channel."""
    for axis, (width, stride, dilation) in enumerate(
        zip(how.kernel, how.strides, how.dilations), 2
    ):
        steps = (x.shape[axis] - dilation * (width - 1) - 1) // stride + 1
        before = (slice(None),) * axis
        parts = [
            x[before + (slice(first, first + (steps - 1) * stride + 1, stride),)]
            for first in range(0, width * dilation, dilation)
        ]
        x = sum(parts[1:], parts[0])
    return x


@operator("LpPool")
def lp_pool(x: Tensor, kernel_shape: Any, p: int = 2, **settings: Any) -> Tensor:
    """Take the norm of each window."""
    how = windows(x, kernel_shape, **settings)
    return window_sum(pad_space(x.abs() ** p, how.extra, 0), how) ** (1 / p)


@operator("MaxUnpool")
def max_unpool(
    x: Tensor,
    places: Tensor,
    shape: list[int] | None = None,
    kernel_shape: Any = (),
    pads: Any = None,
    strides: Any = None,
) -> Tensor:
    """Write elements back to where a pool took them; 0 elsewhere."""
    order = x.ndim - 2
    strides, pads = strides or [1] * order, pads or [0] * 2 * order
    natural = [
        (x.shape[2 + n] - 1) * strides[n] + kernel_shape[n] - pads[n] - pads[n + order]
        for n in range(order)
    ]
    sizes = [*x.shape[:2], *natural]
    flat = Tensor(np.zeros(math.prod(sizes), np.float32)).to(x.dtype)
    found = flat.scatter(0, places.reshape(-1), x.reshape(-1)).reshape(sizes)
    if shape is None:
        return found
    return pad_space(found, [(0, w - s) for w, s in zip(shape[2:], sizes[2:])], 0)


@operator("BatchNormalization")
def batch_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, epsilon: float = 1e-5,
    momentum: float = 0.9, training_mode: int = 0, spatial: int = 1, is_test: int = 1,
) -> Any:  # fmt: skip
    """Normalise channels by kept statistics, or by the batch's own while training."""
    if not training_mode:
        return functional.batch_norm(x, mean, var, scale, bias, False, 0.0, epsilon)
    axes, shape = [0, *range(2, x.ndim)], [-1] + [1] * (x.ndim - 2)
    now = x.mean(axes)
    spread = ((x - now.reshape(shape)) ** 2).mean(axes)
    scaled = (x - now.reshape(shape)) / (spread.reshape(shape) + epsilon).sqrt()
    found = scaled * scale.reshape(shape) + bias.reshape(shape)
    return found, mean * momentum + now * (1 - momentum), var * momentum + spread * (1 - momentum)


@operator("InstanceNormalization")
def instance_normalization(x: Tensor, scale: Tensor, bias: Tensor, epsilon: float = 1e-5) -> Tensor:
    """Normalise every channel of every sample."""
    return functional.instance_norm(x, None, None, scale, bias, True, 0.0, epsilon)


@operator("LayerNormalization")
def layer_normalization(
    call: Call,
    x: Tensor,
    scale: Any,
    bias: Any = None,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Any:
    """Normalise the axes from `axis` on; the mean and the inverse deviation come after."""
    axes = list(range(axis % x.ndim, x.ndim))
    sizes = tuple(x.shape[n] for n in axes)
    if call.outputs == 1 and tuple(scale.shape) == sizes:
        return functional.layer_norm(x, sizes, scale, bias, epsilon)
    mean = x.mean(axes, True)
    inverse = 1 / (((x - mean) ** 2).mean(axes, True) + epsilon).sqrt()
    found = (x - mean) * inverse * scale
    return found if bias is None else found + bias, mean, inverse


@operator("RMSNormalization")
def rms_normalization(
    x: Tensor, scale: Tensor, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    """Divide by the root of the mean square of the axes from `axis` on."""
    axes = list(range(axis % x.ndim, x.ndim))
    wide = x.float() if x.dtype.bits < 32 else x
    return (wide / ((wide * wide).mean(axes, True) + epsilon).sqrt()).to(x.dtype) * scale


@operator("GroupNormalization", since=21)
def group_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Tensor:
    """Normalise groups of channels."""
    return functional.group_norm(x, num_groups, scale, bias, epsilon)


@operator("LRN")
def local_response_normalization(
    x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Tensor:
    """Divide by the squares of neighbouring channels."""
    squares = x * x
    widths = [(0, 0)] * (x.ndim - 2)
    near = pad_space(squares, [((size - 1) // 2, size // 2), *widths], 0)
    parts = [near.narrow(1, k, x.shape[1]) for k in range(size)]
    total = sum(parts[1:], parts[0])
    return x / (bias + alpha / size * total) ** beta


@operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-probability of the class, weighted."""
    ignored = -100 if ignore_index is None else ignore_index
    shape = target.shape
    scores = x.reshape(*x.shape[:2], -1).permute(0, 2, 1).reshape(-1, x.shape[1])
    found = functional.nll_loss(scores, target.reshape(-1), weight, ignore_index=ignored,
                                reduction=reduction)  # fmt: skip
    return found.reshape(shape) if reduction == "none" else found


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(
    call: Call,
    x: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Any:
    """Cross-entropy of scores; the second output are the log-probabilities."""
    logarithms = x.log_softmax(1)
    loss = negative_log_likelihood(logarithms, target, weight, ignore_index, reduction)
    return (loss, logarithms) if call.outputs > 1 else loss


@operator("Attention")
def attention(call: Call, *inputs: Any, **attributes: Any) -> Any:
    """Scaled dot-product attention, where it is that of `nn.functional`; else the body of ONNX."""
    q, k, v, *rest = inputs
    simple = {"is_causal", "scale"} >= set(attributes) and call.outputs == 1
    if simple and not any(each is not None for each in rest) and q.ndim == 4:
        return functional.scaled_dot_product_attention(
            q, k, v, is_causal=bool(attributes.get("is_causal", 0)),
            scale=attributes.get("scale"), enable_gqa=q.shape[1] != k.shape[1],
        )  # fmt: skip
    return tuple(call.expanded(list(inputs)))


@operator("DeformConv")
def deformable_conv(
    x: Tensor, w: Tensor, offset: Tensor, bias: Tensor | None = None, mask: Tensor | None = None,
    dilations: Any = None, group: int = 1, kernel_shape: Any = None, offset_group: int = 1,
    pads: Any = None, strides: Any = None,
) -> Tensor:  # fmt: skip
    """Convolution that reads each cell of its window at an offset, between places."""
    (n, c, height, width), (kh, kw) = x.shape, w.shape[2:]
    sy, sx = strides or (1, 1)
    dy, dx = dilations or (1, 1)
    top, left = (pads or (0, 0))[:2]
    oh, ow = offset.shape[2:]
    shift = offset.reshape(n, offset_group, kh * kw, 2, oh, ow)
    cells = np.arange(kh * kw)
    base_y = (cells // kw * dy)[:, None, None] + (np.arange(oh) * sy - top)[None, :, None]
    base_x = (cells % kw * dx)[:, None, None] + (np.arange(ow) * sx - left)[None, None, :]
    y = shift[:, :, :, 0] + Tensor(np.broadcast_to(base_y, (kh * kw, oh, ow)).astype(np.float32))
    z = shift[:, :, :, 1] + Tensor(np.broadcast_to(base_x, (kh * kw, oh, ow)).astype(np.float32))
    grid = stack([z * 2 / max(width - 1, 1) - 1, y * 2 / max(height - 1, 1) - 1], -1)
    parts = x.reshape(n * offset_group, c // offset_group, height, width)
    read = functional.grid_sample(
        parts, grid.reshape(n * offset_group, kh * kw * oh, ow, 2), align_corners=True
    ).reshape(n, offset_group, c // offset_group, kh * kw, oh, ow)
    if mask is not None:
        read = read * mask.reshape(n, offset_group, 1, kh * kw, oh, ow)
    columns = read.reshape(n, group, c // group * kh * kw, oh * ow)
    weights = w.reshape(group, w.shape[0] // group, -1)
    found = (weights @ columns).reshape(n, w.shape[0], oh, ow)
    return found if bias is None else found + bias.reshape(-1, 1, 1)
