"""Map template: elementwise kernels, copies and gathers, with small windows reduced in place.

grid: chunks of the row-major space    steps: one assignment per value that is used again,
then the stores, so that a load of an updated slot always sees its old content
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from picograd.codegen.costs import is_zero
from picograd.codegen.half_draws import neighbours
from picograd.codegen.layout import Blocked, Layout
from picograd.codegen.operands import step_of
from picograd.codegen.templates.grid import (
    Cut,
    cut,
    cut_flat,
    cut_square,
    ended,
    guarded,
    merge_part,
    part_indices,
    rebind,
    spread_lanes,
    substitute_part,
)
from picograd.codegen.templates.map_pieces import in_pieces, joined, pieces_of
from picograd.codegen.templates.members import alike_parts, join_sizes
from picograd.codegen.templates.sliding import build_patches, over_layout
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    Barrier,
    Member,
    Step,
    Store,
    Tile,
    TileKernel,
    TilePart,
    When,
)
from picograd.dtype import DType, accumulate_dtype
from picograd.errors import check
from picograd.graph.ops import OPS
from picograd.helpers import product
from picograd.schedule.index import Axis, Dynamic, Index, axes_of, axis_index, constant, substitute
from picograd.schedule.loop import (
    Condition,
    Expr,
    Kernel,
    Part,
    const,
    dynamics_of,
    indices_of,
    rewrite,
    walk,
)
from picograd.target import Target

TASK_POINTS = 65536  # elements of a CPU task: about 10 us of work, far above the cost of a task
SMALL_POINTS = 16384  # below this one worker is faster than waking others
CUDA_THREADS = 256
RESIDENT = 2048  # threads that a multiprocessor has at once
TRANSPOSED_SIZE = 16  # shorter axes fit into the caches without tiles
LEAST_PARTS = 4  # of a sum, that are added one by one
DEAR = 64  # operations of an element that take longer than storing it: a generator has 80
LEAST_TURNED = 4096  # elements of a part: fewer are not worth the passes that vectors need
CPU_SIDE, CUDA_LARGE = 64, 64  # of a square tile: 16 KiB of float32
WARP, BANK = 32, 4  # threads, along a small square; bytes of a bank of shared memory


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write a map kernel for the target."""
    if not target.has_blocks:
        whole = map(merge_part, kernel.parts)
        pieces = [piece for part in whole for piece in apart(part, target)]
        return TileKernel(kernel, tuple([build_part(kernel, each, target) for each in pieces]), 1)
    alike = join_sizes(kernel, alike_parts(kernel), vector_lanes, CUDA_THREADS)
    parts = [
        replace(build_part(kernel, part, target, extent_of(members)), members=members)
        for part, members in alike
    ]
    return TileKernel(kernel, tuple(parts), CUDA_THREADS)


def widest_axes(part: Part) -> tuple[Axis, ...]:
    """List the axes of what a part computes at every point."""
    return max((c.axes for c in part.computes), key=len)


def extent_of(members: Sequence[Member]) -> Axis | None:
    """Make the axis that stands for the size of a member, if they differ in it."""
    return Axis("extent", members[0].size + 1) if members and members[0].size else None


def build_part(kernel: Kernel, part: Part, target: Target, extent: Axis | None = None) -> TilePart:
    """Write one part: cut the space, then lay out the steps of one grid point."""
    axes = widest_axes(part)
    is_flat = not any(set(c.reduce) & set(axes) for c in part.computes)
    check(is_flat, "a window inside a window must be stored", kernel)
    across = transposed_axis(part, axes)
    if across is not None:
        return build_transpose(part, axes, across, target)
    has_windows = any(compute.reduce for compute in part.computes)
    is_wide = target.has_blocks and axes
    lanes = vector_lanes(kernel, part, axes[-1], axes) if is_wide else 1
    rounds = 1
    if is_wide and extent is None and not has_windows:
        lanes = spread_lanes(part, axes, lanes, target.multiprocessors * CUDA_THREADS)
        points = product(axis.size for axis in axes)
        rounds = count_rounds(kernel, part, points, target, lanes)
    space = cut_space(axes, target, lanes, rounds)
    if extent is not None:
        space = replace(space, conditions=within(space, axes[0], lanes, extent))
    layout: Layout | None = None
    if target.has_blocks:
        if has_windows and lanes > 1 and extent is None:
            patched = build_patches(part, axes, lanes, partial(in_vectors, part, lanes))
            if patched is not None:
                return patched
        layout = in_steps(space, lanes)
    spaces = [space] if target.has_blocks else in_pieces(part, space)
    tiles: list[Tile] = []
    steps: list[Step] = []
    for number, piece in enumerate(spaces):
        made = map_steps(part, ended(piece, part, lanes), layout, f"p{number}" if number else "")
        tiles += made[0]
        steps += made[1]
    written = joined(steps) if len(spaces) > 1 else tuple(steps)
    return TilePart(space.grid, tuple(tiles), written, extent=extent)


