"""Boxes: operands of a product as the bulk copy engine sees them, stage by stage.

    rows x K in boxes       an array with a nearest and a next dimension, and single positions of
                            the others (`view_of`)
    windows x K in boxes    an image that a convolution reads (codegen/windows.py)

K is cut into steps (`Depth`): of a matrix product 64 of its positions, of a convolution 64 channels
of one tap. None says that no tensor map describes an operand.

Steps of Tile IR for pipelines: copies of boxes, a ring of stages, blocks that stay.

    Persistent = points, block, teams, body     every block runs the body at many points of the grid
    Pipeline   = axis, produce, consume         one after the other in meaning, overlapped in time
    CopyBox    = tile, tensor, at, slab, ...    shared tile = boxes of a slot, 0 outside of it
    Join       = acc, partial, flags, ..., body adds up what blocks have of a point that they share
    BoxStore   = tensor, at, tile               how a `Store` leaves: shared memory, then boxes
    RowStore   = tile                           the same, then row by row

Their meaning is sequential: for every point, for every stage, produce, then consume. Who runs what
when is the linearizer's: on Hopper a warpgroup of its own runs the `produce` steps of all points,
as far ahead as the ring has stages, and teams of warpgroups run the rest. The tiles that `produce`
writes are rings of `Tile.stages`; only `consume` of the same pipeline may read them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import permutations
from typing import Any

from picograd.code import TensorMap
from picograd.codegen.layout import Swizzled
from picograd.codegen.operands import Contraction, bind, expr_axes, narrow, size_of, step_of
from picograd.codegen.windows import is_linear, unguarded, windows_of
from picograd.dtype import DType
from picograd.helpers import ceil_div, product, round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import (
    Axis,
    Dynamic,
    Index,
    atom_index,
    axes_of,
    axis_index,
    substitute,
    unflatten,
)
from picograd.schedule.loop import Condition, Expr, walk

Steps = tuple[Any, ...]  # of Tile IR: those of codegen/tile.py and these


@dataclass(frozen=True, slots=True)
class Teams:
    """Who runs the body of a `Persistent`: `count` teams of `threads` take points in turn.

    While one is in the main loop of its point, another stores its own. `registers` are those of a
    thread that produces and of one of a team.
    """

    count: int
    threads: int
    registers: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Shares:
    """How points are dealt by their steps, where they are too few to keep all blocks busy.

    The `depth` steps of all points, one point after the other, fall into as many equal stretches
    as there are blocks. A block runs the body for each point that it has steps of, the last one
    first, with `first` and `stop` bound to where its steps of that point begin and end.
    """

    depth: int
    first: Axis
    stop: Axis

    def stretch(self, points: int, blocks: int, block: int) -> list[tuple[int, int, int]]:
        """List the points that a block has steps of: (point, first step, stop)."""
        low, high = (number * points * self.depth // blocks for number in (block, block + 1))
        found = []
        for point in reversed(range(low // self.depth, ceil_div(high, self.depth))):
            start = point * self.depth
            found.append((point, max(low - start, 0), min(high - start, self.depth)))
        return found

    def first_block(self, point: Index, points: int, blocks: int) -> Index:
        """Find the block that has the first step of a point."""
        return ((point * self.depth + 1) * blocks - 1) // (points * self.depth)


@dataclass(frozen=True, slots=True)
class Persistent:
    """Run `body` at points block, block + blocks, ... of `points` (row-major, last axis fastest).

    `block` is the grid axis of the part: as many blocks as the device runs at once. If they are
    `is_dealt`, the points of each position of the first axis are dealt by themselves, in rounds:
    block after block in one round, back from the last block in the next. So all work on the same
    few, and a block that had more to do in one round has less to do in the other. Every two rounds
    the first block is another, so that whatever is long comes to all of them in turn. With `shares`
    the steps of points are dealt, and a `Join` of the body adds up what blocks have of a point.
    Dealt points take `least` rounds: NVRTC up to 13.0 writes a loop of one out, and may spill.
    """

    points: tuple[Axis, ...]
    block: Axis
    teams: Teams
    body: Steps
    is_dealt: bool = False
    shares: Shares | None = None
    least: int = 1

    @property
    def rounds(self) -> int:
        """Rounds in which the points of a position of the first axis are dealt."""
        count = product(axis.size for axis in self.points[1:])
        return max(ceil_div(count, self.block.size), self.least)

    @property
    def shift(self) -> int:
        """How many blocks on the first one is after two rounds: once around in all of them."""
        turns = self.points[0].size * self.rounds
        return max(2 * self.block.size // turns, 1)

    def points_of(self, block: int) -> list[int]:
        """List the points of a block."""
        count, blocks = product(axis.size for axis in self.points), self.block.size
        if not self.is_dealt:
            return list(range(block, count, blocks))
        groups = self.points[0].size
        found = []
        for turn in range(groups * self.rounds):
            group, number = divmod(turn, self.rounds)
            own = (block + turn // 2 * self.shift) % blocks
            place = number * blocks + (blocks - 1 - own if turn % 2 else own)
            if place < count // groups:
                found.append(group * (count // groups) + place)
        return found


@dataclass(frozen=True, slots=True)
class Join:
    """Run `body` in the block that has the last steps of a point, with all parts of it in `acc`.

    Any other block leaves its part in partial[block], a workspace tile. Where `last` holds, the
    parts of the blocks from `first` up to this one are added to `acc` in order, so that sums are
    the same in every run. `flags` numbers a zeroed workspace of int32, one for each warp that
    leaves its share of a part; they are left zero. Blocks wait for those of smaller numbers alone,
    which have left their part before they wait for anybody.
    """

    acc: str
    partial: str
    flags: int
    block: Axis
    first: Index
    last: Condition
    body: Steps


@dataclass(frozen=True, slots=True)
class Pipeline:
    """For every position of `axis`: run `produce`, then `consume`.

    From `first` on and before `stop`, if there are such: 0 or more, and at most the axis' size.
    The axes that are `known` have the values of indices at each position, found one ahead. Where
    `seen` is below 0 a position adds nothing, and is left out unless it is the first.
    If it `is_rotated`, the products at the end of `consume` may run beside those that begin the
    next position: they alone read their boxes, and the first ones touch nothing that they do.
    """

    axis: Axis
    produce: Steps
    consume: Steps
    first: Index | None = None
    stop: Index | None = None
    is_rotated: bool = False
    known: tuple[tuple[Axis, Index], ...] = ()
    seen: Index | None = None


@dataclass(frozen=True, slots=True)
class CopyBox:
    """Each slab of a tile = the box of a slot from `at` on (nearest dimension first), 0 outside.

    `slab` numbers the slabs. Of a map with windows: `at` is where the first window begins, and
    `offsets` are those of the elements from there, in every window the same. So many neighbouring
    blocks as are `together` want the same boxes at the same points: each brings a part to all.
    If it `is_kept`, boxes are the same at all points: each position has a stage, filled once. The
    first slab begins `start` elements into a stage.
    """

    tile: str
    tensor: TensorMap
    at: tuple[Index, ...]
    slab: Axis
    offsets: tuple[Index, ...] = ()
    together: int = 1
    is_kept: bool = False
    start: int = field(default=0, repr=False)


@dataclass(frozen=True, slots=True)
class BoxStore:
    """A `Store` of a whole block tile whose element [0, 0] lies `at` a place of `tensor`.

    Each warp gathers 16 rows and 128 bytes of columns in a slot of the shared `tile`, a ring of its
    own, and the copy engine takes them from there; what lies outside of the array is not stored.
    If it `is_rolled`, slots hold the rounded product first, of all parts at once, and a loop
    computes from them what is stored.
    """

    tensor: TensorMap
    at: tuple[Index, ...]
    tile: str
    is_rolled: bool = False


@dataclass(frozen=True, slots=True)
class RowStore:
    """A `Store` of a whole block tile whose rows no box can have, as they begin anywhere.

    Each warp gathers 16 rows and 128 bytes of columns in its slot of the shared `tile`, and stores
    them row by row: a lane an element. If the rounded product is all that an expression reads of
    the accumulator, slots hold that, and the rest is computed as rows are stored.
    """

    tile: str


def rounded_product(expr: Expr) -> Expr | None:
    """Find the rounded accumulator in an expression; None if it reads another, or more than it."""
    read = [each for each in walk(expr) if each.op == "tile"]
    found = [each for each in walk(expr) if is_rounded_product(each)]
    return found[0] if len(read) == len(found) == 1 else None


def is_rounded_product(expr: Expr) -> bool:
    """Tell whether an expression is an accumulator, rounded: of fewer bits than what it is of."""
    if len(expr.args) != 1 or expr.args[0].op != "tile":
        return False
    return expr.dtype.is_float and expr.dtype.bits == 16 < expr.args[0].dtype.bits


ROW_BYTES = 128  # of a slab
MOST_DIMENSIONS, LONGEST, FARTHEST = 5, 1 << 32, 1 << 40  # of a tensor map (CUDA driver API)
ALIGNMENT = 16  # bytes, of where an array begins and of its strides
WHOLE = 8  # rows after which the swizzle repeats
MOST_EMPTY = 4  # times as much as there is that steps of K may take


@dataclass(frozen=True, slots=True)
class Depth:
    """How K is cut: a step is one position of the `outer` axes and `size` of the `inner` ones."""

    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    size: int  # 128 bytes of a row

    @property
    def blocks(self) -> int:
        """Steps for one position of the outer axes."""
        return ceil_div(size_of(self.inner), self.size)

    @property
    def count(self) -> int:
        """Steps in all."""
        return size_of(self.outer) * self.blocks

    def values(self, step: Index) -> dict[Axis, Index]:
        """Find the position of each outer axis in a step."""
        sizes = tuple(axis.size for axis in self.outer)
        return dict(zip(self.outer, unflatten(step // self.blocks, sizes), strict=True))

    def position(self, step: Index) -> Index:
        """Find the first of the inner positions of a step."""
        return step % self.blocks * self.size


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of a tile of the output: rows (or columns) `corner`... of `axes`."""

    name: str
    expr: Expr
    axes: tuple[Axis, ...]
    corner: Index
    size: int
    is_k_major: bool


