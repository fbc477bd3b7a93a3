"""Products whose operands come in boxes: small ones to interpret, and their meaning in NumPy."""

from dataclasses import replace

import numpy as np
from cuda_tools import from_raw, matmul_kernel, to_raw

from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.program import verify as verify_program
from picograd.codegen.templates import contract_cuda, contract_tma
from picograd.codegen.tile import verify as verify_tiles
from picograd.target import cuda_target

TWO = cuda_target("sm_90a", 2)  # few processors: each walks several tiles
TF32 = replace(TWO, tf32=True)


def only(block=None, is_shared=False, together=1):
    """Accept the schedules of boxes with a block tile."""
    wanted = block or (128, 128), is_shared, together
    return lambda schedule: (
        isinstance(schedule, contract_tma.BoxSchedule)
        and (schedule.block, schedule.is_shared, schedule.together) == wanted
    )


def tiles_of(kernel, block=None, target=TWO, is_shared=False, together=1):
    return verify_tiles(contract_cuda.build(kernel, target, only(block, is_shared, together)))


def program_of(tiles, target=TWO):
    return verify_program(linearize(tiles, target))


def numbers(kernel, seed=0):
    """Contents of every slot: random inputs, outputs that nobody wrote."""
    generator = np.random.default_rng(seed)
    found = []
    for slot in kernel.slots:
        random = generator.standard_normal(slot.size)
        poison = np.full(slot.size, np.nan)
        found.append(to_raw(random if slot.role == "in" else poison, slot.dtype))
    return found


def expected(case, arrays, kernel):
    """The product in float64, flat, as it lies in memory."""
    a, b, *_ = wide = [
        from_raw(x, s.dtype).astype(float) for x, s in zip(arrays, kernel.slots, strict=True)
    ]
    batch, m, n, k = case.get("batch", 1), case["m"], case["n"], case["k"]
    is_km, is_nk = case.get("a", "mk") == "km", case.get("b", "kn") == "nk"
    left = a.reshape(batch, *((k, m) if is_km else (m, k)))
    right = b.reshape(batch, *((n, k) if is_nk else (k, n)))
    found = (left.swapaxes(1, 2) if is_km else left) @ (right.swapaxes(1, 2) if is_nk else right)
    if case.get("epilogue"):
        found = np.maximum(found + wide[3], 0)
    return (found.swapaxes(1, 2) if case.get("out", "mn") == "nm" else found).reshape(-1)


def results(
    case, block=None, target=TWO, change=lambda program: program, is_shared=False, together=1
):
    """Run a case as Tile IR and as a program: (expected, tile result, program result)."""
    kernel = matmul_kernel(**case)
    tiles = tiles_of(kernel, block, target, is_shared, together)
    arrays = numbers(kernel)
    want, slot = expected(case, arrays, kernel), kernel.slots[2]
    values = [from_raw(x, s.dtype).copy() for x, s in zip(arrays, kernel.slots, strict=True)]
    interpret_tile.interpret(tiles, values)
    interpret_program.interpret(change(program_of(tiles, target)), arrays)
    return want, values[2].astype(float), from_raw(arrays[2], slot.dtype).astype(float)