def in_vectors(part: Part, lanes: int, space: Cut) -> tuple[list[Tile], list[Step]]:
    """Write the steps of a block whose threads have one step and all lanes."""
    return map_steps(part, space, in_steps(space, lanes))


def in_steps(space: Cut, lanes: int, threads: int = CUDA_THREADS) -> Blocked:
    """Let each thread of a block have one step of the first dimension."""
    shape = tuple(axis.size for axis in space.dims)
    extra = (1,) * (len(shape) - 1)
    vector = (*extra, lanes) if lanes > 1 else (1,)
    return Blocked(shape, (threads, *extra), vector)


def within(space: Cut, axis: Axis, lanes: int, extent: Axis) -> tuple[Condition, ...]:
    """Test that a vector lies in the member that a block belongs to."""
    first = substitute(space.axes[axis], {space.dims[-1]: constant(0)} if lanes > 1 else {})
    left = axis_index(extent) * lanes - first
    return ((left, 1, left.hi),)


def apart(part: Part, target: Target) -> list[Part]:
    """Cut a part where guards on an axis that tasks share begin and end: each piece has its own."""
    axes = widest_axes(part)
    across = transposed_axis(part, axes)
    if across is not None:
        return in_squares(part, across, axes[-1])
    space = cut_space(axes, target, 1, 1)
    for place, axis in enumerate(axes):
        inner = product(each.size for each in axes[place + 1 :])
        pieces = () if axis in space.dims else pieces_of(part, axis, 1, inner)
        if pieces:
            return [found for piece in pieces for found in apart(piece_of(part, *piece), target)]
    return [part]


def in_squares(part: Part, *axes: Axis) -> list[Part]:
    """Cut off what is left over beyond the last whole square tile along each of the axes."""
    found = [part]
    for axis in axes:
        left = axis.size % CPU_SIDE
        whole = axis.size - left
        if left and whole:
            sizes = (0, whole), (whole, left)
            found = [piece_of(each, axis, *size) for each in found for size in sizes]
    return found


def piece_of(part: Part, axis: Axis, first: int, size: int) -> Part:
    """Walk a piece of an axis."""
    within = Axis(axis.name, size)
    return substitute_part(part, {axis: axis_index(within) + first}, {axis: (within,)})


def transposed_axis(part: Part, axes: Sequence[Axis]) -> Axis | None:
    """Find an axis along which a load is contiguous, maybe backwards, while the last one strides
    through memory."""
    loads = [e.arg[1] for c in part.computes for e in walk(c.body) if e.op == "load"]
    for index in loads:
        factors = {atom: factor for atom, factor in index.terms if isinstance(atom, Axis)}
        if not axes or factors.get(axes[-1], 1) == 1 or axes[-1].size < TRANSPOSED_SIZE:
            continue
        for axis in axes[:-1]:
            if abs(factors.get(axis, 0)) == 1 and axis.size >= TRANSPOSED_SIZE:
                return axis
    return None


def build_transpose(part: Part, axes: Sequence[Axis], across: Axis, target: Target) -> TilePart:
    """Write a part in square tiles, so that both directions use whole cache lines."""
    if target.has_blocks:
        return build_shared(part, axes, across, target)
    space = cut_square(axes, across, CPU_SIDE)
    tiles, steps = map_steps(part, ended(space, part), None)
    if product(axis.size for axis in axes) >= LEAST_TURNED:
        steps = turned(steps, space.dims, tiles)
    return TilePart(space.grid, tuple(tiles), tuple(steps))


