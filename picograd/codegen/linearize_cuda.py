"""linearize_cuda: TileKernel -> Program of one CUDA block.

Every step becomes the loops of one thread over its share of the step's coordinates (`Walk`);
expressions are emitted by `emit`. Reductions are in `linearize_cuda_reduce`, matrix products in
`linearize_cuda_roles` and, where no copy engine can bring an operand, in `linearize_cuda_mainloop`.

Join on Hopper: blocks leave parts of a point in a workspace, in the order of their registers.

Every thread adds what the same thread of other blocks left, 16 bytes at a time, so that a part
needs no layout, and every warp waits for its own share of a part.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from picograd.codegen.block_cuda import (
    WIDTHS,
    Block,
    as_sign,
    default_layout,
    in_rounds,
    inside,
    is_word,
    lane_of,
    loops,
    put,
    set_registers,
    tests_of,
    word_loops,
    write_once,
)
from picograd.codegen.boxes import BoxStore, Join, Persistent
from picograd.codegen.deal_cuda import add
from picograd.codegen.dot import Dot
from picograd.codegen.emit import Emitter
from picograd.codegen.layout import Blocked, Layout, Walk, WgmmaAccumulator, WgmmaOperand
from picograd.codegen.linearize_bins_cuda import bins_cuda
from picograd.codegen.linearize_cuda_mainloop import main_loop, simple_dot
from picograd.codegen.linearize_cuda_reduce import accumulate, shared_loops
from picograd.codegen.linearize_cuda_roles import CELLS, ahead, first_lane, persistent
from picograd.codegen.linearize_runs_cuda import runs_cuda, scatter_cuda
from picograd.codegen.linearize_scan import scan_cuda
from picograd.codegen.linearize_sort_cuda import radix_cuda, sort_cuda
from picograd.codegen.program import Program, zeroed_last
from picograd.codegen.quick import RELAXED, relaxed
from picograd.codegen.store_boxes_cuda import store_boxes, store_rows
from picograd.codegen.templates.grid import rebind
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    Barrier,
    BinStep,
    For,
    LastBlock,
    MainLoop,
    RunStep,
    SortStep,
    Step,
    Store,
    Tile,
    TileKernel,
    TilePart,
    When,
)
from picograd.codegen.unseen import quick_enough
from picograd.dtype import bool_, float32, int32
from picograd.errors import check, internal
from picograd.graph.ops import OPS
from picograd.helpers import product
from picograd.schedule.index import Axis, Index, axes_of, axis_index, substitute, unflatten
from picograd.schedule.loop import Condition, Expr, Radix, Scan, Scatter, rewrite
from picograd.schedule.loop import walk as walk_expr
from picograd.schedule.score_masks import affine
from picograd.target import Target

WARP, LANES = 32, 4  # threads of a warp; numbers of a vector
Write = Callable[[Block, Sequence[Step]], None]


def join(block: Block, step: Join, write: Write) -> None:
    """Leave a part of a point, or add the parts of others and `write` what follows."""
    emitter = block.emitter
    number = block.first_workspace + step.flags
    flags = emitter.add("workspace", int32, arg=number)
    place, _, depth = step.last
    early = place, 0, depth - 1
    is_part = emitter.conditions([early])
    is_last = emitter.conditions([step.last])
    with emitter.when(is_part):
        leave(block, step, flags)
    with emitter.when(is_last):
        take(block, step, flags)
        write(block, step.body)


def flag(block: Block, other: Axis) -> int:
    """Find the flag of this warp's share of a block's part."""
    warps = block.threads // WARP
    warp = axis_index(block.thread) // WARP
    return block.emitter.index(axis_index(other) * warps + warp)


@contextmanager
def pieces(block: Block, step: Join, other: Axis) -> Iterator[tuple[int, list[int]]]:
    """Open a loop over vectors of a part: where they lie, and the registers' numbers."""
    emitter, tile = block.emitter, block.tiles[step.acc]
    if not isinstance(tile.layout, WgmmaAccumulator):
        internal("blocks share what wgmma multiplies", step)
    count = tile.layout.register_count
    thread = axis_index(block.thread)
    warp, lane = thread // WARP, thread % WARP
    first = warp * (WARP * count)
    share = first + lane * LANES
    start = axis_index(other) * product(tile.shape) + share
    piece = Axis("piece", count // LANES)
    number = axis_index(piece)
    with emitter.axis_loop(piece, True):
        vector = number * (WARP * LANES)
        place = emitter.index(start + vector)
        registers = [emitter.index(number * LANES + n) for n in range(LANES)]
        yield place, registers


def leave(block: Block, step: Join, flags: int) -> None:
    """Store a part, and say so."""
    emitter = block.emitter
    acc, partial = block.arrays[step.acc], block.places[step.partial]
    with pieces(block, step, step.block) as (place, registers):
        found = [emitter.get(acc, number) for number in registers]
        value = emitter.add("pack", emitter.dtype(acc), found, lanes=LANES)
        emitter.store(partial, place, value)
    add(block, "warp_barrier")
    with emitter.when(first_lane(block)):
        add(block, "flag_raise", (flags, flag(block, step.block)))


def take(block: Block, step: Join, flags: int) -> None:
    """Add the parts of other blocks, in order."""
    emitter = block.emitter
    acc, partial = block.arrays[step.acc], block.places[step.partial]
    dtype = emitter.dtype(acc)
    other = Axis("other", step.block.size)
    first = emitter.index(step.first)
    last = emitter.axis_value(step.block)
    with emitter.loop(first, last, 1, None) as variable:
        emitter.bind(other, variable)
        with emitter.when(first_lane(block)):
            raised = flag(block, other)
            add(block, "flag_wait", (flags, raised))
        add(block, "warp_barrier")
        with pieces(block, step, other) as (place, registers):
            part = emitter.load(partial, place, None, LANES)
            for lane, number in enumerate(registers):
                value = emitter.add("extract", dtype, (part,), lane)
                total = emitter.raw("add", dtype, emitter.get(acc, number), value)
                add(block, "set", (acc, number, total))


EDITS = "relaxed_tanh", "relaxed_sigmoid", "relaxed_silu"  # of scores, before their exponential
LEAST_SKIPPED = 8  # elements of a branch: fewer are written under a mask each
EXACT = 1 << 24  # integers up to here are float32 numbers


def linearize(tile_kernel: TileKernel, target: Target) -> Program:
    """Write the program of one block."""
    kernel, block = tile_kernel.kernel, Block(tile_kernel)
    emitter = block.emitter
    task = Axis("task", sum(part.blocks for part in tile_kernel.parts) * block.cluster)
    emitter.bind(task, emitter.add("task", emitter.index_dtype))
    emitter.bind(block.near, emitter.add("thread", emitter.index_dtype))
    if block.cluster > 1:
        block.rank = axis_index(task) % block.cluster
        thread = block.rank * block.near.size + axis_index(block.near)
        emitter.bind(block.thread, emitter.index(thread))
        emitter.add("cluster_arrive", None, arg=block.cluster)
    number = axis_index(task) // block.cluster
    first = 0
    workspaces: list[tuple[int, bool]] = []
    for part in tile_kernel.parts:
        where = emitter.conditions([(number, first, first + part.blocks - 1)])
        with emitter.when(where), block.member(part, locate(emitter, part, number - first)):
            block.enter(part, len(workspaces))
            workspaces += part.workspaces * part.count
            for each in part.ahead:
                ahead(block, each, len(workspaces), part.blocks, steps)
                workspaces.append(CELLS)
            steps(block, part.steps)
        first += part.blocks
    check(block.shared_bytes <= target.shared_bytes, f"{block.shared_bytes} shared bytes", kernel)
    instructions, workspaces = zeroed_last(emitter.instructions, workspaces)
    return Program(
        kernel.name,
        tuple(instructions),
        tuple((slot.dtype, slot.role) for slot in kernel.slots),
        tuple(workspaces),
        kernel.scalars,
        block.near.size,
        task.size,
        block.shared_bytes,
        tensors=tuple(block.tensors),
        together=tile_kernel.together,
    )


def locate(emitter: Emitter, part: TilePart, place: Index) -> int | None:
    """Bind the grid of a part for its block at a place; the number of its member, if it has any."""
    if part.extent is not None:
        return locate_sized(emitter, part, part.extent, emitter.index(place))
    each = part.blocks // part.count
    member = emitter.index(place // each) if part.members else None
    grid = unflatten(place % each if part.members else place, part.shape)
    for axis, index in zip(part.grid, grid, strict=True):
        emitter.bind(axis, emitter.index(index))
    return member


def locate_sized(emitter: Emitter, part: TilePart, extent: Axis, place: int) -> int:
    """Find the member of a block, among those of its size, and its place in it."""
    # Of each size: what leads back to its first block, the number of its first member, the size,
    # the blocks of a member.
    rows: list[tuple[int, int, int, int]] = []
    start = 0
    for number, member in enumerate(part.members):
        if not rows or rows[-1][2] != member.size:
            rows.append((-start, number, member.size, member.blocks))
        start += member.blocks
    dtype = emitter.index_dtype
    kind = emitter.integer(0)
    for before, *_ in rows[1:]:
        is_later = emitter.raw("less_equal", bool_, emitter.integer(-before), place)
        kind = emitter.arithmetic("add", kind, emitter.cast(is_later, dtype))
    before, number, size, blocks = (
        emitter.add("choose", dtype, (kind, *map(emitter.integer, column)), "scalar")
        for column in zip(*rows, strict=True)
    )
    rest = emitter.arithmetic("add", place, before)
    emitter.bind(part.grid[0], emitter.arithmetic("remainder", rest, blocks))
    emitter.bind(extent, size)
    return emitter.arithmetic("add", number, emitter.arithmetic("quotient", rest, blocks))


def steps(block: Block, body: Sequence[Step]) -> None:
    """Write steps in order."""
    for group in shared_loops(block, body):
        block.emitter.forget()
        STEPS[type(group[0])](block, *group)


def assign(block: Block, *every: Assign) -> None:
    """Write an Assign: into registers, several at once, or at an index of another tile."""
    step, emitter = every[0], block.emitter
    tile = block.tiles[step.tile]
    is_register = tile.space == "register"
    layout = tile.layout if is_register else step.layout
    layout = layout or default_layout(block, step.dims)
    where = [axis_index(a) for a in step.dims] if step.index is None else list(step.index)
    places = [] if is_register else [block.place(tile, where)]
    exprs = [each.expr for each in every]
    found, values = block.walked(layout, step.dims, exprs, places, step.conditions)
    held = len(step.dims) if is_register else held_dims(block, layout, step.expr)
    with ExitStack() as stack:
        mask = None if is_register else write_once(block, layout)
        if is_word(tile):
            check(found.vector is None, "booleans of a word come one by one", step)
            found = in_rounds(found)
            values = dict(zip(step.dims, found.coordinates, strict=True))
            word_loops(block, stack, found, tile)
        tests = [(substitute(index, values), low, high) for index, low, high in step.conditions]
        rest = () if is_word(tile) else open_branch(block, stack, found, tests, held)
        loops(block, stack, rest, held)
        tests = [] if rest and rest != found.loops else tests
        wanted = emitter.conditions([*found.conditions, *tests])
        inside(block, stack, found, emitter.both(mask, wanted))
        for each in every:
            if each.is_relaxed:
                expr = relaxed(each.expr, EDITS)
            else:
                expr = quick_enough(each, block.seen, block.greatest)
            expr = as_sign(expr) if is_word(tile) else expr
            value = emitter.value(in_parts(rewrite(expr, values), found.loops))
            if is_register:
                set_registers(block, found, block.tiles[each.tile], value)
            else:
                target = rebind(places[0], values)
                put(block, block.places[tile.name], target, value, emitter.scopes[-1].mask)
    if isinstance(tile.layout, WgmmaOperand):
        args = block.packed[tile.name], block.arrays[tile.name]
        emitter.add("wgmma_pack", None, args, tile.dtype)


def open_branch(
    block: Block, stack: ExitStack, found: Walk, tests: Sequence[Condition], held: int
) -> Sequence[tuple[Axis, int]]:
    """Open the loops that conditions depend on, and a branch where they hold; give the others.

    Few threads of a block have the row that all are shown: the rest skip all of its columns.
    """
    used = {axis for index, _, _ in tests for axis in axes_of(index)}
    first = max((n + 1 for n, (axis, _) in enumerate(found.loops) if axis in used), default=0)
    rest = found.loops[first:]
    if not tests or found.vector or product(axis.size for axis, _ in rest) < LEAST_SKIPPED:
        return found.loops
    loops(block, stack, found.loops[:first], held)
    stack.enter_context(block.emitter.when(block.emitter.conditions(tests)))
    return rest


def in_parts(root: Expr, loops: Iterable[tuple[Axis, int]]) -> Expr:
    """Convert positions to floats by parts: what unrolled loops add is known to the compiler.

    Both parts, and their sum, are integers that a float32 holds exactly.
    """
    unrolled = {axis for axis, _ in loops}

    def is_position(expr: Expr) -> bool:
        row = OPS.get(expr.op)
        is_kept = row is not None and row.keeps_value and expr.dtype is float32
        return is_kept and expr.args[0].dtype.is_integer

    def split(expr: Expr) -> Expr | None:
        if not is_position(expr):
            return None
        index = affine(expr.args[0])
        if index is None or max(-index.lo, index.hi) > EXACT:
            return None
        terms = [(atom, step) for atom, step in index.terms if atom in unrolled]
        part = Index(tuple(terms), 0)
        rest = index - part
        if not terms or not rest.terms or max(-rest.lo, rest.hi) > EXACT:
            return None
        wide = (
            Expr("cast", (Expr("index", (), each, int32),), None, float32) for each in (rest, part)
        )
        return Expr("add", tuple(wide), None, float32)

    order = walk_expr(root)
    return rewrite(root, {}, split) if any(map(is_position, order)) else root


def reads(block: Block, expr: Expr) -> Iterable[Tile]:
    """Yield the register tiles an expression reads."""
    for node in walk_expr(expr):
        if node.op == "tile" and block.tiles[node.arg[0]].space == "register":
            yield block.tiles[node.arg[0]]


def held_dims(block: Block, layout: Layout, expr: Expr) -> int:
    """Count the first dimensions of a walk that index the registers an expression reads."""
    if not isinstance(layout, Blocked):
        return 2 if any(reads(block, expr)) else 0  # a fragment is read whole
    return max((len(tile.shape) for tile in reads(block, expr)), default=0)


def layout_of(block: Block, step: Store) -> Layout:
    """Find the layout of a Store: its own, that of a register tile it reads, or the default."""
    if step.layout is not None:
        return step.layout
    for tile in reads(block, step.expr):
        if tile.layout is not None and len(tile.shape) == len(step.dims):
            return tile.layout
    return default_layout(block, step.dims)


def store(block: Block, *every: Store) -> None:
    """Write a Store to a slot of the kernel, or several that lie side by side."""
    step = every[0]
    is_rounded = block.kernel.slots[step.slot].dtype.bits == 16
    step = replace(step, expr=relaxed(step.expr, RELAXED if is_rounded else ()))
    if step.rides:
        block.riders.append(step)
        return
    if step.box is not None:
        leave = store_boxes if isinstance(step.box, BoxStore) else store_rows
        leave(block, step)
        return
    emitter, layout = block.emitter, layout_of(block, step)
    exprs, pointer = [step.expr, *(each.expr for each in every[1:])], emitter.slots[step.slot]
    found, values = block.walked(layout, step.dims, exprs, [step.index], step.conditions)
    lanes = found.vector[0] if found.vector else None
    with ExitStack() as stack:
        once = write_once(block, layout)
        loops(block, stack, found.loops, held_dims(block, layout, step.expr))
        tests = tests_of(step, lanes, values)
        mask = emitter.conditions([*found.conditions, *tests])
        inside(block, stack, found, emitter.both(once, mask))
        mask = emitter.scopes[-1].mask
        made = [emitter.value(rewrite(expr, values)) for expr in exprs]
        place = rebind(step.index, values)
        if len(made) in WIDTHS and lanes is None:
            row = [lane_of(emitter, value, 0) for value in made]
            wide = emitter.add("pack", emitter.dtype(row[0]), row, lanes=len(row))
            emitter.store(pointer, emitter.index(place), wide, mask)
            return
        for number, value in enumerate(made):
            put(block, pointer, place + number, value, mask)


def for_loop(block: Block, step: For) -> None:
    """Write a For."""
    with block.emitter.axis_loop(step.axis, step.is_unrolled):
        steps(block, step.body)


def when(block: Block, step: When) -> None:
    """Write a When: a branch all threads of the block take or do not take."""
    with block.emitter.when(block.emitter.conditions(step.conditions)):
        steps(block, step.body)


def barrier(block: Block, step: Barrier) -> None:
    """Write a Barrier."""
    block.emitter.add("barrier", None)


def last_block(block: Block, step: LastBlock) -> None:
    """Write a LastBlock: a ticket drawn by thread 0 and shared with the block.

    Drawing releases what the block has stored before the barrier, and acquires what others have.
    """
    emitter = block.emitter
    flag = emitter.add("shared", int32, arg=block.reserve(4))
    counter = block.workspace(step.counter, int32)
    cell, zero = emitter.index(step.cell), emitter.const(0, int32)
    is_first = emitter.conditions([(axis_index(block.thread), 0, 0)])
    emitter.add("barrier", None, arg=block.team)
    with emitter.when(is_first):
        one = emitter.const(1, int32)
        ticket = emitter.add("atomic_add", int32, (counter, cell, one))
        emitter.store(flag, emitter.integer(0), ticket)
    emitter.add("barrier", None, arg=block.team)
    ticket = emitter.load(flag, emitter.integer(0))
    is_last = emitter.apply("equal", ticket, emitter.const(step.total - 1, int32))
    with emitter.when(is_last):
        steps(block, step.body)
        with emitter.when(is_first):
            emitter.store(counter, cell, zero)


def joined(block: Block, step: Join) -> None:
    """Write a join with the steps of this table."""
    join(block, step, steps)


STEPS: dict[type, Callable[..., None]] = {
    Assign: assign,
    Accumulate: accumulate,
    Store: store,
    For: for_loop,
    When: when,
    Barrier: barrier,
    LastBlock: last_block,
    Scatter: scatter_cuda,
    Scan: scan_cuda,
    SortStep: sort_cuda,
    Radix: radix_cuda,
    RunStep: runs_cuda,
    BinStep: bins_cuda,
    MainLoop: main_loop,
    Persistent: lambda block, step: persistent(block, step, steps),
    Join: joined,
    Dot: simple_dot,
}
