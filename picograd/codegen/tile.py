"""Tile IR: how one block (or one CPU task) computes its part of a kernel, in whole-tile steps.

    TileKernel = grid axes, threads, tiles, steps      grid: one block per point (CPU: one task)
    Tile       = name, shape, dtype, space, layout
    Step       = Assign | Accumulate | Dot | Store | For | When | Barrier | LastBlock
               | SortStep | RunStep | BinStep | MainLoop
               | Scatter | Scan | Radix                         (of Loop IR, see below)
               | Persistent | Pipeline | CopyBox                (codegen/boxes.py)

A step works on all coordinates of its `dims` (axes of its own, bound to 0..size-1) "at once": the
threads of the block share the work, and the number of steps does not depend on the tile sizes.
Expressions are Loop IR `Expr`s over the grid axes, enclosing `For` axes and the step's dims, plus
`tile` reads: `Expr("tile", (), (tile name, (Index, ...)), dtype)`.

What Loop IR says of a whole kernel is a step as it is, over the axes of a block: a `Scatter` of
which threads share `inner`; a `Scan` of each point of `inner`, or by the block, if it has none; a
`Radix` of one `tile`, with shared tiles "counters" (one a digit, and one for no element, for each
warp) and, where elements are moved, "offsets" (one a digit) and "sorted" (what the tile becomes).

space "register"  each thread keeps the elements its layout gives it; a step that writes or reads
                  the tile walks dims in that same layout, so no communication happens. A tile whose
                  dims are a prefix of the step's dims is read as replicated along the others.
space "shared"    one copy a block (CUDA shared memory; on the CPU the worker's scratch). Between a
                  write and a read by other threads there must be a Barrier.
space "workspace" memory shared by all blocks, for partial results (`tile.workspace` numbers it).

`Accumulate` reduces over its `over` dims: within a thread, then across the threads that share an
element of the result; afterwards all of those hold the result. `Dot` is the matrix product
acc[m,n] += sum_k a[m,k] * b[k,n] on the units its `unit` names. `MainLoop` stands for a whole
pipelined multiplication of operands that no copy engine can bring, with one declared meaning:
acc = sum over all k of a * b; only its rendering is opaque, what follows it is Tile IR again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Union

from picograd.codegen.boxes import BoxStore, CopyBox, Join, Persistent, Pipeline, RowStore
from picograd.codegen.dot import Dot, format_dot
from picograd.codegen.layout import Layout, Swizzled, format_layout
from picograd.dtype import DType, int32
from picograd.errors import internal
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axes_of, constant
from picograd.schedule.loop import (
    Condition,
    Expr,
    Kernel,
    Radix,
    Runs,
    Scan,
    Scatter,
    Sort,
    const,
    indices_of,
    walk,
)


@dataclass(frozen=True, slots=True)
class Tile:
    """A block-local array; see the module docstring for `space`."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    space: str  # "register", "shared" or "workspace"
    layout: Layout | None = None
    workspace: int = -1
    row_padding: int = 0  # extra elements after each row of the last dimension (bank conflicts)
    stages: int = 1  # of a ring: a `Pipeline` fills one while others are read
    swizzle: Swizzled | None = None  # order of elements in shared memory, else row-major


@dataclass(frozen=True, slots=True)
class Assign:
    """tile[dims] = expr where `conditions` hold; elsewhere the expr's guards decide."""

    tile: str
    dims: tuple[Axis, ...]
    expr: Expr
    index: tuple[Index, ...] | None = None  # where in the tile, if not at `dims` itself
    layout: Layout | None = None  # how threads walk dims when the tile is not in registers
    conditions: tuple[Condition, ...] = ()  # of a tile that is not in registers
    is_relaxed: bool = field(default=False, repr=False)  # nobody sees the last digits