def build_shared(part: Part, axes: Sequence[Axis], across: Axis, target: Target) -> TilePart:
    """Write a part in square tiles whose elements change threads in shared memory.

    Larger squares have more loads under way, where they are enough for all processors; elements of
    16 bits go by two.
    """
    points = product(axis.size for axis in axes)
    is_large = points >= 2 * target.multiprocessors * CUDA_LARGE**2
    space = cut_square(axes, across, CUDA_LARGE if is_large else WARP)
    threads = CUDA_THREADS // WARP, WARP
    exprs = [expr for compute in part.computes for expr in walk(compute.body)]
    is_narrow = all(expr.dtype.itemsize <= 2 for expr in exprs if expr.op == "load")
    is_even = axes[-1].size % 2 == 0 and across.size % 2 == 0
    vector = 1, 2 if is_large and is_narrow and is_even else 1
    layout = Blocked(tuple(axis.size for axis in space.dims), threads, vector)
    tiles, steps = map_steps(part, ended(space, part), layout)
    steps = exchanged(steps, space, layout, tiles)
    return TilePart(space.grid, tuple(tiles), tuple(steps))


def turned(steps: Sequence[Step], dims: Sequence[Axis], tiles: list[Tile]) -> list[Step]:
    """Turn what is loaded across a square round in vectors, copies straight into memory."""
    column, row = dims
    copies: dict[Expr, Assign] = {}

    def read(expr: Expr) -> Expr | None:
        if expr.op != "load" or not crosses(expr, column, row) or expr in guards:
            return None
        if expr not in copies:
            here = axis_index(column), axis_index(row)
            copies[expr] = Assign(f"t{len(copies)}", (row, column), expr, here)
            tiles.append(Tile(f"t{len(copies) - 1}", (column.size, row.size), expr.dtype, "shared"))
        name, place = copies[expr].tile, copies[expr].index
        return Expr("tile", (), (name, place), expr.dtype)

    found: list[Step] = []
    for step in steps:
        if not isinstance(step, Store | Assign):
            found.append(step)
            continue
        if isinstance(step, Store) and step.expr.op == "load" and crosses(step.expr, column, row):
            found.append(replace(step, dims=(row, column)))
            continue
        guards = loads_inside(step.expr)
        found.append(replace(step, expr=rewrite(step.expr, {}, read)))
    return [*copies.values(), *found]


def crosses(load: Expr, column: Axis, row: Axis, steps: tuple[int, ...] = (1,)) -> bool:
    """Tell whether memory runs along the columns of a square and not along its rows."""
    index = load.arg[1]
    return step_of(index, column) in steps and step_of(index, row) not in (0, 1)


