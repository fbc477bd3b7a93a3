"""What keeps scores in memory for its form alone: operands that boxes cannot bring, wide sums."""

import pytest
from attention_forms import (
    grouped_beside,
    learned,
    plain,
    product,
    shared_queries,
    shared_values,
    weigh,
    with_gradients,
)
from plan_support import TARGET, check_plan, leaf

from picograd.dtype import bfloat16, float32, int64
from picograd.graph import build, indexing
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.number import GivenInt
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

HOPPER = cuda_target("sm_90a")
SHAPE = (2, 3, 40, 64)


def heroes(roots, target=HOPPER):
    return [kernel.hero for kernel in schedule(roots, target).kernels]


def channels_first():
    return leaf(2, 3, 64, 40, dtype=bfloat16).permute((0, 1, 3, 2))


def every_other():
    return leaf(2, 3, 40, 128, dtype=bfloat16).slice(
        ((0, 2, 1), (0, 3, 1), (0, 40, 1), (0, 128, 2))
    )


def backwards():
    return leaf(*SHAPE, dtype=bfloat16).flip((2,))


def begins_at_a_number():
    ranges = (GivenInt(1), GivenInt(2), 1), (0, 2, 1), (0, 3, 1), (0, 40, 1), (0, 64, 1)
    return leaf(3, *SHAPE, dtype=bfloat16).slice(ranges).reshape(SHAPE)


@pytest.mark.parametrize("make", [channels_first, every_other, backwards])
def test_what_boxes_cannot_bring_is_copied(make):
    q, k, v = leaf(*SHAPE, dtype=bfloat16), make(), leaf(*SHAPE, dtype=bfloat16)
    assert heroes([plain(q, k, v)]) == ["map", "attention"]
    assert heroes([plain(q, v, v)]) == ["attention"]
    assert heroes([plain(q, k, v)], TARGET) == ["attention"]  # a CPU packs them anyway


def test_what_begins_at_a_number_is_not_copied():
    q, k = leaf(*SHAPE, dtype=bfloat16), begins_at_a_number()
    assert heroes([plain(q, k, k)]) == ["attention"]


def test_what_no_kernel_is_for_is_not_copied():
    q, k = leaf(*SHAPE, dtype=bfloat16), channels_first()
    assert "attention" not in heroes([plain(q, k, leaf(2, 3, 40, 264, dtype=bfloat16))])


def test_places_of_two_axes_are_one_dimension():
    shapes = (2, 40, 3, 2, 64), (2, 40, 3, 64), (2, 40, 3, 64)
    leaves = [leaf(*shape, dtype=bfloat16) for shape in shapes]
    output = grouped_beside(*leaves)
    found = gradient([(output, leaf(*output.shape, dtype=bfloat16))], leaves)
    assert heroes([output, *found]).count("attention") == 3


@pytest.mark.parametrize("axes", [(1, 3, 1, 1), (1, 1, 1, 1), (2, 1, 20, 1), (1, 1, 1, 24)])
def test_sums_of_more_than_a_side_are_sums_of_one_first(axes):
    """They stream with the products of that side, and the rest is summed behind."""
    shapes = (2, 3, 20, 8), (2, 3, 24, 8), (2, 3, 24, 8), axes
    plan = check_plan(with_gradients(learned, *shapes), 4, 1e-4)
    assert [kernel.hero for kernel in plan.kernels].count("attention") == 3


@pytest.mark.parametrize("dtype", [bfloat16, float32])
@pytest.mark.parametrize("batch", [1, 4, 24])
def test_a_bias_that_is_looked_up_in_a_table(batch, dtype, monkeypatch):
    """One kernel more than without it, for the gradient of the table, unless that is small."""
    monkeypatch.setattr(indexing, "FEW_OF_SUMS", 0)
    shape = batch, 2, 25, 16
    q, k, v = (leaf(*shape, dtype=bfloat16) for _ in range(3))
    table, places = leaf(81, 2, dtype=dtype), leaf(25, 25, dtype=int64, below=81)
    bias = table.cast(float32).gather((places,), (0,)).permute((2, 0, 1))
    scores = product(q, k).cast(float32) * 0.25
    scores = scores + bias.reshape((1, 2, 25, 25)).expand(scores.shape)
    output = weigh(build.softmax(scores, 3).cast(bfloat16), v)
    leaves = [q, k, v, table]
    roots = [output, *gradient([(output, leaf(*shape, dtype=bfloat16))], leaves)]
    wide = dtype is float32
    plan = check_plan(roots[:1] if not wide else roots, None, 4e-2, HOPPER)
    assert plan.kernels[0].hero == "attention"
    assert heroes(roots) == ["attention"] * 3 + ["bins"] + ["map"] * (not wide)


def test_queries_that_a_batch_shares():
    shapes = (3, 20, 8), (2, 3, 24, 8), (2, 3, 24, 8)
    plan = check_plan(with_gradients(shared_queries, *shapes), 3, 1e-4)
    assert [kernel.hero for kernel in plan.kernels].count("attention") == 2


def test_values_that_a_batch_shares():
    """Products of gradients have other sides than the scores, until both are narrowed."""
    shapes = (2, 3, 20, 8), (2, 3, 24, 8), (3, 24, 8)
    plan = check_plan(with_gradients(shared_values, *shapes), tolerance=1e-4)
    assert [kernel.hero for kernel in plan.kernels].count("attention") == 2


def test_what_only_renames_a_wide_sum_is_not_written_as_one():
    q, k, v = leaf(2, 3, 20, 8), leaf(2, 3, 24, 8), leaf(2, 3, 24, 8)
    weights = build.softmax(product(q, k), 3)
    total = (weights * weights).reduce("sum", (0, 2, 3))
    renamed = Node("cast", (total,), None, total.shape, total.dtype, total.device)
    plan = check_plan([weigh(weights, v), renamed + 1.0])
    assert [kernel.hero for kernel in plan.kernels].count("attention") == 2
