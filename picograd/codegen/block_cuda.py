"""Block: the state shared by the parts of the CUDA linearizer, and how a step is walked.

Vectors exist only where memory is touched: a step is walked in vectors when some access has stride
1 along the vector and all such accesses are aligned; everything else is done lane by lane.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from picograd.code import TensorMap
from picograd.codegen.decompose import CUDA
from picograd.codegen.emit import Emitter, compute_dtype
from picograd.codegen.lanes import is_unit
from picograd.codegen.layout import (
    Blocked,
    Layout,
    RowsOf,
    Walk,
    WgmmaAccumulator,
    WgmmaOperand,
    replicas_of,
    walk,
)
from picograd.codegen.tile import Assign, Step, Store, Tile, TileKernel, TilePart
from picograd.codegen.unseen import greatest_of, seen_digits, tiles_read
from picograd.dtype import DType, bool_, int32, int64, uint32, uint64
from picograd.errors import check
from picograd.graph.ops import OPS
from picograd.graph.random import HALF_BITS
from picograd.helpers import product, round_up
from picograd.schedule.draws import is_half_drawn
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, flatten, substitute
from picograd.schedule.loop import Condition, Expr, const
from picograd.schedule.loop import walk as walk_expr

WORD, WIDTHS = 4, (4, 2)  # bytes of what is stored side by side, and how many of it
CHUNK_BYTES, ROW_BYTES, TURN = 16, 128, 8  # of a box: chunks of rows, which eight rows permute

GIVEN = "given"  # the name of a value that is at hand
ROUND = 4  # eights of columns that one block of random bits serves
FULL_UNROLL = 32  # longest loop that is unrolled for instruction-level parallelism alone


class Block:
    """What the linearizer knows about the block program it is writing.

    `arrays` are the register tiles, `shared` the byte offsets of shared tiles; `scratch` is where
    free shared memory begins, for communication within one step. `tensors` are the tensor maps of
    the launch. In a role `thread` and `threads` are those of a team; `crew` numbers all its warps.
    `near` is a thread's number in its own block, where blocks of a `cluster` share the work of one;
    `rank` is the number of that block.
    """

    def __init__(self, tile_kernel: TileKernel) -> None:
        kernel = tile_kernel.kernel
        is_wide = any(slot.size >= 1 << 31 for slot in kernel.slots)
        self.emitter = Emitter(kernel, CUDA, self.read, int64 if is_wide else int32)
        self.emitter.is_gathering = True
        self.kernel, self.threads = kernel, tile_kernel.threads
        self.thread, self.cluster = Axis("thread", self.threads), tile_kernel.cluster
        self.near, self.rank = self.thread, constant(0)
        self.has_begun = False  # all blocks of the cluster
        if self.cluster > 1:
            self.near = Axis("near", self.threads // self.cluster)
        self.tiles: dict[str, Tile] = {}
        self.arrays: dict[str, int] = {}
        self.rounds: dict[str, int] = {}  # of booleans that are gathered in a word
        self.packed: dict[str, int] = {}  # of left operands in registers
        self.places: dict[str, int] = {}
        self.stages: dict[str, Axis] = {}  # of tiles of rings, where one is being read
        self.first_workspace = 0
        self.scratch = self.shared_bytes = 0
        self.exchange = (0, 0)  # (offset, bytes)
        self.walk: Walk | None = None
        self.tensors: list[TensorMap] = []
        self.crew = self.thread
        self.team = 0  # threads that barriers are for, in a role; 0: all of the block
        self.given = -1  # the value of what is read by the name of `GIVEN`
        self.riders: list[Store] = []  # that wait for a rolled one
        self.part = TilePart((), (), ())
        self.seen: dict[str, int] = {}  # how much is seen of tiles
        self.greatest: dict[str, list[object]] = {}  # of what elements tiles hold the greatest
        self.chosen: int | None = None  # the number of its member that a block belongs to

    def enter(self, part: TilePart, first_workspace: int) -> None:
        """Declare the tiles of a part."""
        self.first_workspace, self.scratch, self.exchange = (first_workspace, 0, (0, 0))
        self.tiles, self.seen = {}, seen_digits(part, self.kernel)
        self.greatest = greatest_of(part)
        self.declare(part.tiles)

    def declare(self, tiles: Sequence[Tile]) -> None:
        """Declare tiles beside those that there are."""
        for tile in tiles:
            self.tiles[tile.name] = tile
            if tile.space == "register":
                check(tile.layout is not None, f"register tile {tile.name} has no layout")
                size = tile.layout.register_count  # type: ignore[union-attr]
                dtype = compute_dtype(tile.dtype)
                if is_word(tile):
                    size, dtype = 1, uint32 if size <= uint32.bits else uint64
                    self.rounds[tile.name] = self.emitter.add("array", uint32, arg=1)
                self.arrays[tile.name] = self.emitter.add("array", dtype, arg=size)
                if isinstance(tile.layout, WgmmaOperand):
                    words = size * tile.dtype.itemsize // uint32.itemsize
                    packed = self.emitter.add("array", uint32, arg=words)
                    self.packed[tile.name] = packed
            elif tile.space == "shared":
                rows = product(tile.shape[:-1])
                size = rows * ((*tile.shape, 1)[len(tile.shape) - 1] + tile.row_padding)
                offset = self.reserve(size * tile.dtype.itemsize * tile.stages)
                self.places[tile.name] = self.emitter.add("shared", tile.dtype, arg=offset)
            else:
                self.places[tile.name] = self.workspace(tile.workspace, tile.dtype)

    @contextmanager
    def member(self, part: TilePart, number: int | None) -> Iterator[None]:
        """Let the first slots, scalars and workspaces of a part stand for those of a member."""
        emitter = self.emitter
        slots, scalars, self.part, self.chosen = emitter.slots, emitter.scalars, part, number
        if number is not None:
            emitter.slots, emitter.scalars = list(slots), list(scalars)
            for places in zip(*[each.slots for each in part.members], strict=True):
                emitter.slots[places[0]] = self.choose([slots[place] for place in places])
            for places in zip(*[each.scalars for each in part.members], strict=True):
                emitter.scalars[places[0]] = self.choose([scalars[place] for place in places])
        yield
        emitter.slots, emitter.scalars = slots, scalars

    def choose(self, options: Sequence[int]) -> int:
        """Choose the pointer or number of the member that a block belongs to."""
        if self.chosen is None or len(set(options)) == 1:
            return options[0]
        first = self.emitter.instructions[options[0]]
        role = self.kernel.slots[first.arg].role if first.op == "param" else first.op
        return self.emitter.add("choose", first.dtype, (self.chosen, *options), role)

    def workspace(self, number: int, dtype: DType) -> int:
        """Point to a workspace of the part, as elements of a dtype."""
        each = len(self.part.workspaces)
        first = self.first_workspace + number
        places = [first + each * member for member in range(self.part.count)]
        return self.choose([self.emitter.add("workspace", dtype, arg=place) for place in places])

    def tensor(self, tensor: TensorMap) -> int:
        """Number a tensor map of the launch."""
        if tensor not in self.tensors:
            self.tensors.append(tensor)
        return self.tensors.index(tensor)

    def reserve(self, size: int) -> int:
        """Take shared memory for the rest of the part and return its byte offset."""
        offset = self.scratch
        # 1024 bytes: what the 128-byte swizzle of `wgmma` repeats over.
        self.scratch = round_up(offset + size, 1024 if size >= 1024 else 128)
        offset = round_up(offset, 1024) if size >= 1024 else offset
        self.scratch = max(self.scratch, offset + size)
        self.shared_bytes = max(self.shared_bytes, self.scratch)
        return offset

    def scratch_for(self, size: int) -> int:
        """Byte offset of communication space, reused by all steps of the part."""
        if size > self.exchange[1]:
            self.exchange = self.reserve(size), size
        return self.exchange[0]

    def place(self, tile: Tile, index: Sequence[Index]) -> Index:
        """Position of a coordinate in a shared or workspace tile."""
        shape = (*tile.shape[:-1], tile.shape[-1] + tile.row_padding) if tile.shape else ()
        place = flatten(index, shape)
        if tile.name in self.stages:
            place = place + axis_index(self.stages[tile.name]) * product(shape)
        return place

    def read(self, emitter: Emitter, expr: Expr) -> int:
        """Read a tile at the present point."""
        name, index = expr.arg
        if name == GIVEN:
            return self.given
        tile = self.tiles[name]
        if tile.space == "register":
            where = self.register(tile, index)
        else:
            where = self.place(tile, index)
        vector = emitter.scopes[-1].vector
        is_varying = vector is not None and vector[0] in emitter.index_axes(where)
        is_unit_step = vector is not None and is_unit(where, vector[0])
        if is_varying and (tile.space == "register" or not is_unit_step):
            return emitter.lane_by_lane(expr)
        if tile.space == "register":
            array = self.arrays[name]
            if is_word(tile):
                return bit_of(emitter, array, tile, where)
            return emitter.get(array, emitter.index(where))
        lanes = vector[1] if vector and is_varying else 1
        mask = emitter.scopes[-1].mask
        pointer = self.places[name]
        if tile.swizzle:
            return emitter.load(pointer, self.permuted(tile, index), mask, lanes)
        return emitter.load(pointer, emitter.index(where), mask, lanes)

    def permuted(self, tile: Tile, index: Sequence[Index]) -> int:
        """Find where an element of a box is: see `Swizzled`."""
        emitter = self.emitter
        row, column = index
        many = CHUNK_BYTES // tile.dtype.itemsize
        span = ROW_BYTES // tile.dtype.itemsize
        before = axis_index(self.stages[tile.name]) * product(tile.shape)
        before += column // span * (tile.shape[0] * span) + row * span + column % many
        chunk = emitter.index(column % span // many)
        moved = emitter.raw("bitwise_xor", emitter.index_dtype, chunk, emitter.index(row % TURN))
        far = emitter.arithmetic("mul", moved, emitter.integer(many))
        return emitter.arithmetic("add", far, emitter.index(before))

    def register(self, tile: Tile, index: Sequence[Index]) -> Index:
        """Find the register of a coordinate: that of the present point, or of one near to it.

        A thread that walks windows has several elements of each in its patch of a tile.
        """
        check(self.walk is not None, f"{tile.name} is read outside a walk")
        found, count = self.walk, len(tile.shape)
        patch = tuple(size for _, size in found.lanes[:count])  # type: ignore[union-attr]
        is_here = tuple(index) == found.coordinates[:count]  # type: ignore[union-attr]
        if isinstance(tile.layout, Blocked) and (patch != tile.layout.vector or not is_here):
            return register_of(tile.layout, index)
        is_fragment = isinstance(tile.layout, WgmmaAccumulator) and count == 2
        if is_fragment and found.columns not in (0, tile.layout.n):  # type: ignore[union-attr]
            return tile.layout.register_of(*index)  # type: ignore[union-attr]
        return found.register(count)  # type: ignore[union-attr]

    def walked(
        self,
        layout: Layout,
        dims: Sequence[Axis],
        exprs: Sequence[Expr],
        places: Sequence[Index] = (),
        conditions: Sequence[Condition] = (),
    ) -> tuple[Walk, dict[Axis, Index]]:
        """Choose how to walk dims: in vectors if an access gains and none is misaligned."""
        for is_vector in (True, False):
            found = walk(layout, self.thread, is_vector)
            values = dict(zip(dims, found.coordinates, strict=True))
            if found.vector is None or self.is_aligned(found, values, exprs, places, conditions):
                break
        return found, values

    def is_aligned(
        self,
        found: Walk,
        values: Mapping[Axis, Index],
        exprs: Sequence[Expr],
        places: Sequence[Index],
        conditions: Sequence[Condition],
    ) -> bool:
        """Tell whether a vector walk has stride-1 accesses and all of them are aligned."""
        check(found.vector is not None, "only a vector walk can be aligned")
        axis, lanes = found.vector  # type: ignore[misc]
        indices = [substitute(place, values) for place in places]
        tests = [(substitute(index, values), lo, hi) for index, lo, hi in conditions]
        if not all(is_uniform(test, axis, lanes) for test in tests):
            return False
        for expr in exprs:
            for node in walk_expr(expr):
                if node.op == "load":
                    indices.append(substitute(node.arg[1], values))
                elif node.op == "tile" and self.tiles[node.arg[0]].space != "register":
                    tile, index = self.tiles[node.arg[0]], node.arg[1]
                    indices.append(substitute(self.place(tile, index), values))
        units = [index for index in indices if is_unit(index, axis)]
        return bool(units) and all(is_multiple(index, axis, lanes) for index in units)


def is_word(tile: Tile) -> bool:
    """Tell whether a thread has its booleans of a fragment as the bits of one word."""
    layout = tile.layout
    is_fragment = tile.dtype is bool_ and isinstance(layout, WgmmaAccumulator)
    return is_fragment and layout.register_count <= uint64.bits  # type: ignore[union-attr]


def bit_of(emitter: Emitter, array: int, tile: Tile, where: Index) -> int:
    """Read a boolean of a word; the first is the highest bit, where they came in from the right."""
    dtype = emitter.dtype(array)
    last = tile.layout.register_count - 1  # type: ignore[union-attr]
    place = emitter.cast(emitter.index(where * -1 + last), dtype)
    bit = emitter.apply("shift_left", emitter.const(1, dtype), place)
    word = emitter.get(array, emitter.integer(0))
    found = emitter.apply("bitwise_and", word, bit)
    return emitter.apply("not_equal", found, emitter.const(0, dtype))


def register_of(layout: Blocked, index: Sequence[Index]) -> Index:
    """Find the register of a coordinate in the thread that holds it."""
    sizes = list(zip(index, layout.threads, layout.vector, strict=True))
    steps = [place // (threads * vector) for place, threads, vector in sizes]
    lanes = [place % vector for place, _, vector in sizes]
    return flatten([*steps, *lanes], [*layout.steps, *layout.vector])


def is_multiple(index: Index, axis: Axis, lanes: int) -> bool:
    """Tell whether an index is a multiple of `lanes` in lane 0, as an aligned vector needs."""
    return index.const % lanes == 0 and all(
        atom is axis or c % lanes == 0 for atom, c in index.terms
    )


def is_uniform(condition: Condition, axis: Axis, lanes: int) -> bool:
    """Tell whether a condition holds in all lanes if it holds in lane 0."""
    index, lo, hi = condition
    if axis not in axes_of(index):
        return True
    is_whole = lo % lanes == 0 and (hi + 1) % lanes == 0
    return is_whole and is_unit(index, axis) and is_multiple(index, axis, lanes)


def in_rounds(found: Walk) -> Walk:
    """Walk the columns of a fragment in rounds of 32, of which a thread has eight a row.

    One block of random bits serves those (`picograd/schedule/draws.py`).
    """
    across = next(axis for axis, dim in found.loops if dim)
    count = math.gcd(across.size, ROUND)
    turn, near = Axis("turn", across.size // count), Axis("near", count)
    moved = {across: axis_index(turn) * count + axis_index(near)}
    coordinates = tuple([substitute(each, moved) for each in found.coordinates])
    loops: list[tuple[Axis, int]] = []
    for axis, dim in found.loops:
        loops += [(turn, dim), (near, dim)] if axis is across else [(axis, dim)]
    return replace(found, loops=tuple(loops), coordinates=coordinates)


def word_loops(block: Block, stack: ExitStack, found: Walk, tile: Tile) -> None:
    """Open the loops of a walk that fills words; those over rounds stay, as elements are dear.

    Bits of a round are gathered in 32 bits: a shift that takes in the highest bit of another word
    is one instruction there.
    """
    emitter = block.emitter
    zero = emitter.integer(0)
    names = [axis.name for axis, _ in found.loops]
    inner = found.loops[names.index("turn") + 1 :]
    outer = found.loops[: -len(inner)]
    for axis, _ in outer:
        stack.enter_context(emitter.axis_loop(axis, None))
    emitter.put(block.rounds[tile.name], zero, emitter.const(0, uint32))
    stack.callback(end_round, block, tile, product(axis.size for axis, _ in inner))
    for axis, _ in inner:
        stack.enter_context(emitter.axis_loop(axis, True))


def end_round(block: Block, tile: Tile, count: int) -> None:
    """Take the bits of a round into the word of a tile, from the right."""
    emitter, array = block.emitter, block.arrays[tile.name]
    zero, dtype = emitter.integer(0), emitter.dtype(block.arrays[tile.name])
    moved = emitter.apply("shift_left", emitter.get(array, zero), emitter.const(count, dtype))
    bits = emitter.cast(emitter.get(block.rounds[tile.name], zero), dtype)
    emitter.put(array, zero, emitter.apply("bitwise_or", moved, bits))


def as_sign(expr: Expr) -> Expr:
    """Write whether 16 random bits are less than a number as the sign of a difference.

    less(bits, n) -> bits - min(n, 65536) >> 31, of 32 bits
    """
    row = OPS.get(expr.op)
    if row is None or row.least != 1 or not is_half_drawn(expr.args[0]):
        return expr
    bits, most = expr.args
    most = Expr("minimum", (most, const(1 << HALF_BITS, uint32)), None, uint32)
    less = Expr("sub", (bits, most), None, uint32)
    return Expr("shift_right", (less, const(31, uint32)), None, uint32)


def loops(block: Block, stack: ExitStack, found: Sequence[tuple[Axis, int]], held: int = 0) -> None:
    """Open the nested loops of a walk; unrolled if they are short or index registers.

    Those of the first `held` dimensions index some. Long loops that index none are left to the
    compiler: written out, one of a hundred rounds compiles for a second.
    """
    short = product(axis.size for axis, _ in found) <= FULL_UNROLL
    for axis, dim in found:
        stack.enter_context(block.emitter.axis_loop(axis, dim < held or short))


def inside(block: Block, stack: ExitStack, found: Walk, mask: int | None) -> None:
    """Open the scope of one point: the vector axis at lane 0, loads under the mask."""
    emitter = block.emitter
    axes = {found.vector[0]: emitter.integer(0)} if found.vector else {}
    stack.enter_context(emitter.scope(axes, found.vector))
    emitter.scopes[-1].mask = emitter.both(emitter.scopes[-1].mask, mask)
    block.walk = found


def tests_of(step: Store, lanes: Axis | None, values: Mapping[Axis, Index]) -> list[Condition]:
    """Write the conditions of a store at the first place of a vector."""
    first = {lanes: constant(0)} if lanes else {}
    tests: list[Condition] = []
    for index, low, high in step.conditions:
        tests.append((substitute(substitute(index, values), first), low, high))
    return tests


def lane_of(emitter: Emitter, value: int, lane: int) -> int:
    """Take one lane of a vector; a scalar is the same in all lanes."""
    if emitter.lanes(value) == 1:
        return value
    return emitter.add("extract", emitter.dtype(value), (value,), lane)


def before_widening(emitter: Emitter, value: int, dtype: DType) -> int:
    """Undo a widening that rounding to `dtype` would undo anyway."""
    instr = emitter.instructions[value]
    if instr.op == "pack":
        lanes = [before_widening(emitter, each, dtype) for each in instr.args]
        is_same = all(emitter.dtype(each) is dtype for each in lanes)
        return emitter.add("pack", dtype, lanes, lanes=len(lanes)) if is_same else value
    is_undone = instr.op == "cast" and emitter.dtype(instr.args[0]) is dtype
    return instr.args[0] if is_undone and compute_dtype(dtype) is instr.dtype else value


def put(block: Block, pointer: int, place: Index, value: int, mask: int | None) -> None:
    """Store a value at a place: as a vector if the place has stride 1, else lane by lane."""
    emitter = block.emitter
    value = before_widening(emitter, value, emitter.dtype(pointer))
    vector = emitter.scopes[-1].vector
    if vector is None or vector[0] not in emitter.index_axes(place):
        emitter.store(pointer, emitter.index(place), lane_of(emitter, value, 0), mask)
    elif is_unit(place, vector[0]) and is_multiple(place, *vector):
        emitter.store(pointer, emitter.index(place), emitter.splat(value, vector[1]), mask)
    else:
        for lane in range(vector[1]):
            at = emitter.index(substitute(place, {vector[0]: constant(lane)}))
            emitter.store(pointer, at, lane_of(emitter, value, lane), mask)


def are_alike(block: Block, group: Sequence[Assign], step: Assign) -> bool:
    """Tell whether registers are written for the same points, and some of it under guards.

    Compilers read once what is read twice, but not under conditions.
    """
    every, names = (*group[:1], step), {each.tile for each in group}
    tiles = [block.tiles[each.tile] for each in every]
    kinds = {(t.space, t.layout, e.dims, e.conditions) for t, e in zip(tiles, every)}
    is_free = names.isdisjoint({step.tile, *tiles_read(step.expr)})
    if not names or not is_free or len(kinds) > 1 or tiles[0].space != "register":
        return False
    is_blocked = isinstance(tiles[0].layout, Blocked)
    return is_blocked and any(each.op == "guard" for each in walk_expr(group[0].expr))


def are_beside(block: Block, group: Sequence[Store], step: Step) -> bool:
    """Tell whether a store goes on where others end, of a vector that registers hold."""
    if not isinstance(step, Store) or step.index != group[0].index + len(group):
        return False
    every, index = (group[0], step), group[0].index
    kinds = {(e.slot, e.dims, e.layout, e.conditions, e.box, e.rides) for e in every}
    steps = (index.const, *(step for _, step in index.terms))
    lanes = next((n for n in WIDTHS if not any(step % n for step in steps)), 1)
    is_plain = len(kinds) == 1 and not step.box and not step.rides
    is_read = any(part.op == "load" for each in every for part in walk_expr(each.expr))
    has_words = block.kernel.slots[step.slot].dtype.itemsize == WORD
    return is_plain and has_words and not is_read and len(group) < lanes


def write_once(block: Block, layout: Layout) -> int | None:
    """Mask of the threads that write, where several hold the same element."""
    if isinstance(layout, RowsOf):
        rest = axis_index(block.thread) % 4
    elif isinstance(layout, Blocked) and layout.is_first_fastest:
        rest = axis_index(block.thread) // layout.thread_count
    else:
        rest = axis_index(block.thread) % replicas_of(layout, block.threads)
    return block.emitter.conditions([(rest, 0, 0)])


def default_layout(block: Block, dims: Sequence[Axis]) -> Blocked:
    """Spread dims over the threads, last dimension first; threads left over replicate."""
    left, threads = block.threads, []
    for axis in reversed(dims):
        count = 1
        while count < axis.size and left % 2 == 0:
            count, left = count * 2, left // 2
        threads.append(count)
    shape = tuple(axis.size for axis in dims)
    return Blocked(shape, tuple(reversed(threads)), (1,) * len(shape))


def enter_dims(
    block: Block, stack: ExitStack, dims: Sequence[Axis]
) -> tuple[Walk, dict[Axis, Index], int | None]:
    """Open loops over dims that threads share: how they are walked, the dims there, who writes."""
    layout = default_layout(block, dims)
    found, values = block.walked(layout, dims, [])
    once = write_once(block, layout)
    loops(block, stack, found.loops)
    return found, values, once


def set_registers(block: Block, found: Walk, tile: Tile, value: int) -> None:
    """Write a value (each lane of it) into the registers of a tile at the present point."""
    emitter, array = block.emitter, block.arrays[tile.name]
    where = found.register(len(tile.shape))
    if is_word(tile):
        array, zero = block.rounds[tile.name], emitter.integer(0)
        moved = emitter.apply("shift_left", emitter.get(array, zero), emitter.const(1, uint32))
        emitter.put(array, zero, emitter.apply("bitwise_or", moved, emitter.cast(value, uint32)))
        return
    value = emitter.cast(value, emitter.dtype(array))
    if found.vector is None or found.vector[0] not in emitter.index_axes(where):
        emitter.put(array, emitter.index(where), lane_of(emitter, value, 0))
        return
    for lane in range(found.vector[1]):
        at = emitter.index(substitute(where, {found.vector[0]: constant(lane)}))
        emitter.put(array, at, lane_of(emitter, value, lane))