@dataclass(frozen=True, slots=True)
class Accumulate:
    """tile[dims] = monoid(tile[dims], reduction of expr over `over`).

    `is_first`: the tile holds nothing yet, start from the monoid's identity.
    `layout` covers (*dims, *over).
    """

    tile: str
    dims: tuple[Axis, ...]
    over: tuple[Axis, ...]
    monoid: str
    expr: Expr
    is_first: bool = True
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class Store:
    """slot[index] = expr at every point of dims where all conditions hold."""

    slot: int
    index: Index
    dims: tuple[Axis, ...]
    expr: Expr
    conditions: tuple[Condition, ...] = ()
    layout: Layout | None = None
    box: BoxStore | RowStore | None = None  # how it leaves, not what it means
    rides: bool = False  # it is computed beside the next rolled Store, over the same dims


@dataclass(frozen=True, slots=True)
class For:
    """Run `body` for axis = 0..size-1 in order; uniform over the block."""

    axis: Axis
    body: tuple["Step", ...]
    is_unrolled: bool = False


@dataclass(frozen=True, slots=True)
class When:
    """Run `body` if all conditions hold; conditions are uniform over the block."""

    conditions: tuple[Condition, ...]
    body: tuple["Step", ...]


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait until all threads of the block are here; shared writes before are seen after."""


@dataclass(frozen=True, slots=True)
class LastBlock:
    """Run `body` in the block that arrives last of `total`, with all workspaces visible.

    `counter` numbers a zeroed workspace of int32 cells and `cell` one of them; the last block
    leaves the cell zero. Deterministic: only *which* block runs the body varies.
    """

    counter: int
    cell: Index
    total: int
    body: tuple["Step", ...]


@dataclass(frozen=True, slots=True)
class SortStep:
    """slot[target at k] = position of the k-th smallest body among a run of the sort from `first`.

    From `stop` on, if there is one, nobody sees an element: those are left out. `method` is "rank",
    "radix" or, for CUDA, "bitonic": which algorithm writes it, not what it means. Its memory are
    tiles "keys" and "positions", "counters" (CUDA, radix), or "words" and "counts" (CPU, radix).
    """

    sort: Sort
    first: Index
    method: str
    base: Index = field(default_factory=lambda: constant(0))  # where the row begins in that memory
    stop: Index | None = None


@dataclass(frozen=True, slots=True)
class RunStep:
    """At every point of dims whose `place` ends a run of equal keys: reduce the run into the slot.

    The axis of the runs stands at `place`; a level's expression mentions the axis of the level.
    Where runs have bounds `place` is the number of one, which neighbours share, each its `lane`.
    """

    dims: tuple[Axis, ...]
    place: Index
    runs: Runs
    lane: Index
    conditions: tuple[Condition, ...] = ()


def is_counting(expr: Expr) -> bool:
    """Tell whether what goes to bins is always 1: threads count at once, in any order."""
    return expr == const(1, int32)


@dataclass(frozen=True, slots=True)
class BinStep:
    """tile[warp, key] += expr at `count` positions of axis from `first` on, which names the warp.

    In the order of positions. From `stop` on, and past the axis, there is none; what has a key
    outside of the tile is left out. Each warp of the block has a row of the tile, in shared memory:
    (warps, keys, 1), or (warps, keys, lanes) where each lane of a warp has bins of its own; of what
    is counted warps may share a row. With a `queue` every `lane` of a warp has an expr for each
    position, and waits to read it: the queue is a shared tile (warps, 2, some) of positions and
    keys.
    """

    tile: str
    warp: Axis
    axis: Axis
    first: Index
    count: int
    stop: Index
    key: Expr
    expr: Expr
    lane: Axis = Axis("lane", 1)
    queue: str = ""


@dataclass(frozen=True, slots=True)
class MainLoop:
    """acc[m, n] = sum over k of a[m, k] * b[k, n], pipelined; `schedule` is the generator's.

    `stops`: the sum ends at the least of them; from there on an operand is 0. Of `twins`,
    other tiles are the products of `a` and another right operand.
    """

    acc: str
    dims: tuple[Axis, Axis, Axis]  # m, n within the block tile; k over the whole depth
    a: Expr
    b: Expr
    schedule: Any = None
    stops: tuple[Index, ...] = field(default=(), repr=False)
    twins: tuple[tuple[str, Expr], ...] = field(default=(), repr=False)

    @property
    def products(self) -> tuple[tuple[str, Expr], ...]:
        """List each sum with its right operand."""
        return (self.acc, self.b), *self.twins


Step = Union[
    Assign, Accumulate, Dot, Store, For, When, Barrier, LastBlock, Scatter, Scan, SortStep,
    Radix, RunStep, BinStep, MainLoop, Persistent, Pipeline, CopyBox, Join,
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class TileKernel:
    """One kernel as block programs over a grid; `parts` share one launch, block ranges in order.

    The threads of a block may be those of a `cluster` of so many blocks of a GPU: then its steps
    may reduce and store, and nothing else is shared.
    """

    kernel: Kernel
    parts: tuple["TilePart", ...]
    threads: int = 1
    cluster: int = 1

    @property
    def together(self) -> int:
        """Count the blocks that a multiprocessor is to have registers for; 0: any."""
        is_alike = len({each.together for each in self.parts}) == 1
        return max((each.together for each in self.parts if is_alike or each.ahead), default=0)

    def __repr__(self) -> str:
        return format_tiles(self)


@dataclass(frozen=True, slots=True)
class Member:
    """The slots and runtime scalars of one of several parts that are alike.

    Where they differ in size: in how many steps of its grid's last blocks each, and its blocks.
    """

    slots: tuple[int, ...]
    scalars: tuple[int, ...]
    size: int = 0
    blocks: int = 0


@dataclass(frozen=True, slots=True)
class TilePart:
    """The program of one block of one part; the grid is row-major, last axis fastest.

    With `members` it stands for parts that are alike: what the steps read and write is named as in
    the first of them, and the blocks of each member follow those of the one before it. With
    `extent`, an axis, members differ in size, the largest first: it stands for the size of each.

    Parts `ahead` come first, in order: every point of their grids is run once, by whichever block
    is free, and all blocks of the part wait until it is done. They may leave values in workspaces
    of the part. A multiprocessor is to have registers for so many blocks as are `together`, if that
    is not 0 and the part is alone, or its blocks wait for one another.
    """

    grid: tuple[Axis, ...]
    tiles: tuple[Tile, ...]
    steps: tuple[Step, ...]
    workspaces: tuple[tuple[int, bool], ...] = field(default=())  # (bytes, is_zeroed)
    members: tuple[Member, ...] = ()
    extent: Axis | None = None
    ahead: tuple["TilePart", ...] = ()
    together: int = 0

    @property
    def count(self) -> int:
        """Number of parts of the kernel it stands for."""
        return max(len(self.members), 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the grid of one member."""
        return tuple(axis.size for axis in self.grid)

    @property
    def bound(self) -> set[Axis]:
        """What every step may name."""
        return {*self.grid} if self.extent is None else {*self.grid, self.extent}

    @property
    def blocks(self) -> int:
        """Number of blocks, of all members."""
        if self.extent is not None:
            return sum(member.blocks for member in self.members)
        return product(self.shape) * self.count


