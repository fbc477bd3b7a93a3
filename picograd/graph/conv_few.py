"""Convolutions of images with few channels, such as the first of a network, in forms for boxes.

    patches   windows along the last axis, or all, written out as channels
    packed    under a stride: elements of one stride lie together, once; windows along the last axis
              are overlapping views of that, so that nothing is written out more than once

    7 x 7 taps, stride 2:   (N, 3, 224, 224)  ->  (N, 115, 115, 16)    2 x 2 x 3 and zeros
                            4 x 4 taps of 16  =   4 x 1 taps of 64, 16 apart

The gradient of the weight reads the same copy.
"""

from collections.abc import Collection, Iterable, Sequence
from math import prod
from typing import Any

from picograd.dtype import DType
from picograd.graph.node import Node
from picograd.graph.row import VIEWS
from picograd.graph.shape import ConvSpec, Shape
from picograd.helpers import ceil_div, round_up
from picograd.late_methods import dataclass

FEW = 16  # channels: of fewer most of a box would be empty
ALIGNED = 8  # channels: 16 bytes
SLAB = 64  # channels of a box
WRITTEN = 2  # times as long as reading a box of windows: to write one to memory


def is_patched(channels: int, kernel: Shape) -> bool:
    """Tell whether boxes of channels would be mostly empty, or cannot be, but windows of them can.

    Windows of one element are those of a product, whose rows are copied (schedule/repack.py).
    """
    return prod(kernel) > 1 and (channels < FEW or channels % ALIGNED != 0)


def is_flat(columns: Node, rows: Node) -> bool:
    """Tell whether windows are the pixels of whole images: parts of those end where boxes do."""
    places = columns.shape[3:]
    for node in (columns, rows):
        while node.op in VIEWS and node.realized is None:
            (source,) = node.inputs
            if node.size != source.size and source.shape[-len(places) :] != places:
                return False
            node = source
    return places == rows.shape[3:]


@dataclass(frozen=True, slots=True)
class Reach:
    """One axis of windows: `count` of `kernel` elements that are `gap` apart, `stride` apart."""

    count: int
    kernel: int
    stride: int
    gap: int
    low: int  # zeros before the axis

    def high(self, size: int) -> int:
        """Zeros behind an axis that the last window needs; negative: elements that none reads."""
        last = (self.count - 1) * self.stride + (self.kernel - 1) * self.gap
        return last + 1 - size - self.low

    @property
    def taps(self) -> int:
        """Taps of windows whose elements are all those of a stride."""
        return ceil_div(self.kernel, self.stride)


def reaches(
    counts: Shape, kernel: Shape, steps: tuple[Shape, Shape], padding: tuple[tuple[int, int], ...]
) -> list[Reach]:
    """Describe the axes of windows; `steps` are between windows, and between their elements."""
    rows = zip(counts, kernel, *steps, padding, strict=True)
    return [Reach(count, size, step, gap, low) for count, size, step, gap, (low, _) in rows]


def windowed(channels: int, kernel: Shape) -> tuple[int, ...]:
    """Choose the axes whose windows are written out: the last one, if that gives channels enough.

    Writing out all of them takes as many times more memory as the other axes have taps.
    """
    rank = len(kernel)
    return (rank - 1,) if channels * kernel[-1] >= FEW else tuple(range(rank))


def patches(x: Node, rows: dict[int, Reach]) -> Node:
    """Write windows over some axes out as channels: (N, 1, C, *S) -> (N, 1, C * K, *S').

    There are enough channels for boxes, so that this is done once.
    """
    rank, count = x.rank - 3, len(rows)
    pads = [(0, 0)] * x.rank
    for d, row in rows.items():
        pads[3 + d] = row.low, row.high(x.shape[3 + d])
    padded = pad_or_cut(x, tuple(pads))
    seen = padded.window(tuple((3 + d, r.kernel, r.stride, r.gap) for d, r in rows.items()))
    spatial, taps = range(3, 3 + rank), range(3 + rank, 3 + rank + count)  # of N 1 C *S' *K
    seen = seen.permute((0, 1, 2, *taps, *spatial))
    depth = prod(seen.shape[2 : 3 + count])
    return enough(seen.reshape((*seen.shape[:2], depth, *seen.shape[3 + count :])))


def enough(node: Node) -> Node:
    """Add channels of zeros up to as many as boxes want."""
    return padded_to(node, 2, FEW if node.shape[2] < FEW else ALIGNED)


