"""Layouts: how the elements of a tile are spread over the threads of a block.

A layout is a bijection (thread, register) <-> coordinate, written as `coordinate`; the list of
layouts is closed. On a CPU a block is one worker, so every tile there is `Blocked` on one thread.

Walks: how the threads of a CUDA block step through the coordinates of a layout.

A `Walk` turns a layout into loops, and the coordinates into indices over the loop axes, one thread
axis and at most one vector axis; the registers a thread uses are an index over the same axes. The
substitution of these indices for a step's dims lets every division by a tile size cancel.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Union

from picograd.errors import check, internal
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, constant, flatten, unflatten
from picograd.schedule.loop import Condition


@dataclass(frozen=True, slots=True)
class Blocked:
    """`shape` over `threads` (per dimension), `vector` neighbours a thread a step.

    Neighbouring threads differ in the last dimension, or, if `is_first_fastest`, in the first:
    where columns are contiguous in memory and rows are reduced.

    Along a dimension: coordinate = (step * threads + thread) * vector + lane. Registers run over
    the steps of all dimensions (row-major), then over the lanes (row-major).
    A shape that `threads * vector` does not divide has a ragged last step: its users guard it.
    """

    shape: tuple[int, ...]
    threads: tuple[int, ...]
    vector: tuple[int, ...]
    is_first_fastest: bool = False

    def with_alone(self, sizes: tuple[int, ...]) -> "Blocked":
        """Add dimensions of these sizes that each thread walks alone."""
        ones = (1,) * len(sizes)
        shape, threads, vector = (
            (*self.shape, *sizes),
            (*self.threads, *ones),
            (*self.vector, *ones),
        )
        return replace(self, shape=shape, threads=threads, vector=vector)

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps each thread takes along each dimension."""
        sizes = zip(self.shape, self.threads, self.vector, strict=True)
        return tuple(-(-s // (t * v)) for s, t, v in sizes)

    @property
    def thread_count(self) -> int:
        """Threads of a block."""
        return product(self.threads)

    @property
    def register_count(self) -> int:
        """Elements each thread holds."""
        return product(self.steps) * product(self.vector)

    def coordinate(self, thread: int, register: int) -> tuple[int, ...]:
        """Find the element that `register` of `thread` holds."""
        lanes = split(register % product(self.vector), self.vector)
        steps = split(register // product(self.vector), self.steps)
        if self.is_first_fastest:
            threads = split(thread, self.threads[::-1])[::-1]
        else:
            threads = split(thread, self.threads)
        parts = zip(steps, self.threads, threads, self.vector, lanes, strict=True)
        return tuple((s * count + t) * v + lane for s, count, t, v, lane in parts)


@dataclass(frozen=True, slots=True)
class MmaAccumulator:
    """The C fragment of `mma.sync.m16n8` repeated over a block tile of M x N.

    The block has `warps` = (along M, along N); a warp owns a (M/wm) x (N/wn) patch made of
    16 x 8 fragments, row-major. Lane l holds rows l/4 and l/4+8, columns 2*(l%4) and the next
    (PTX ISA, matrix fragments for mma.m16n8k16).
    """

    shape: tuple[int, int]
    warps: tuple[int, int]

    @property
    def fragments(self) -> tuple[int, int]:
        """Fragments of a warp along M and N."""
        return self.shape[0] // self.warps[0] // 16, self.shape[1] // self.warps[1] // 8

    @property
    def thread_count(self) -> int:
        """Threads of a block."""
        return 32 * product(self.warps)

    @property
    def register_count(self) -> int:
        """Elements each thread holds."""
        return product(self.fragments) * 4

    def coordinate(self, thread: int, register: int) -> tuple[int, ...]:
        """Find the element that `register` of `thread` holds."""
        warp, lane = divmod(thread, 32)
        warp_m, warp_n = divmod(warp, self.warps[1])
        fragment, element = divmod(register, 4)
        frag_m, frag_n = divmod(fragment, self.fragments[1])
        row = (warp_m * self.fragments[0] + frag_m) * 16 + lane // 4 + 8 * (element // 2)
        column = (warp_n * self.fragments[1] + frag_n) * 8 + 2 * (lane % 4) + element % 2
        return row, column


@dataclass(frozen=True, slots=True)
class WgmmaAccumulator:
    """The D fragments of `wgmma.m64nN` for `groups` warpgroups along M, each `stacked` high.

    The tile has 64 * groups * stacked rows. Warp w of a group holds rows 16w..16w+15 of each of its
    fragments; inside, as `mma.m16n8` (PTX ISA, wgmma register fragments): register 4*j + e covers
    columns 8j + 2*(l%4) + e%2, rows l/4 + 8*(e/2).
    """

    n: int
    groups: int
    stacked: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the tile."""
        return 64 * self.groups * self.stacked, self.n

    @property
    def thread_count(self) -> int:
        """Threads that hold the tile (producers excluded)."""
        return 128 * self.groups

    @property
    def register_count(self) -> int:
        """Elements each thread holds."""
        return self.n // 2 * self.stacked

    def register_of(self, row: Index, column: Index) -> Index:
        """Find the register of an element in the thread that holds it."""
        places = row // 64 % self.stacked, column // 8, row // 8 % 2, column % 2
        return flatten(places, (self.stacked, self.n // 8, 2, 2))

    def coordinate(self, thread: int, register: int) -> tuple[int, ...]:
        """Find the element that `register` of `thread` holds."""
        warp, lane = divmod(thread, 32)
        group, warp = divmod(warp, 4)
        fragment, register = divmod(register, self.n // 2)
        column_block, element = divmod(register, 4)
        first = 64 * (group * self.stacked + fragment)
        row = first + 16 * warp + lane // 4 + 8 * (element // 2)
        return row, 8 * column_block + 2 * (lane % 4) + element % 2


@dataclass(frozen=True, slots=True)
class RowsOf:
    """One value for each row of a `WgmmaAccumulator`: the four lanes of a row hold the same."""

    fragment: WgmmaAccumulator

    @property
    def register_count(self) -> int:
        """Elements each thread holds."""
        return 2 * self.fragment.stacked


@dataclass(frozen=True, slots=True)
class WgmmaOperand:
    """A left operand of `wgmma` in registers: what an accumulator holds, two 16-bit floats in one.

    Sixteen columns of an accumulator lie as the operand of one product wants its depth (PTX ISA).
    """

    fragment: WgmmaAccumulator

    @property
    def thread_count(self) -> int:
        """Threads that hold the operand."""
        return self.fragment.thread_count

    @property
    def register_count(self) -> int:
        """Elements each thread holds, before they are packed."""
        return self.fragment.register_count


@dataclass(frozen=True, slots=True)
class Swizzled:
    """A shared tile as the bulk copy engine and `wgmma` have it: slabs of 128-byte rows.

    A slab holds 128 bytes of every row; the slabs follow one another. The 16-byte chunks of a row
    are permuted by an exclusive or with the row number: eight rows lie in different banks.
    """

    shape: tuple[int, int]
    itemsize: int

    @property
    def span(self) -> int:
        """Columns of a slab."""
        return 128 // self.itemsize

    @property
    def slabs(self) -> int:
        """Slabs beside one another."""
        return self.shape[1] // self.span

    @property
    def size(self) -> int:
        """Elements of the tile."""
        return self.shape[0] * self.shape[1]


Whole = Union[Blocked, MmaAccumulator, WgmmaAccumulator]
Layout = Union[Whole, RowsOf, WgmmaOperand]


def split(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major coordinates of a position."""
    result: list[int] = []
    for size in reversed(shape):
        result.append(position % size)
        position //= size
    return tuple(reversed(result))


def elements(layout: Whole) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield (thread, register, coordinate) of every element a layout holds."""
    for thread in range(layout.thread_count):
        for register in range(layout.register_count):
            yield thread, register, layout.coordinate(thread, register)


LANES = 4  # of a row of a fragment


def scan_lanes(monoid: str, size: int) -> int:
    """Choose how many neighbours of a row a thread scans: 16 bytes of float32.

    More where it takes long to combine two and all threads of a warp have as many.
    """
    return 16 if monoid == "logaddexp" and size >= 512 else 4


RUN = 8  # neighbours that a lane reads in one go


@dataclass(frozen=True, slots=True)
class Walk:
    """One thread's way through a layout.

    `loops` names the dimension each loop belongs to; `steps` and `lanes` are, per dimension, the
    (index, size) of the step and of the neighbour within a step.
    """

    loops: tuple[tuple[Axis, int], ...]
    coordinates: tuple[Index, ...]
    conditions: tuple[Condition, ...]
    vector: tuple[Axis, int] | None
    steps: tuple[tuple[Index, int], ...]
    lanes: tuple[tuple[Index, int], ...]
    fragment: Index | None = None  # the register, when the layout is an accumulator fragment
    vector_dim: int = -1
    row: Index | None = None  # the register of what each row of a fragment has one of
    columns: int = 0  # of a fragment

    def register(self, count: int) -> Index:
        """Register of the current point in a tile that has the first `count` dimensions."""
        if self.fragment is not None:
            if count == 1 and self.row is not None:
                return self.row
            check(count in (0, 2), "a fragment is read whole")
            return self.fragment if count else constant(0)
        parts = (*self.steps[:count], *self.lanes[:count])
        return flatten([p[0] for p in parts], [p[1] for p in parts])

    def loops_of(self, first: int, last: int) -> list[Axis]:
        """Loop axes of the dimensions first..last-1."""
        return [axis for axis, dim in self.loops if first <= dim < last]


def walk(layout: Layout, thread: Axis, is_vector: bool) -> Walk:
    """Walk a layout; `is_vector` steps along its widest vector dimension in one go."""
    if isinstance(layout, Blocked):
        return blocked_walk(layout, thread, is_vector)
    if isinstance(layout, RowsOf | WgmmaOperand):
        found = walk(layout.fragment, thread, is_vector and isinstance(layout, WgmmaOperand))
        return found if isinstance(layout, WgmmaOperand) else rows_walk(found)
    lane, warp = axis_index(thread) % 32, axis_index(thread) // 32
    half, pair = Axis("half", 2), Axis("pair", 2)
    row = lane // 4 + axis_index(half) * 8
    column = lane % 4 * 2 + axis_index(pair)
    loops: list[Axis]
    if isinstance(layout, MmaAccumulator):
        down, across = (Axis(n, s) for n, s in zip(("down", "across"), layout.fragments))
        warp_row, warp_column = unflatten(warp, layout.warps)
        row = row + (warp_row * down.size + axis_index(down)) * 16
        column = column + (warp_column * across.size + axis_index(across)) * 8
        loops, sizes = [down, across, half], [down.size, across.size, 2, 2]
    elif isinstance(layout, WgmmaAccumulator):
        across, stack = Axis("across", layout.n // 8), Axis("stack", layout.stacked)
        group = warp // 4 * layout.stacked + axis_index(stack)
        row, column = row + warp % 4 * 16 + group * 64, column + axis_index(across) * 8
        loops, sizes = [stack, across, half], [stack.size, across.size, 2, 2]
        stacked = flatten([axis_index(stack), axis_index(half)], [stack.size, 2])
    else:
        internal(f"no walk for layout {layout}")
    register = flatten([axis_index(a) for a in (*loops, pair)], sizes)
    inner = () if is_vector else ((pair, 1),)
    named = (*((axis, 0 if axis.name in ("half", "stack") else 1) for axis in loops), *inner)
    vector = (pair, 2) if is_vector else None
    named = tuple(loop for loop in named if loop[0].size > 1)
    by_row = stacked if isinstance(layout, WgmmaAccumulator) else None
    columns = layout.shape[1]
    return Walk(named, (row, column), (), vector, (), (), register, 1, by_row, columns)


def rows_walk(found: Walk) -> Walk:
    """Walk the rows of a fragment alone."""
    named = tuple(loop for loop in found.loops if loop[1] == 0)
    return Walk(named, found.coordinates[:1], (), None, (), (), found.row, -1, found.row)


def runs_walk(layout: WgmmaAccumulator, thread: Axis) -> Walk:
    """Walk the rows of a fragment, and columns by runs of neighbours, in which memory is read."""
    rows = rows_walk(walk(layout, thread, False))
    run, lane = Axis("run", layout.n // (LANES * RUN)), Axis("lane", RUN)
    number = axis_index(run) * LANES + axis_index(thread) % LANES
    column = number * RUN + axis_index(lane)
    loops = (*rows.loops, (run, 1)) if run.size > 1 else rows.loops
    coordinates = (*rows.coordinates, column)
    return Walk(loops, coordinates, (), (lane, RUN), (), (), rows.row, 1, rows.row)


def blocked_walk(layout: Blocked, thread: Axis, is_vector: bool) -> Walk:
    """Walk a Blocked layout; threads beyond its own replicate it (t acts as t // replicas).

    Where the first dimension is the fastest, replicas are the slowest: t acts as t % threads.
    """
    replicas, rest = divmod(thread.size, layout.thread_count)
    check(rest == 0, f"{thread.size} threads do not replicate {layout}")
    if layout.is_first_fastest:
        threads = unflatten(axis_index(thread) % layout.thread_count, layout.threads[::-1])[::-1]
    else:
        threads = unflatten(axis_index(thread) // replicas, layout.threads)
    dims = range(len(layout.shape))
    steps = [Axis(f"step{d}", layout.steps[d]) for d in dims]
    lanes = [Axis(f"lane{d}", layout.vector[d]) for d in dims]
    widest = max(dims, key=lambda d: (layout.vector[d], d), default=-1)
    is_vector = is_vector and widest >= 0 and layout.vector[widest] > 1
    is_vector = is_vector and layout.shape[widest] % layout.vector[widest] == 0
    coordinates, conditions, loops = [], [], []
    for d in dims:
        size, vector = layout.shape[d], layout.vector[d]
        step = axis_index(steps[d]) * layout.threads[d] + threads[d]
        coordinate = step * vector + axis_index(lanes[d])
        coordinates.append(coordinate)
        if coordinate.hi >= size and size % vector == 0:
            conditions.append((step, 0, size // vector - 1))
        elif coordinate.hi >= size:
            conditions.append((coordinate, 0, size - 1))
        loops.append((steps[d], d))
        if not (is_vector and d == widest):
            loops.append((lanes[d], d))
    return Walk(
        tuple(loop for loop in loops if loop[0].size > 1),
        tuple(coordinates),
        tuple(conditions),
        (lanes[widest], layout.vector[widest]) if is_vector else None,
        tuple((axis_index(a), a.size) for a in steps),
        tuple((axis_index(a), a.size) for a in lanes),
        None,
        widest if is_vector else -1,
    )


def replicas_of(layout: Whole | WgmmaOperand, threads: int) -> int:
    """Count the threads of a block that hold the same element."""
    return threads // layout.thread_count


def format_layout(layout: Layout) -> str:
    """Print a layout in short."""
    if isinstance(layout, Blocked):
        fastest = ", first fastest" if layout.is_first_fastest else ""
        return f"threads {layout.threads} x vector {layout.vector}{fastest}"
    return repr(layout)