def in_order(tiles: TileKernel) -> Iterator[tuple[TilePart, tuple[Tile, ...]]]:
    """Yield the parts of a kernel, each after those ahead of it, and what these may leave there."""
    for part in tiles.parts:
        shared = tuple(tile for tile in part.tiles if tile.space == "workspace")
        for each in part.ahead:
            yield each, shared
        yield part, ()


def verify(tiles: TileKernel) -> TileKernel:
    """Check names, ranks and bindings of a tile kernel, and return it."""
    for part, given in in_order(tiles):
        verify_members(tiles, part)
        known = {tile.name: tile for tile in (*given, *part.tiles)}
        if len(known) != len(given) + len(part.tiles):
            internal("two tiles of one name", format_tiles(tiles))
        for tile in part.tiles:
            is_placed = tile.space != "workspace" or 0 <= tile.workspace < len(part.workspaces)
            if not is_placed:
                internal(f"tile {tile.name} has no workspace", format_tiles(tiles))
        for step in part.steps:
            verify_step(tiles, part, known, step, part.bound)
    return tiles


def verify_members(tiles: TileKernel, part: TilePart) -> None:
    """Check that all members of a part have slots and scalars of the same kinds."""
    slots, scalars = tiles.kernel.slots, tiles.kernel.scalars
    is_one_size = part.extent is None
    found = {slot for member in part.members for slot in member.slots}
    kind = {n: (slots[n].dtype, is_one_size and slots[n].size, slots[n].role) for n in found}
    kinds = {
        (tuple([kind[n] for n in member.slots]), tuple([scalars[n] for n in member.scalars]))
        for member in part.members
    }
    if len(kinds) > 1:
        internal("members of a part differ", format_tiles(tiles))