def without(spec: ConvSpec, axes: Collection[int]) -> ConvSpec:
    """Leave some axes of a convolution without stride, padding and gaps."""
    rank = len(spec.stride)

    def kept(values: tuple[Any, ...], plain: Any) -> tuple[Any, ...]:
        return tuple(plain if d in axes else values[d] for d in range(rank))

    padding = kept(spec.padding, (0, 0))
    return ConvSpec(
        kept(spec.stride, 1), padding, spec.input_dilation, kept(spec.kernel_dilation, 1)
    )


def by_patches(x: Node, weight: Node, spec: ConvSpec, shape: Shape) -> Node:
    """Convolve windows that are written out with a kernel of one element along their axes."""
    kernel, gaps = weight.shape[3:], spec.kernel_dilation
    reached = reaches(shape[3:], kernel, (spec.stride, gaps), spec.padding)
    if is_packed(x.shape[2], reached, x.dtype):
        plain = without(spec, range(len(kernel)))
        return packed(x, reached).conv(packed_weight(weight, reached), plain)
    axes = windowed(x.shape[2], kernel)
    rest = [d for d in range(len(kernel)) if d not in axes]
    rows = {d: reached[d] for d in axes}
    flat = weight.permute((0, 1, 2, *(3 + d for d in axes), *(3 + d for d in rest)))
    sizes = tuple(1 if d in axes else n for d, n in enumerate(kernel))
    depth = x.shape[2] * prod(kernel[d] for d in axes)
    flat = flat.reshape((*weight.shape[:2], depth, *sizes))
    return patches(x, rows).conv(enough(flat), without(spec, axes))


def patches_gradient(columns: Node, rows: Node, spec: ConvSpec, shape: Shape) -> Node:
    """Correlate windows that are written out with the gradient: (C, 1, N, S) * (1, O, N, S')."""
    rank, channels, kernel = len(shape) - 3, columns.shape[0], shape[3:]
    turn, axes = (2, 1, 0, *range(3, 3 + rank)), windowed(channels, kernel)
    steps = spec.kernel_dilation, spec.stride  # change places in the gradient of a weight
    reached = reaches(rows.shape[3:], kernel, steps, spec.padding)
    if is_packed(channels, reached, columns.dtype):
        found = packed(columns.permute(turn), reached)
        made = found.permute(turn).conv(rows, without(spec, range(rank)))
        return unpacked_weight(made, reached, shape)
    rest = [d for d in range(rank) if d not in axes]
    found = patches(columns.permute(turn), {d: reached[d] for d in axes})
    made = found.permute(turn).conv(rows, without(spec, axes))  # C * K, 1, O, 1 or K
    depth = channels * prod(kernel[d] for d in axes)
    made = made.slice(((0, depth, 1), *((0, n, 1) for n in made.shape[1:])))
    ordered = (*axes, *rest)
    taps = [kernel[d] for d in axes]
    made = made.reshape((channels, *taps, 1, shape[2], *(kernel[d] for d in rest)))
    first, places = len(axes) + 1, [*range(1, 1 + len(axes)), *range(len(axes) + 3, rank + 3)]
    return made.permute((0, first, first + 1, *(places[ordered.index(d)] for d in range(rank))))


def padded_to(node: Node, axis: int, multiple: int) -> Node:
    """Add zeros at the end of an axis up to a multiple."""
    more = -node.shape[axis] % multiple
    return node.pad(tuple((0, more if d == axis else 0) for d in range(node.rank)))


def cut_to(node: Node, axes: Iterable[int], shape: Shape) -> Node:
    """Keep the first positions of some axes, as many as a shape has."""
    sizes = list(node.shape)
    for axis in axes:
        sizes[axis] = shape[axis]
    return node.slice(tuple((0, size, 1) for size in sizes))


def pad_or_cut(node: Node, pads: tuple[tuple[int, int], ...]) -> Node:
    """Add zeros around axes; negative pads cut elements off."""
    rows = zip(node.shape, pads, strict=True)
    cut = node.slice(tuple((max(-lo, 0), size - max(-hi, 0), 1) for size, (lo, hi) in rows))
    return cut.pad(tuple((max(lo, 0), max(hi, 0)) for lo, hi in pads))


# -- few channels under a stride ------------------------------------------------------------------


