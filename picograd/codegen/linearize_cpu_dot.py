"""Dot on a CPU: the register micro-kernel.

    for k in depth:  b[0..vectors] = vector loads of one row of the panel
                     for i in rows: acc[i][*] = fma(splat(a[i, k]), b[*], acc[i][*])

The accumulators are a register array that is only indexed with constants, so LLVM keeps every
element in a register of its own; `a` is loaded one scalar at a time and repeated in all lanes.
"""

from picograd.codegen.emit import Emitter
from picograd.codegen.linearize_cpu_pack import Builder, flat_position, tile_strides
from picograd.codegen.tile import Dot
from picograd.dtype import DType
from picograd.errors import check

VECTOR_BYTES = 64  # LLVM splits wider vectors than the machine's; blocks are chosen for its own
UNROLL = 1  # depths per loop iteration: hides the loop counter behind 100 multiply-adds


def block_lanes(columns: int, dtype: DType) -> int:
    """Vector width for a block: the widest that divides its columns."""
    lanes = VECTOR_BYTES // dtype.itemsize
    while columns % lanes:
        lanes //= 2
    return lanes


def linearize_dot(builder: Builder, dot: Dot) -> None:
    """Append the instructions of one register block."""
    emitter, tiles, memory = builder.emitter, builder.tiles, builder.memory
    check(dot.block and not dot.b_is_nk, "a CPU dot has a register block and a [k, n] tile b", dot)
    rows, columns = dot.block or (0, 0)
    acc, a, b = tiles[dot.acc], tiles[dot.a], tiles[dot.b]
    lanes = block_lanes(columns, acc.dtype)
    vectors = columns // lanes
    starts = [
        emitter.index(flat_position(tile, origin or ()))
        for tile, origin in ((acc, dot.acc_origin), (a, dot.a_origin), (b, dot.b_origin))
    ]
    array = emitter.add("array", acc.dtype, arg=rows * vectors, lanes=lanes)
    acc_row = tile_strides(acc)[-2]
    for number in range(rows * vectors):
        offset = number // vectors * acc_row + number % vectors * lanes
        if dot.is_first:
            value = emitter.splat(emitter.const(0, acc.dtype), lanes)
        else:
            at = emitter.arithmetic("add", starts[0], emitter.integer(offset))
            value = emitter.load(memory[dot.acc], at, lanes=lanes)
        emitter.add("set", None, (array, emitter.integer(number), value))
    depth_steps = (tile_strides(a)[-2 if dot.a_is_km else -1], tile_strides(b)[-2])
    row_step = tile_strides(a)[-1 if dot.a_is_km else -2]
    unroll = max(u for u in (UNROLL, 2, 1) if dot.depth % u == 0)

    def one_depth(position: int, ahead: int) -> None:
        b_at = at_depth(emitter, starts[2], position, depth_steps[1])
        panel = [
            emitter.load(
                memory[dot.b], plus(emitter, b_at, ahead * depth_steps[1] + v * lanes), lanes=lanes
            )
            for v in range(vectors)
        ]
        a_at = at_depth(emitter, starts[1], position, depth_steps[0])
        for i in range(rows):
            at = plus(emitter, a_at, ahead * depth_steps[0] + i * row_step)
            factor = emitter.splat(emitter.load(memory[dot.a], at), lanes)
            for v in range(vectors):
                number = emitter.integer(i * vectors + v)
                value = emitter.add("get", acc.dtype, (array, number), lanes=lanes)
                value = multiply_add(emitter, factor, panel[v], value)
                emitter.add("set", None, (array, number, value))

    with emitter.loop(emitter.integer(0), emitter.integer(dot.depth), unroll, None) as position:
        for ahead in range(unroll):
            one_depth(position, ahead)
    for number in range(rows * vectors):
        offset = number // vectors * acc_row + number % vectors * lanes
        value = emitter.add("get", acc.dtype, (array, emitter.integer(number)), lanes=lanes)
        emitter.store(memory[dot.acc], plus(emitter, starts[0], offset), value)
    emitter.forget()


def plus(emitter: Emitter, value: int, offset: int) -> int:
    """Append value + constant."""
    return emitter.arithmetic("add", value, emitter.integer(offset))


def at_depth(emitter: Emitter, start: int, position: int, step: int) -> int:
    """Append start + position * step."""
    moved = emitter.arithmetic("mul", position, emitter.integer(step))
    return emitter.arithmetic("add", start, moved)


def multiply_add(emitter: Emitter, a: int, b: int, c: int) -> int:
    """Append a * b + c, fused for floats."""
    dtype = emitter.dtype(c)
    if dtype.is_float:
        return emitter.raw("fma", dtype, a, b, c)
    return emitter.raw("add", dtype, emitter.raw("mul", dtype, a, b), c)
