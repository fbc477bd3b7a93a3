"""Gradients of depthwise weights: each thread has a row of taps, and reads what they share once."""

from dataclasses import replace

import depthwise_plans
import numpy as np
import pytest
from box_convolutions import read_leaf
from depthwise_plans import TWO, plan_of, run, tiles_with_ends
from interpreted_cuda import interpreted_cuda

import picograd
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import tile
from picograd.codegen.render.cuda import render
from picograd.codegen.templates.sliding_columns import build_columns
from picograd.dtype import bfloat16, float32

CASES = {
    "three by three": ((4, 16, (6, 8), (3, 3)), dict(padding=((1, 1),) * 2)),
    "a stride": ((2, 16, (7, 9), (3, 3)), dict(stride=(2, 2), padding=((1, 1),) * 2)),
    "gaps": ((2, 16, (8, 9), (3, 3)), dict(kernel_dilation=(2, 2))),
    "no whole patch": ((1, 24, (4, 13), (3, 3)), {}),
    "more threads than the work": ((1, 8, (6, 5), (5, 5)), dict(padding=((2, 2),) * 2)),
    "one axis": ((3, 16, (13,), (4,)), dict(padding=((2, 1),))),
    "many numbers a thread": ((1, 8, (6, 9), (5, 7)), dict(padding=((2, 2), (3, 3)))),
    "no whole blocks of channels": ((2, 104, (6, 4), (3, 3)), dict(padding=((1, 1),) * 2)),
    "few channels a load": ((2, 26, (4, 5), (3, 3)), dict(padding=((1, 1),) * 2)),
    "float32": ((2, 12, (6, 8), (3, 3)), dict(padding=((1, 1),) * 2, dtype=float32)),
}


@pytest.mark.parametrize("name", CASES)
def test_sums_of_windows(name):
    shape, changes = CASES[name]
    tiles, *_ = run(plan_of("weight", *shape, **changes))
    assert [each.name for each in tiles.parts[0].tiles][-2:] == ["parts", "total"]


def test_blocks_share_vectors_of_channels_that_no_number_divides():
    """A block of one vector would read a part of each line."""
    plan = plan_of("weight", 2, 104, (6, 4), (3, 3), padding=((1, 1),) * 2)
    *_, chunks = tile(plan.kernels[0], TWO).parts[0].grid
    assert chunks.size == 2, "7 of 13 vectors, and 6"


def test_what_is_beyond_the_last_patch_is_no_number_times_zero(monkeypatch):
    """The last column is infinite: only sums for the last tap of a row read it."""

    def endless(node):
        values = read_leaf(node).copy()
        if values.shape == (1, 4, 13, 24):
            values[:, :, -1] = np.inf
        return values

    monkeypatch.setattr(depthwise_plans, "read_leaf", endless)
    with np.errstate(invalid="ignore"):
        run(plan_of("weight", 1, 24, (4, 13), (3, 3)))


def test_a_processor_has_registers_for_two_blocks():
    """Of fewer threads, where each has 7 sums of 8 channels."""
    for taps, dtype, threads in ((3, bfloat16, 256), (7, bfloat16, 192), (7, float32, 256)):
        padding = ((taps // 2, taps // 2),) * 2
        plan = plan_of("weight", 2, 16, (14, 14), (taps, taps), dtype, padding=padding)
        tiles = tile(plan.kernels[0], TWO)
        assert tiles.threads == threads
        assert f"__launch_bounds__({threads}, 2)" in render(linearize(tiles, TWO))


def test_a_thread_has_registers_for_so_many_sums():
    for taps, is_built in ((8, True), (9, False)):
        tiles, *_ = run(plan_of("weight", 2, 16, (40,), (taps,)))
        names = [each.name for each in tiles.parts[0].tiles]
        assert ("parts" in names) == is_built


def test_two_sums_over_windows_and_sums_that_nobody_sees_whole_get_other_kernels():
    plan = plan_of("weight", 2, 16, (40,), (3,))
    (part,) = plan.steps[0].kernel.parts
    again = replace(part, computes=(part.computes[0], *part.computes))
    assert build_columns(part, 8, 128) is not None
    assert build_columns(again, 8, 128) is None
    assert "parts" not in tiles_with_ends(plan)


@pytest.mark.parametrize("axis", [1, 2])
def test_what_a_guard_keeps_in_memory_is_not_read_without_it(axis, monkeypatch):
    """Rows of what is joined go on where the next ones begin, as those of windows do.

    Interpreters refuse what lies outside of memory.
    """
    values = np.arange(2 * 2 * 8 * 8, dtype=np.float32).reshape(2, 2, 8, 8)
    with interpreted_cuda(monkeypatch):
        x = picograd.tensor(values, device="cuda")
        found = picograd.cat([x, x * 2, x.flip(axis)], axis).mean(axis).numpy()
    joined = np.concatenate([values, values * 2, np.flip(values, axis)], axis)
    np.testing.assert_allclose(found, joined.mean(axis), rtol=1e-5)
