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


def test_rows_of_all_heads_are_worked_on_by_the_kernel_that_reduces_them():
    """A norm behind heads side by side computes the gate, which would be read from memory."""
    q, k, v, z = (leaf(1, 2, 20, 16, dtype=bfloat16) for _ in range(4))
    flat = gated_flat(q, k, v, z.reshape((1, 20, 32)))
    total = flat.reduce("sum", (2,), True).expand(flat.shape)
    heroes = [x.hero for x in schedule([flat * total], cuda_target("sm_90a")).kernels]
    assert heroes == ["attention", "reduce.row"]


@pytest.mark.parametrize("width, kernels", [(64, 1), (128, 2)])
def test_a_wide_result_that_others_read_is_stored_alone(width, kernels):
    q, k, v, z = (leaf(1, 2, 20, width, dtype=bfloat16) for _ in range(4))
    o = plain(q, k, v)
    read = o.contract(leaf(width, 16, dtype=bfloat16), ((0, 1, 2, 3), (3, 4), (0, 1, 2, 4)))
    plan = schedule([o * z, read], cuda_target("sm_90a"))
    assert len(plan.kernels) == 1 + kernels
