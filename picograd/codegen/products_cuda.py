"""Products of a warpgroup on Hopper: `wgmma` over the stages that tiles are at.

Operands in shared memory are described by 64-bit numbers: where they begin, and how far apart their
slabs are. A left operand may be in registers, packed: float32 is then multiplied by `mma.sync`, as
`wgmma` reads TF32 along K alone, in an order in which no accumulator has it.
"""

from collections.abc import Sequence
from dataclasses import replace

from picograd.codegen.block_cuda import Block
from picograd.codegen.layout import Swizzled, WgmmaAccumulator
from picograd.codegen.program_async import K_BYTES, Mma, Wgmma
from picograd.codegen.tile import Dot
from picograd.dtype import uint64
from picograd.errors import check, internal
from picograd.schedule.index import Index, axis_index, constant

ROW = 128  # bytes of a row of a slab
PACKED = 4  # registers of a left operand that one `wgmma` multiplies


def add(block: Block, op: str, args: Sequence[int] = (), arg: object = None) -> None:
    """Append an instruction without a value."""
    block.emitter.add(op, None, args, arg)


def swizzled(block: Block, name: str) -> Swizzled:
    """Find the layout of a stage."""
    swizzle = block.tiles[name].swizzle
    if swizzle is None:
        internal(f"{name} is not swizzled")
    return swizzle


def dot(block: Block, step: Dot) -> None:
    """Write acc += a @ b over stages that are there, on this warpgroup's rows."""
    check(step.unit in ("wgmma", "mma"), "a pipeline multiplies on the tensor cores", step)
    acc = block.tiles[step.acc].layout
    if not isinstance(acc, WgmmaAccumulator):
        internal("wgmma wants its own accumulator", step)
    if step.unit == "mma":
        dot_at_once(block, step, acc)
        return
    if step.a in block.packed:
        dot_packed(block, step, acc)
        return
    a, b = swizzled(block, step.a), swizzled(block, step.b)
    # A warpgroup's rows: rows of a slab, or slabs of their own.
    high = 64 * acc.stacked
    mine = high // a.span * a.shape[0] * a.span if step.a_is_km else high * a.span
    start = axis_index(block.crew) // 4 % acc.groups * mine
    found = [
        describe(block, step.a, start, step.a_is_km),
        describe(block, step.b, constant(0), not step.b_is_nk),
    ]
    dtypes = block.tiles[step.a].dtype, block.tiles[step.b].dtype
    dtype = dtypes[0]
    for k in range(step.depth * dtype.itemsize // K_BYTES):
        for fragment in range(acc.stacked):
            a_offset = (
                across(a, k, fragment, dtype.itemsize) if step.a_is_km else along(a, k, fragment)
            )
            b_offset = along(b, k, 0) if step.b_is_nk else across(b, k, 0, dtype.itemsize)
            spec = Wgmma(
                acc.n,
                dtypes,
                acc.register_count,
                fragment * acc.n // 2,
                a_offset,
                b_offset,
                not step.a_is_km,
                step.b_is_nk,
                is_first=step.is_first and k == 0,
            )
            add(block, "wgmma", (block.arrays[step.acc], *found), spec)


def dot_packed(block: Block, step: Dot, acc: WgmmaAccumulator) -> None:
    """Write acc += a @ b with the rows of `a` in registers."""
    check(acc.stacked == 1, "a left operand in registers is one fragment high", step)
    b = swizzled(block, step.b)
    b_is_nk = step.b_is_nk
    dtype = block.tiles[step.a].dtype
    itemsize = dtype.itemsize
    sums, rows = block.arrays[step.acc], block.packed[step.a]
    columns = describe(block, step.b, constant(0), not b_is_nk)
    args = sums, rows, columns
    plain = Wgmma(acc.n, (dtype, dtype), acc.register_count, 0, 0, 0, True, b_is_nk, True)
    steps = step.depth * itemsize // K_BYTES
    for k in range(steps):
        place = along(b, k, 0) if b_is_nk else across(b, k, 0, itemsize)
        is_first = step.is_first and k == 0
        spec = replace(plain, a_offset=PACKED * k, b_offset=place, is_first=is_first)
        add(block, "wgmma", args, spec)


def dot_at_once(block: Block, step: Dot, acc: WgmmaAccumulator) -> None:
    """Write acc += a @ b of float32, with the rows of `a` in registers."""
    check(acc.stacked == 1, "a left operand in registers is one fragment high", step)
    emitter = block.emitter
    layout = swizzled(block, step.b)
    rows, _ = layout.shape
    stage = emitter.axis_value(block.stages[step.b])
    size = emitter.integer(layout.size)
    place = emitter.arithmetic("mul", stage, size)
    sums = block.arrays[step.acc]
    left = block.packed[step.a]
    right = block.places[step.b]
    spec = Mma(acc.n, step.depth, rows, step.b_is_nk, step.is_first)
    args = sums, left, right, place
    add(block, "mma_packed", args, spec)


def describe(block: Block, name: str, start: Index, is_across: bool) -> int:
    """Write the descriptor of an operand that begins so many elements into its stage."""
    emitter = block.emitter
    layout = swizzled(block, name)
    stage = emitter.axis_value(block.stages[name])
    size = emitter.integer(layout.size)
    stage_start = emitter.arithmetic("mul", stage, size)
    offset = emitter.index(start)
    place = emitter.arithmetic("add", stage_start, offset)
    leading = slab_bytes(layout) if is_across else 16
    args = block.places[name], place
    return emitter.add("descriptor", uint64, args, leading)


def slab_bytes(layout: Swizzled) -> int:
    """Count the bytes of a slab."""
    return layout.shape[0] * ROW


def along(layout: Swizzled, k: int, fragment: int) -> int:
    """Count the bytes to step `k` of 64 rows that run along K; each slab holds all rows."""
    slab, inner = divmod(k, ROW // K_BYTES)
    fragment_start = fragment * 64 * ROW
    return slab * slab_bytes(layout) + inner * K_BYTES + fragment_start


def across(layout: Swizzled, k: int, fragment: int, itemsize: int) -> int:
    """Count the bytes to step `k` of 64 columns, each slab of which holds all of K."""
    row = k * K_BYTES // itemsize
    slab = fragment * 64 // layout.span
    return row * ROW + slab * slab_bytes(layout)