def is_packed(channels: int, rows: Sequence[Reach], dtype: DType) -> bool:
    """Tell whether an image is better packed: if fewer boxes are written and read then.

    Windows that are written out have as many boxes as the axes have taps along which they are not.
    """
    if dtype.bits != 16 or any(row.gap != 1 for row in rows):
        return False
    axes = windowed(channels, tuple(row.kernel for row in rows))
    rest = [row for d, row in enumerate(rows) if d not in axes]
    depth = channels * prod(rows[d].kernel for d in axes)
    boxes = prod(row.kernel for row in rest) * ceil_div(depth, SLAB)
    time = boxes + WRITTEN * depth / SLAB * prod(row.stride for row in rest)
    depth = round_up(channels * prod(row.stride for row in rows), ALIGNED)
    *others, last = (row.taps for row in rows)
    return prod(others) * ceil_div(last * depth, SLAB) + WRITTEN * depth / SLAB < time


def packed(x: Node, rows: Sequence[Reach]) -> Node:
    """Pack elements of one stride, and show windows along the last axis as channels.

    (N, 1, C, *S)  ->  (N, *S', D) in memory  ->  (N, 1, taps * D, *S'')
    """
    images, channels = x.shape[0], x.shape[2]
    pads = [(0, 0)] * 3
    pairs, counts = [], []
    for size, row in zip(x.shape[3:], rows, strict=True):
        count = row.count - 1 + row.taps
        counts.append(count)
        pairs += [count, row.stride]
        pads.append((row.low, row.stride * count - size - row.low))
    wide = pad_or_cut(x, tuple(pads)).reshape((images, channels, *pairs))
    places, phases = range(2, wide.rank, 2), range(3, wide.rank, 2)
    wide = wide.permute((0, *places, *phases, 1))
    depth = channels * prod(row.stride for row in rows)
    wide = wide.reshape((images, *counts, depth))
    wide = padded_to(wide, wide.rank - 1, ALIGNED)
    image = wide.stored()
    depth = image.shape[-1]
    flat = image.reshape((images, *counts[:-1], counts[-1] * depth))
    window = len(rows), rows[-1].taps * depth, depth, 1
    seen = flat.window((window,))  # N *S'' taps * D
    last = seen.rank - 1
    seen = seen.permute((0, last, *range(1, last)))
    return seen.reshape((images, 1, *seen.shape[1:]))


def packed_weight(weight: Node, rows: Sequence[Reach]) -> Node:
    """Sort the taps of a weight as `packed` does: (1, O, C, *K) -> (1, O, taps * D, *K', 1)."""
    one, outputs, channels = weight.shape[:3]
    counts = [row.taps for row in rows]
    pads = [(0, 0)] * 3
    pairs = []
    for row in rows:
        pads.append((0, row.taps * row.stride - row.kernel))
        pairs += [row.taps, row.stride]
    wide = weight.pad(tuple(pads))
    wide = wide.reshape((one, outputs, channels, *pairs))
    *taps, last = range(3, wide.rank, 2)
    phases = range(4, wide.rank, 2)
    wide = wide.permute((0, 1, last, *phases, 2, *taps))
    depth = channels * prod(row.stride for row in rows)
    wide = wide.reshape((one, outputs, counts[-1], depth, *counts[:-1]))
    wide = padded_to(wide, 3, ALIGNED)
    depth = counts[-1] * wide.shape[3]
    return wide.reshape((one, outputs, depth, *counts[:-1], 1))


def unpacked_weight(made: Node, rows: Sequence[Reach], shape: Shape) -> Node:
    """Sort the gradient of a packed weight, (taps * D, 1, O, *K', 1), as the weight is."""
    channels, _, outputs = shape[:3]
    rank = len(rows)
    strides = [row.stride for row in rows]
    *counts, last = [row.taps for row in rows]
    depth = made.shape[0] // last
    wide = made.reshape((last, depth, outputs, *counts))
    wide = cut_to(wide, (1,), (0, channels * prod(strides)))
    wide = wide.reshape((last, *strides, channels, outputs, *counts))
    taps = *range(rank + 3, wide.rank), 0
    phases = range(1, rank + 1)
    pairs = [place for both in zip(taps, phases, strict=True) for place in both]
    wide = wide.permute((rank + 1, rank + 2, *pairs))
    sizes = [row.taps * row.stride for row in rows]
    wide = wide.reshape((channels, 1, outputs, *sizes))
    return cut_to(wide, range(3, 3 + rank), shape)
