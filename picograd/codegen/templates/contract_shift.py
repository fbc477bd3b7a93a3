"""Convolutions on a CPU: each tap of a window reads the same image from another place.

    task (rows of weights, images or rows of them):
      for channels: b = their image with its border; a = weights
                    for panel, for row group: Dot, which goes on to each tap's place in b
      epilogue over the finished block

Columns are counted over the image with its border: neighbours there are neighbours for each tap.
Columns of the border are computed too, and nobody looks at them. Under a stride the image lies in
phases, of each one the elements that are so many apart: taps of one phase are neighbours. Packing,
which writes an image once a tap, takes as long as multiplying where there are few output channels.
A channel by itself has one row of weights: a panel is then some rows of the image, below one
another, since what a tap of one row reads other taps of its neighbours read, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product as product_of

from picograd.codegen import cuts
from picograd.codegen.dot import Digit, Runs
from picograd.codegen.operands import (
    Contraction,
    bind,
    by_stride,
    main_load,
    output_index,
    size_of,
    step_of,
    strides,
    swap,
)
from picograd.codegen.templates.contract_plan import (
    CACHE_BYTES,
    MOST_ROWS,
    WORK_PER_TASK,
    Columns,
    Image,
    Plan,
    cut_rows,
    is_range,
    is_rowwise,
    vector_lanes,
    with_orders,
)
from picograd.codegen.templates.contract_thin import guarded_steps, missing_depth, pack
from picograd.codegen.templates.register_block import register_block
from picograd.codegen.tile import Step
from picograd.errors import internal
from picograd.helpers import ceil_div, product, round_up, row_major
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, position_over
from picograd.schedule.loop import Expr, const
from picograd.target import Target

BLOCK_BYTES = CACHE_BYTES * 3 // 8  # of results, and of the image
LINE_BYTES = 64  # of the cache
NEAR_BYTES = 24 * 1024  # of the image under a panel, which stays in the first-level cache
MOST_SUMMED = 192  # of the depth at once: longer sums round more
LEAST_ROWS = 12  # of a task: with fewer, filling the image outweighs multiplying
ALONE_PLACES = 4096  # of a block of one row: both tiles stay in the first-level cache
PLANE_ROWS = 96  # of a block without taps: its columns are several small images then
LEAST_PLANE = 48  # columns of a row without taps: a panel
LEAST_SUMMED = 16  # depth where results are added up too, image by image
MOST_WASTE, ROW_WASTE = 1.08, 20  # columns computed for one that is seen, more for few rows
MOST_RUNS, FEW_TAPS = 8, 7  # rows of an image at once; taps that stay in registers
MOST_WRITTEN = 256  # multiply-adds of a round of a loop, whose cost is
ROUND = 2


@dataclass(frozen=True, slots=True)
class Tap:
    """An axis of taps: from a tap to the next are so many columns, or from one phase to the next.

    There are several phases under a stride: a tap of each of them, and so on a column further.
    """

    axis: Axis
    step: int
    phases: int = 1
    across: Axis = Axis("phase", 1)  # counts the phases that any tap has

    @property
    def reach(self) -> int:
        """Columns from the first tap to the last."""
        return abs(self.step) * ((self.axis.size - 1) // self.phases)


@dataclass(frozen=True, slots=True)
class Shift:
    """A product whose columns and taps share places: an axis of columns -> its taps."""

    product: Contraction
    taps: Mapping[Axis, Tap]

    def reach(self, column: Axis) -> int:
        """Places beyond its columns that the taps of an axis read."""
        return self.taps[column].reach if column in self.taps else 0

    def back(self, column: Axis) -> int:
        """Columns, negative, from the first one of an axis to the first place that is read."""
        return -self.reach(column) if column in self.taps and self.taps[column].step < 0 else 0


def choose(c: Contraction, target: Target) -> Plan | None:
    """Plan a convolution whose image is read where it lies; None if packing it is better."""
    batch = set(c.batch)
    varies = any(not axes_of(end[0]) <= batch for end in c.ends)
    is_summed = any(compute.reduce for compute in c.computes if compute is not c.computes[c.number])
    if c.windows or varies or 0 in c.sizes or (is_summed and c.sizes[3] < LEAST_SUMMED):
        return None
    shift = find(c) or find(swap(c))
    return None if shift is None else planned(shift, target)


def find(c: Contraction) -> Shift | None:
    """Match the taps of a product with its columns: one tap back is some columns on."""
    index = main_load(c.b)
    if index is None or not c.columns:
        return None
    columns = by_stride(c.columns, strides(c.b, c.columns))
    found: dict[Axis, Tap] = {}
    for axis in c.depth:
        for column in columns:
            tap = tap_of(axis, step_of(index, axis), step_of(index, column))
            is_short = tap is not None and 0 < tap.reach <= column.size
            if tap and is_short and column not in found and is_shared(c.b, column, tap):
                found[column] = tap
                break
    last = found.get(columns[-1], Tap(columns[-1], 1))
    if step_of(index, columns[-1]) != last.phases or not (found or is_plane(c, columns)):
        return None
    return Shift(replace(with_orders(c), columns=columns), found)


def is_plane(c: Contraction, columns: tuple[Axis, ...]) -> bool:
    """Tell whether columns are long rows that do not follow one another, as of 1 x 1 windows."""
    last = columns[-1]
    is_row = step_of(output_index(c), last) == 1
    return is_row and last.size >= LEAST_PLANE and not is_range(c, columns)


def tap_of(axis: Axis, tap: int | None, column: int | None) -> Tap | None:
    """Say how taps and columns, so many elements apart, meet; None if not in whole numbers."""
    if not tap or not column:
        return None
    if tap % column == 0:
        return Tap(axis, tap // column)
    if tap < 0 or column % tap:
        return None
    phases = column // tap
    return Tap(axis, 1, phases, Axis(f"{axis.name}f", min(phases, axis.size)))


def is_shared(expr: Expr, column: Axis, tap: Tap) -> bool:
    """Tell whether an operand at a tap is what it is at the first tap of another column."""
    if tap.phases == 1:
        there = axis_index(column) + axis_index(tap.axis) * tap.step
        return bind(expr, {column: there, tap.axis: constant(0)}) == expr
    further, phase = Axis("further", tap.reach + 1), axis_index(tap.across)
    here = bind(expr, {tap.axis: axis_index(further) * tap.phases + phase})
    return here == bind(expr, {column: axis_index(column) + axis_index(further), tap.axis: phase})


@dataclass(frozen=True, slots=True)
class Space:
    """The places of a block: planes, each an image with its border."""

    planes: tuple[Axis, ...]
    axes: tuple[Axis, ...]  # of columns in a plane
    dims: tuple[Axis, ...]  # of the block along them
    steps: tuple[int, ...]  # places from one column to the next
    extent: int  # places of a plane

    @property
    def reached(self) -> int:
        """Places from the first column of a plane to its last."""
        both = zip(self.dims, self.steps, strict=True)
        last = [step * (dim.size - 1) for dim, step in both]
        return 1 + sum(last)

    def place(self, dims: Sequence[Axis], width: int) -> Index:
        """Where a point is, in planes that are so many places wide."""
        found = position_over(self.planes) * width
        for dim, step in zip(dims, self.steps, strict=True):
            found = found + axis_index(dim) * step
        return found


def space_of(shift: Shift, piece: cuts.Piece) -> Space | None:
    """Lay out the places of a piece of the columns; None if one has taps and is not in a block."""
    columns = shift.product.columns
    inside = columns[len(columns) - len(piece.dims) :]
    if not inside or not set(shift.taps) <= set(inside):
        return None
    first = min(map(inside.index, shift.taps), default=0)  # without a border planes are one
    axes, dims = inside[first:], piece.dims[first:]
    sizes = [dim.size + shift.reach(axis) for axis, dim in zip(axes, dims, strict=True)]
    return Space(piece.dims[:first], axes, dims, row_major(sizes), product(sizes))


def fitted(shift: Shift, piece: cuts.Piece) -> Space:
    """Lay out the places of a piece of columns that is known to be in a block."""
    space = space_of(shift, piece)
    if space is None:
        internal("taps along an axis that no block holds", shift.product)
    return space


@dataclass(frozen=True, slots=True)
class Share:
    """Places along an axis of some phases, if it has any."""

    places: Axis
    tap: Axis | None = None
    across: Axis | None = None
    phase: Index = constant(0)


@dataclass(frozen=True, slots=True)
class Block:
    """The image that a task has in a tile: some channels of it, and the panels of its columns."""

    shift: Shift
    columns: cuts.Cut
    space: Space  # of the longest piece of the columns
    panel: int  # columns of a run
    runs: int = 1  # rows of a plane in a panel

    @property
    def apart(self) -> int:
        """Places from a row of a plane to the next: the least that an axis with taps moves."""
        return least_row(self.shift, self.space)

    @property
    def across(self) -> int:
        """Count the panels side by side."""
        if self.runs == 1:
            return ceil_div(self.space.reached, self.panel)
        inner = [n for n in zip(self.space.dims, self.space.steps) if n[1] < self.apart]
        wide = 1 + sum(step * (dim.size - 1) for dim, step in inner)
        return ceil_div(wide, self.panel)

    @property
    def down(self) -> int:
        """Count the panels below one another."""
        return ceil_div(self.space.reached, self.apart * self.runs) if self.runs > 1 else 1

    @property
    def planes(self) -> int:
        """Count the planes."""
        return size_of(self.space.planes)

    @property
    def width(self) -> int:
        """Columns of a plane that are computed: whole panels."""
        last = (self.down * self.runs - 1) * self.apart
        return last + self.across * self.panel

    @property
    def taps(self) -> tuple[tuple[Tap, int], ...]:
        """List the taps in the order of the depth, and the places from a column to the next."""
        steps = dict(zip(self.space.axes, self.space.steps, strict=True))
        found = [(tap, steps[column]) for column, tap in self.shift.taps.items()]
        depth = self.shift.product.depth
        return tuple(sorted(found, key=lambda each: depth.index(each[0].axis)))

    @property
    def tap_axes(self) -> tuple[Axis, ...]:
        """List the axes of taps, in the order of the depth."""
        return tuple(tap.axis for tap, _ in self.taps)

    @property
    def phases(self) -> tuple[Axis, ...]:
        """List the axes that count the phases of a channel."""
        return tuple(tap.across for tap, _ in self.taps if tap.phases > 1)

    @property
    def places(self) -> int:
        """Places of a phase of a channel: the last panel may read beyond its plane."""
        extent = self.space.extent
        last = self.width + sum(tap.reach * step for tap, step in self.taps)
        count = (self.planes - 1) * extent + max(extent, last)
        line = LINE_BYTES // self.shift.product.dtype.itemsize
        return (ceil_div(count, line) | 1) * line  # odd: channels share all sets of the cache

    @property
    def digits(self) -> Iterator[Digit]:
        """List what the depth counts in a channel."""
        apart = self.places * size_of(self.phases)
        for tap, step in self.taps:
            if tap.phases == 1:
                yield Digit(tap.axis.size, tap.step * step)
                continue
            apart //= tap.across.size
            yield Digit(tap.axis.size, step, tap.phases, apart)

    def image(self, channels: cuts.Cut, panel: Axis) -> Image:
        """Say how the tile is filled, and where a panel begins in it."""
        first = sum(tap.reach * step for tap, step in self.taps if tap.step < 0)
        each = self.across * self.down
        number = axis_index(panel)
        plane, within = number // each, number % each
        row = within // self.across * (self.runs * self.apart)
        column = row + within % self.across * self.panel
        place = plane * self.space.extent + column + first
        shape = channels.size, self.places * size_of(self.phases)
        return Image(
            shape,
            (Digit(*shape), *self.digits),
            place,
            plane * self.width + column,
            self.planes * self.width,
            self.runs_of_taps(),
            tuple(self.fill(channels)),
        )

    def runs_of_taps(self) -> Runs:
        """Say how runs of a panel follow one another, and which taps share what they read."""
        steps = [step for _, step in self.taps]
        return Runs(self.runs, self.apart, 1 + steps.index(self.apart)) if self.runs > 1 else Runs()

    def phase_of(self, first_taps: Mapping[Axis, Index]) -> Index:
        """Number the phases of a channel."""
        found = constant(0)
        for tap, _ in self.taps:
            if tap.phases > 1:
                found = found * tap.across.size
                found = found + first_taps[tap.axis]
        return found

    def shares(self, space: Space) -> Iterator[list["Share"]]:
        """Cut each axis by how many places phases have: one without a last tap has one less.

        Where there is a border, its guards look at each place.
        """
        image = self.shift.product.b
        tests = image.arg if image.op == "guard" else ()
        bordered = {axis for test in tests for axis in axes_of(test[0])}
        for axis, dim in zip(space.axes, space.dims, strict=True):
            tap = self.shift.taps.get(axis)
            name = f"{dim.name}u"
            size = dim.size + self.shift.reach(axis)
            whole = Axis(name, size)
            if tap is None or tap.phases == 1:
                yield [Share(whole)]
                continue
            full = tap.across.size
            if tap.reach and tap.axis not in bordered:
                full = (tap.axis.size - 1) % tap.phases + 1
            first = Axis(tap.across.name, full)
            parts = [Share(whole, tap.axis, first, axis_index(first))]
            missing = tap.across.size - full
            if missing:
                rest = Axis(tap.across.name, missing)
                shorter = Axis(name, size - 1)
                phase = axis_index(rest) + full
                parts.append(Share(shorter, tap.axis, rest, phase))
            yield parts

    def fill(self, channels: cuts.Cut) -> Iterator[Step]:
        """Evaluate the image with its border; channels that a last block lacks are 0."""
        c, shift = self.shift.product, self.shift
        for piece in self.columns.pieces:
            space = fitted(shift, piece)
            for shares in product_of(*self.shares(space)):
                local = [share.places for share in shares]
                first_taps = {tap.axis: constant(0) for tap, _ in self.taps}
                first_taps |= {share.tap: share.phase for share in shares if share.tap}
                own: dict[Axis, Index] = {}
                for axis, dim, place in zip(space.axes, space.dims, local, strict=True):
                    within = axis_index(place) + shift.back(axis)
                    own[axis] = cuts.first_of(piece, axis, dim) + within
                where = self.phase_of(first_taps) * self.places
                where = where + space.place(local, self.space.extent)
                for channel in channels.pieces:
                    values = {**piece.values, **own, **channel.values, **first_taps}
                    phases = [share.across for share in shares if share.across]
                    dims = (*channel.dims, *phases, *space.planes, *local)
                    step = pack("b", dims, bind(c.b, values), (channel.position, where))
                    yield from guarded_steps((*piece.when, *channel.when), [step])
        place = Axis("place", self.places * size_of(self.phases))
        zero = const(0, c.dtype)
        for when, (axis, position) in missing_depth(channels):
            step = pack("b", (axis, place), zero, (position, axis_index(place)))
            yield from guarded_steps(when, [step])

    def column_cut(self) -> cuts.Cut:
        """Say where columns are in the block of results: planes are whole panels wide."""
        pieces = []
        for piece in self.columns.pieces:
            space = fitted(self.shift, piece)
            position = space.place(space.dims, self.width)
            pieces.append(replace(piece, position=position))
        return replace(self.columns, pieces=tuple(pieces), size=self.planes * self.width)

    def depth_cut(self, channels: cuts.Cut) -> cuts.Cut:
        """Count the depth of a block: its channels, and all taps of each."""
        taps, pieces = self.tap_axes, []
        for piece in channels.pieces:
            position = piece.position * size_of(taps) + position_over(taps)
            pieces.append(replace(piece, dims=(*piece.dims, *taps), position=position))
        return replace(channels, pieces=tuple(pieces), size=channels.size * size_of(taps))


def planned(shift: Shift, target: Target) -> Plan | None:
    """Choose blocks, panels and tasks; None if too many columns of the border are computed."""
    c, lanes = shift.product, vector_lanes(shift.product.dtype, target)
    share, most = sizes_of_block(shift, target)
    cut = cuts.nested_cut(c.columns, most)
    space = space_of(shift, cut.pieces[0])
    if space is None:
        return None
    height, vectors = register_block(share, space.reached, lanes, target.registers)
    block = Block(shift, cut, space, lanes * vectors)
    if c.sizes[1] == 1:
        block = with_runs(block, lanes, target.registers)
    computed = block.across * block.down * block.runs * block.panel * block.planes * cut.count
    if computed > (MOST_WASTE + ROW_WASTE / c.sizes[1]) * c.sizes[2]:
        return None
    share = round_up(share, height)
    rows, task, loop = cut_rows(c, share, share, height, False)
    others = tuple(axis for axis in c.depth if axis not in block.tap_axes)
    channels = cuts.nested_cut(others, most_channels(block, rows.size))
    panel = Axis("panel", block.planes * block.across * block.down)
    return Plan(
        c,
        rows,
        Columns(block.column_cut(), panel, (), block.panel, False),
        block.depth_cut(channels),
        min(height, rows.size),
        task,
        loop,
        Axis("part", 1),
        is_rowwise(c),
        False,
        image=block.image(channels, panel),
    )


def least_row(shift: Shift, space: Space) -> int:
    """Say how far the nearest axis with taps moves whose neighbours are not next to one another."""
    both = zip(space.axes, space.steps, strict=True)
    return min((step for axis, step in both if axis in shift.taps and step > 1), default=0)


def with_runs(block: Block, lanes: int, registers: int) -> Block:
    """Let a panel of a single row of weights have rows of an image, if they share what is read.

    Loads of two lines of the cache take as long as two multiply-adds.
    """
    apart = block.apart
    rows = [tap for tap, step in block.taps if step == apart]
    is_one = size_of(block.shift.product.depth) == size_of(block.tap_axes)
    if not rows or not is_one:
        return block
    (tap,) = rows
    best, found = 0.0, block
    for vectors in range(1, 5):
        for runs in range(1, MOST_RUNS + 1):
            sums = runs * vectors
            kept = sums + vectors + min(tap.axis.size, FEW_TAPS)
            if kept > registers or sums * tap.axis.size > MOST_WRITTEN:
                break
            made = replace(block, panel=lanes * vectors, runs=runs)
            loads = places_read(tap, runs) * vectors + tap.axis.size / 2
            cost = max(sums * tap.axis.size / 2, loads) + ROUND
            cost *= made.across * made.down
            if not best or cost < best:
                best, found = cost, made
    return found


def places_read(tap: Tap, runs: int) -> int:
    """Count the rows of places that several runs read for all taps of an axis."""
    found: set[tuple[int, int]] = set()
    for number in range(tap.axis.size):
        further = number // tap.phases * tap.step
        found.update((number % tap.phases, run + further) for run in range(runs))
    return len(found)


def sizes_of_block(shift: Shift, target: Target) -> tuple[int, int]:
    """Choose the rows of a block, and how many columns it has at most."""
    c = shift.product
    batch, m, n, k = c.sizes
    tasks = 4 * target.threads if target.threads > 1 else 1
    wanted = max(min(batch * m * n * k // WORK_PER_TASK, tasks), 1)
    parts = ceil_div(m, MOST_ROWS if shift.taps else PLANE_ROWS)
    outer = min(map(c.columns.index, shift.taps), default=len(c.columns) - 1)
    least = 2 * size_of(c.columns[outer + 1 :])
    most = BLOCK_BYTES // (ceil_div(m, parts) * c.dtype.itemsize)
    most = min(most, ALONE_PLACES) if m == 1 else most
    most = max(min(most, ceil_div(n * batch * parts, wanted)), least)
    cells = batch * ceil_div(n, most)
    parts = max(parts, min(ceil_div(wanted, cells), ceil_div(m, LEAST_ROWS)))
    return ceil_div(m, parts), most


def most_channels(block: Block, rows: int) -> int:
    """Count the channels whose image and weights stay in the caches while they are multiplied."""
    item, axes = block.shift.product.dtype.itemsize, block.tap_axes
    count, last = size_of(axes), axes[-1].size if axes else 1
    rows_read = count // last
    near_row = block.panel * block.taps[-1][0].across.size + last if axes else block.panel + 1
    near = NEAR_BYTES // (rows_read * near_row * item)
    weights = CACHE_BYTES // 4 // (rows * count * item)
    whole = BLOCK_BYTES // (block.places * size_of(block.phases) * item)
    return max(min(near, weights, whole, MOST_SUMMED // count), 1)
