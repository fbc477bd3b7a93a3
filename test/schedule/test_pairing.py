"""Products of the same rows and columns that one elementwise value reads are one kernel."""

from dataclasses import replace

import pytest
from plan_support import TARGET, check_plan, leaf, spread

from picograd.dtype import DType, bfloat16, float32, float64
from picograd.graph import build
from picograd.graph.node import Node
from picograd.schedule.loop import Kernel
from picograd.schedule.plan import Plan
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target


def products(kernel: Kernel) -> list[int]:
    """Count the products of each part."""
    return [sum(len(c.reduce) > 0 for c in part.computes) for part in kernel.parts]


def counts(plan: Plan) -> list[list[int]]:
    return [products(kernel) for kernel in plan.kernels]


def test_a_gate_and_what_it_gates_are_never_stored() -> None:
    x = leaf(20, 6)
    gate, up = (build.matmul(x, leaf(6, 15)) for _ in range(2))
    hidden = (gate * gate * up) + spread(leaf(1, 15), (20, 15))
    plan = check_plan([build.matmul(hidden, leaf(15, 6))], 2)
    assert counts(plan) == [[2], [1]]
    assert len(schedule([hidden], cuda_target("sm_90a")).kernels) > 1, "too few tiles"


@pytest.mark.parametrize("batch", [(1,), (1, 1)])
def test_products_of_a_batch_of_one_are_read_in_their_shape(batch: tuple[int, ...]) -> None:
    x = leaf(*batch, 20, 6)
    gate, up = (build.matmul(x, leaf(6, 15)) for _ in range(2))
    assert counts(check_plan([gate * gate * up], 1)) == [[2]]
    heads, others = leaf(1, 3, 20, 6), leaf(1, 3, 6, 15)
    for a, b in ((heads, others), (leaf(20, 6), others), (leaf(1, 1, 20, 6), others)):
        check_plan([build.matmul(a, b), build.matmul(a, leaf(1, 1, 6, 15))])


def twins(plan: Plan) -> bool:
    """Tell whether one kernel has two products."""
    return counts(plan) == [[2]]


@pytest.mark.parametrize("dtype", [float32, bfloat16])
def test_on_a_gpu_products_that_share_their_left_operand_are_one_kernel(dtype: DType) -> None:
    x, target = leaf(4096, 512, dtype=dtype), cuda_target("sm_90a")
    gate, up = (build.matmul(x, leaf(512, 2048, dtype=dtype)) for _ in range(2))
    assert twins(schedule([gate * gate * up], target))
    assert twins(schedule([gate, up, gate * up], target)) == (dtype is float32), "stored too"
    third = build.matmul(x, leaf(512, 2048, dtype=dtype))
    assert counts(schedule([gate * up * third], target)) == [[2], [1]]


def test_on_a_gpu_no_others_are_one_kernel() -> None:
    target = cuda_target("sm_90a")

    def is_one(*shapes: tuple[int, int], k: int = 512, dtype: DType = float32, target=target):
        x = leaf(shapes[0][0], k, dtype=dtype)
        a, b = (build.matmul(x, leaf(k, n, dtype=dtype)) for _, n in shapes)
        return twins(schedule([a * b], target))

    assert is_one((4096, 2048), (4096, 2048))
    assert not is_one((4096, 32), (4096, 32)), "half a tile"
    assert not is_one((1024, 2048), (1024, 2048)), "blocks share K"
    assert is_one((1024, 2048), (1024, 2048), k=2048, dtype=bfloat16)
    assert not is_one((128, 8192), (128, 8192), k=2048, dtype=bfloat16), "few rows"
    assert not is_one((4096, 2048), (4096, 2048), dtype=float64)
    assert not is_one((4096, 2048), (4096, 2048), k=511, dtype=bfloat16), "no boxes"
    assert not is_one((4096, 2048), (4096, 2048), dtype=bfloat16, target=cuda_target("sm_80"))
    assert not is_one((4096, 2048), (4096, 2048), target=replace(target, tf32=True))
    w = leaf(512, 2048)
    left = [build.matmul(leaf(4096, 512), w) for _ in range(2)]
    assert not twins(schedule([left[0] * left[1]], target)), "they share the right one"


def test_on_a_gpu_the_second_product_computes_what_reads_both() -> None:
    target = cuda_target("sm_90a")
    gate, up = (build.matmul(leaf(2048, 256), leaf(256, 1024)) for _ in range(2))
    plan = schedule([gate * gate * up], target)
    assert [len(kernel.parts[0].computes) for kernel in plan.kernels] == [1, 2]
    small = [build.matmul(leaf(1, 16), leaf(16, 32)) for _ in range(2)]
    plan = schedule([small[0] * small[1]], target)
    assert [kernel.hero for kernel in plan.kernels] == ["contract", "map"], "they share a launch"


@pytest.mark.parametrize("depths", [(6, 6), (6, 9)])
def test_products_of_any_operands_and_depths_are_added_where_they_are_made(
    depths: tuple[int, int],
) -> None:
    a, b = (build.matmul(leaf(20, k), leaf(k, 15)) for k in depths)
    assert counts(check_plan([a + b], 1)) == [[2]]


def test_sides_may_be_exchanged() -> None:
    labels = ((1, 2), (0, 2), (0, 1)), ((0, 2), (1, 2), (0, 1))
    first = Node("contract", (leaf(15, 6), leaf(20, 6)), labels[0], (20, 15), leaf(1).dtype, "cpu")
    second = Node("contract", (leaf(20, 6), leaf(15, 6)), labels[1], (20, 15), leaf(1).dtype, "cpu")
    assert counts(check_plan([first * second], 1)) == [[2]]


def test_a_product_that_another_waits_for_is_not_paired_with_it() -> None:
    first = build.matmul(leaf(20, 6), leaf(6, 15))
    second = build.matmul(first, leaf(15, 15))
    assert counts(check_plan([first + second])) == [[1], [1]]


def test_products_that_are_read_too_are_stored() -> None:
    x = leaf(20, 6)
    a, b = (build.matmul(x, leaf(6, 15)) for _ in range(2))
    assert counts(check_plan([a, a * b], 1)) == [[2]]


def test_products_without_a_common_reader_stay_parts() -> None:
    x = leaf(20, 6)
    assert counts(check_plan([build.matmul(x, leaf(6, 15)) for _ in range(2)], 1)) == [[1, 1]]


def test_vectors_are_multiplied_without_packing() -> None:
    x = leaf(1, 6)
    a, b = (build.matmul(x, leaf(6, 15)) for _ in range(2))
    assert [2] not in counts(check_plan([a * b]))


def test_a_deep_product_of_few_results_is_shared_by_tasks() -> None:
    a, b = (build.matmul(leaf(200, 2000), leaf(2000, 100)) for _ in range(2))
    assert counts(schedule([a * b], replace(TARGET, threads=1))) == [[2]]
    assert [2] not in counts(schedule([a * b], replace(TARGET, threads=16)))


def test_a_fifth_product_is_a_kernel_of_its_own() -> None:
    terms = [build.matmul(leaf(20, 6), leaf(6, 15)) for _ in range(5)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    assert sorted(n for each in counts(check_plan([total])) for n in each)[-2:] == [1, 4]
