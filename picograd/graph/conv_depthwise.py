"""Convolutions whose groups have one channel each, on targets with blocks: sums of a few windows.

    out[n, g, p] = sum[k] x[n, g, p * stride + k - low] * weight[g, k]

As products of matrices they would have one column. Each element of the result is the sum over its
own windows, so that memory is all that they wait for. In the gradient of a weight windows and taps
change places: few taps are kept, all windows are summed.
"""

from functools import reduce
from itertools import product
from math import prod
from operator import add

from picograd.graph.ends import ends_of
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec
from picograd.target import Target

MOST_SUMS = 4  # of a kernel: to add up what threads have of more takes too many registers
MOST_TAPS = 128  # that are nodes of their own in the gradient of a weight


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
    return by_taps(node, x, weight).cast(node.dtype)


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


def by_taps(node: Node, x: Node, rows: Node) -> Node:
    """Sum over all windows, tap by tap: (1, G, N, *S) * (G, 1, N, *S') -> (1, G, 1, *K).

    Sums over the same windows are one kernel, which reads the gradient once: those of all taps, or
    of many those along the last axis. Taps along the others are rows of the result then.
    """
    spec, kernel, counts = node.arg, node.shape[3:], rows.shape[3:]
    rank = len(kernel)
    first = 0 if prod(kernel) <= MOST_SUMS else rank - 1
    spread = padded(x, spec, counts, kernel)
    steps = zip(range(3, 3 + first), kernel, spec.kernel_dilation, spec.stride)
    spread = spread.window(tuple(steps))  # 1 G N, places, then taps along the first axes
    ones = (1,) * first
    given = rows.permute((1, 0, *range(2, 3 + rank)))
    given = given.reshape((*given.shape, *ones)).accumulated()
    order = (0, *range(3 + rank, spread.rank), 1, *range(2, 3 + rank))  # channels are the nearest
    found = []
    for place in product(*map(range, kernel[first:])):
        cuts = [(0, n, 1) for n in spread.shape]
        for d, tap in enumerate(place, first):
            gap, begin = spec.kernel_dilation[d], tap * spec.stride[d]
            cuts[3 + d] = begin, begin + (counts[d] - 1) * gap + 1, gap
        seen = spread.slice(tuple(cuts)).accumulated()
        made = (seen * given.expand(seen.shape)).permute(order)
        made = made.reduce("sum", tuple(range(2 + first, made.rank)), False)
        found.append(placed(made, place, kernel))
    return reduce(add, found)


def placed(made: Node, place: tuple[int, ...], kernel: tuple[int, ...]) -> Node:
    """Put the sums of a tap where it is, among zeros: (1, *K', G) -> (1, G, 1, *K)."""
    first, last = kernel[: made.rank - 2], made.rank - 1
    turned = made.permute((0, last, *range(1, last)))
    wide = turned.reshape((1, made.shape[-1], 1, *first, *(1 for _ in place)))
    around = [(tap, n - 1 - tap) for tap, n in zip(place, kernel[len(first) :], strict=True)]
    return wide.pad((*((0, 0) for _ in range(3 + len(first))), *around))


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
