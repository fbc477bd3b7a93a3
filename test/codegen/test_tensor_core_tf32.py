"""The schedule of TF32: what it takes, and that a warp's loads lie in different banks."""

from dataclasses import replace

import pytest

from picograd.buffer import Storage
from picograd.codegen.templates import contract_cuda
from picograd.codegen.tensor_core_tf32 import Tf32Schedule, multiply_tf32, tf32_options
from picograd.dtype import float32
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

OPTIONS = [s for n in (32, 64, 96) for s in tf32_options(n, n, (False, True))]
OPTIONS = [*dict.fromkeys(OPTIONS)]


@pytest.mark.parametrize("schedule", OPTIONS)
def test_a_warp_loads_from_different_banks(schedule: Tf32Schedule) -> None:
    for size in schedule.block[:2]:
        places = {
            (lane % 4 * schedule.pitch(size) + lane // 4) % 32
            for lane in range(32)
        }  # fmt: skip
        assert len(places) == 32


@pytest.mark.parametrize("schedule", OPTIONS)
def test_stages_fit_and_copies_are_shared(schedule: Tf32Schedule) -> None:
    assert schedule.shared_bytes <= cuda_target("sm_80").shared_bytes
    assert schedule.threads in (128, 256) and schedule.ahead >= 1
    for size in schedule.block[:2]:
        assert size * schedule.block[2] // schedule.vector % schedule.threads == 0


def test_a_function_for_each_schedule() -> None:
    names = {multiply_tf32(schedule).function for schedule in OPTIONS}
    assert len(names) == len(OPTIONS)
    call = multiply_tf32(OPTIONS[-1])
    assert call.function in call.texts[1] and "multiply_tf32(acc" in call.texts[1]


@pytest.mark.parametrize(("channels", "tile"), [(512, (128, 144)), (128, (64, 96))])
def test_tiles_of_which_each_processor_has_one(channels: int, tile: tuple[int, int]) -> None:
    """Gradients of 3 x 3 taps: 128 tiles of 512 rows; of 128 rows 8."""
    target = replace(cuda_target("sm_90a"), tf32=True)
    spec = ConvSpec((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1))
    images = Node("buffer", (), Storage(None), (32, 7, 7, channels), float32, "cuda:0")
    columns = images.permute((3, 0, 1, 2)).reshape((channels, 1, 32, 7, 7))
    rows = columns.permute((1, 0, 2, 3, 4))
    (kernel,) = schedule([columns.conv(rows, spec)], target).kernels
    part = contract_cuda.build(kernel, target).parts[0]
    shapes = [each.shape for place in (part, *part.ahead) for each in place.tiles]
    assert tile in shapes
