"""Windows: an operand that reads an image through the windows of a convolution, as a tensor map.

    image[n, p * step + r * dilation - padding, ...]     guarded by 0 <= place <= size - 1

`pixels` are the axes that number windows (n, p, ...), `taps` the others (r, ..., channel). Every
spatial dimension becomes one of the map, with the place of its first window and the step between
windows; what the guard tests is then outside of the array, where the copy engine reads 0. Guards
that always hold are not there any more: such a dimension is found by the strides of its axes.
"""

from collections.abc import Mapping
from typing import Any

from picograd.code import Windows
from picograd.codegen.operands import step_of
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, Indices, axes_of, axis_index, constant, substitute
from picograd.schedule.loop import Condition, Expr

# By rank of the map (CUDA driver API, cuTensorMapEncodeIm2col): where windows may begin, from
# either end; how far an element may lie from there.
CORNERS = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}
OFFSETS = {3: 1 << 16, 4: 1 << 8, 5: 1 << 5}
MOST_STEP = 8


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of an image: windows begin at first + step * pixel, elements at `taps` more."""

    stride: int
    size: int
    pixel: Axis | None
    step: int
    first: int
    taps: Index

    @property
    def count(self) -> int:
        """Windows along it."""
        return self.pixel.size if self.pixel else 1

    @property
    def is_last(self) -> bool:
        """Tell whether a map may have it as its last one, along which windows have one element."""
        return self.step == 1 and self.first == 0 and not self.taps.terms


@dataclass(frozen=True, slots=True)
class Windowed:
    """An image as a tensor map with windows: dimensions but the channels, nearest first."""

    offset: int
    channel: Axis
    channels: int  # that there are: elsewhere is 0
    dimensions: tuple[Dimension, ...]
    batch: Index  # added to the place along the last one
    group: Index  # added to the channel

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of all dimensions."""
        last = self.dimensions[-1].size + self.batch.hi
        return self.channels + self.group.hi, *(d.size for d in self.dimensions[:-1]), last

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides of all dimensions but the channels."""
        return tuple(d.stride for d in self.dimensions)

    @property
    def has_batch(self) -> bool:
        """Tell whether several products read parts of the images."""
        return bool(self.batch.terms)

    @property
    def windows(self) -> Windows:
        """Where windows begin."""
        spatial = self.dimensions[:-1]
        first, counts = tuple(d.first for d in spatial), tuple(d.count for d in spatial)
        return Windows(first, counts, tuple(d.step for d in spatial))

    def place(self, window: Index, values: Mapping[Axis, Index]) -> tuple[Indices, Indices]:
        """Find where a window begins, and the offsets in it, at given positions of the taps."""
        at, offsets = [values[self.channel] + self.group], []
        for each in self.dimensions[:-1]:
            at.append(window % each.count * each.step + each.first)
            window = window // each.count
            offsets.append(substitute(each.taps, values))
        return (*at, window + self.batch), tuple(offsets)

    def reaches(self, offsets: Indices) -> bool:
        """Tell whether a map can have such windows, and such offsets."""
        rank = len(self.dimensions) + 1
        if rank not in CORNERS:
            return False
        limit, most = CORNERS[rank], OFFSETS[rank]
        for each, offset in zip(self.dimensions[:-1], offsets, strict=True):
            last = each.first + (each.count - 1) * each.step + 1 - each.size
            if not (-limit <= each.first < limit and -limit <= last < limit):
                return False
            if each.step > MOST_STEP or offset.lo < 0 or offset.hi >= most:
                return False
        return True


def windows_of(
    expr: Expr, pixels: tuple[Axis, ...], taps: tuple[Axis, ...], batch: tuple[Axis, ...]
) -> Windowed | None:
    """See a guarded load as windows of an image; None if it is something else."""
    load, conditions = unguarded(expr)
    if load.op != "load":
        return None
    index = load.arg[1]
    steps = {axis: step_of(index, axis) for axis in (*pixels, *taps, *batch) if axis.size > 1}
    channel = taps[-1]
    if not is_linear(index) or axes_of(index) - steps.keys() or steps.get(channel) != 1:
        return None
    made: list[Dimension] = []
    channels = [hi + 1 for place, lo, hi in conditions if place == axis_index(channel) and lo == 0]
    for condition in conditions:
        if channels and condition[0] == axis_index(channel):
            continue
        found = guarded_dimension(condition, index, pixels)
        if found is None:
            return None
        made.append(found)
    used = {axis for each in made for axis in (each.pixel, *axes_of(each.taps))}
    wide = [axis for axis in steps if axis not in used and steps[axis] and axis is not channel]
    rest = plain_dimensions(
        index, [axis for axis in wide if axis in pixels], [axis for axis in wide if axis in taps]
    )
    if rest is None:
        return None
    made = sorted((*made, *rest), key=lambda each: each.stride)
    if not made or not made[-1].is_last:
        stride = made[-1].stride * made[-1].size if made else channel.size
        made.append(Dimension(stride, 1, None, 1, 0, constant(0)))
    size = min([channel.size, *channels])
    return checked(index, (channel, size), made, pixels, batch)


def unguarded(expr: Expr) -> tuple[Expr, tuple[Condition, ...]]:
    """Find what guards are around, and all of their conditions; an operand is 0 elsewhere."""
    conditions: tuple[Condition, ...] = ()
    while expr.op == "guard":
        expr, conditions = expr.args[0], conditions + expr.arg
    return expr, conditions


def is_linear(index: Index) -> bool:
    """Tell whether an index is a sum of axes."""
    return all(isinstance(atom, Axis) for atom, _ in index.terms)


def guarded_dimension(
    condition: Condition, index: Index, pixels: tuple[Axis, ...]
) -> Dimension | None:
    """Read a dimension off the test that a place along it is inside."""
    place, low, high = condition
    if not is_linear(place) or not place.terms:
        return None
    strides = set()
    for axis, step in place.terms:
        far = step_of(index, axis) or 0  # type: ignore[arg-type]
        strides.add(far // step if far % step == 0 else 0)
    stride = strides.pop()
    numbers = [(axis, step) for axis, step in place.terms if axis in pixels]
    if strides or stride <= 0 or len(numbers) > 1 or any(step <= 0 for _, step in numbers):
        return None
    pixel: Any = None
    step, taps = 1, place + -place.const
    for pixel, step in numbers:
        taps = taps - axis_index(pixel) * step
    first = place.const - low + taps.lo
    return Dimension(stride, high - low + 1, pixel, step, first, taps + -taps.lo)


def plain_dimensions(index: Index, pixels: list[Axis], taps: list[Axis]) -> list[Dimension] | None:
    """Find the dimensions that no test tells about: a tap shares one with the pixel it fits."""
    found: list[Dimension] = []
    for tap in sorted(taps, key=lambda axis: step_of(index, axis) or 0):
        far = step_of(index, tap) or 0
        ratios = []
        for number, pixel in enumerate(pixels):
            near, wide = sorted((far, step_of(index, pixel) or 0))
            if near > 0 and wide % near == 0:
                ratios.append((wide // near, number))
        if far <= 0:
            return None
        if not ratios:
            found.append(Dimension(far, tap.size, None, 1, 0, axis_index(tap)))
            continue
        pixel = pixels.pop(min(ratios)[1])
        own = step_of(index, pixel) or 0
        stride = min(far, own)
        place = axis_index(pixel) * (own // stride) + axis_index(tap) * (far // stride)
        offset = axis_index(tap) * (far // stride)
        found.append(Dimension(stride, place.hi + 1, pixel, own // stride, 0, offset))
    for pixel in pixels:
        stride = step_of(index, pixel) or 0
        found.append(Dimension(stride, pixel.size, pixel, 1, 0, constant(0)))
    return found


def checked(
    index: Index,
    channels: tuple[Axis, int],
    made: list[Dimension],
    pixels: tuple[Axis, ...],
    batch: tuple[Axis, ...],
) -> Windowed | None:
    """Make the map if it is what the index says, with windows in the order of the pixels."""
    last, rest = made[-1], index - axis_index(channels[0])
    for each in made:
        place = each.taps + each.first
        place += axis_index(each.pixel) * each.step if each.pixel else 0
        rest = rest - place * each.stride
    products = groups = constant(0)
    for axis in batch:
        step = step_of(index, axis) or 0
        if step % last.stride == 0:
            products += axis_index(axis) * (step // last.stride)
        elif step % channels[1] == 0 and channels[1] == channels[0].size:
            groups += axis_index(axis) * step
        else:
            return None
        rest = rest - axis_index(axis) * step
    if groups.terms and groups.hi + channels[1] > min(each.stride for each in made):
        return None  # groups are channels of one place
    order = [each.pixel for each in reversed(made) if each.pixel]
    is_same = order == [axis for axis in pixels if axis.size > 1]
    if rest.terms or products.lo < 0 or not is_same or min(d.stride for d in made) <= 0:
        return None
    return Windowed(rest.const, *channels, tuple(made), products, groups)
