"""Depthwise convolutions as plans of small kernels for a GPU, and their runs by interpreters."""

from dataclasses import replace

import numpy as np
from box_convolutions import leaf, read_leaf, spec_of
from cuda_tools import from_raw, to_raw

from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import tile
from picograd.codegen.program import verify as verify_program
from picograd.codegen.tile import verify as verify_tiles
from picograd.dtype import bfloat16
from picograd.graph.gradient import gradient
from picograd.schedule.index import axis_index
from picograd.schedule.interpret import interpret
from picograd.schedule.interpret_plan import allocate
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

TWO = cuda_target("sm_80", 2)


def plan_of(kind, images, channels, sizes, kernel, dtype=bfloat16, **changes):
    """Schedule one, its operands channels-last as inside of a network."""
    rank = len(sizes)
    near = (0, rank + 1, *range(1, rank + 1))
    x = leaf(images, *sizes, channels, dtype=dtype).permute(near)
    weight = leaf(channels, 1, 1, *kernel, seed=1, dtype=dtype)
    image = x.reshape((images, channels, 1, *sizes))
    root = image.conv(weight, spec_of(rank, **changes))
    if kind == "weight":
        given = leaf(*(root.shape[n] for n in (0, *range(3, root.rank), 1)), seed=2, dtype=dtype)
        (root,) = gradient([(root, given.permute(near).reshape(root.shape))], [weight])
    order = (0, *range(3, root.rank), 1, 2) if kind == "forward" else range(root.rank)
    return schedule([root.permute(tuple(order))], TWO)


def tiles_with_ends(plan):
    """Write the kernels of a plan as if nobody saw all of their first axes; list their tiles."""
    found = []
    for step in plan.steps:
        (part,) = step.kernel.parts
        end = axis_index(part.rows[0]), 0, part.rows[0].size - 2
        kernel = replace(step.kernel, parts=(replace(part, ends=(end,)),))
        found += [each.name for each in tile(kernel, TWO).parts[0].tiles]
    return found


def run(plan):
    """Run a plan; compare Loop IR, Tile IR and program of each kernel. Gives the tiles."""
    memory = allocate(plan, [read_leaf(node) for node in plan.inputs])
    made = []
    for step in plan.steps:
        arrays = [memory[number] for number in step.slots]
        made.append(verify_tiles(tile(step.kernel, TWO)))
        found = [a.copy() for a in arrays]
        raw = [to_raw(a, s.dtype) for a, s in zip(arrays, step.kernel.slots, strict=True)]
        interpret(step.kernel, arrays, [])
        interpret_tile.interpret(made[-1], found)
        interpret_program.interpret(verify_program(linearize(made[-1], TWO)), raw)
        for n, slot in enumerate(step.kernel.slots):
            if slot.role == "out":
                np.testing.assert_array_equal(found[n], arrays[n])
                np.testing.assert_array_equal(from_raw(raw[n], slot.dtype), arrays[n])
    return made