def verify_step(
    tiles: TileKernel, part: TilePart, known: Mapping[str, Tile], step: Step, bound: set[Axis]
) -> None:
    """Check one step whose enclosing axes are `bound`."""
    if isinstance(step, For):
        bound = bound | {step.axis}
    if isinstance(step, Persistent):
        bound = bound | set(step.points)
        bound |= {step.shares.first, step.shares.stop} if step.shares is not None else set()
    if isinstance(step, Join):
        verify_join(tiles, known, step, bound)
    if isinstance(step, Pipeline):
        held = {each.tile for each in copies_in(part.steps)}
        verify_pipeline(tiles, known, step, held)
        bound = bound | {step.axis, *(axis for axis, _ in step.known)}
    body = steps_inside(step)
    for inner in body:
        verify_step(tiles, part, known, inner, bound)
    if body:
        return
    verify_dot(tiles, step, bound)
    found = read_over(step)
    if found is None:
        return
    expr, axes = found
    inside = {*bound, *axes}
    if isinstance(step, Store):
        for place in (step.index, *(condition[0] for condition in step.conditions)):
            missing = [axis for axis in axes_of(place) if axis not in inside]
            if missing:  # texts are written only when they are needed: they are long
                internal(f"{missing} is not bound in {step}", format_tiles(tiles))
    verify_reads(tiles, known, expr, inside)
    if isinstance(step, Assign | Accumulate):
        verify_written(tiles, known, step)


def verify_written(tiles: TileKernel, known: Mapping[str, Tile], step: Assign | Accumulate) -> None:
    """Check that a step writes a tile, in the order of its axes."""
    tile = known.get(step.tile)
    if tile is None:
        internal(f"{step.tile} is no tile", format_tiles(tiles))
    is_placed = isinstance(step, Assign) and step.index is not None
    if not is_placed and tile.shape != tuple([axis.size for axis in step.dims]):
        internal(f"{step.tile} of {tile.shape} is written over {step.dims}", format_tiles(tiles))


def read_over(step: Step) -> tuple[Expr, tuple[Axis, ...]] | None:
    """Find the expression of a step, and the axes of its own that it names."""
    if isinstance(step, Assign | Store):
        return step.expr, step.dims
    if isinstance(step, Accumulate):
        return step.expr, (*step.dims, *step.over)
    if isinstance(step, BinStep):
        return step.expr, (step.warp, step.lane, step.axis)
    if isinstance(step, Scatter):
        return step.body, (*step.serial, *step.inner)
    if isinstance(step, Radix):
        return step.body, (step.digit, step.tile, step.axis)
    if isinstance(step, Scan):
        return step.body, (*step.inner, step.axis)
    if isinstance(step, RunStep):
        return step.runs.body, (*step.dims, step.runs.axis)
    return (step.sort.body, (step.sort.axis,)) if isinstance(step, SortStep) else None


