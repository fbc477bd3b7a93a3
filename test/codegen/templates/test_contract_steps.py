"""Tiles that leave out steps of K: which, that values stay, and what a machine is told."""

import re

import numpy as np
import pytest
from box_convolutions import TWO, both_gradients, leaf, plan_of, read_leaf, run
from box_products import only
from contractions import conv
from cuda_tools import H200, compile_cuda, matmul_kernel, source_of

from picograd.codegen.templates import contract_cuda
from picograd.codegen.templates.contract_steps import axes_of_tiles, choose
from picograd.dtype import float32
from picograd.graph.gradient import gradient
from picograd.graph.shape import ConvSpec
from picograd.schedule.index import Axis, axis_index, evaluate
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.schedule import schedule

THREE = dict(x=(3, 64, 7, 6), weight=(72, 64, 3, 3), stride=2, padding=1)
CASES = {
    "three by three": THREE,
    "as many taps in all phases": dict(x=(2, 64, 8, 8), weight=(64, 64, 4, 4), stride=2, padding=1),
    "a kernel as long as the stride": dict(x=(2, 128, 9, 7), weight=(64, 128, 2, 3), stride=3),
    "nine phases": dict(x=(2, 64, 8, 8), weight=(24, 64, 5, 5), stride=3, padding=2),
    "one axis": dict(x=(5, 64, 9), weight=(136, 64, 3), stride=2, padding=1),
}


def pipeline(tiles):
    return next(each for each in tiles.parts[0].steps[0].body if hasattr(each, "stop"))


@pytest.mark.parametrize("name", CASES)
def test_gradients_under_a_stride(name):
    plan = plan_of(both_gradients(**CASES[name])[:1])
    assert run(plan) == 1


