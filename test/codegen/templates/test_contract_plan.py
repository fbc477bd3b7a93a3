"""Choices of a CPU contraction: blocks fit the registers and the cache, and cover the product."""

from dataclasses import replace

import pytest
from contractions import conv, matmul

from picograd.codegen.operands import analyse
from picograd.codegen.templates.contract_plan import (
    choose,
    counts,
    is_plain,
    is_range,
    nearest,
    orient,
    reads_along,
    vector_lanes,
)
from picograd.dtype import bfloat16, float32, float64
from picograd.helpers import product
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr
from picograd.target import Target

TARGET = Target("llvm", "host", 64, threads=2, registers=32)


def test_vector_lanes_follow_the_dtype() -> None:
    assert vector_lanes(float32, TARGET) == 16 and vector_lanes(float64, TARGET) == 8
    assert vector_lanes(bfloat16, TARGET) >= 16


@pytest.mark.parametrize(
    ("kernel", "stride", "is_side"), [(3, 2, True), (2, 2, False), (11, 4, True), (12, 4, False)]
)
def test_windows_that_overlap_are_read_beside_one_another(kernel, stride, is_side) -> None:
    product = analyse(conv((1, 48, 48, 3), 32, kernel, stride, channels_last=False).kernel)
    assert reads_along(product.a, product.rows, product.depth) == is_side


def test_nearest_is_the_smallest_step_that_moves() -> None:
    a, b, c = Axis("a", 4), Axis("b", 4), Axis("c", 4)
    assert nearest({a: 0, b: 12, c: -3}) in (3, -3, 12) and nearest({a: 8, b: 2}) == 2


def test_counts_start_with_all_small_numbers() -> None:
    found = counts(1, 1000)
    assert found[:4] == [1, 2, 3, 4] and found == sorted(set(found)) and found[-1] <= 1000
    assert len(found) < 60


def test_plain_index_uses_the_axis_outside_division() -> None:
    flat = Axis("flat", 12)
    assert is_plain(axis_index(flat) * 3 + 1, flat)
    assert not is_plain(axis_index(flat) // 4, flat)


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (5, 1000, 33), (1000, 7, 2000)])
def test_plan_covers_the_product(m: int, n: int, k: int) -> None:
    plan = choose(analyse(matmul((1, m, n, k)).kernel), TARGET)
    sizes = [cut.count * cut.size for cut in (plan.rows, plan.columns.cut, plan.depth)]
    wanted = sorted((m, n)), k
    assert sorted(sizes[:2])[0] >= wanted[0][0] and sorted(sizes[:2])[1] >= wanted[0][1]
    assert sizes[2] * plan.part.size >= k


def test_a_shared_expression_is_looked_at_once() -> None:
    product = analyse(matmul((1, 8, 8, 8)).kernel)
    deep = product.b
    for _ in range(60):  # spelt out this would be 2 ** 60 nodes
        deep = Expr("add", (deep, deep), None, deep.dtype)
    assert is_range(replace(product, b=deep), product.columns)


def test_one_worker_divides_no_product_for_others() -> None:
    plan = choose(analyse(matmul((1, 256, 256, 512)).kernel), replace(TARGET, threads=1))
    assert not plan.is_split and product(axis.size for axis in plan.task) == 1


def test_turning_an_operand_costs_less_than_storing_across_rows() -> None:
    """A layer's weights, (1024, 512), are columns of the panels that the result is stored from."""
    case = analyse(matmul((1, 256, 1024, 512), order_b=(0, 2, 1)).kernel)
    assert orient(case, TARGET).sizes == (1, 256, 1024, 512)


def test_a_panel_stays_in_the_first_cache_where_no_task_shares_the_depth() -> None:
    plan = choose(analyse(matmul((1, 512, 512, 1024)).kernel), replace(TARGET, threads=1))
    assert plan.depth.size * plan.columns.lanes * 4 <= 32 << 10