def verify_reads(
    tiles: TileKernel, known: Mapping[str, Tile], body: Expr, inside: set[Axis]
) -> None:
    """Check what the expression of a step reads."""
    for expr in walk(body):
        for index in indices_of(expr):
            missing = [axis for axis in axes_of(index) if axis not in inside]
            if missing:
                internal(f"{missing} is not bound in {body}", format_tiles(tiles))
        if expr.op == "tile":
            name, where = expr.arg
            if name not in known or len(where) != len(known[name].shape):
                internal(f"bad read of tile {name}", format_tiles(tiles))


def steps_inside(step: Step) -> tuple[Step, ...]:
    """List the steps that a step runs."""
    if isinstance(step, Pipeline):
        return (*step.produce, *step.consume)
    return step.body if isinstance(step, For | When | LastBlock | Persistent | Join) else ()


def copies_in(steps: Sequence[Step]) -> list[CopyBox]:
    """List the copies of boxes for a whole point of a persistent loop."""
    loops = [step for step in steps if isinstance(step, Persistent)]
    return [each for loop in loops for each in loop.body if isinstance(each, CopyBox)]


def verify_pipeline(
    tiles: TileKernel, known: Mapping[str, Tile], step: Pipeline, held: set[str]
) -> None:
    """Check that a pipeline fills the rings that it reads, each once; `held` are filled before."""
    boxes = [each.tile for each in step.produce if isinstance(each, CopyBox)]
    filled = [each.tile for each in step.produce if isinstance(each, CopyBox | Assign)]
    read = {name for each in step.consume if isinstance(each, Dot) for name in (each.a, each.b)}
    read = {name for name in read if known[name].space == "shared"} - held
    read |= elements_read(step.consume).intersection(boxes)
    kept = {each.tile for each in step.produce if isinstance(each, CopyBox) and each.is_kept}
    if any(known[name].stages != step.axis.size for name in kept):
        internal(f"{sorted(kept)} have a stage for each step", format_tiles(tiles))
    stages = {known[name].stages for name in filled if name in known and name not in kept}
    is_same = set(boxes) == read and len(filled) == len(step.produce)
    places = {(each.tile, getattr(each, "start", 0)) for each in step.produce}
    if not is_same or len(places) != len(filled) or len(stages) != 1:
        internal(f"a pipeline fills {filled} and reads {sorted(read)}", format_tiles(tiles))


def elements_read(steps: Sequence[Step]) -> set[str]:
    """List the tiles whose elements steps read."""
    bodies = [step.expr for step in steps if isinstance(step, Assign | Accumulate | Store)]
    found = {part.arg[0] for body in bodies for part in walk(body) if part.op == "tile"}
    return found.union(*[elements_read(steps_inside(step)) for step in steps])


def verify_join(tiles: TileKernel, known: Mapping[str, Tile], step: Join, bound: set[Axis]) -> None:
    """Check that there is a place for the part of every block."""
    acc, partial = (known.get(name) for name in (step.acc, step.partial))
    shape = None if acc is None else (step.block.size, *acc.shape)
    fits = partial is not None and partial.space == "workspace" and partial.shape == shape
    places = axes_of(step.first) | axes_of(step.last[0])
    if not fits or not places <= bound:
        internal(f"parts of {step.acc} are left in {step.partial}", format_tiles(tiles))


def verify_dot(tiles: TileKernel, step: Step, bound: set[Axis]) -> None:
    """Check that what says where a product or sort stops, or where a box lies, is bound."""
    stops: tuple[Index, ...] = step.stops if isinstance(step, MainLoop) else ()
    if isinstance(step, Dot | SortStep) and step.stop is not None:
        stops = (step.stop,)
    if isinstance(step, Dot):
        stops += tuple([place.index for place in (step.a_place, step.b_place) if place])
    if isinstance(step, CopyBox):
        stops, bound = (*step.at, *step.offsets), bound | {step.slab}
    if isinstance(step, Store) and isinstance(step.box, BoxStore):
        stops = step.box.at
    missing = set().union(*map(axes_of, stops)) - bound
    if missing:
        internal(f"{missing} is not bound in {step}", format_tiles(tiles))


