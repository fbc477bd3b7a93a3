"""wgmma: sizes that follow from the schedule, and the text of the instruction."""

import pytest

from picograd.codegen.tensor_core import (
    WgmmaSchedule,
    instruction_text,
    multiply_warpgroup,
    warpgroup_primitive,
)
from picograd.dtype import bfloat16, float16, float32

WIDE = WgmmaSchedule((128, 256, 64), 4)


def test_sizes_follow_from_the_block() -> None:
    assert WIDE.threads == 256 and WIDE.ahead == 2
    assert WIDE.shared_bytes == 4 * (128 + 256) * 64 * 2 <= 227 * 1024
    assert WIDE.layout.n == 256


@pytest.mark.parametrize(("dtype", "name"), [(float16, "f16"), (bfloat16, "bf16")])
def test_instruction(dtype, name: str) -> None:
    schedule = WgmmaSchedule((64, 32, 64), 4, True, False)
    function, text = instruction_text(schedule, dtype)
    assert f"m64n32k16.f32.{name}.{name}" in text and function in text
    assert text.count('"+f"(d[') == 16, "64 x 32 results over 128 threads"
    assert "p, 1, 1, 0, 1;" in text, "only b is transposed"


def test_other_dtypes_have_no_instruction() -> None:
    with pytest.raises(KeyError):
        instruction_text(WIDE, float32)


def test_multiply_takes_k_in_steps_of_16() -> None:
    call = multiply_warpgroup(WIDE, bfloat16)
    text = "".join(call.texts)
    assert "step < 4" in text and "warpgroup_commit();" in text
    assert "fence_async_proxy" in "".join(warpgroup_primitive("fence_async_proxy").texts)
