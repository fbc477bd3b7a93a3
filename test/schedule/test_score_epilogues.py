"""What is made of each element of attention's result is computed by its kernel."""

import pytest
from attention_forms import gated, gated_flat, plain
from plan_support import TARGET, check_plan, leaf

from picograd.dtype import bfloat16, float32
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

SHAPES = (1, 2, 20, 8), (1, 2, 24, 8), (1, 2, 24, 12)


@pytest.mark.parametrize("target", [TARGET, cuda_target("sm_90a")], ids=["cpu", "gpu"])
@pytest.mark.parametrize("form, gate", [(gated, (1, 2, 20, 12)), (gated_flat, (1, 20, 24))])
def test_what_is_made_of_each_element_of_a_result_is_in_its_kernel(form, gate, target):
    dtype = bfloat16 if target.has_blocks else float32
    shapes = [(1, 2, 20, 16)] * 2 + [(1, 2, 20, 12), gate]
    if target.has_blocks:  # of an array whose rows boxes can bring
        shapes = [(1, 2, 20, 16)] * 3 + [(1, 2, 20, 16) if form is gated else (1, 20, 32)]
    leaves = [leaf(*shape, dtype=dtype) for shape in shapes]
    (kernel,) = schedule([form(*leaves)], target).kernels
    assert kernel.hero == "attention"


def test_a_result_that_others_read_is_stored_beside():
    q, k, v = (leaf(*shape) for shape in SHAPES)
    o = plain(q, k, v)
    check_plan([o, o * leaf(1, 2, 20, 12)], 1)


def test_sums_of_what_is_made_of_a_result_are_apart():
    q, k, v = (leaf(*shape) for shape in SHAPES)
    check_plan([(plain(q, k, v) * leaf(1, 2, 20, 12)).reduce("sum", (3,))], 2)
