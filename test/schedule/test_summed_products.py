"""Products that are only added up become one: gradients of a weight that a loop multiplies."""

import pytest
from plan_support import TARGET, check_plan, leaf

from picograd.dtype import DType, bfloat16, float32, int32
from picograd.graph.node import Node, toposort
from picograd.schedule import summed_products
from picograd.schedule.plan import Plan
from picograd.schedule.summed_products import sum_products
from picograd.target import cuda_target

GPU = cuda_target("sm_90a")
DOWN = ((2, 0), (2, 1), (0, 1))  # over the rows of both


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed_products, "LARGE", 64)


def product(rows: int = 2, columns: int = 12) -> Node:
    return leaf(rows, 8).contract(leaf(rows, columns), DOWN)


def total(terms: list[Node]) -> Node:
    found = terms[0]
    for term in terms[1:]:
        found = found + term
    return found


def products(plan: Plan) -> int:
    return sum("sum" in repr(each.parts) for each in plan.kernels)


def test_products_of_a_loop_are_one() -> None:
    """Of as many rows as each has, with what else is added in its place."""
    terms = [product(1 + n % 2) for n in range(5)]
    check_plan([total([*terms[:2], leaf(8, 12), *terms[2:]])], 2)  # a copy, and it
    assert products(check_plan([total(terms[:3])])) == 1  # as parts of one kernel


def test_each_kind_is_one() -> None:
    terms = [product(columns=columns).reshape((8, columns)) for columns in (12,) * 4]
    other = [leaf(2, 8).contract(leaf(12, 2), ((2, 0), (1, 2), (0, 1))) for _ in range(4)]
    mixed = [each for pair in zip(terms, other, strict=True) for each in pair]
    (found,) = rewritten([total(mixed)])
    assert found.op == "add" and [each.op for each in found.inputs] == ["contract"] * 2
    check_plan([total(mixed)])


def rewritten(roots: list[Node]) -> list[Node]:
    """Apply the pass alone."""
    return sum_products(roots, toposort(roots), TARGET)


def test_conversions_of_products_are_looked_below() -> None:
    pairs = [(leaf(2, 8).cast(bfloat16), leaf(2, 12).cast(bfloat16)) for _ in range(4)]
    (found,) = rewritten([total([a.contract(b, DOWN).cast(float32) for a, b in pairs])])
    assert found.dtype is float32 and found.inputs[0].inputs[0].shape == (8, 8)


@pytest.mark.parametrize("dtype", [int32, bfloat16])
def test_what_is_rounded_before_it_is_added_stays(dtype: DType) -> None:
    root = total([product().cast(dtype).cast(float32) for _ in range(4)])
    assert rewritten([root]) == [root]


def test_what_stays() -> None:
    """Few products, long operands, products and sums that others read too."""
    few, long = total([product() for _ in range(3)]), total([product(9) for _ in range(4)])
    terms = [product() for _ in range(4)]
    read = total(terms)
    shared = total(terms[:2]), total([product() for _ in range(2)])
    for roots in ([few], [long], [read, *terms], [shared[0], shared[0] + shared[1]]):
        assert rewritten(roots) == roots


def test_a_gpu_multiplies_beside_the_steps() -> None:
    roots = [total([product() for _ in range(4)])]
    assert sum_products(roots, toposort(roots), GPU) == roots
