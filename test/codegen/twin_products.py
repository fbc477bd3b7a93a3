"""Two products that share their left operand, and what reads both: x @ gate, x @ up."""

from dataclasses import replace

import numpy as np
from box_products import numbers, program_of, tiles_of
from cuda_tools import from_raw, load, matmul_kernel

from picograd.codegen import interpret_program, interpret_tile
from picograd.dtype import float32
from picograd.schedule.loop import Expr, Slot, cast, rewrite


def gated_kernel(m, n, k, dtype, is_kept=False, **given):
    """out = silu(x @ gate) * (x @ up) of rounded products; if they are kept, both are stored."""
    kernel = matmul_kernel(m, n, k, dtype, out_dtype=dtype, **given)
    (part,) = kernel.parts
    first, stored = part.computes
    wide = first.dtype

    def other(expr):
        is_right = expr.op == "load" and expr.arg[0] == 1
        return load(3, expr.arg[1], dtype) if is_right else None

    second = replace(first, body=rewrite(first.body, {}, other))
    slots = [*kernel.slots, Slot(dtype, kernel.slots[1].size, "in")]
    rounded = [cast(cast(Expr("ref", (), n, wide), dtype), float32) for n in (0, 1)]
    value = Expr("mul", (Expr("silu", (rounded[0],), None, float32), rounded[1]), None, float32)
    computes = [first, second]
    if is_kept:
        for number in (0, 1):
            slot, place = len(slots), stored.store[1]
            slots.append(Slot(dtype, m * n, "out"))
            body = cast(Expr("ref", (), number, wide), dtype)
            computes.append(replace(stored, body=body, store=(slot, place)))
    computes.append(replace(stored, body=cast(value, dtype)))
    part = replace(part, computes=tuple(computes))
    return replace(kernel, name=f"gated_{kernel.name}", slots=tuple(slots), parts=(part,))


def expected(kernel, arrays, case):
    """Both products and the gated one, flat and in float64, by the slot where each is stored."""
    m, n, k = case["m"], case["n"], case["k"]
    x, gate, up = (from_raw(arrays[s], kernel.slots[s].dtype).astype(float) for s in (0, 1, 3))
    x = x.reshape(k, m).T if case.get("a") == "km" else x.reshape(m, k)
    is_nk = case.get("b") == "nk"
    weights = [w.reshape(n, k).T if is_nk else w.reshape(k, n) for w in (gate, up)]
    a, b = (x @ w for w in weights)
    gated = a / (1 + np.exp(-a)) * b
    return {number: each.reshape(-1) for number, each in ((2, gated), (4, a), (5, b))}


def results(case, target, block, together=1, is_shared=False):
    """Run a case as Tile IR and as a program; yield (expected, tile result, program result)."""
    kernel = gated_kernel(**case)
    tiles = tiles_of(kernel, block, target, is_shared, together)
    arrays = numbers(kernel)
    want = expected(kernel, arrays, case)
    values = [from_raw(x, s.dtype).copy() for x, s in zip(arrays, kernel.slots, strict=True)]
    interpret_tile.interpret(tiles, values)
    interpret_program.interpret(program_of(tiles, target), arrays)
    for number, slot in enumerate(kernel.slots):
        if slot.role == "out":
            program = from_raw(arrays[number], slot.dtype)
            yield want[number], values[number].astype(float), program.astype(float)
