"""The operands of a CUDA MainLoop: where their chunks come from, where they lie when shared.

A chunk is what one thread copies at once: 16 bytes, `lanes` neighbours in memory order.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Union

from picograd.codegen.block_cuda import is_multiple, is_uniform
from picograd.codegen.emit import Emitter
from picograd.codegen.lanes import is_unit
from picograd.codegen.tensor_core import (
    CHUNK,
    MmaSchedule,
    SharedOperand,
    SimtSchedule,
    WgmmaSchedule,
)
from picograd.codegen.tensor_core_tf32 import Tf32Schedule
from picograd.codegen.tile import MainLoop
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, substitute
from picograd.schedule.loop import Condition, Expr, Kernel

Schedule = Union[MmaSchedule, SimtSchedule, Tf32Schedule, WgmmaSchedule]
MANY = 1 << 20  # rows or chunks, of which a tile may have some
ELEMENTS = 4, 8  # bytes of one that cp.async copies alone
FEW_THREADS, MANY_RESULTS = 128, 64  # of a block, and of each of them
Place = Callable[[Emitter, Index, Index], int]  # (row, chunk) -> position of the chunk


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of the product: an expression over (`outer`, depth), and its shared tile."""

    expr: Expr
    outer: Axis
    depth: Axis
    rows: int
    columns: int
    is_k_major: bool  # lanes of a chunk run along the depth
    lanes: int
    size: int  # elements of one stage
    spread: int  # elements between the lanes of a chunk in shared memory
    place: Place

    def values(self, step: Axis, row: Index, column: Index) -> Mapping[Axis, Index]:
        """Coordinates of one element of the tile of depth number `step`."""
        outer, depth = (row, column) if self.is_k_major else (column, row)
        span = self.columns if self.is_k_major else self.rows
        return {self.outer: outer, self.depth: depth + axis_index(step) * span}


def operands_of(step: MainLoop) -> list[Operand]:
    """Describe the operands and where their chunks lie in shared memory: the left one, and each
    right one."""
    schedule = step.schedule
    m, n, k = step.dims
    found = []
    sides = [(step.a, m, schedule.a_is_k_major)]
    sides += [(b, n, schedule.b_is_k_major) for _, b in step.products]
    for expr, outer, is_k_major in sides:
        depth = schedule.block[2]
        rows, columns = (outer.size, depth) if is_k_major else (depth, outer.size)
        if isinstance(schedule, SimtSchedule | Tf32Schedule):
            lanes = schedule.vector
            pitch = schedule.pitch(outer.size)
            place = pitched(pitch, is_k_major, lanes)
            size, spread = depth * pitch, pitch if is_k_major else 1
        else:
            tile = schedule.a if outer is m else schedule.b
            place, lanes, size, spread = swizzled(tile), CHUNK, tile.size, 1
        operand = Operand(expr, outer, k, rows, columns, is_k_major, lanes, size, spread, place)
        found.append(operand)
    return found


def forms_of(kernel: Kernel, operand: Operand, schedule: Schedule) -> list[Operand]:
    """List what chunks may be if cp.async copies them: 16 bytes, or else one element.

    Vectors along K are turned on their way through registers, if threads have any left for them.
    """
    if not isinstance(schedule, SimtSchedule) or not schedule.has_single:
        return [operand]
    results = schedule.sums * schedule.per_thread(0) * schedule.per_thread(1)
    is_full = schedule.threads <= FEW_THREADS and results >= MANY_RESULTS
    is_turned = operand.is_k_major and not is_full
    if is_turned and plain_load(kernel, replace(operand, spread=1)) is not None:
        return [operand]
    place = pitched(schedule.pitch(operand.outer.size), operand.is_k_major, 1)
    return [operand, replace(operand, lanes=1, spread=1, place=place)]


def swizzled(tile: SharedOperand) -> Place:
    """Make the place function of a swizzled tile."""

    def place(emitter: Emitter, row: Index, chunk: Index) -> int:
        shift, mask = tile.shift_mask
        bits = emitter.index(row // (1 << shift) % (mask + 1))
        inside = emitter.index(chunk % tile.chunks)
        permuted = emitter.raw("bitwise_xor", emitter.index_dtype, inside, bits)
        slab = chunk // tile.chunks * tile.rows
        start = emitter.index((slab + row) * tile.span)
        offset = emitter.arithmetic("mul", permuted, emitter.integer(CHUNK))
        return emitter.arithmetic("add", start, offset)

    return place


def pitched(pitch: int, is_k_major: bool, lanes: int) -> Place:
    """Make the place function of a [k][m] tile whose rows are `pitch` apart."""

    def place(emitter: Emitter, row: Index, chunk: Index) -> int:
        depth, outer = (chunk * lanes, row) if is_k_major else (row, chunk * lanes)
        return emitter.index(depth * pitch + outer)

    return place


def plain_load(kernel: Kernel, operand: Operand) -> tuple[int, Index, tuple[Condition, ...]] | None:
    """Find (slot, index, conditions) of an operand that cp.async can copy chunk by chunk."""
    conditions: tuple[Condition, ...] = ()
    expr = operand.expr
    while expr.op == "guard" and expr.args[1].op == "const" and expr.args[1].arg == 0:
        conditions, expr = conditions + expr.arg, expr.args[0]
    slot_dtype = kernel.slots[expr.arg[0]].dtype if expr.op == "load" else None
    if slot_dtype is not operand.expr.dtype or operand.spread != 1:
        return None
    slot, index = expr.arg
    if operand.lanes == 1:
        return (slot, index, conditions) if slot_dtype.itemsize in ELEMENTS else None
    if operand.lanes * slot_dtype.itemsize != 16:
        return None
    lane = Axis("lane", operand.lanes)
    chunk, row, tile = (Axis(name, MANY) for name in ("chunk", "row", "tile"))
    column = axis_index(chunk) * operand.lanes + axis_index(lane)
    values = operand.values(tile, axis_index(row), column)
    where = substitute(index, values)
    tests = [(substitute(i, values), lo, hi) for i, lo, hi in conditions]
    is_aligned = is_unit(where, lane) and is_multiple(where, lane, operand.lanes)
    is_whole = all(is_uniform(test, lane, operand.lanes) for test in tests)
    return (slot, index, conditions) if is_aligned and is_whole else None
