"""Convolutions in forms that a bulk copy engine can feed: boxes of channels, or of windows.

    gradients of inputs under a stride   one convolution for all phases: out[stride * t + phase]
    gradients of weights                 images in parts, each its own product: float32 sums added
    few channels                         windows as channels (graph/conv_few.py)
    few channels of many groups          as many groups together as fill a slab, zeros between

Each is the same value by views, a convolution and perhaps a sum, so that the schedule sees plain
ones. A CPU takes the first form, other targets without such an engine what was recorded.

Convolutions whose groups have one channel each, on targets with blocks: sums of a few windows.

    out[n, g, p] = sum[k] x[n, g, p * stride + k - low] * weight[g, k]

As products of matrices they would have one column. Each element of the result is the sum over its
own windows, so that memory is all that they wait for. In the gradient of a weight windows and taps
change places: few taps are kept, all windows are summed.
"""

from math import inf, prod

from picograd.dtype import DType, float32
from picograd.graph.bounded import ends_of
from picograd.graph.conv_few import (
    SLAB,
    by_patches,
    is_flat,
    is_patched,
    pad_or_cut,
    padded_to,
    patches_gradient,
)
from picograd.graph.conv_winograd import expand_winograd
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec, Shape, conv_shape
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
        is_spread = max(node.arg.input_dilation) > 1
        phased = by_phases(x, weight, node.arg, node.shape) if is_spread else None
        return phased or by_windows(node, x, weight).cast(node.dtype)
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
    parts, bands = count_bands(x, images, height, target)
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


