"""Kernels that a GPU launches before those in front of them have ended."""

import pytest
from contractions import matmul

from picograd.codegen.early import SHORT, SUMS
from picograd.codegen.pipeline import generate
from picograd.dtype import bfloat16, float32
from picograd.graph import build
from picograd.graph.node import constant
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

HOPPER, AMPERE = cuda_target("sm_90a"), cuda_target("sm_80")


def code_of(root, target=HOPPER):
    (kernel,) = schedule([root], target).kernels
    return generate(kernel, target)


def filled(count):
    return build.contiguous(constant(1.0, (count,), float32, "cpu"))


def test_short_kernels_wait_before_they_read_or_write():
    code = code_of(filled(1000))
    assert code.is_early
    body = code.source.split("__global__")[1].split("{\n")[1]
    assert body.lstrip().startswith('WAIT_FOR_LAUNCHES("+l"(s0));')


@pytest.mark.parametrize("target", [HOPPER, AMPERE])
def test_long_kernels_and_older_gpus_do_not(target):
    assert code_of(filled(SHORT // 4), target).is_early is (target is HOPPER)
    code = code_of(filled(SHORT // 4 + 1), target)
    assert not code.is_early and "WAIT_FOR_LAUNCHES" not in code.source


def test_sums_that_are_stored_at_their_end_may_be_longer():
    for rows, is_early in ((SUMS // 4096 - 16, True), (SUMS // 4096 + 1, False)):
        kernel = matmul((1, 1, rows, 2048), bfloat16, order_b=(0, 2, 1)).kernel
        assert generate(kernel, HOPPER).is_early is is_early
