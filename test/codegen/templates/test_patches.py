"""Maps with windows: what neighbours share is read once, and the values are those of Loop IR."""

import pytest
from box_convolutions import leaf
from depthwise_plans import TWO, plan_of, run, tiles_with_ends

from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import tile
from picograd.codegen.render.cuda import render
from picograd.codegen.tile import Assign, For
from picograd.dtype import bfloat16, float32
from picograd.schedule.schedule import schedule

CASES = {
    "three by three": ((2, 16, (6, 8), (3, 3)), dict(padding=((1, 1),) * 2), (6,)),
    "a stride": ((2, 16, (7, 9), (3, 3)), dict(stride=(2, 2), padding=((1, 1),) * 2), (5, 5)),
    "gaps": ((1, 16, (7, 9), (3, 3)), dict(kernel_dilation=(2, 2)), (9,)),
    "ends that are no whole patch": ((1, 24, (5, 13), (3, 3)), {}, (8,)),
    "five by five": ((1, 16, (6, 8), (5, 5)), dict(padding=((2, 2),) * 2), (8,)),
    "one axis": ((3, 16, (13,), (4,)), dict(padding=((2, 1),)), (10,)),
    "float32": ((1, 12, (6, 8), (3, 3)), dict(padding=((1, 1),) * 2, dtype=float32), (4, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_patches_read_every_element_once(name):
    shape, changes, places = CASES[name]
    *_, tiles = run(plan_of("forward", *shape, **changes))
    steps = [each for step in tiles.parts[0].steps for each in (step, *getattr(step, "body", ()))]
    first = next(each for each in steps if isinstance(each, Assign) and each.tile == "v0h0")
    assert tuple(axis.size for axis in first.dims[1:-1]) == places
    is_row = len(places) < len(shape[2])
    assert any(isinstance(each, For) for each in steps) == is_row


def test_windows_that_are_read_once_are_not_stored():
    """Products of 49 taps would be 49 times the image."""
    plan = plan_of("forward", 1, 8, (8, 8), (7, 7), padding=((3, 3),) * 2)
    assert max(slot.size for slot in plan.slots) == 8 * 8 * 8


def test_what_nobody_sees_whole_is_not_computed_in_patches():
    """A patch that begins before an end would be computed whole."""
    assert "v0h0" not in tiles_with_ends(plan_of("forward", 2, 16, (6, 8), (3, 3)))


@pytest.mark.parametrize("monoid", ["sum", "max"])
def test_windows_across_merged_rows_and_channels(monoid):
    """Rows of channels are one axis of a pool's result: its windows slide along images alone."""
    x = leaf(2, 5, 6, 8)
    windows = x.window(((1, 2, 1, 1), (2, 2, 1, 1)))
    run(schedule([windows.reduce(monoid, (4, 5))], TWO))


def test_the_compiler_is_told_for_how_many_blocks_there_are_to_be_registers():
    """Sums of products of 8 or 4 channels a thread; a maximum takes few registers as it is."""
    for dtype, blocks in ((bfloat16, 2), (float32, 3)):
        kernel = plan_of("forward", 2, 16, (6, 8), (3, 3), dtype).kernels[-1]
        tiles = tile(kernel, TWO)
        assert tiles.parts[0].together == blocks
        assert f"__launch_bounds__(256, {blocks})" in render(linearize(tiles, TWO))
    x = leaf(2, 8, 8, 16, dtype=float32).window(((1, 3, 1, 1), (2, 3, 1, 1)))
    (kernel,) = schedule([x.reduce("max", (4, 5), False)], TWO).kernels
    assert tile(kernel, TWO).parts[0].together == 0