def test_a_phase_has_the_steps_of_its_taps():
    """Of 2 x 2 taps with 2 steps each phases have the first, the first two, three and four."""
    wide = THREE | dict(x=(3, 128, 7, 6), weight=(72, 128, 3, 3))
    (kernel,) = [
        each for each in plan_of(both_gradients(**wide)[:1]).kernels if each.hero == "conv"
    ]
    tiles = contract_cuda.build(kernel, TWO, only((128, 64)))
    (step,) = tiles.parts[0].steps
    steps = {}
    for tile in range(step.points[0].size):
        ends = pipeline(tiles).first, pipeline(tiles).stop
        values = {step.points[0]: tile}
        steps[tile] = tuple(int(read_index(end, values)) for end in ends)
    assert sorted(set(steps.values())) == [(0, 2), (0, 4), (0, 6), (0, 8)]
    assert len({*map(steps.get, range(len(steps) // 4))}) == 1, "tiles of a phase run together"


def read_index(index, values):
    """Evaluate an index with guards in it."""

    def read(expr):
        if expr.op == "index":
            return evaluate(expr.arg, values, read)
        ((place, low, high),) = expr.arg
        is_here = low <= evaluate(place, values, read) <= high
        return read(expr.args[0 if is_here else 1])

    return evaluate(index, values, read)


def test_zeros_between_are_tiles_without_steps():
    """One tap under a stride: the product stores the zeros between its elements too."""
    x, weight = leaf(2, 1, 64, 6, 6), leaf(1, 8, 64, 1, 1, seed=1)
    made = x.conv(weight, ConvSpec((2, 2), ((0, 0), (0, 0)), (1, 1), (1, 1)))
    dy = leaf(*made.shape, seed=2)
    (found,) = gradient([(made, dy)], [x])
    plan = schedule([found.reshape((2, 64, 6, 6)).permute((0, 2, 3, 1))], TWO)
    assert plan.kernels[-1].hero == "conv" and run(plan) == 1
    (result,) = interpret_plan(plan, [read_leaf(node).reshape(-1) for node in plan.inputs])
    wanted = np.zeros((2, 6, 6, 64), np.float32)
    taps, given = read_leaf(weight)[0, :, :, 0, 0], read_leaf(dy)[:, 0]
    wanted[:, ::2, ::2] = np.einsum("nohw,oc->nhwc", given, taps)
    np.testing.assert_array_equal(result.reshape(wanted.shape), wanted)


def test_a_machine_multiplies_ranges_as_well():
    """No spill and no serialised product where steps are counted."""
    roots = both_gradients((32, 128, 14, 14), (128, 128, 3, 3), stride=2, padding=1)[:1]
    (kernel,) = (k for k in plan_of(roots, H200).kernels if k.hero == "conv")
    tiles = contract_cuda.build(kernel, H200)
    assert pipeline(tiles).stop is not None
    _, log = compile_cuda(source_of(tiles)[0], "sm_90a")
    assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log), log
    assert "serialized" not in log, log


def test_every_warp_passes_the_turn_of_a_point_that_may_have_no_steps():
    """Without products nothing keeps the warps of a team together: one could miss its turn."""
    roots = both_gradients((32, 128, 14, 14), (128, 128, 3, 3), stride=2, padding=1)[:1]
    (kernel,) = (k for k in plan_of(roots, H200).kernels if k.hero == "conv")
    tiles = contract_cuda.build(kernel, H200)
    text, _ = source_of(tiles)
    counts = re.findall(r"barrier_init\(\w+ \+ \d, (\d)\)", text)
    assert counts[-1] == "4" and "4" not in counts[: -tiles.parts[0].steps[0].teams.count]


def test_which_axes_have_one_position_in_a_tile():
    a, b, c = Axis("a", 2), Axis("b", 3), Axis("c", 64)
    assert axes_of_tiles((a, b, c), 64) == (a, b)
    assert axes_of_tiles((a, b, c), 192) == (a,)
    assert axes_of_tiles((a, b, c), 128) == ()


@pytest.mark.parametrize("values", [[4, 8, 12, 16], [5, 5, 5], [0, 3, 3], [0, 0, 0, 9]])
def test_a_chosen_number(values):
    axis = Axis("number", len(values))
    index = choose(axis_index(axis), values)
    assert [read_index(index, {axis: n}) for n in range(len(values))] == values


def test_patches_of_images_have_tiles_of_their_own():
    """Of few threads that have the most registers, which the compiler keeps to."""
    case = conv((16, 56, 56, 64), 64, 3, padding=2, dilation=2, channels_last=False)
    tiles = contract_cuda.build(case.kernel, H200)
    assert (tiles.threads, tiles.together) == (128, 4)
    product = contract_cuda.build(matmul_kernel(64, 50176, 576, float32), H200)
    assert "is_bound=True" in repr(tiles) and "is_bound=True" not in repr(product)


@pytest.mark.parametrize(
    ("image", "weight", "gap"),
    [((16, 64, 56, 56), (64, 64, 3, 3), 2), ((128, 256, 8, 8), (256, 256, 1, 1), 1)],
)
def test_products_of_a_launch_have_tiles_of_as_many_threads_and_resident_blocks(image, weight, gap):
    """Else one would have too few registers, its sums in local memory, or few blocks at once."""
    padding = gap * (weight[2] // 2)
    roots = both_gradients(image, weight, padding=padding, gap=gap, dtype=float32)
    (kernel,) = (each for each in schedule(roots, H200).kernels if each.hero == "conv")
    tiles = contract_cuda.build(kernel, H200)
    assert len(tiles.parts) == 2 and len({part.together for part in tiles.parts}) == 1
    assert tiles.together == tiles.parts[0].together > 0


def test_a_product_without_tiles_says_how_many_threads_the_others_have():
    roots = both_gradients((16, 64, 128, 128), (3, 64, 3, 3), padding=1, gap=1, dtype=float32)
    kernels = [each for each in schedule(roots, H200).kernels if each.hero == "conv"]
    (shared,) = (each for each in kernels if len(each.parts) == 2)
    assert "MainLoop" not in repr(contract_cuda.build(shared, H200))
