"""Which template writes an attention kernel."""

from attention_forms import plain
from plan_support import TARGET, leaf

from picograd.codegen.templates import attention
from picograd.dtype import bfloat16
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target


def test_a_target_with_blocks_gets_a_pipeline():
    for target, threads in ((TARGET, 1), (cuda_target("sm_90a", 1), 384)):
        q, k, v = (leaf(1, 2, 70, 64, dtype=bfloat16) for _ in range(3))
        (kernel,) = schedule([plain(q, k, v)], target).kernels
        assert attention.build(kernel, target).threads == threads
