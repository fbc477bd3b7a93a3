"""Reductions over the threads of a CUDA block: within a thread, a warp, then the block.

The order is fixed by the layout, so the same inputs give the same bits. The reduced dims are the
last of the layout: threads that share an element of the result are consecutive or, where the first
dim is the fastest, as far apart as it has threads.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby

from picograd.codegen.block_cuda import (
    WIDTHS,
    Block,
    are_alike,
    are_beside,
    inside,
    lane_of,
    loops,
    put,
    write_once,
)
from picograd.codegen.descend import is_guard
from picograd.codegen.emit import Emitter, compute_dtype
from picograd.codegen.layout import LANES, RUN, Blocked, Layout, Walk, WgmmaAccumulator, runs_walk
from picograd.codegen.layout import walk as walk_layout
from picograd.codegen.quick import relaxed
from picograd.codegen.stored_elements import beside, put_elements
from picograd.codegen.templates.grid import guard, is_static, loads_guarded
from picograd.codegen.templates.threads import loads_free_of
from picograd.codegen.tile import Accumulate, Assign, Step, Store, Tile
from picograd.codegen.unseen import quick_enough, tiles_read
from picograd.dtype import float32
from picograd.errors import check, internal
from picograd.helpers import product, round_up
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, flatten, substitute
from picograd.schedule.loop import Expr, rewrite, walk
from picograd.schedule.monoid import COMBINE, identity

WARP = 32
WIDEST = 16  # bytes of an element
MOST_COLUMNS, LOADS = 4, 16  # that a thread reads side by side, and elements under way
SHORT = 16  # parts of an expression that is written out for several rows
CHAINS = 4  # of a row of a fragment: a sum waits for the one before it, about 4 cycles


def combine(emitter: Emitter, monoid: str, a: int, b: int) -> int:
    """Combine two values of a monoid: which of two zeros or NaNs is the extreme may differ.

    A product is added by the instruction that multiplies, as on a CPU: the compiler joins none.
    """
    dtype, made = emitter.dtype(a), emitter.instructions[b]
    if monoid in ("max", "min") and dtype is float32:
        return emitter.add(COMBINE[monoid], float32, (a, b), "reduce", emitter.lanes(a))
    if monoid == "sum" and dtype is float32 and made.op == COMBINE["prod"] and made.lanes == 1:
        return emitter.raw("fma", dtype, *made.args, a)
    return emitter.apply(COMBINE[monoid], a, b)


def shared_loops(block: Block, steps: Sequence[Step]) -> Iterator[tuple[Step, ...]]:
    """Group neighbouring reductions over the same elements, and stores of those after them: the
    elements are read once for all. Those over others may hand their results round with them."""
    group: tuple[Step, ...] = ()
    for step in steps:
        if group and not can_join(block, group, step) and not can_finish(group, step):
            yield group
            group = ()
        group = (*group, step)
    if group:
        yield group


def can_join(block: Block, group: Sequence[Step], step: Step) -> bool:
    """Tell whether a step can share the loops of reductions before it, in vectors as they are."""
    first = group[0]
    if isinstance(step, Assign):
        return are_alike(block, [each for each in group if isinstance(each, Assign)], step)
    if isinstance(first, Store):
        return are_beside(block, [each for each in group if isinstance(each, Store)], step)
    if not isinstance(getattr(first, "layout", None), Blocked):
        return False
    if not isinstance(first, Accumulate) or not isinstance(step, Accumulate | Store):
        return False
    if points_of(step) != points_of(first) or step.layout != first.layout:
        return False
    names = {each.tile for each in group if isinstance(each, Accumulate)}
    if names & tiles_read(step.expr):
        return False
    if isinstance(step, Accumulate) and (
        step.tile in names or step.dims != first.dims or isinstance(group[-1], Store)
    ):
        return False
    every = [each for each in (*group, step) if isinstance(each, Accumulate | Store)]
    together = is_vector(block, every)
    return all(is_vector(block, [each]) == together for each in every)


def can_finish(group: Sequence[Step], step: Step) -> bool:
    """Tell whether a reduction over other elements can hand its result round with those before.

    So do the two parts of rows that begin between vectors (templates/uneven_rows.py).
    """
    first = group[0]
    steps = [each for each in (*group, step) if isinstance(each, Accumulate)]
    layouts = [each.layout for each in steps if isinstance(each.layout, Blocked)]
    if not isinstance(first, Accumulate) or len(layouts) <= len(group):
        return False
    count = len(first.dims)
    kinds = {(each.steps[:count], each.threads, each.vector[:count]) for each in layouts}
    is_one = product(layouts[0].steps[:count]) * product(layouts[0].vector[:count]) == 1
    is_other = all(each.over != step.over for each in steps[:-1])  # type: ignore[union-attr]
    names = {each.tile for each in steps[:-1]}
    is_free = names.isdisjoint({step.tile, *tiles_read(step.expr)})  # type: ignore[union-attr]
    is_shared = product(layouts[0].threads[count:]) > 1
    is_same = len(kinds) == 1 and all(each.dims == first.dims for each in steps)
    return is_one and is_other and is_free and is_shared and is_same and count > 0


def points_of(step: Accumulate | Store) -> tuple[Axis, ...]:
    """List the axes whose points a step works on."""
    return (*step.dims, *step.over) if isinstance(step, Accumulate) else step.dims


def is_vector(block: Block, steps: Sequence[Accumulate | Store]) -> bool:
    """Tell whether steps over the elements of a reduction are computed in vectors."""
    return walked(block, steps)[0].vector is not None


def walked(block: Block, steps: Sequence[Accumulate | Store]) -> tuple[Walk, dict[Axis, Index]]:
    """Walk the elements that all steps work on."""
    layout = steps[0].layout
    if not isinstance(layout, Blocked):
        internal("Accumulate needs a Blocked layout over (*dims, *over)", steps[0])
    stores = [each for each in steps if isinstance(each, Store)]
    return block.walked(
        layout,
        points_of(steps[0]),
        [each.expr for each in steps],
        [each.index for each in stores],
        [condition for each in stores for condition in each.conditions],
    )


def accumulate(block: Block, *every: Accumulate | Store) -> None:
    """Write reductions over the same dims: for every element reduce, and hand the results round.

    Stores of the elements are part of the loops.
    """
    steps = [each for each in every if isinstance(each, Accumulate)]
    if len(steps) == len(every):
        every = steps = [  # type: ignore[assignment]
            replace(each, expr=quick_enough(each, block.seen, block.greatest)) for each in steps
        ]
    else:  # what is summed is stored too, and computed once
        every = tuple([replace(each, expr=relaxed(each.expr, ())) for each in every])
        steps = [each for each in every if isinstance(each, Accumulate)]
    step, layout, emitter = steps[0], steps[0].layout, block.emitter
    if isinstance(layout, WgmmaAccumulator):
        accumulate_fragment(block, step)
        return
    if not isinstance(layout, Blocked):
        internal("Accumulate needs a Blocked layout over (*dims, *over)", step)
    count = len(step.dims)
    runs = [list(run) for _, run in groupby(every, points_of)]
    walks = [walked(block, run) for run in runs]
    found = walks[0][0]
    lanes = found.vector[1] if found.vector and found.vector_dim < count else 1
    columns, ends = found.loops_of(0, count), list[tuple[Accumulate, int]]()
    place = constant(0)
    if len(runs) == 1 and len(steps) == len(every) and is_side_by_side(steps, found):
        place = flatten(list(map(axis_index, columns)), [axis.size for axis in columns]) * lanes
        ends = reduce_together(block, steps, found, walks[0][1], place, lanes)
    with ExitStack() as stack:
        for axis in columns:
            stack.enter_context(emitter.axis_loop(axis, True))
        is_alone = product(layout.threads[count:]) == 1  # it goes on from what the result holds
        ends = ends or [
            (replace(each, is_first=each.is_first or is_alone), part)
            for run, (one, values) in zip(runs, walks, strict=True)
            for each, part in reduce_elements(block, run, one, values, lanes)
        ]
        finish_all(block, found, place, lanes, ends)


def reduce_elements(
    block: Block,
    every: Sequence[Accumulate | Store],
    found: Walk,
    values: Mapping[Axis, Index],
    lanes: int,
) -> list[tuple[Accumulate, int]]:
    """Reduce what a thread has of the same elements; each reduction, and its partial results."""
    steps = [each for each in every if isinstance(each, Accumulate)]
    emitter, step, count = block.emitter, steps[0], len(steps[0].dims)
    is_alone = product(step.layout.threads[count:]) == 1  # type: ignore[union-attr]
    partials = [start(block, each, lanes, found if is_alone else None) for each in steps]
    with ExitStack() as inner:
        held = len(points_of(step)) if reads_registers(block, step) else 0
        loops(block, inner, [loop for loop in found.loops if loop[1] >= count], held)
        mask = emitter.conditions(found.conditions)
        inside(block, inner, found, mask)
        for each, (partial, first) in zip(steps, partials, strict=True):
            dtype = emitter.dtype(partial)
            value = emitter.cast(emitter.value(rewrite(each.expr, values)), dtype)
            if mask is not None:
                value = emitter.apply("where", mask, value, first, dtype=dtype)
            places = [constant(n if lanes > 1 else 0) for n in range(lanes_of(found))]
            add_lanes(block, each.monoid, partial, value, places)
        for row in beside([each for each in every if isinstance(each, Store)], found):
            if len(row) in WIDTHS:
                put_elements(block, row, values)
                continue
            for other in row:
                put_element(block, other, found, values)
    return [(each, partial) for each, (partial, _) in zip(steps, partials, strict=True)]


def is_side_by_side(steps: Sequence[Accumulate], found: Walk) -> bool:
    """Tell whether a thread reads all of its columns in each row, as several sums are under way.

    Column by column it would wait for one element at a time, and read again what all share.
    """
    layout, count = steps[0].layout, len(steps[0].dims)
    if not isinstance(layout, Blocked) or not layout.is_first_fastest:
        return False
    columns = product(axis.size for axis in found.loops_of(0, count))
    is_whole = columns <= MOST_COLUMNS and all(is_static(each.expr) for each in steps)
    return product(layout.threads[count:]) > 1 and 1 < columns and is_whole


def reduce_together(
    block: Block,
    steps: Sequence[Accumulate],
    found: Walk,
    values: Mapping[Axis, Index],
    place: Index,
    lanes: int,
) -> list[tuple[Accumulate, int]]:
    """Reduce all columns of a thread row by row; the partial results of each are from `place`."""
    emitter, count = block.emitter, len(steps[0].dims)
    columns = found.loops_of(0, count)
    total = product(axis.size for axis in columns)
    partials = [start(block, each, total * lanes) for each in steps]
    of_columns = [test for test in found.conditions if not axes_of(test[0]).isdisjoint(columns)]
    of_rows = [test for test in found.conditions if test not in of_columns]
    exprs = [loads_guarded(rewrite(each.expr, values), set(columns), of_columns) for each in steps]
    with ExitStack() as inner:
        *rows, last = [axis for axis, dim in found.loops if dim >= count] or [Axis("once", 1)]
        for axis in rows:
            inner.enter_context(emitter.axis_loop(axis))
        inner.enter_context(emitter.axis_loop(last, rounds_ahead(exprs, total * lanes)))
        mask = emitter.conditions(of_rows)
        emitter.scopes[-1].mask = emitter.both(emitter.scopes[-1].mask, mask)
        for load in dict.fromkeys(each for expr in exprs for each in shared_loads(expr, columns)):
            emitter.value(load)
        for axis in columns:
            inner.enter_context(emitter.axis_loop(axis, True))
        inside(block, inner, found, None)
        for each, expr, (partial, first) in zip(steps, exprs, partials, strict=True):
            dtype = emitter.dtype(partial)
            value = emitter.cast(emitter.value(expr), dtype)
            if mask is not None:
                value = emitter.apply("where", mask, value, first, dtype=dtype)
            add_lanes(block, each.monoid, partial, value, [place + n for n in range(lanes)])
    return [(each, partial) for each, (partial, _) in zip(steps, partials, strict=True)]


def rounds_ahead(exprs: Sequence[Expr], elements: int) -> int:
    """Choose how many rows are read at once; 0 leaves it to the compiler, as of long text."""
    if any(len(list(walk(expr))) > SHORT for expr in exprs):
        return 0
    ahead = LOADS // elements
    return 1 << ahead.bit_length() - 1 if ahead > 1 else 0


def shared_loads(expr: Expr, columns: Sequence[Axis]) -> Iterator[Expr]:
    """Yield the loads, under the guard of a row, that all columns of a thread share."""
    tests, body = (expr.arg, expr.args[0]) if is_guard(expr) else ((), expr)
    if any(not axes_of(index).isdisjoint(columns) for index, *_ in tests):
        return
    for each in loads_free_of(body, columns):
        yield guard(each, 0, tests)


def finish_all(
    block: Block, found: Walk, place: Index, lanes: int, partials: Sequence[tuple[Accumulate, int]]
) -> None:
    """Combine what threads have of several reductions from `place`, and hand it round."""
    emitter, parts = block.emitter, []
    for step, partial in partials:
        for lane in range(lanes):
            parts.append((step, lane, emitter.get(partial, emitter.index(place + lane))))
    layout = partials[0][0].layout
    if not isinstance(layout, Blocked):
        internal("threads share what a Blocked layout gives them", partials[0][0])
    together = [(step.monoid, value) for step, _, value in parts]
    totals = across_threads(block, layout, len(partials[0][0].dims), together)
    for (step, lane, _), total in zip(parts, totals, strict=True):
        finish(block, step, found, block.tiles[step.tile], lane, total)


def fragment_walk(step: Accumulate, layout: Layout, thread: Axis) -> Walk:
    """Walk a fragment as registers have it; rows of what is in memory by runs of neighbours."""
    is_held = any(part.op == "tile" for part in walk(step.expr))
    if not is_held and isinstance(layout, WgmmaAccumulator) and layout.n % (LANES * RUN) == 0:
        return runs_walk(layout, thread)
    return walk_layout(layout, thread, False)


def accumulate_fragment(block: Block, step: Accumulate) -> None:
    """Reduce the rows of a fragment: in each thread, then over the four lanes of a row."""
    emitter, layout = block.emitter, step.layout
    if layout is None or len(step.dims) != 1 or len(step.over) != 1:
        internal("a fragment is reduced along its rows", step)
    found = fragment_walk(step, layout, block.thread)
    values = dict(zip((*step.dims, *step.over), found.coordinates, strict=True))
    with ExitStack() as stack:
        for axis in found.loops_of(0, 1):
            stack.enter_context(emitter.axis_loop(axis, True))
        partial, _ = start(block, step, CHAINS)
        dtype = emitter.dtype(partial)
        axes = found.loops_of(1, 2)
        chain = flatten(list(map(axis_index, axes)), [axis.size for axis in axes])
        with ExitStack() as inner:
            loops(block, inner, [loop for loop in found.loops if loop[1] == 1], 2)
            inside(block, inner, found, None)
            value = emitter.cast(emitter.value(rewrite(step.expr, values)), dtype)
            places = [(chain + lane) % CHAINS for lane in range(lanes_of(found))]
            add_lanes(block, step.monoid, partial, value, places)
        parts = [emitter.get(partial, emitter.integer(n)) for n in range(CHAINS)]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [combine(emitter, step.monoid, a, b) for a, b in pairs]
        (value,) = parts
        for mask in (1, 2):
            other = emitter.add("shuffle_xor", dtype, (value,), mask)
            value = combine(emitter, step.monoid, value, other)
        finish(block, step, found, block.tiles[step.tile], 0, value)


def put_element(block: Block, step: Store, found: Walk, values: Mapping[Axis, Index]) -> None:
    """Store an element that reductions have at hand."""
    emitter = block.emitter
    first_lane = {found.vector[0]: constant(0)} if found.vector else {}
    tests = [
        (substitute(substitute(index, values), first_lane), lo, hi)
        for index, lo, hi in step.conditions
    ]
    outer, expr = emitter.scopes[-1].mask, rewrite(step.expr, values)
    is_guarded = is_guard(expr) and set(step.conditions) <= set(step.expr.arg)
    value = emitter.value(expr) if is_guarded else None  # under the mask of the reductions
    emitter.scopes[-1].mask = mask = emitter.both(outer, emitter.conditions(tests))
    value = emitter.value(expr) if value is None else value
    if step.layout is not None:
        mask = emitter.both(write_once(block, step.layout), mask)
    put(block, emitter.slots[step.slot], substitute(step.index, values), value, mask)
    emitter.scopes[-1].mask = outer


def start(block: Block, step: Accumulate, lanes: int, held: Walk | None = None) -> tuple[int, int]:
    """Make the partial results of one reduction, and the identity: what they begin with.

    Unless a reduction is the first, they begin with what the walk `held` finds in its result.
    """
    emitter, tile = block.emitter, block.tiles[step.tile]
    dtype = compute_dtype(tile.dtype)
    first = emitter.const(identity(step.monoid, dtype), dtype)
    partial = emitter.add("array", dtype, arg=lanes)
    for lane in range(lanes):
        value = first
        if held is not None and not step.is_first:
            at = register_in(block, held, len(step.dims), lane)
            value = emitter.get(block.arrays[step.tile], at)
        emitter.put(partial, emitter.integer(lane), value)
    return partial, first


def register_in(block: Block, found: Walk, count: int, lane: int) -> int:
    """Find the register of a lane of the present point in a tile of `count` dimensions."""
    where = found.register(count)
    if found.vector:
        where = substitute(where, {found.vector[0]: constant(lane)})
    return block.emitter.index(where)


def reads_registers(block: Block, step: Accumulate) -> bool:
    """Tell whether the expression reads registers along the reduced dims."""
    return any(
        tile.space == "register" and len(tile.shape) > len(step.dims)
        for tile in block.tiles.values()
    )


def lanes_of(found: Walk) -> int:
    """Count the elements of a value: those of a vector, or one."""
    return found.vector[1] if found.vector else 1


def add_lanes(block: Block, monoid: str, partial: int, value: int, places: Sequence[Index]) -> None:
    """Add the lanes of a value to partial results: each to that of its place."""
    emitter = block.emitter
    for lane, place in enumerate(places):
        at = emitter.index(place)
        new = combine(emitter, monoid, emitter.get(partial, at), lane_of(emitter, value, lane))
        emitter.put(partial, at, new)


def across_threads(
    block: Block, layout: Blocked, count: int, values: Sequence[tuple[str, int]]
) -> list[int]:
    """Combine values, each of a monoid, over the threads that share an element; all get results.

    They are `stride` apart: as far as there are copies of each, or elements where those are faster.
    """
    emitter = block.emitter
    shared = product(layout.threads[count:])
    stride = block.threads // layout.thread_count
    if layout.is_first_fastest:
        stride = product(layout.threads[:count])
    check(shared & (shared - 1) == 0, f"{shared} threads share an element: not a power of two")
    found = []
    for monoid, value in values:
        mask = stride
        while mask < min(shared * stride, WARP):
            other = emitter.add("shuffle_xor", emitter.dtype(value), (value,), mask)
            value = combine(emitter, monoid, value, other)
            mask *= 2
        found.append((monoid, value))
    if shared == 1 or shared * stride <= WARP:
        return [value for _, value in found]
    check(stride <= WARP and shared * stride % WARP == 0, "a reduction ends inside a warp")
    elements = stride if layout.is_first_fastest else 1
    return across_warps(block, shared * stride // WARP, elements, found)


def across_warps(
    block: Block, warps: int, elements: int, values: Sequence[tuple[str, int]]
) -> list[int]:
    """Combine what the first `elements` lanes of a warp hold over groups of `warps` warps.

    All values at once: a block waits twice, however many there are.
    """
    emitter, thread = block.emitter, axis_index(block.near)
    if block.cluster > 1:
        check(warps == block.threads // WARP, "a cluster reduces as a whole")
        warps = block.near.size // WARP
    count = block.near.size // WARP * elements
    sizes = [round_up(count * emitter.dtype(value).itemsize, WIDEST) for _, value in values]
    offset = block.scratch_for(sum(sizes))
    places = []
    for (_, value), size in zip(values, sizes, strict=True):
        places.append(emitter.add("shared", emitter.dtype(value), arg=offset))
        offset += size
    emitter.add("barrier", None, arg=block.team)
    is_first = emitter.conditions([(thread % WARP, 0, elements - 1)])
    warp, element = thread // WARP, thread % elements
    at = emitter.index(warp * elements + element)
    for place, (_, value) in zip(places, values, strict=True):
        emitter.store(place, at, value, is_first)
    emitter.add("barrier", None, arg=block.team)
    group = thread // (WARP * warps)
    first = group * (warps * elements) + element
    totals = []
    for place, (monoid, _) in zip(places, values, strict=True):
        total = emitter.load(place, emitter.index(first))
        for number in range(1, warps):
            other = emitter.load(place, emitter.index(first + number * elements))
            total = combine(emitter, monoid, total, other)
        totals.append(total)
    monoids = [monoid for monoid, _ in values]
    return across_blocks(block, monoids, totals) if block.cluster > 1 else totals


def across_blocks(block: Block, monoids: Sequence[str], values: Sequence[int]) -> list[int]:
    """Combine what the blocks of a cluster have: each leaves it with all others, in its place."""
    emitter, totals = block.emitter, list[int]()
    if not block.has_begun:  # there is no memory of a block before it begins
        emitter.add("cluster_wait", None, arg=block.cluster)
        block.has_begun = True
    own, places = emitter.index(block.rank), list[int]()
    for value in values:
        dtype = emitter.dtype(value)
        offset = block.reserve(block.cluster * dtype.itemsize)
        places.append(emitter.add("shared", dtype, arg=offset))
        emitter.add("store_near", None, (places[-1], own, value), block.cluster)
    emitter.add("cluster_arrive", None, arg=block.cluster)
    emitter.add("cluster_wait", None, arg=block.cluster)
    for place, monoid in zip(places, monoids, strict=True):
        numbers = map(emitter.integer, range(block.cluster))
        total, *others = (emitter.load(place, number) for number in numbers)
        for other in others:
            total = combine(emitter, monoid, total, other)
        totals.append(total)
    return totals


def finish(block: Block, step: Accumulate, found: Walk, tile: Tile, lane: int, value: int) -> None:
    """Put a finished element into the result tile, joined to what it held unless this is first."""
    emitter = block.emitter
    array, at = block.arrays[tile.name], register_in(block, found, len(step.dims), lane)
    if not step.is_first:
        value = combine(emitter, step.monoid, emitter.get(array, at), value)
    emitter.put(array, at, value)