def format_tiles(tiles: TileKernel) -> str:
    """Print a tile kernel: per part its grid, tiles and steps."""
    blocks = f" of {tiles.cluster} blocks" * (tiles.cluster > 1)
    lines = [f"tiles {tiles.kernel.name} (threads {tiles.threads}{blocks})"]
    for part, _ in in_order(tiles):
        lines.append(f"  part grid [{', '.join(map(repr, part.grid))}]")
        for each in part.members:
            size = f" size {each.size}" if each.size else ""
            lines.append(f"    member {each.slots} {each.scalars}{size}")
        for tile in part.tiles:
            shape = ", ".join(map(str, tile.shape))
            layout = f" {format_layout(tile.layout)}" if tile.layout else ""
            layout += f" ring of {tile.stages}" if tile.stages > 1 else ""
            layout += " swizzled" if tile.swizzle else ""
            lines.append(f"    {tile.space} {tile.name}: {tile.dtype.name}[{shape}]{layout}")
        for step in part.steps:
            lines += format_step(step, 2)
    return "\n".join(lines)


def format_step(step: Step, depth: int) -> list[str]:
    """Print one step and the steps inside it."""
    head = "  " * depth
    if isinstance(step, For | When | LastBlock | Join):
        title = f"for {step.axis!r}" if isinstance(step, For) else "last block"
        if isinstance(step, Join):
            title = f"{step.acc} += {step.partial}[{step.first}..], {step.last[1]}=={step.last[0]}"
        if isinstance(step, When):
            title = "when " + " & ".join(f"{lo}<={i}<={hi}" for i, lo, hi in step.conditions)
        return [f"{head}{title}:", *(x for s in step.body for x in format_step(s, depth + 1))]
    if isinstance(step, Persistent | Pipeline):
        return format_pipeline(step, depth)
    if isinstance(step, Dot):
        return [f"{head}{format_dot(step)}"]
    stops = getattr(step, "stops", None)
    if stops:
        return [f"{head}{step!r} stops at {stops}"]
    dims = ", ".join(map(repr, getattr(step, "dims", ())))
    if isinstance(step, Assign):
        where = "" if step.index is None else f"[{', '.join(map(repr, step.index))}]"
        return [f"{head}{step.tile}{where} [{dims}] = {step.expr}"]
    if isinstance(step, Accumulate):
        over, sign = ", ".join(map(repr, step.over)), "=" if step.is_first else "+="
        return [f"{head}{step.tile} [{dims}] {sign} {step.monoid}[{over}] {step.expr}"]
    if isinstance(step, Store):
        tests = "".join(f" if {lo}<={i}<={hi}" for i, lo, hi in step.conditions)
        kind = "boxes" if isinstance(step.box, BoxStore) else "rows"
        box = f" in {kind} of {step.box.tile}" if step.box else ""
        return [f"{head}s{step.slot}[{step.index}] [{dims}] = {step.expr}{tests}{box}"]
    return [head + repr(step)]


def format_pipeline(step: Persistent | Pipeline, depth: int) -> list[str]:
    """Print a persistent loop or a pipeline."""
    head = "  " * depth
    if isinstance(step, Persistent):
        dealt = "" if step.shares is None else f", {step.shares}"
        line = f"{head}persistent {step.points} by {step.block!r}, {step.teams}{dealt}:"
        return [line, *(x for s in step.body for x in format_step(s, depth + 1))]
    known = "".join(f", {axis!r} = {index}" for axis, index in step.known)
    lines = [f"{head}pipeline {step.axis!r}{known} produces:"]
    lines += [*(x for s in step.produce for x in format_step(s, depth + 1)), f"{head}consumes:"]
    return lines + [x for s in step.consume for x in format_step(s, depth + 1)]
