"""Sums over all rows are part of the kernel that works on these rows, on a GPU."""

import numpy as np
import pytest
from plan_support import TARGET, check_plan, leaf, spread

from picograd.buffer import Storage
from picograd.codegen.pipeline import generate
from picograd.dtype import DType, bfloat16, float32, float64
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule import column_sums, fuse
from picograd.schedule.cost import takes_column_sums
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target, opencl_target

GPU = cuda_target("sm_90a")


@pytest.fixture(autouse=True)
def _random():
    np.random.seed(0)


@pytest.fixture
def _always(monkeypatch):
    """Small arrays are not worth it."""
    monkeypatch.setattr(column_sums, "takes_column_sums", lambda *known: True)


def norm_gradients(*shape: int, dtype: DType = float32, leaf=leaf) -> list[Node]:
    x, g = leaf(*shape, dtype=dtype), leaf(*shape, dtype=dtype)
    weight, bias = (leaf(shape[-1], dtype=dtype) for _ in range(2))
    out = build.layer_norm(x, 1, weight, bias, 1e-5)
    return list(gradient([(out, g)], [x, weight, bias]))


def heroes(roots: list[Node], target: Target = GPU) -> list[str]:
    return [kernel.hero for kernel in schedule(roots, target).kernels]


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("shape", [(40, 24), (3, 7, 16)])
def test_gradients_of_a_norm_are_one_kernel(shape) -> None:
    plan = check_plan(norm_gradients(*shape), 1, target=GPU)
    (part,) = plan.kernels[0].parts
    across = [c for c in part.computes if c.reduce == part.rows]
    assert plan.kernels[0].hero == "reduce.row" and len(across) == 2
    assert all(set(c.axes).isdisjoint(part.rows) for c in across)


@pytest.mark.usefixtures("_always")
def test_what_is_computed_of_the_sums_comes_with_them() -> None:
    *_, for_bias = norm = norm_gradients(40, 24)
    check_plan([*norm, for_bias * 2.0 + 1.0], 1, target=GPU)


@pytest.mark.usefixtures("_always")
def test_who_reads_the_sums_later_does_not_mind() -> None:
    *_, for_bias = norm = norm_gradients(40, 24)
    later = (leaf(8, 24) * for_bias.reshape((1, 24)).expand((8, 24))).reduce("sum", (1,), False)
    plan = check_plan([*norm, later], 2, target=GPU)
    assert plan.kernels[0].hero == "reduce.row"


@pytest.mark.usefixtures("_always")
def test_elements_that_the_rows_store_are_summed_too() -> None:
    for_x, *_ = norm_gradients(40, 24)
    check_plan([for_x, for_x.reduce("sum", (0,))], 1, target=GPU)


@pytest.mark.usefixtures("_always")
def test_what_cannot_join_stays_apart() -> None:
    assert len(heroes(norm_gradients(40, 24), TARGET)) == 2
    x = leaf(40, 24)
    others = leaf(40, 24).reduce("sum", (0,))
    assert not has_columns([build.softmax(x, 1), others])
    centred = x - spread(x.reduce("sum", (0,)) * 0.1, x.shape)
    check_plan([build.softmax(centred, 1)], 2, target=GPU)
    assert len(heroes(norm_gradients(40, 24, dtype=float64))) == 2
    assert not has_columns([build.softmax(x, 1), x.reduce("max", (0,))])
    assert has_columns([build.softmax(x, 1), x.reduce("sum", (0,))])


def has_columns(roots: list[Node]) -> bool:
    """Tell whether a kernel sums over the rows that it works on."""
    parts = [part for kernel in schedule(roots, GPU).kernels for part in kernel.parts]
    return any(c.reduce == part.rows and c.axes for part in parts for c in part.computes)


@pytest.mark.usefixtures("_always")
def test_what_is_made_later_is_summed_later() -> None:
    x, late = leaf(40, 24), build.softmax(leaf(30, 24).reduce("sum", (0,)), 0)
    roots = [build.softmax(x, 1), (x * spread(late, x.shape)).reduce("sum", (0,))]
    check_plan(roots, 3, target=GPU)


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("limit", [512, 24], ids=["one group", "two groups"])
def test_sums_of_what_all_rows_add_up_to_are_apart(limit, monkeypatch) -> None:
    monkeypatch.setattr(fuse, "GROUP_LIMIT", limit)
    x = leaf(40, 24)
    rows = build.softmax(x, 1)
    totals = [(rows * float(number)).reduce("sum", (0,)) for number in range(1, 13)]
    later = (x * spread(totals[0], x.shape)).reduce("sum", (0,))
    check_plan([rows, *totals, later], 2, target=GPU)


@pytest.mark.usefixtures("_always")
def test_sums_are_apart_where_blocks_cannot_wait_for_one_another() -> None:
    plan = check_plan(norm_gradients(40, 24), 2, target=opencl_target())
    for kernel in plan.kernels:
        generate(kernel, opencl_target(), None, True)


@pytest.mark.usefixtures("_always")
def test_a_kernel_has_not_too_many_members(monkeypatch) -> None:
    monkeypatch.setattr(column_sums, "MEMBER_LIMIT", 1)
    assert len(heroes(norm_gradients(40, 24))) == 2


@pytest.mark.usefixtures("_always")
def test_of_no_rows_the_sums_are_zero() -> None:
    check_plan(norm_gradients(0, 24), target=GPU)
    x = leaf(0, 24)
    check_plan([build.softmax(x, 1), x.reduce("sum", (0,))], target=GPU)


def test_estimates() -> None:
    assert takes_column_sums(16384, 4096, 2, 8, GPU) and takes_column_sums(16384, 768, 2, 4, GPU)
    assert not takes_column_sums(256, 768, 2, 4, GPU), "few rows"
    assert not takes_column_sums(1 << 20, 32768, 2, 8, GPU), "more than registers hold"
    for rows, kernels in ((64, 2), (16384, 1)):
        known = norm_gradients(rows, 768, dtype=bfloat16, leaf=without_values)
        assert len(heroes(known)) == kernels


def without_values(*shape: int, dtype: DType) -> Node:
    return Node("buffer", (), Storage(None), shape, dtype, "cpu")
