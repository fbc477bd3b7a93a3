"""Scores that are a sum of products: which share a tile, and which streams are refused."""

import numpy as np
import pytest
from attention_forms import latent, product, weigh
from plan_support import leaf

from picograd.codegen.added_scores import with_added_scores
from picograd.codegen.stream_masks import with_few_operations
from picograd.codegen.streams import analyse
from picograd.dtype import bfloat16, float32
from picograd.graph import build
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

TARGET = cuda_target("sm_90a")
SHAPES = (1, 2, 150, 64), (1, 2, 150, 64), (1, 2, 150, 48), (1, 2, 150, 32), (1, 150, 32)


def three(q, k, v, r, t):
    """A sum of three, one of them converted before it is added."""
    s = product(q, k).cast(float32) + product(k, q).cast(float32)
    s = s + r.contract(t, ((0, 1, 2, 3), (0, 4, 3), (0, 1, 2, 4)))
    return weigh(build.softmax(s * 0.2, 3).cast(bfloat16), v)


def edited(q, k, v, r, t):
    """One of the products is edited before it is added: the sum is no product's."""
    s = product(q, k) + r.contract(t, ((0, 1, 2, 3), (0, 4, 3), (0, 1, 2, 4))).unary("tanh")
    return weigh(build.softmax(s * 0.2, 3), v)


def plan_of(form):
    np.random.seed(0)
    return schedule([form(*(leaf(*shape, dtype=bfloat16) for shape in SHAPES))], TARGET)


@pytest.mark.parametrize("form, count", [(latent, 2), (three, 3)])
def test_scores_that_are_added_have_one_tile(form, count):
    (kernel,) = plan_of(form).kernels
    stream = with_added_scores(analyse(kernel, with_few_operations(kernel.parts[0])))
    assert len(stream.scores) == count
    (first,) = stream.edited
    assert {each.added for each in stream.scores if each is not first} == {first.number}


def test_products_that_are_edited_apart_stay_in_memory():
    plan = plan_of(edited)
    assert len(plan.kernels) == 4
    assert any("no forward pass" in reason for reason in plan.reasons)
