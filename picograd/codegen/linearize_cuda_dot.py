"""Products of shared tiles on CUDA cores: a thread multiplies a patch of rows and columns.

    for groups of 4 of the depth: load the factors of the patch, then multiply and add each pair

What runs along the depth in memory is loaded 4 at once, other operands as vectors of columns.
"""

from collections.abc import Sequence
from contextlib import ExitStack

from picograd.codegen.block_cuda import Block, lane_of
from picograd.codegen.emit import compute_dtype
from picograd.codegen.layout import Blocked
from picograd.codegen.tile import Dot
from picograd.dtype import DType
from picograd.errors import check, internal
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index

GROUP = 4  # of the depth


@dataclass(frozen=True, slots=True)
class Patch:
    """What a thread multiplies: its rows, and the first of `lanes` columns next to one another."""

    acc: int
    dtype: DType
    down: list[Index]
    across: list[Index]
    lanes: int

    @property
    def columns(self) -> int:
        """Count the columns."""
        return len(self.across) * self.lanes


def simple_dot(block: Block, step: Dot) -> None:
    """Write acc += a @ b, where `acc` is in registers and `a` and `b` are shared tiles."""
    patch = patch_of(block, step)
    emitter = block.emitter
    if step.is_first:
        clear(block, patch)
    row_count = len(patch.down) * GROUP
    column_count = patch.columns * GROUP
    a = emitter.add("array", patch.dtype, arg=row_count)
    b = emitter.add("array", patch.dtype, arg=column_count)
    group = Axis("group", step.depth // GROUP)
    with emitter.axis_loop(group):
        first = axis_index(group) * GROUP
        fill_along(block, step.a, patch.down, first, a)
        if step.b_is_nk:
            lanes = range(patch.lanes)
            every = [place + lane for place in patch.across for lane in lanes]
            fill_along(block, step.b, every, first, b)
        else:
            fill_across(block, step.b, patch, first, b)
        multiply(block, patch, a, b)


def patch_of(block: Block, step: Dot) -> Patch:
    """Find the patch of a thread."""
    acc = block.tiles[step.acc]
    layout = acc.layout
    if not isinstance(layout, Blocked) or step.unit != "fma" or step.a_is_km:
        internal("a product outside of a pipeline is one of CUDA cores", step)
    is_whole = layout.vector[0] == 1 and step.depth % GROUP == 0
    check(is_whole, "rows are read in groups of their depth", step)
    rows, columns = layout.threads
    lanes = layout.vector[1]
    thread = axis_index(block.thread)
    down = [thread // columns + n * rows for n in range(layout.steps[0])]
    start = thread % columns * lanes
    across = [start + n * columns * lanes for n in range(layout.steps[1])]
    dtype = compute_dtype(acc.dtype)
    return Patch(block.arrays[step.acc], dtype, down, across, lanes)


def clear(block: Block, patch: Patch) -> None:
    """Start the sums."""
    emitter = block.emitter
    register = Axis("register", len(patch.down) * patch.columns)
    with emitter.axis_loop(register, True):
        at = emitter.axis_value(register)
        zero = emitter.const(0.0, patch.dtype)
        emitter.add("set", None, (patch.acc, at, zero))


def multiply(block: Block, patch: Patch, a: int, b: int) -> None:
    """Multiply and add every pair of factors."""
    emitter, dtype = block.emitter, patch.dtype
    inner = Axis("inner", GROUP)
    row = Axis("row", len(patch.down))
    column = Axis("column", patch.columns)
    with ExitStack() as stack:
        for axis in (inner, row, column):
            loop = emitter.axis_loop(axis, True)
            stack.enter_context(loop)
        left = emitter.index(axis_index(row) * GROUP + axis_index(inner))
        right = emitter.index(axis_index(column) * GROUP + axis_index(inner))
        at = emitter.index(axis_index(row) * patch.columns + axis_index(column))
        x = emitter.add("get", dtype, (a, left))
        y = emitter.add("get", dtype, (b, right))
        old = emitter.add("get", dtype, (patch.acc, at))
        new = emitter.add("fma", dtype, (x, y, old))
        emitter.add("set", None, (patch.acc, at, new))


def fill_along(block: Block, name: str, places: Sequence[Index], first: Index, side: int) -> None:
    """Load a group of the depth at each place of an operand that runs along it."""
    emitter = block.emitter
    tile = block.tiles[name]
    pointer = block.places[name]
    for number, place in enumerate(places):
        where = block.place(tile, (place, first))
        at = emitter.index(where)
        value = emitter.load(pointer, at, lanes=GROUP)
        for inner in range(GROUP):
            put_lane(block, side, number * GROUP + inner, value, inner)


def fill_across(block: Block, name: str, patch: Patch, first: Index, side: int) -> None:
    """Load vectors of columns at each position of a group of the depth."""
    emitter = block.emitter
    tile = block.tiles[name]
    pointer = block.places[name]
    for inner in range(GROUP):
        for number, place in enumerate(patch.across):
            where = block.place(tile, (first + inner, place))
            at = emitter.index(where)
            value = emitter.load(pointer, at, lanes=patch.lanes)
            for lane in range(patch.lanes):
                column = number * patch.lanes + lane
                put_lane(block, side, column * GROUP + inner, value, lane)


def put_lane(block: Block, side: int, place: int, value: int, lane: int) -> None:
    """Put a lane of a vector in a register."""
    emitter = block.emitter
    at = emitter.integer(place)
    own = lane_of(emitter, value, lane)
    emitter.add("set", None, (side, at, own))
