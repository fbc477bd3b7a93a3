"""Convolutions whose operands come in boxes: plans of small ones, run kernel by kernel."""

import dataclasses

import numpy as np
from cuda_tools import from_raw, to_raw

from picograd import Tensor
from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.program import verify as verify_program
from picograd.codegen.templates import contract_cuda
from picograd.codegen.tile import verify as verify_tiles
from picograd.codegen.tile_pipeline import Persistent
from picograd.dtype import bfloat16
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec
from picograd.schedule.interpret import interpret
from picograd.schedule.interpret_plan import allocate
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

TWO = cuda_target("sm_90a", 2)  # few processors: each walks several tiles


def leaf(*shape, seed=0, dtype=bfloat16):
    """Small whole numbers, so that sums are exact however they are grouped."""
    numbers = np.random.default_rng(seed).integers(-2, 3, shape)
    return Tensor(numbers.astype(np.float32)).to(dtype).realize().node


def spec_of(rank, **changes):
    ones = (1,) * rank
    return dataclasses.replace(ConvSpec(ones, ((0, 0),) * rank, ones, ones), **changes)


def convolution(x, weight, stride=1, padding=0, gap=1, dtype=bfloat16):
    """A convolution inside of a network: what it reads and gives lies as it likes."""
    rank = len(x) - 2
    each = spec_of(
        rank,
        stride=(stride,) * rank,
        padding=((padding, padding),) * rank,
        kernel_dilation=(gap,) * rank,
    )
    image = leaf(x[0], 1, *x[1:], dtype=dtype)
    filters = leaf(1, *weight, seed=1, dtype=dtype)
    return image, filters, image.conv(filters, each)


def both_gradients(x, weight, **options):
    """The gradients of a convolution by its operands."""
    image, filters, made = convolution(x, weight, **options)
    return gradient([(made, leaf(*made.shape, seed=2, dtype=made.dtype))], [image, filters])


def plan_of(roots: list[Node], target=TWO):
    """Schedule roots that are read by something else, so that they need not be row-major."""
    return schedule([root.reduce("sum", tuple(range(root.rank))) for root in roots], target)


def products(plan, target=TWO):
    """List the convolutions and contractions of a plan as tiles."""
    kernels = [kernel for kernel in plan.kernels if kernel.hero in ("conv", "contract")]
    return [verify_tiles(contract_cuda.build(kernel, target)) for kernel in kernels]


def is_boxed(tiles):
    return isinstance(tiles.parts[0].steps[0], Persistent)


def run(plan, target=TWO):
    """Run a plan; of each product compare Loop IR, Tile IR and program. Gives how many there are"""
    inputs = [read_leaf(node) for node in plan.inputs]
    memory = allocate(plan, inputs)
    count = 0
    for step in plan.steps:
        arrays = [memory[number] for number in step.slots]
        if step.kernel.hero in ("conv", "contract"):
            compare(step.kernel, arrays, target)
            count += 1
        interpret(step.kernel, arrays, [])
    return count


def read_leaf(node):
    """Contents of a leaf."""
    from picograd.engine.realize import buffer_to_numpy

    buffer = node.realized if node.realized is not None else node.arg.buffer
    return buffer_to_numpy(buffer, node.shape)


def compare(kernel, arrays, target):
    """Check that a product gives the same numbers as Loop IR, as tiles and as a program."""
    tiles = verify_tiles(contract_cuda.build(kernel, target))
    assert is_boxed(tiles), kernel
    outs = [n for n, slot in enumerate(kernel.slots) if slot.role == "out"]
    found = [
        [np.full_like(a, np.nan) if n in outs else a.copy() for n, a in enumerate(arrays)]
        for _ in range(2)
    ]
    interpret(kernel, found[0], [])
    interpret_tile.interpret(tiles, found[1])
    program = verify_program(linearize(tiles, target))
    raw = [to_raw(a, s.dtype) for a, s in zip(found[0], kernel.slots, strict=True)]
    for n in outs:
        raw[n] = to_raw(np.full_like(arrays[n], np.nan), kernel.slots[n].dtype)
    interpret_program.interpret(program, raw)
    for n in outs:
        np.testing.assert_array_equal(found[1][n], found[0][n])
        np.testing.assert_array_equal(from_raw(raw[n], kernel.slots[n].dtype), found[0][n])
