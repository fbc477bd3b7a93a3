"""Which streams a GPU has a kernel for."""

import pytest
from attention_forms import by_hand, causal, plain, with_gradients
from plan_support import TARGET, leaf

from picograd.dtype import bfloat16, float16, float32
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

HOPPER = cuda_target("sm_90a")
SHAPE = (2, 3, 40, 64)


def heroes(roots, target=HOPPER):
    plan = schedule(roots, target)
    return [kernel.hero for kernel in plan.kernels], plan.reasons


def operands(shape=SHAPE, dtype=bfloat16):
    return [leaf(*shape, dtype=dtype) for _ in range(3)]


@pytest.mark.parametrize("dtype", [bfloat16, float16])
@pytest.mark.parametrize("form", [plain, causal, by_hand])
def test_attention_of_16_bit_floats_is_one_kernel(form, dtype):
    found, _ = heroes([form(*operands(dtype=dtype))])
    assert found == ["attention"]


def test_views_that_boxes_can_have():
    q, k, v = (x.permute((0, 2, 1, 3)) for x in operands((2, 40, 3, 64)))
    assert heroes([plain(q, k, v)])[0] == ["attention"]


@pytest.mark.parametrize(
    "shape, dtype, target",
    [
        (SHAPE, float32, HOPPER),
        ((2, 3, 40, 160), bfloat16, HOPPER),  # too many columns for the registers
        ((2, 3, 40, 36), bfloat16, HOPPER),  # rows of 72 bytes
        (SHAPE, bfloat16, cuda_target("sm_80")),
    ],
    ids=["float32", "wide", "rows", "sm_80"],
)
def test_others_are_in_memory_and_the_plan_says_why(shape, dtype, target):
    found, reasons = heroes([plain(*operands(shape, dtype))], target)
    assert "attention" not in found
    assert any("kept scores" in reason for reason in reasons)


def gradients(dtype, target):
    def form(q, k, v):
        return plain(q.cast(dtype), k.cast(dtype), v.cast(dtype)).cast(float32)

    return heroes(with_gradients(form, SHAPE, SHAPE, SHAPE), target)[0]


def test_gradients_of_16_bit_floats_stream():
    """The result, sums of rows, dq, and dk with dv; casts come before and after."""
    found = gradients(bfloat16, HOPPER)
    assert found == ["map", "attention", "reduce.row", "attention", "attention", "map"]


def test_gradients_of_others_are_in_memory_on_a_gpu():
    assert "attention" not in gradients(float32, HOPPER)
    assert gradients(float32, TARGET).count("attention") == 3