def count_bands(x: Node, images: int, height: int, target: Target) -> tuple[int, int]:
    """Choose how many parts images are in, and bands of each: as many as run at once.

    A block sums some vectors of channels; a processor has two.
    """
    lanes = VECTOR // x.dtype.itemsize
    vectors = ceil_div(x.shape[1], lanes)
    wanted = max(2 * target.multiprocessors // ceil_div(vectors, VECTORS), 1)
    parts = divisors(images, wanted)[-1]
    return parts, divisors(height, wanted // parts)[-1]


def stored(node: Node, order: tuple[int, ...]) -> Node:
    """Let dimensions lie in an order, the last one nearest."""
    turned = node.permute(order)
    copied = turned.stored()
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
    last = reach(size, gap)
    return wide.slice(tuple((0, last if d == axis else n, 1) for d, n in enumerate(wide.shape)))


STEP = 64  # windows of a weight's gradient that one step multiplies
TILE = 128  # rows and columns of a tile that steps are counted in
BUSY = 4  # steps that a tile takes beside its products
# Tiles of rows and columns, and how fast a processor multiplies them (docs/records/0014).
TILES = (
    (128, 192, 1.0),
    (128, 128, 0.985),
    (64, 192, 0.75),
    (64, 128, 0.8),
    (64, 256, 0.75),
    (128, 64, 0.6),
    (64, 64, 0.5),
)
BROUGHT = 0.003  # to bring a row, or half a column, of a step to a processor: as so many steps
# Of the tiles of one product that blocks share (docs/design/0028): which, how much longer all
# processors at work take for each, and steps to leave and add parts. Parts as an axis are written
# in float32, read by a kernel of its own, and added, which takes as long as some more of them.
SHARED_TILE, FULL, SHARED = (128, 192), 1.15, 17
WRITTEN, SUMMED, LAUNCH = 12.5, 5, 7
MOST_PARTS = 128
FEW_SUMMED = 4  # channels: for fewer it takes longer to put phases in order than to add zeros
MOST_TOGETHER = 16  # groups: of a product of more nearly all is thrown away
# Of TF32 without boxes: tiles, the most blocks a processor has at once, windows that are worth a
# block, and as many times fewer tiles than processors that parts pay (docs/records/0014).
SMALL_TILE, LOOSE_TILE = (32, 32), (64, 96)
LOOSE_BLOCKS, LEAST, FEW_TILES = 3, 128, 12
LONE_TILE, LONG = 64, 1024  # without tensor cores: the most results, the least windows of a part


def expand_conv(node: Node, target: Target) -> Node | None:
    """Write a convolution in a form that boxes can feed; None if it is in one, or has none."""
    lone = expand_depthwise(node, target)
    if lone is not None:
        return lone
    x, weight = node.inputs
    spec = node.arg
    if not node.size or ends_of(node):
        return None
    is_boxed = multiplies(node.dtype, target)
    if not is_boxed and (made := expand_winograd(node, target)) is not None:
        return made
    is_many = x.shape[2] >= FEW_SUMMED or is_lone(x, weight)
    if not is_boxed and is_many and max(spec.input_dilation) > 1:
        return by_phases(x, weight, spec, node.shape)
    if not x.size:
        return None
    if not is_boxed:
        return in_long_parts(x, weight, spec, node, target) if is_weight_gradient(node) else None
    if x.shape[1] > 1 and node.dtype.bits == 16:
        if is_weight_gradient(node):
            made = slabs_gradient(x, weight, spec, target)
        else:
            made = by_slabs(x, weight, spec, node.shape)
        if made is not None:
            return made
    if any(gap != 1 for gap in spec.input_dilation):
        return by_phases(x, weight, spec, node.shape)
    if is_weight_gradient(node):
        if node.dtype.bits == 32:  # TF32 is read along K, which no image has next to one another
            return in_many_parts(x, weight, spec, node.shape, target)
        if is_patched(x.shape[0], node.shape[3:]) and x.shape[1] == 1:
            return patches_gradient(x, weight, spec, node.shape)
        return in_parts(x, weight, spec, node.shape, target)
    if x.shape[1] == 1 and is_patched(x.shape[2], weight.shape[3:]):
        return by_patches(x, weight, spec, node.shape)
    return None


def multiplies(dtype: DType, target: Target) -> bool:
    """Tell whether tensor cores that boxes feed multiply a dtype."""
    is_taken = dtype.bits == 16 or (dtype.bits == 32 and target.tf32)
    return target.copies_boxes and dtype.is_float and is_taken


def is_weight_gradient(node: Node) -> bool:
    """Tell whether a convolution is one of images by gradients: a kernel reaches over the image.

    Of patches of 16 x 16 in 14 x 14 places, side by side, the patch is the kernel.
    """
    spec = node.arg
    kernel = map(reach, node.inputs[1].shape[3:], spec.kernel_dilation)
    return prod(kernel) > prod(map(reach, node.shape[3:], spec.stride))


def reach(count: int, step: int) -> int:
    """How far so many elements reach, a step apart."""
    return (count - 1) * step + 1


# -- gradients of weights -------------------------------------------------------------------------


def in_parts(
    columns: Node, rows: Node, spec: ConvSpec, shape: Shape, target: Target
) -> Node | None:
    """Sum parts of the images by themselves: (C, G, N, S) -> (C, G * parts, N / parts, S)."""
    channels, groups, images = columns.shape[:3]
    windows = prod(rows.shape[3:])
    sizes = shape[2], channels * prod(shape[3:])
    step = 1 if prod(shape[3:]) == 1 and is_flat(columns, rows) else STEP
    parts = count_parts(sizes, images, windows, target.multiprocessors, groups, step)
    # Boxes of several taps are whole slabs of channels.
    wide = padded_to(columns, 0, SLAB) if prod(shape[3:]) > 1 else columns
    if parts == 1 and wide is columns:
        return None
    wide, split = parted(wide, rows, parts)
    made = wide.cast(float32).conv(split.cast(float32), spec)  # C, G * parts, O K
    made = made.slice(((0, channels, 1), *((0, n, 1) for n in made.shape[1:])))
    made = made.reshape((channels, groups, parts, *made.shape[2:]))
    return made.reduce("sum", (2,), False).cast(columns.dtype)


def in_many_parts(
    columns: Node, rows: Node, spec: ConvSpec, shape: Shape, target: Target
) -> Node | None:
    """Sum parts of the images by themselves where no boxes are and tiles are few."""
    channels, groups, images = columns.shape[:3]
    sizes = shape[2], channels * prod(shape[3:])
    sides = SMALL_TILE if max(sizes) <= SMALL_TILE[0] else LOOSE_TILE
    tiles = groups * prod(ceil_div(n, side) for n, side in zip(sizes, sides, strict=True))
    if FEW_TILES * tiles > target.multiprocessors:
        return None
    most = min(images, LOOSE_BLOCKS * target.multiprocessors // tiles)
    parts = most_parts(rows, most, LEAST)
    return sum_of_parts(columns, rows, spec, parts) if parts > 1 else None


def in_long_parts(
    columns: Node, rows: Node, spec: ConvSpec, node: Node, target: Target
) -> Node | None:
    """Sum parts of the images by themselves where no tensor cores multiply them, in one tile."""
    groups, images = columns.shape[1:3]
    largest = max(node.shape[2], node.shape[0] * prod(node.shape[3:]))
    is_single = groups == 1 and largest <= LONE_TILE and target.copies_boxes
    if not is_single or node.dtype is not float32:
        return None
    parts = most_parts(rows, min(images, LOOSE_BLOCKS * target.multiprocessors), LONG)
    return sum_of_parts(columns, rows, spec, parts) if parts >= target.multiprocessors else None


def most_parts(rows: Node, most: int, least: int) -> int:
    """Choose how many parts the images are in, each of so many windows or more."""
    images, *places = rows.shape[2:]
    return max([n for n in divisors(images, most) if images * prod(places) >= n * least], default=1)


def sum_of_parts(columns: Node, rows: Node, spec: ConvSpec, parts: int) -> Node:
    """Multiply parts of the images, and add them up in a kernel of its own."""
    wide, split = parted(columns, rows, parts)
    made = wide.conv(split, spec)
    made = made.reshape((*columns.shape[:2], parts, *made.shape[2:]))
    return made.reduce("sum", (2,), False)


def parted(columns: Node, rows: Node, parts: int) -> tuple[Node, Node]:
    """Let parts of the images be groups of both: (C, G, N, S) -> (C, G * parts, N / parts, S)."""
    channels, groups, images = columns.shape[:3]
    size = images // parts
    wide = columns.reshape((channels, groups * parts, size, *columns.shape[3:]))
    split = rows.reshape((groups, rows.shape[1], parts, size, *rows.shape[3:]))
    split = split.permute((0, 2, 1, *range(3, split.rank)))
    return wide, split.reshape((groups * parts, *split.shape[2:]))


def least_steps(sizes: tuple[int, int], count: int, steps: int, processors: int) -> float:
    """Estimate so many products, each of `steps`, in the tiles that suit them best."""
    least = inf
    for rows, columns, rate in TILES:
        tiles = count * ceil_div(sizes[0], rows) * ceil_div(sizes[1], columns)
        area = rows * columns / TILE**2
        waves = ceil_div(tiles, processors)
        each = max(area / rate, (rows + 2 * columns) * BROUGHT)
        least = min(least, waves * each * (steps + BUSY))
        is_few = processors <= 2 * tiles < 4 * processors and tiles % processors > 0
        if is_few and count == 1 and (rows, columns) == SHARED_TILE:
            least = min(least, FULL * tiles / processors * area * steps + SHARED)
    return least


def count_parts(
    sizes: tuple[int, int],
    images: int,
    windows: int,
    processors: int,
    groups: int = 1,
    whole: int = STEP,
) -> int:
    """Choose how many parts images are in: the least time, counted in steps of a processor.

    Each has a multiple of `whole` windows.
    """
    area = groups * prod(sizes) / TILE**2
    best, least = 1, inf
    for parts in range(1, min(images, MOST_PARTS) + 1):
        if images % parts or (parts > 1 and images // parts * windows % whole):
            continue
        steps = ceil_div(images // parts * windows, STEP)
        time = least_steps(sizes, groups * parts, steps, processors)
        if parts > 1:
            time += (parts + SUMMED) * area / processors * WRITTEN + LAUNCH
        if time < least:
            best, least = parts, time
    return best


# -- gradients of inputs under a stride -----------------------------------------------------------


def by_phases(x: Node, weight: Node, spec: ConvSpec, shape: Shape) -> Node | None:
    """Compute each phase of the output, positions stride * t + phase, as channels of its own.

    Positions of one phase meet the same taps of the kernel, every stride-th one.
    """
    rank = len(shape) - 3
    is_plain = (*spec.stride, *spec.kernel_dilation) == (1,) * (2 * rank)
    if not is_plain:
        return None
    rows = []
    for d in range(rank):
        each = x.shape[3 + d], weight.shape[3 + d], shape[3 + d]
        rows.append(Phases.of(*each, spec.input_dilation[d], spec.padding[d][0]))
    phased = phase_weights(weight, rows)
    padding = tuple(row.padding for row in rows)
    counts = tuple(row.count for row in rows)
    times = tuple(row.times for row in rows)
    made = multiplied(x, phased, padding).reshape((*shape[:2], *counts, shape[2], *times))
    order = [0, 1, 2 + rank]
    for d in range(rank):
        order += [3 + rank + d, 2 + d]
    made = made.permute(tuple(order))  # N G O, then T phase of each axis
    pads = [(0, 0)] * 3
    for row in rows:
        pads += [(0, 0), (row.first, row.stride - row.count - row.first)]
    wide = made.pad(tuple(pads))
    sizes = tuple(row.times * row.stride for row in rows)
    ends = [(0, size, 1) for size in shape[:3]]
    ends += [(row.skipped, row.skipped + size, 1) for row, size in zip(rows, shape[3:])]
    return wide.reshape((*shape[:3], *sizes)).slice(tuple(ends))


def multiplied(x: Node, weight: Node, padding: tuple[tuple[int, int], ...]) -> Node:
    """Make a plain convolution: (N, G, C, *S) by (G, O, C, *K).

    Where channels are alone each result of one is a group of its own, and groups lie side by side:
    those have no columns that a product could share (codegen/templates/contract_taps.py).
    """
    ones = (1,) * len(padding)
    spec = ConvSpec(ones, padding, ones, ones)
    images, groups, channels, *sizes = x.shape
    count = weight.shape[1]
    if channels > 1 or groups == 1:
        return x.conv(weight, spec)
    wide = x.reshape((images, 1, groups, *sizes)).expand((images, count, groups, *sizes))
    wide = wide.reshape((images, count * groups, 1, *sizes))
    back = 0, 2, 1, *range(3, 3 + len(sizes))
    weight = weight.permute((1, 0, 2, *range(3, weight.rank)))
    made = wide.conv(weight.reshape((count * groups, 1, *weight.shape[2:])), spec)
    return made.reshape((images, count, groups, *made.shape[3:])).permute(back)


def is_lone(x: Node, weight: Node) -> bool:
    """Tell whether each group of a convolution is one channel that makes one."""
    return x.shape[2] == weight.shape[1] == 1 < x.shape[1]


class Phases:
    """One axis: output i = stride * t + phase sums kernel[k] over i + k - low = stride * j.

    `count` phases from `first` on have taps; phase and position p of their kernel meet tap
    stride * p + `shift` - phase. Phases are counted from `skipped` positions before the first
    output: so that they meet the fewest inputs together.
    """

    def __init__(self, stride: int, first: int, count: int, times: int, taps: int, shift: int):
        self.stride, self.first, self.count = stride, first, count
        self.times, self.taps, self.shift = times, taps, shift
        self.padding = 0, 0
        self.skipped = 0

    @classmethod
    def of(cls, size: int, kernel: int, wanted: int, stride: int, low: int) -> "Phases":
        """Work out an axis of `size` inputs, `kernel` taps and `wanted` outputs."""
        skipped = 0
        if kernel == 1:
            first, count = low % stride, 1
            least = most = (first - low) // stride
        else:
            first, count = 0, stride
            reaches = [cls.reach(kernel, stride, low + shift) for shift in range(stride)]
            least, most = min(reaches, key=lambda reach: reach[1] - reach[0])
            skipped = reaches.index((least, most))
        low += skipped
        times, taps = ceil_div(wanted + skipped, stride), most - least + 1
        found = cls(stride, first, count, times, taps, stride * least + low)
        found.padding = -least, times + taps - 1 - size + least
        found.skipped = skipped
        return found

    @staticmethod
    def reach(kernel: int, stride: int, low: int) -> tuple[int, int]:
        """Find the first and the last input, from position t on, that a phase of it meets."""
        least = min(-((low - phase) // stride) for phase in range(stride))
        return least, max((phase + kernel - 1 - low) // stride for phase in range(stride))


def phase_weights(weight: Node, rows: list[Phases]) -> Node:
    """Sort the taps of (G, O, C, *K) by phases: (G, phases * O, C, *K')."""
    rank = len(rows)
    for d, row in enumerate(rows):
        axis = 3 + 2 * d
        shape, kernel = weight.shape, weight.shape[axis]
        if kernel == 1:
            weight = weight.reshape((*shape[:axis], 1, 1, *shape[axis + 1 :]))
            continue
        low = row.stride - 1 - row.shift
        high = row.taps * row.stride - kernel - low
        pads = [(0, 0)] * weight.rank
        pads[axis] = low, high
        weight = pad_or_cut(weight, tuple(pads))
        weight = weight.reshape((*shape[:axis], row.taps, row.stride, *shape[axis + 1 :]))
        weight = weight.flip((axis + 1,))
    phases = [4 + 2 * d for d in range(rank)]
    weight = weight.permute((0, *phases, 1, 2, *(3 + 2 * d for d in range(rank))))
    outputs = prod(weight.shape[1 : 2 + rank])
    return weight.reshape((weight.shape[0], outputs, *weight.shape[2 + rank :]))


# -- few channels of many groups ------------------------------------------------------------------
#
# Boxes bring slabs of 64 channels in the time of 4, and tensor cores multiply zeros between groups
# sooner than others bring less.


def count_together(groups: int, channels: int, outputs: int) -> int:
    """Count the groups that fill a slab; 1 if there is no such number."""
    least, most = sorted((channels, outputs))
    count = SLAB // least
    if not 1 < count <= MOST_TOGETHER:
        return 1
    is_whole = count * least == SLAB and most % least == 0
    return count if is_whole and groups % count == 0 else 1


def by_slabs(x: Node, weight: Node, spec: ConvSpec, shape: Shape) -> Node | None:
    """Convolve groups together: their weights lie in blocks along a diagonal, zeros elsewhere."""
    groups, outputs, channels = weight.shape[:3]
    count = count_together(groups, channels, outputs)
    if count == 1:
        return None
    images, _, _, *places = x.shape
    wide = x.reshape((images, groups // count, count * channels, *places))
    made = wide.conv(diagonal(weight, count), spec)
    return made.reshape(shape)


def diagonal(weight: Node, count: int) -> Node:
    """Put blocks of (G, O, C, *K) along a diagonal, in memory with channels nearest.

    Rows of count + 1 blocks, the first one alone not 0, are a diagonal in rows of count.
    """
    groups, outputs, channels, *kernel = weight.shape
    size = prod(weight.shape[1:])
    slabs = groups // count
    row = count * size
    rows = weight.reshape((slabs, count, size))
    rows = rows.pad(((0, 0), (0, 0), (0, row)))
    flat = rows.reshape((slabs, count * (row + size)))
    flat = flat.slice(((0, slabs, 1), (0, count * row, 1)))
    blocks = flat.reshape((slabs, count, count, outputs, channels, *kernel))
    taps = range(5, blocks.rank)
    blocks = blocks.permute((0, 1, 3, 2, 4, *taps))
    wide = blocks.reshape((slabs, count * outputs, count * channels, *kernel))
    return stored(wide, (0, 1, *range(3, wide.rank), 2))


def slabs_gradient(columns: Node, rows: Node, spec: ConvSpec, target: Target) -> Node | None:
    """Sum over images for all pairs of channels of a slab; keep those within groups.

    (C, G, N, *S) * (G, O, N, *S') -> (C, G, O, *K). Parts of the images are summed by themselves;
    of these, too, only what is within groups is read.
    """
    channels, groups, images, *places = columns.shape
    outputs = rows.shape[1]
    count = count_together(groups, channels, outputs)
    if count == 1:
        return None
    slabs = groups // count
    wide = columns.reshape((channels, slabs, count, images, *places))
    wide = wide.permute((2, 0, 1, 3, *range(4, wide.rank)))
    wide = wide.reshape((count * channels, slabs, images, *places))
    given = rows.reshape((slabs, count * outputs, *rows.shape[2:]))
    taps = prod(conv_shape(wide.shape, given.shape, spec)[3:])
    sizes = count * outputs, count * channels * taps
    windows = prod(rows.shape[3:])
    parts = count_parts(sizes, images, windows, target.multiprocessors, slabs)
    wide, given = parted(wide, given, parts)
    made = wide.cast(float32).conv(given.cast(float32), spec)
    kernel = made.shape[3:]
    blocks = made.reshape((count, channels, slabs * parts, count, outputs, *kernel))
    blocks = blocks.permute((2, 0, 3, 1, 4, *range(5, blocks.rank)))
    size = channels * outputs * prod(kernel)
    row = count * size
    flat = blocks.reshape((slabs * parts, count * row))
    flat = flat.pad(((0, 0), (0, row)))
    kept = flat.reshape((slabs, parts, count, row + size))
    kept = kept.slice(((0, slabs, 1), (0, parts, 1), (0, count, 1), (0, size, 1)))
    kept = kept.reduce("sum", (1,), False).cast(columns.dtype)
    kept = kept.reshape((groups, channels, outputs, *kernel))
    return kept.permute((1, 0, 2, *range(3, kept.rank)))