def exchanged(steps: Sequence[Step], space: Cut, stored: Blocked, tiles: list[Tile]) -> list[Step]:
    """Load along what is contiguous in memory, and let each thread read the elements it stores.

    Rows in shared memory are one bank longer than a square, so that columns are in all banks.
    """
    column, row = space.dims
    here = axis_index(row), axis_index(column)
    bound = {*space.grid, *space.dims}
    layout = replace(stored, shape=(row.size, column.size))
    copies: dict[Expr, Assign] = {}

    def read(expr: Expr) -> Expr | None:
        if expr.op != "load" or not crosses(expr, column, row, (1, -1)) or expr in uncertain:
            return None
        if not axes_of(expr.arg[1]) <= bound:
            return None  # an element of a window
        if expr not in copies:
            copy = Assign(f"t{len(copies)}", (row, column), guarded(expr, space), here, layout)
            padding = max(BANK // expr.dtype.itemsize, 1)
            tiles.append(Tile(copy.tile, layout.shape, expr.dtype, "shared", row_padding=padding))
            copies[expr] = copy
        return Expr("tile", (), (copies[expr].tile, here), expr.dtype)

    found: list[Step] = []
    for step in steps:
        if not isinstance(step, Store | Assign | Accumulate):
            found.append(step)
            continue
        uncertain = loads_inside(step.expr, space.conditions)
        found.append(replace(step, expr=rewrite(step.expr, {}, read)))
    return [*copies.values(), Barrier(), *found] if copies else found


def loads_inside(expr: Expr, but: tuple[Condition, ...] = ()) -> set[Expr]:
    """List what is computed only where a guard allows it; those with the conditions `but` do."""
    guards = [each for each in walk(expr) if each.op == "guard" and each.arg != but]
    return {load for each in guards for load in walk(each.args[0])}


def cut_space(axes: Sequence[Axis], target: Target, lanes: int, rounds: int) -> Cut:
    """Cut the space of a map for the target."""
    if target.has_blocks:
        return cut_flat(axes, CUDA_THREADS * rounds, lanes)
    total = product(axis.size for axis in axes)
    return cut(axes, SMALL_POINTS if total <= SMALL_POINTS else TASK_POINTS)


def count_rounds(kernel: Kernel, part: Part, points: int, target: Target, lanes: int) -> int:
    """Choose how many vectors, far apart, a CUDA thread handles where they are short.

    As many as fill 16 bytes: so many loads are under way as memory needs. Fewer where threads are.
    """
    expressions = {id(e): e for c in part.computes for e in walk(c.body)}.values()
    slots = [e.arg[0] for e in expressions if e.op == "load"]
    if not slots or len(expressions) > DEAR:
        return 1
    widest = max(kernel.slots[slot].dtype.itemsize for slot in slots)
    most = points // (target.multiprocessors * RESIDENT * lanes)
    return max(1, min(16 // (widest * lanes), most))


def vector_lanes(kernel: Kernel, part: Part, last: Axis, axes: Sequence[Axis] = ()) -> int:
    """Choose how many neighbours one CUDA thread handles: 16 bytes if every access allows it.

    If `axes` are given, of what lies along all of them: statistics of a channel stay in the cache.
    What lies beyond an end may be computed: a vector that begins before one is computed whole.
    What neighbours share, as the label of a row, narrows nothing. Where much is computed from no
    array, as random numbers are, memory waits for arithmetic: one element, a quarter of the text.
    """
    part = replace(part, ends=())
    places = [c.store for c in part.computes if c.store]
    expressions = {id(e): e for c in part.computes for e in walk(c.body)}.values()
    loads = [e.arg[:2] for e in expressions if e.op == "load"]
    if len(expressions) > DEAR and not any(last in axes_of(index) for _, index in loads):
        return 1
    along = {*axes, last}
    slots = [slot for slot, index in places + loads if along <= axes_of(index)]
    lanes = neighbours((kernel.slots[s].dtype.itemsize for s in slots), expressions)
    while lanes > 1 and last.size % lanes:
        lanes //= 2
    is_regular = all(is_aligned(index, last, lanes) for index in part_indices(part))
    return lanes if is_regular else 1


def is_aligned(index: Index, axis: Axis, lanes: int) -> bool:
    """Tell whether an index is the same for all lanes, or theirs in order from a multiple."""
    direct = [c for atom, c in index.terms if atom is axis]
    rest = Index(tuple((a, c) for a, c in index.terms if a is not axis), 0)
    if axis in axes_of(rest):
        return is_shared(index, axis, lanes)
    if direct and any(axis in axes_read(d) for d in dynamics_of(rest)):
        return False
    return not direct or (
        direct == [1] and index.const % lanes == 0 and all(c % lanes == 0 for _, c in rest.terms)
    )


def is_shared(index: Index, axis: Axis, lanes: int) -> bool:
    """Tell whether an index is the same for the lanes of a vector, as a quotient may be."""
    lane = Axis("lane", lanes)
    first = axis_index(Axis("vector", axis.size // lanes)) * lanes
    found = substitute(index, {axis: first + axis_index(lane)})
    return lane not in axes_of(found)


def axes_read(place: Dynamic) -> set[Axis]:
    """List the axes that a place which is read from memory depends on."""
    indices = (index for expr in walk(place.expr) for index in indices_of(expr))
    return {axis for index in indices for axis in axes_of(index)}


def map_steps(
    part: Part, space: Cut, layout: Layout | None, name: str = ""
) -> tuple[list[Tile], list[Step]]:
    """Write the steps of one grid point, or of a piece of it of that name."""
    here = tuple(axis_index(axis) for axis in space.dims)
    shape = tuple(axis.size for axis in space.dims)
    kept = kept_values(part)
    tiles: list[Tile] = []
    steps: list[Step] = []
    values: list[Expr] = []
    for number, compute in enumerate(part.computes):
        expr = guarded(inline(compute.body, values, space), space)
        parts = () if layout or compute.reduce else parts_of_sum(expr, space.dims)
        if parts:
            dtype = accumulate_dtype(compute.dtype)
            tile = Tile(f"v{number}{name}", shape, dtype, "shared")
            tiles.append(tile)
            steps.append(Assign(tile.name, space.dims, const(0, dtype), here))
            for each in parts:
                added = Accumulate(tile.name, space.dims, (), "sum", each, False)
                steps.append(When((), (added,)))  # in a loop of its own
            expr = Expr("tile", (), (tile.name, here), compute.dtype)
        elif number in kept:
            held = expr if compute.reduce else held_bits(expr)
            tile = Tile(f"v{number}{name}", shape, held.dtype, "register", layout)
            tiles.append(tile)
            if compute.reduce:
                monoid = compute.monoid or "sum"
                over = compute.reduce
                wide = over_layout(layout, over)
                steps.append(Accumulate(tile.name, space.dims, over, monoid, expr, True, wide))
            else:
                steps.append(Assign(tile.name, space.dims, held))
            expr = read_as(compute.dtype, Expr("tile", (), (tile.name, here), held.dtype))
        values.append(expr)
    for compute, value in zip(part.computes, values, strict=True):
        if compute.store:
            slot, index = compute.store[0], rebind(compute.store[1], space.axes)
            steps.append(Store(slot, index, space.dims, value, space.conditions, layout))
    return tiles, steps


def held_bits(expr: Expr) -> Expr:
    """Give what a register holds of a value: bits read as narrow floats stay what they were.

    Those are carried as float32, which does not keep the bits of a NaN.
    """
    row = OPS.get(expr.op)
    is_read = row is not None and row.reinterpret is not None
    return expr.args[0] if is_read and expr.dtype.is_narrow_float else expr


def read_as(dtype: DType, held: Expr) -> Expr:
    """Read what a register holds as the dtype of the value."""
    return held if held.dtype is dtype else Expr("bitcast", (held,), None, dtype)


def parts_of_sum(expr: Expr, dims: Sequence[Axis]) -> tuple[Expr, ...]:
    """List what a sum adds, if that is mostly 0 but in a few rows each: slices put in their places.

    Where they lie may be known at run time alone. To each element is added what there is, in order.
    """
    found = []
    while (row := OPS.get(expr.op)) is not None and row.factors == (1, 1):
        found.append(expr.args[1])
        expr = expr.args[0]
    found.append(expr)
    if len(found) < LEAST_PARTS or sum(share_of(each, dims) for each in found) > len(found) / 2:
        return ()
    return tuple(reversed(found))


def share_of(expr: Expr, dims: Sequence[Axis]) -> float:
    """Estimate in which share of a space a term is not 0, if the bounds of loops can say where."""
    if expr.op != "guard" or not is_zero(expr.args[1]):
        return 1.0
    share = 1.0
    for index, lo, hi in expr.arg:
        for axis, factor in index.terms:
            if factor == 1 and axis in dims:
                share *= min((hi - lo + 1) / axis.size, 1.0)
    return share


def kept_values(part: Part) -> set[int]:
    """Find the computes that need a tile: windows, values used twice, and competing stores."""
    uses = [0] * len(part.computes)
    for compute in part.computes:
        for expr in walk(compute.body):
            if expr.op == "ref":
                uses[expr.arg] += 1
    stored = [n for n, c in enumerate(part.computes) if c.store]
    kept = {n for n, c in enumerate(part.computes) if c.reduce}
    kept |= {n for n, count in enumerate(uses) if count > 1 or (count and n in stored)}
    return kept | set(stored if len(stored) > 1 else ())


def inline(body: Expr, values: Sequence[Expr], space: Cut) -> Expr:
    """Rewrite a body for the cut space, replacing references by values made before."""

    def settled(expr: Expr) -> Expr | None:
        if expr.op == "ref":
            return values[expr.arg]
        if expr.op == "guard":
            return settled_guard(expr, space.conditions)
        return settled_choice(expr, space.conditions) if len(expr.args) == 3 else None

    return rewrite(body, space.axes, settled)


def settled_guard(expr: Expr, conditions: Sequence[Condition]) -> Expr | None:
    """Find what a guard gives everywhere in a space; None if that differs."""
    tests = [(*reached(index, conditions), lo, hi) for index, lo, hi in expr.arg]
    if any(last < lo or first > hi for first, last, lo, hi in tests):
        return expr.args[1]
    if all(lo <= first and last <= hi for first, last, lo, hi in tests):
        return expr.args[0]
    return None


def settled_choice(expr: Expr, conditions: Sequence[Condition]) -> Expr | None:
    """Find what a choice by a place gives everywhere in a space; None if that differs."""
    test, here, there = expr.args
    least = getattr(OPS.get(test.op), "least", None)
    if least is None or [each.op for each in test.args] != ["index", "const"]:
        return None
    place, limit = test.args
    if not limit.dtype.is_integer:
        return None
    first, last = reached(place.arg, conditions)
    if limit.arg - last >= least:
        return here
    return there if limit.arg - first < least else None


def reached(index: Index, conditions: Sequence[Condition]) -> tuple[int, int]:
    """Bound an index in a space: the last chunk of an axis may stick out."""
    for test, lo, hi in conditions:
        if test.terms == index.terms:
            more = index.const - test.const
            return max(index.lo, lo + more), min(index.hi, hi + more)
    return index.lo, index.hi