@dataclass(frozen=True, slots=True)
class Side:
    """How an operand is brought: what fills a stage, and how it lies there."""

    copy: CopyBox
    layout: Swizzled
    is_k_major: bool


def depths(c: Contraction, dtype: DType) -> Iterator[Depth]:
    """List the ways to cut K: all of it in one, or its fastest axis by itself."""
    size = ROW_BYTES // dtype.itemsize
    yield Depth((), c.depth, size)
    if len(c.depth) > 1:
        found = Depth(c.depth[:-1], c.depth[-1:], size)
        if found.count * size <= MOST_EMPTY * size_of(c.depth):
            yield found


def side_of(
    c: Contraction, operand: Operand, dtype: DType, depth: Depth, step: Index
) -> Side | None:
    """Describe one operand; None if it is no load that boxes can have."""
    plain = narrow(operand.expr, 8)
    is_fit = plain.dtype is dtype or plain.dtype.kind == dtype.kind == "float8"
    is_whole = operand.size % (ROW_BYTES // dtype.itemsize) == 0  # slabs of its rows
    if not is_fit or not (operand.is_k_major or (dtype.bits == 16 and is_whole)):
        return None  # `wgmma` reads TF32 and 8-bit floats along K alone
    if unguarded(plain)[0].op == "load":
        found = row_side(c, operand, plain, depth, step)
        if found is not None:
            return found
    return window_side(c, operand, plain, depth, step)


def stage(operand: Operand, dtype: DType) -> Swizzled:
    """Lay out a stage of an operand: slabs that run along K, or slabs of its rows."""
    size, depth = operand.size, ROW_BYTES // dtype.itemsize
    return Swizzled((size, depth) if operand.is_k_major else (depth, size), dtype.itemsize)


# -- arrays of rows -------------------------------------------------------------------------------


def row_side(
    c: Contraction, operand: Operand, plain: Expr, depth: Depth, step: Index
) -> Side | None:
    """Describe an operand whose rows are those of an array, or of each of several arrays."""
    load, conditions = unguarded(plain)
    slot, index = load.arg
    layout = stage(operand, plain.dtype)
    slab = Axis("slab", layout.slabs)
    along = axis_index(slab) * layout.span
    k, row = depth.position(step), operand.corner
    if operand.is_k_major:
        k = k + along
    else:
        row = row + along
    # of the rows that a box has together
    together = operand.size if operand.is_k_major else layout.span
    outer, rows = parted(index, operand.axes, together, conditions)
    values = depth.values(step)
    sizes = tuple(axis.size for axis in outer)
    if outer:
        places = unflatten(row // size_of(rows), sizes)
        values |= dict(zip(outer, places, strict=True))
        row = row % size_of(rows)
    near, far, at = (depth.inner, rows, (k, row))
    if not operand.is_k_major:
        near, far, at = rows, depth.inner, (row, k)
    single = *c.batch, *depth.outer, *outer
    shared = places_of(index, conditions, single)
    view = None
    if shared is not None:
        view = view_of(index, near, far, single, plain.dtype.itemsize, shared)
    if view is None:
        return None
    tensor = view.tensor(slot, plain.dtype, (layout.span, layout.shape[0]))
    copy = CopyBox(operand.name, tensor, (*at, *view.places_of(values)), slab)
    return Side(copy, layout, operand.is_k_major)


def parted(
    index: Index, axes: tuple[Axis, ...], together: int, conditions: tuple[Condition, ...]
) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """Split rows into those of an array and the axes that number arrays, if they are several.

    Boxes of so many rows `together` must not reach from one array into the next. Axes that
    conditions test number arrays.
    """
    wide = tuple(axis for axis in axes if axis.size > 1)
    tested = {axis for place, *_ in conditions for axis in axes_of(place)}
    first = max((place + 1 for place, axis in enumerate(wide) if axis in tested), default=0)
    for place in range(first, len(wide)):
        if chain(index, wide[place:]) is not None:
            is_whole = size_of(wide[place:]) % together == 0
            return (wide[:place], wide[place:]) if is_whole else ((), axes)
    return (), axes


@dataclass(frozen=True, slots=True)
class View:
    """An array seen as dimensions: nearest, next, and those of `wide` axes; see `TensorMap`.

    Along `flipped` axes the last position comes first. Behind them are the dimensions of `places`.
    """

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    wide: tuple[Axis, ...]
    flipped: frozenset[Axis] = frozenset()
    places: tuple["Place", ...] = ()

    def tensor(self, slot: int, dtype: DType, box: tuple[int, int]) -> TensorMap:
        """Describe it to the driver; a box has one position along all dimensions but two."""
        ones = [1] * (len(self.sizes) - 2)
        return TensorMap(slot, dtype, self.offset, self.sizes, self.strides, (*box, *ones))

    def places_of(self, values: Mapping[Axis, Index]) -> list[Index]:
        """Find the places along all dimensions but the first two."""
        found = []
        for axis in self.wide:
            value = values.get(axis, axis_index(axis))
            found.append(value * -1 + (axis.size - 1) if axis in self.flipped else value)
        return found + [moved_to(each.at, values) for each in self.places]


@dataclass(frozen=True, slots=True)
class Place:
    """A dimension that several axes move along: the place `at`, and what that adds to an index."""

    at: Index
    size: int
    stride: int
    moved: Index


def places_of(
    index: Index, conditions: tuple[Condition, ...], single: tuple[Axis, ...]
) -> tuple[Place, ...] | None:
    """See each condition as a dimension of an array; None if one is something else.

    Outside of an array the copy engine reads 0, as guards of operands do. If there are too many
    dimensions, two other axes that number elements in turn are one.
    """
    found = []
    for place, low, high in conditions:
        if not is_linear(place) or not axes_of(place) <= set(single):
            return None
        ratios = {(step_of(index, axis) or 0, step) for axis, step in place_terms(place)}
        strides = {far // step if far % step == 0 else None for far, step in ratios}
        stride = strides.pop() if strides else None
        if strides or stride is None or (stride == 0 and low != high):
            return None
        at = place - low if stride >= 0 else place * -1 + high
        found.append(Place(at, high - low + 1, abs(stride), at * abs(stride)))
    used: set[Axis] = set().union(*(axes_of(each.at) for each in found))
    rest = [axis for axis in single if axis not in used and axis.size > 1]
    dims = []
    for axis in rest:
        step = step_of(index, axis) or 0
        if step:
            at = forward(axis, step)
            dims.append(Place(at, axis.size, abs(step), at * abs(step)))
    most = MOST_DIMENSIONS - 2 - len(found) - len(starts_in(index))
    found += [each for each in joined(dims, most) if each not in dims]
    return tuple(found)


def joined(dims: Sequence[Place], most: int) -> list[Place]:
    """Make dimensions one, where one goes on where another ends, until there are few."""
    left = list(dims)
    while len(left) > most:
        pairs = permutations(left, 2)
        pair = next(((a, b) for a, b in pairs if b.stride == a.stride * a.size), None)
        if pair is None:
            break
        first, other = pair
        at = first.at + other.at * first.size
        one = Place(at, first.size * other.size, first.stride, at * first.stride)
        left = [each for each in left if each not in pair] + [one]
    return left


def moved_to(index: Index, values: Mapping[Axis, Index]) -> Index:
    """Substitute coordinates for axes, in what is read, too."""
    return substitute(index, values, lambda expr: bind(expr, values))


def place_terms(place: Index) -> list[tuple[Axis, int]]:
    """List the axes of a linear index, and how far each moves it."""
    return [(atom, step) for atom, step in place.terms if isinstance(atom, Axis)]


def forward(axis: Axis, step: int) -> Index:
    """Count the positions of an axis from the one that is nearest in memory."""
    return axis_index(axis) if step > 0 else axis_index(axis) * -1 + (axis.size - 1)


def starts_in(index: Index) -> tuple[Place, ...]:
    """See each number of the plan that moves an index as a dimension: `x[i]` lies in boxes."""
    atoms = [(atom, step) for atom, step in index.terms if isinstance(atom, Dynamic) and step > 0]
    return tuple([read_place(atom, step) for atom, step in atoms if not expr_axes(atom.expr)])


def read_place(atom: Dynamic, step: int) -> Place:
    """See what is read, and moves an index, as a dimension."""
    low, high = atom.bounds
    at = atom_index(atom) - low
    return Place(at, high - low + 1, step, at * step)


def view_of(
    index: Index,
    near: tuple[Axis, ...],
    far: tuple[Axis, ...],
    single: tuple[Axis, ...],
    itemsize: int,
    places: tuple[Place, ...] = (),
) -> View | None:
    """See an index as dimensions that a tensor map can have; None if it has others.

    Of the `single` axes a box has one position, as it has of `places` among them.
    """
    places += starts_in(index)
    for place in places:
        index = index - place.moved
    if any(not isinstance(atom, Axis) for atom, _ in index.terms):
        return None
    near_step = chain(index, near)
    far_step = chain(index, far)
    if near_step is None or far_step is None:
        return None
    steps = {axis: step_of(index, axis) or 0 for axis in single if axis.size > 1}
    steps = {axis: step for axis, step in steps.items() if step}
    sizes = size_of(near), size_of(far), *(axis.size for axis in steps)
    sizes += tuple(place.size for place in places)
    is_repeated = (near_step == 0 and sizes[0] > 1) or (far_step == 0 and sizes[1] > 1)
    if near_step > 1 or is_repeated:
        return None
    flipped = frozenset(axis for axis, step in steps.items() if step < 0)
    offset = index.const + sum(steps[axis] * (axis.size - 1) for axis in flipped)
    # A dimension of one position may have any stride.
    strides = [
        far_step or ALIGNMENT,
        *map(abs, steps.values()),
        *(p.stride or ALIGNMENT for p in places),
    ]
    view = View(offset, sizes, tuple(strides), tuple(steps), flipped, places)
    return view if is_possible(view.offset, view.sizes, view.strides, itemsize) else None


def is_possible(
    offset: int, sizes: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> bool:
    """Tell whether a tensor map can have these dimensions."""
    if len(sizes) > MOST_DIMENSIONS or max(sizes) >= LONGEST:
        return False
    for number in (offset, *strides):
        if number < 0 or number * itemsize % ALIGNMENT:
            return False
    return max(strides) * itemsize < FARTHEST


def chain(index: Index, axes: tuple[Axis, ...]) -> int | None:
    """Find the stride of flat positions over axes; 0 for one position, None if there is none."""
    stride = 0
    count = 1
    for axis in reversed([axis for axis in axes if axis.size > 1]):
        step = step_of(index, axis)
        if step is None or (stride and step != stride * count):
            return None
        stride = stride or step
        count *= axis.size
        if stride <= 0:
            return None
    return stride


# -- images ---------------------------------------------------------------------------------------


def window_side(
    c: Contraction, operand: Operand, plain: Expr, depth: Depth, step: Index
) -> Side | None:
    """Describe an operand that is an image under windows: its rows are windows, or K is."""
    is_k_major, layout = operand.is_k_major, stage(operand, plain.dtype)
    taps = c.depth if is_k_major else operand.axes
    pixels = operand.axes if is_k_major else depth.inner
    if not taps:
        return None
    is_cut = len(taps) > 1 and taps[-1].size % layout.span != 0
    if not is_k_major and (depth.outer or is_cut):
        return None
    seen = windows_of(plain, pixels, taps, c.batch)
    if seen is None or not is_possible(seen.offset, seen.sizes, seen.strides, layout.itemsize):
        return None
    slab = Axis("slab", layout.slabs)
    first, values = operand.corner, depth.values(step)
    if is_k_major:
        if depth.inner != (seen.channel,):
            return None
        values[seen.channel] = depth.position(step) + axis_index(slab) * layout.span
    else:
        if seen.has_batch and size_of(pixels) % depth.size:  # windows of the next product's images
            return None
        flat = operand.corner + axis_index(slab) * layout.span
        sizes = tuple(axis.size for axis in taps)
        first, values = depth.position(step), dict(zip(taps, unflatten(flat, sizes), strict=True))
    at, offsets = seen.place(first, values)
    if not seen.reaches(offsets):
        return None
    box = layout.span, layout.shape[0]
    slot = unguarded(plain)[0].arg[0]
    tensor = TensorMap(slot, plain.dtype, seen.offset, seen.sizes, seen.strides, box, seen.windows)
    return Side(CopyBox(operand.name, tensor, at, slab, offsets), layout, is_k_major)


def fitting_box(side: Side) -> Side:
    """Let a box be no longer than the array: what lies outside is brought as slowly as the rest."""
    tensor = side.copy.tensor
    span, rows, *rest = tensor.box
    rows = min(rows, round_up(tensor.sizes[1], WHOLE))
    if tensor.windows is not None:
        return side
    box = span, rows, *rest
    return replace(side, copy=replace(side.copy, tensor=replace(tensor, box=box)))


def whole_chunks(side: Side) -> Side:
    """Let rows reach to the end of a chunk of 16 bytes, which boxes bring sooner.

    What is there is multiplied into rows and columns of the result that nobody stores.
    """
    tensor = side.copy.tensor
    length = round_up(tensor.sizes[0], ALIGNMENT // tensor.dtype.itemsize)
    if tensor.windows is not None or min(tensor.strides) < length:
        return side
    sizes = length, *tensor.sizes[1:]
    return replace(side, copy=replace(side.copy, tensor=replace(tensor, sizes=sizes)))
