"""Convolutions that read their image where it lies: plans, values, what is left to packing."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from contractions import conv, matmul, widen
from run_cpu import TARGET, Loaded, computed

from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.dot import Digit, Dot
from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.operands import analyse
from picograd.codegen.templates import contract, contract_shift
from picograd.codegen.templates.contract_shift import find
from picograd.codegen.tile import For, Step, TileKernel, When, format_tiles
from picograd.schedule.index import axis_index
from picograd.schedule.loop import Kernel
from picograd.target import Target

ONE, EIGHT = (Target("llvm", "generic", 64, threads=n, registers=32) for n in (1, 8))
AVX2 = Target("llvm", "haswell", 32, threads=2, registers=16)
PLANAR = {"channels_last": False}


def dots(steps: tuple[Step, ...]) -> list[Dot]:
    found: list[Dot] = []
    for step in steps:
        if isinstance(step, Dot):
            found.append(step)
        if isinstance(step, For | When):
            found += dots(step.body)
    return found


def built(kernel: Kernel, target: Target = ONE) -> TileKernel:
    return contract.build(kernel, target)


def digits_of(tiles: TileKernel) -> set[Digit]:
    return {tap for part in tiles.parts for dot in dots(part.steps) for tap in dot.taps[1:]}


def taps_of(tiles: TileKernel) -> set[tuple[int, int]]:
    return {(tap.size, tap.step) for tap in digits_of(tiles)}


def test_rows_and_columns_of_a_window_are_steps_in_the_image() -> None:
    tiles = built(conv((2, 20, 30, 8), 16, 3, padding=1, **PLANAR).kernel)
    assert taps_of(tiles) == {(3, 32), (3, 1)}  # a row of the image with its border is 32 long
    assert "goes on to taps" in format_tiles(tiles)
    spread = built(conv((1, 20, 30, 8), 16, 3, padding=2, dilation=2, **PLANAR).kernel)
    assert taps_of(spread) == {(3, 68), (3, 2)}


@pytest.mark.parametrize("case", [
    conv((2, 20, 30, 8), 16, 3, stride=2, dilation=3, channels_last=False),  # no common places
    conv((2, 20, 30, 8), 16, 3, padding=1),  # channels last: neighbours are channels
    conv((4, 5, 5, 8), 300, 3, padding=1, channels_last=False),  # half of it would be border
    matmul((1, 61, 67, 71)),
])  # fmt: skip
def test_others_are_packed(case: object) -> None:
    assert not taps_of(built(case.kernel))  # type: ignore[attr-defined]


def test_rows_of_pixels_without_windows_are_read_too() -> None:
    tiles = built(conv((3, 4, 70, 24), 40, 1, channels_last=False).kernel)
    (taps,) = {dot.taps for part in tiles.parts for dot in dots(part.steps)}
    assert len(taps) == 1 and taps[0][0] == 24


def test_planes_without_a_border_follow_one_another() -> None:
    """Small images share panels: of 196 columns each a third of the last one would be wasted."""
    tiles = built(conv((8, 1, 196, 64), 512, 1, channels_last=False).kernel)
    (part,) = tiles.parts
    (width,) = {tile.shape[1] for tile in part.tiles if tile.name == "c"}
    assert 4 * 196 <= width < 4 * 196 + 48


SHAPES = [  # N H W C, channels made, taps, stride, padding, taps apart
    ((2, 20, 30, 8), 16, 3, 1, 1, 1),
    ((1, 7, 70, 5), 3, 3, 1, 2, 2),
    ((3, 12, 47, 37), 70, 5, 1, 0, 1),
    ((1, 40, 33, 3), 1, 9, 1, 4, 1),
    ((5, 14, 14, 65), 33, 3, 1, 1, 1),
    ((1, 3, 300, 2), 20, 3, 1, 1, 1),
    ((2, 3, 61, 100), 24, 1, 1, 0, 1),
    ((1, 13, 90, 12), 30, 3, 1, 1, 1),  # but for ONE, the last block is a row alone
    ((5, 1, 196, 40), 300, 1, 1, 0, 1),
    ((7, 1, 63, 24), 130, 1, 1, 0, 1),
    ((2, 46, 51, 3), 16, 7, 2, 3, 1),
    ((1, 60, 62, 20), 24, 3, 2, 1, 1),
    ((1, 90, 95, 3), 20, 7, 3, 2, 1),
    ((2, 60, 120, 5), 8, 5, 4, 2, 1),
]


@pytest.mark.parametrize("target", [TARGET, ONE, EIGHT, AVX2], ids=["own", "1", "8", "avx2"])
@pytest.mark.parametrize("shape, channels, kernel, stride, padding, dilation", SHAPES)
def test_values(
    shape: tuple[int, int, int, int],
    channels: int,
    kernel: int,
    stride: int,
    padding: int,
    dilation: int,
    target: Target,
) -> None:
    case = conv(shape, channels, kernel, stride, padding, dilation, **PLANAR)
    assert any(dot.taps for part in built(case.kernel, target).parts for dot in dots(part.steps))
    got = computed(case, target)
    assert np.allclose(got, case.expected, atol=5e-6 * np.abs(case.expected).max(), rtol=0)


ALONE = [  # N H W C, taps, stride, padding, taps apart: a channel by itself, rows of it at once
    ((2, 29, 30, 1), 3, 1, 1, 1),  # rows that no run divides
    ((1, 14, 14, 1), 5, 1, 2, 1),
    ((3, 7, 7, 1), 7, 1, 3, 1),
    ((1, 40, 75, 1), 3, 2, 1, 1),
    ((2, 31, 33, 1), 5, 3, 2, 1),
    ((1, 50, 41, 1), 3, 1, 2, 2),
    ((1, 60, 130, 1), 3, 1, 0, 1),
    ((1, 70, 40, 1), 33, 1, 16, 1),  # of which a panel has few rows
]


@pytest.mark.parametrize("target", [TARGET, ONE, EIGHT, AVX2], ids=["own", "1", "8", "avx2"])
@pytest.mark.parametrize("shape, kernel, stride, padding, dilation", ALONE)
def test_rows_of_a_channel_by_itself_share_what_they_read(
    shape: tuple[int, int, int, int],
    kernel: int,
    stride: int,
    padding: int,
    dilation: int,
    target: Target,
) -> None:
    case = conv(shape, 1, kernel, stride, padding, dilation, groups=3, **PLANAR)
    tiles = built(case.kernel, target)
    for dot in (each for part in tiles.parts for each in dots(part.steps)):
        assert dot.runs.times > 1 and dot.taps[dot.runs.digit].step >= dot.runs.apart
    got = computed(case, target)
    assert np.allclose(got, case.expected, atol=5e-6 * np.abs(case.expected).max(), rtol=0)


@pytest.mark.parametrize("case", [ALONE[0], ALONE[3], ALONE[5]])
def test_runs_mean_the_same_at_every_stage(case: Any) -> None:
    shape, *options = case
    case = conv(shape, 1, *options, groups=3, **PLANAR)
    tiles = built(case.kernel)
    for interpret, stage in (
        (interpret_tile.interpret, tiles),
        (interpret_program.interpret, linearize(tiles, ONE)),
    ):
        out = case.interpreted(interpret, stage)
        assert np.allclose(out, case.expected.reshape(-1), atol=1e-4, rtol=0)


RAGGED = ((1, 5, 47, 11), 3, 5, 1, 0, 1)  # channels, in a last block fewer: its memory is not read


@pytest.mark.parametrize("case", [SHAPES[1], SHAPES[6], SHAPES[9], SHAPES[12], RAGGED])
def test_the_interpreter_goes_the_same_way(case: Any) -> None:
    case = conv(*case, **PLANAR)
    out = case.interpreted(interpret_tile.interpret, built(case.kernel))
    assert np.allclose(out, case.expected.reshape(-1), atol=1e-4, rtol=0)


PHASES = [  # the image ends with the last tap: a phase without one has no place there
    ((1, 31, 31, 3), 20, 3, 2),
    ((1, 16, 31, 16), 5, 3, 2),
    ((2, 29, 33, 3), 20, 5, 3),
    ((1, 7, 7, 4), 5, 3, 2),
]


@pytest.mark.parametrize("target", [ONE, AVX2], ids=["1", "avx2"])
@pytest.mark.parametrize("case", PHASES)
def test_no_phase_reads_beyond_the_image(case: Any, target: Target) -> None:
    case = conv(*case, **PLANAR)
    tiles = built(case.kernel, target)
    assert any(tap.phases > 1 for tap in digits_of(tiles))
    out = case.interpreted(interpret_tile.interpret, tiles)
    assert np.allclose(out, case.expected.reshape(-1), atol=1e-4, rtol=0)


def test_taps_may_go_backwards() -> None:
    """The gradient of an image is a convolution whose taps count from the other end."""
    case = conv((1, 12, 40, 4), 8, 3, padding=1, **PLANAR)
    c = contract_shift.swap(analyse(case.kernel))
    for side in (c, contract_shift.swap(c)):
        shift = find(side)
        if shift is None:
            continue
        axes = [tap.axis for tap in shift.taps.values()]
        turned = {axis: axis_index(axis) * -1 + (axis.size - 1) for axis in axes}
        back = find(replace(side, b=contract_shift.bind(side.b, turned)))
        assert back is not None
        assert {tap.step for tap in back.taps.values()} == {-1}
        assert [back.back(axis) for axis in back.taps] == [-2, -2]
        return
    raise AssertionError("no side has an image")


def test_under_a_stride_the_image_lies_in_phases() -> None:
    tiles = built(conv((1, 60, 62, 3), 16, 7, 2, 3, **PLANAR).kernel)
    down, across = sorted(digits_of(tiles), key=lambda tap: tap.step)[::-1]
    assert (down.size, down.phases, across.size, across.phases) == (7, 2, 7, 2)
    assert down.step == 34 and across.step == 1  # 31 columns and three more
    assert down.apart == 2 * across.apart  # of each phase down there are two across
    assert "2 phases" in format_tiles(tiles)


def test_a_channel_is_no_tap() -> None:
    """Without a border, channels are a whole number of rows apart: too many to be a window."""
    case = conv((1, 16, 32, 4), 8, 3, **PLANAR)
    found = [
        find(side) for side in (analyse(case.kernel), contract_shift.swap(analyse(case.kernel)))
    ]
    (shift,) = [each for each in found if each is not None]
    assert sorted(tap.axis.size for tap in shift.taps.values()) == [3, 3]


def test_every_place_of_a_tap_is_in_the_tile() -> None:
    for width, kernel, stride in product((5, 16, 31, 64), (2, 3, 7), (1, 2, 3)):
        case = conv((2, 9, width, 3), 8, kernel, stride, padding=kernel // 2, **PLANAR)
        for part in built(case.kernel).parts:
            tiles = {tile.name: tile for tile in part.tiles}
            for dot in dots(part.steps):
                if dot.taps and dot.b_origin and dot.block:
                    last = sum(max(map(tap.place, range(tap.size))) for tap in dot.taps)
                    place = dot.b_origin[1].hi + last + dot.block[1]
                    assert place <= np.prod(tiles["b"].shape)


def test_values_where_taps_go_backwards() -> None:
    """Both operands count taps from the other end: the same terms, in another order."""
    case = conv((2, 9, 33, 5), 8, 3, padding=1, **PLANAR)
    (part,) = case.kernel.parts
    hero, *others = part.computes
    turned = {tap: axis_index(tap) * -1 + (tap.size - 1) for tap in hero.reduce if tap.size == 3}
    hero = replace(hero, body=contract_shift.bind(hero.body, turned))
    kernel = replace(case.kernel, parts=(replace(part, computes=(hero, *others)),))
    assert {step for _, step in taps_of(built(kernel))} == {-35, -1}
    loaded = Loaded(kernel, case.inputs, ONE)
    loaded.run(0, loaded.tasks)
    got = widen(loaded.result(), kernel.slots[-1].dtype).reshape(case.expected.shape)
    assert np.allclose(got, case.expected, atol=5e-6 * np.abs(case.expected).max(), rtol=0)


def test_channels_that_a_last_block_lacks_are_zero() -> None:
    """What an earlier block left there is multiplied by 0: of infinity that is no number."""
    shape = RAGGED[0]
    case = conv(*RAGGED, **PLANAR)
    image = case.inputs[0].copy()
    image.reshape(shape[3], shape[1], shape[2])[5, 2, 20] = np.inf  # of 6 + 5 channels
    loaded = Loaded(case.kernel, (image, case.inputs[1]), ONE)
    loaded.run(0, loaded.tasks)
    got = widen(loaded.result(), case.kernel.slots[-1].dtype)
    assert np.isinf(got).any() and not np.isnan(got).any()
