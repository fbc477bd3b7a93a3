"""What is computed for a stream right before it is part of its launch, on a GPU."""

import pytest
from attention_forms import causal, latent_joined, normed, rotary, rotary_normed
from plan_support import TARGET, leaf

from picograd.dtype import bfloat16
from picograd.graph.gradient import gradient
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

FEW = cuda_target("sm_90a", multiprocessors=3)
HEADS, SHARED, WEIGHT, PLACES = (1, 4, 150, 64), (1, 150, 64), (64,), (150, 64)
FORMS = [
    (rotary, [HEADS] * 3, [PLACES] * 2),
    (rotary_normed, [HEADS] * 3 + [WEIGHT] * 2, [PLACES] * 2),
    (latent_joined, [HEADS] * 4 + [SHARED], []),
]


def heroes(roots, target=FEW):
    return [kernel.hero for kernel in schedule(roots, target).kernels]


@pytest.mark.parametrize("form, learned, fixed", FORMS, ids=lambda each: "")
def test_one_kernel_forward_and_four_with_gradients(form, learned, fixed):
    leaves = [leaf(*shape, dtype=bfloat16) for shape in (*learned, *fixed)]
    output = form(*leaves)
    assert heroes([output]) == ["attention"]
    seed = leaf(*output.shape, dtype=bfloat16)
    found = gradient([(output, seed)], leaves[: len(learned)])
    every = heroes([output, *found])
    assert every.count("attention") == 3 and len(every) == 4


def test_queries_and_keys_of_other_heads_are_both_ahead():
    q, k = leaf(*HEADS, dtype=bfloat16), leaf(1, 1, 150, 64, dtype=bfloat16)
    weight = leaf(*WEIGHT, dtype=bfloat16)
    keys = normed(k, weight).expand(HEADS)
    (kernel,) = schedule([causal(normed(q, weight), keys, q)], FEW).kernels
    assert len(kernel.parts) == 3 and kernel.name.endswith("_ahead")


def normed_queries(target, rows=600):
    q, k = (leaf(1, 1, rows, 64, dtype=bfloat16) for _ in range(2))
    weight = leaf(*WEIGHT, dtype=bfloat16)
    return heroes([causal(normed(q, weight), k, k)], target)


def test_few_tiles_wait_for_a_launch_of_many_blocks():
    many = cuda_target("sm_90a", multiprocessors=64)
    assert normed_queries(FEW) == ["attention"]
    assert normed_queries(many) == ["reduce.row", "attention"]
    assert normed_queries(TARGET) == ["reduce.row", "attention"]


def test_what_others_read_in_between_stays_before():
    q, k = (leaf(1, 1, 600, 64, dtype=bfloat16) for _ in range(2))
    rows = normed(q, leaf(*WEIGHT, dtype=bfloat16))
    weight = leaf(64, 64, dtype=bfloat16)
    made = rows.contract(weight, ((0, 1, 2, 3), (3, 4), (0, 1, 2, 4)))
    assert heroes([causal(rows, k, made)], FEW) == ["reduce.row", "contract", "attention"]


def test_long_rows_are_reduced_by_whole_blocks():
    wide = leaf(1, 600, 2048, dtype=bfloat16)
    rows = normed(wide, leaf(2048, dtype=bfloat16)).reshape((1, 600, 32, 64))
    q = rows.permute((0, 2, 1, 3))
    assert heroes([causal(q, q, q)], FEW) == ["reduce.row", "attention"]
