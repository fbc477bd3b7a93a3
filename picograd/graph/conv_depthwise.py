"""Convolutions whose groups have one channel each, on targets with blocks: sums of a few windows.

    out[n, g, p] = sum[k] x[n, g, p * stride + k - low] * weight[g, k]

As products of matrices they would have one column. Each element of the result is the sum over its
own windows, so that memory is all that they wait for. In the gradient of a weight windows and taps
change places: few taps are kept, all windows are summed.
"""

from math import prod

from picograd.graph.ends import ends_of
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec
from picograd.helpers import ceil_div, divisors
from picograd.target import Target

MOST_TAPS = 128  # that are results, of the gradient of a weight
VECTOR, VECTORS = 16, 12  # bytes; the most vectors of channels that a block sums


def expand_depthwise(node: Node, target: Target) -> Node | None:
    """Write a convolution as a sum of products; None if its groups have several channels."""
    x, weight = node.inputs
    outputs, channels = weight.shape[1:3]
    if not target.has_blocks or outputs > 1 or x.shape[1] == 1 or ends_of(node):
        return None
    if not node.size or not x.size or not node.dtype.is_float:
        return None
    taps = prod(node.shape[3:])
    if channels == 1 and prod(weight.shape[3:]) <= taps:
        return by_windows(node, x, weight).cast(node.dtype)
    if x.shape[0] > 1 or taps > MOST_TAPS:
        return None
    return by_taps(node, x, weight, target).cast(node.dtype)


def by_windows(node: Node, x: Node, weight: Node) -> Node:
    """Sum windows: (N, G, 1, *S) * (G, 1, 1, *K) -> (N, G, 1, *S')."""
    spec, kernel = node.arg, weight.shape[3:]
    rank = len(kernel)
    spread = padded(x, spec, kernel, node.shape[3:])
    rows = zip(range(3, 3 + rank), kernel, spec.stride, spec.kernel_dilation, strict=True)
    seen = spread.window(tuple(rows)).accumulated()
    order = (*range(3, 3 + rank), 1, 2, 0)
    taps = stored(weight, order)
    taps = taps.reshape((1, *weight.shape[:2], *(1,) * rank, *kernel))
    found = seen * taps.accumulated().expand(seen.shape)
    return found.reduce("sum", tuple(range(3 + rank, 3 + 2 * rank)), False)


def by_taps(node: Node, x: Node, rows: Node, target: Target) -> Node:
    """Sum over all windows for each tap: (1, G, N, *S) * (G, 1, N, *S') -> (1, G, 1, *K).

    Parts of the images, and bands of them, are summed by themselves, so that all processors have
    some; a second kernel adds those.
    """
    spec, kernel, counts = node.arg, node.shape[3:], rows.shape[3:]
    rank = len(kernel)
    groups, _, images = rows.shape[:3]
    steps = zip(range(3, 3 + rank), kernel, spec.kernel_dilation, spec.stride, strict=True)
    seen = padded(x, spec, counts, kernel).window(tuple(steps)).accumulated()
    given = rows.permute((1, 0, *range(2, 3 + rank)))
    given = given.reshape((*given.shape, *(1 for _ in kernel))).accumulated()
    made = seen * given.expand(seen.shape)  # 1 G N, places, taps
    height = counts[0] if rank > 1 else 1
    parts, bands = count_parts(x, images, height, target)
    whole = images // parts, bands, counts[0] // bands
    made = made.reshape((groups, parts, *whole, *counts[1:], *kernel))
    first = made.rank - rank
    taps = range(first, made.rank)
    places = range(5, first)
    made = made.permute((1, 3, *taps, 0, 2, 4, *places))  # channels are the nearest
    made = made.reduce("sum", tuple(range(3 + rank, made.rank)), False)
    made = made.reduce("sum", (0, 1), False) if parts * bands > 1 else made.reshape(made.shape[2:])
    made = made.permute((rank, *range(rank)))
    return made.reshape((1, groups, 1, *kernel))


def count_parts(x: Node, images: int, height: int, target: Target) -> tuple[int, int]:
    """Choose how many parts images are in, and bands of each: as many as run at once.

    A block sums some vectors of channels; a processor has two.
    """
    lanes = VECTOR // x.dtype.itemsize
    vectors = ceil_div(x.shape[1], lanes)
    together = divisors(vectors, VECTORS)[-1]
    wanted = max(2 * target.multiprocessors * together // vectors, 1)
    parts = divisors(images, wanted)[-1]
    return parts, divisors(height, wanted // parts)[-1]


def stored(node: Node, order: tuple[int, ...]) -> Node:
    """Let dimensions lie in an order, the last one nearest."""
    turned = node.permute(order)
    copied = Node("contiguous", (turned,), None, turned.shape, turned.dtype, turned.device)
    back = tuple([order.index(d) for d in range(node.rank)])
    return copied.permute(back)


def padded(x: Node, spec: ConvSpec, kernel: tuple[int, ...], counts: tuple[int, ...]) -> Node:
    """Put zeros between the elements of an image, and around it what windows reach."""
    for d, gap in enumerate(spec.input_dilation):
        x = spread_out(x, 3 + d, gap)
    pads = [(0, 0)] * 3
    for d, (low, _) in enumerate(spec.padding):
        reach = (counts[d] - 1) * spec.stride[d] + (kernel[d] - 1) * spec.kernel_dilation[d] + 1
        pads.append((low, reach - x.shape[3 + d] - low))
    cut = [(max(-low, 0), n - max(-high, 0), 1) for n, (low, high) in zip(x.shape, pads)]
    around = [(max(low, 0), max(high, 0)) for low, high in pads]
    return x.slice(tuple(cut)).pad(tuple(around))


def spread_out(x: Node, axis: int, gap: int) -> Node:
    """Put gap - 1 zeros between the elements of an axis."""
    if gap == 1:
        return x
    before, size, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    wide = x.reshape((*before, size, 1, *after))
    wide = wide.pad(tuple((0, gap - 1 if d == axis + 1 else 0) for d in range(wide.rank)))
    wide = wide.reshape((*before, size * gap, *after))
    last = (size - 1) * gap + 1
    return wide.slice(tuple((0, last if d == axis else n, 1) for d, n in enumerate(wide.shape)))
