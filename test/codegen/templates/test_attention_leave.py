"""What a stream leaves: gates behind it, which boxes bring where they can."""

import pytest
from attention_forms import causal, gated, gated_flat
from plan_support import leaf, spread
from test_attention_gradient_cuda import (
    FEW,
    check,
    gradients_of,
    run_program,
    run_tiles,
    shapes_of,
    streams_of,
)

from picograd.codegen.boxes import CopyBox, Pipeline
from picograd.codegen.templates import attention_cuda
from picograd.dtype import bfloat16
from picograd.schedule.schedule import schedule


@pytest.mark.parametrize("rows, depth, width", [(150, 64, 64), (130, 128, 128), (70, 64, 96)])
@pytest.mark.parametrize("run", [run_tiles, run_program])
def test_gates_behind(rows, depth, width, run):
    shapes = shapes_of(rows, rows, depth, width)
    check(gated, [*shapes, (1, 2, rows, width)], run)
    check(gated_flat, [*shapes, (1, rows, 2 * width)], run)


def gated_by_row(q, k, v, z):
    """A gate a row is no array of boxes."""
    o = causal(q, k, v)
    return o * spread(z, o.shape)


@pytest.mark.parametrize("run", [run_tiles, run_program])
def test_a_gate_a_row(run):
    check(gated_by_row, [*shapes_of(150, 150, 64, 64), (1, 2, 150, 1)], run)


@pytest.mark.parametrize(
    "form, width, count", [(gated, 64, 1), (gated, 40, 1), (gated_by_row, 1, 0)]
)
def test_boxes_bring_what_lies_as_the_result_does(form, width, count):
    shapes = [*shapes_of(150, 150, 64, max(width, 40)), (1, 2, 150, width)]
    output, *_ = gradients_of(form, shapes)
    (kernel,) = streams_of(schedule([output], FEW))
    (loop,) = attention_cuda.build(kernel, FEW).parts[0].steps
    place = next(n for n, step in enumerate(loop.body) if isinstance(step, Pipeline))
    behind = [step for step in loop.body[place:] if isinstance(step, CopyBox)]
    assert len(behind) == count


def test_rings_have_two_stages_beside_boxes():
    """Heads of 256 leave no room for a gate: threads read it."""
    shape = (1, 2, 150, 256)
    leaves = [leaf(*shape, dtype=bfloat16) for _ in range(4)]
    (kernel,) = schedule([gated(*leaves)], FEW).kernels
    (part,) = attention_cuda.build(kernel, FEW).parts
    rings = [tile.stages for tile in part.tiles if tile.name in ("boxes1", "boxes2")]
    assert rings == [2, 2] and not any(tile.name == "beside0" for tile in part.tiles)
