"""Softmaxes of a forward stream: what belongs to each, and the tiles that it has."""

import numpy as np
from attention_forms import differential, plain
from plan_support import leaf

from picograd.codegen.stream_masks import emptied, with_few_operations
from picograd.codegen.streams import analyse
from picograd.codegen.templates import attention_cuda
from picograd.codegen.templates.attention_online import apart
from picograd.dtype import bfloat16
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

TARGET = cuda_target("sm_90a")


def kernel_of(form, *shapes):
    np.random.seed(0)
    plan = schedule([form(*(leaf(*shape, dtype=bfloat16) for shape in shapes))], TARGET)
    (kernel,) = plan.kernels
    return kernel


def two_softmaxes():
    narrow, wide = (1, 2, 150, 32), (1, 2, 150, 64)
    return kernel_of(differential, narrow, narrow, wide, narrow, narrow, (1, 1, 1, 1))


def test_each_has_scores_a_peak_a_total_and_a_product():
    kernel = two_softmaxes()
    stream = analyse(kernel, with_few_operations(kernel.parts[0]))
    every = list(apart(stream))
    assert len(every) == len(stream.peaks) == 2
    for each in every:
        assert [len(part) for part in (each.scores, each.sums, each.products)] == [1, 1, 1]
        assert each.peaks == (each.peak,)
    assert sum(each.sums != every[0].sums for each in every) == 1
    assert emptied(stream)  # both are hidden by the same mask


def test_a_lone_one_is_the_stream():
    kernel = kernel_of(plain, *[(1, 2, 150, 64)] * 3)
    stream = analyse(kernel, kernel.parts[0])
    (alone,) = apart(stream)
    assert alone == stream


def test_tiles_have_names_of_their_own():
    (part,) = attention_cuda.build(two_softmaxes(), TARGET).parts
    names = [tile.name for tile in part.tiles]
    for kind in ("greatest", "safe", "factor", "score", "weight"):
        assert sum(name.startswith(kind) for name in names) == 2, kind
    assert len(names) == len(set(names))
