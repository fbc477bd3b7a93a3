"""The schedule of TF32: what it takes, and that a warp's loads lie in different banks."""

import pytest

from picograd.codegen.templates.contract_cuda import tf32_options
from picograd.codegen.tensor_core_tf32 import Tf32Schedule, multiply_tf32
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
