"""Copies of products in another order: which are left out, and that values stay."""

import numpy as np
import pytest

from picograd import Tensor
from picograd.dtype import float32, to_dtype
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.loop import Compute, Expr, Part, const
from picograd.schedule.rearranged import Copy, in_order, with_zeros
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

H100, A100 = cuda_target("sm_90a"), cuda_target("sm_80", 108)
STRIDED = ConvSpec((2, 2), ((1, 1), (1, 1)), (1, 1), (1, 1))
RANDOM = np.random.default_rng(0)


def leaf(*shape: int) -> tuple[Node, np.ndarray]:
    """Whole numbers, which products of bfloat16 add without rounding."""
    values = RANDOM.integers(-2, 3, shape).astype(np.float32)
    return Tensor(values).bfloat16().realize().node, values


def run(plan, *given):
    held = {id(node): values for node, values in given}
    return interpret_plan(plan, [held[id(node)].reshape(-1) for node in plan.inputs])


def heads(made: Node, count: int) -> Node:
    rows, columns = made.shape
    return made.reshape((rows, count, columns // count)).permute((1, 0, 2))


def multiply(a: Node, b: Node) -> Node:
    return a.contract(b, ((0, 2), (2, 1), (0, 1)))


def test_heads_are_stored_where_they_are_wanted():
    (a, first), (b, second) = leaf(5, 16), leaf(16, 192)
    plan = schedule([heads(multiply(a, b), 3)], H100)
    assert [kernel.hero for kernel in plan.kernels] == ["contract"]
    (found,) = run(plan, (a, first), (b, second))
    wanted = (first @ second).reshape(5, 3, 64).transpose(1, 0, 2)
    np.testing.assert_array_equal(found, wanted)


def test_phases_of_a_gradient_are_stored_between_one_another():
    (x, _), (w, weights), (dy, given) = leaf(2, 1, 64, 6, 6), leaf(1, 8, 64, 3, 3), leaf(1)
    made = x.conv(w, STRIDED)
    dy, given = leaf(*made.shape)
    (found,) = gradient([(made, dy)], [x])
    root = found.reshape((2, 64, 6, 6)).permute((0, 2, 3, 1))
    plan = schedule([root], H100)
    assert [kernel.hero for kernel in plan.kernels].count("conv") == 1
    conv = next(kernel for kernel in plan.kernels if kernel.hero == "conv")
    assert plan.kernels[-1] is conv, "nothing is copied behind it"
    (result,) = run(plan, (w, weights), (dy, given))
    wanted = np.zeros((2, 64, 8, 8))
    for row in range(3):
        for column in range(3):
            part = np.einsum("nohw,oc->nchw", given[:, 0], weights[0, :, :, row, column])
            wanted[:, :, row : row + 6 : 2, column : column + 6 : 2] += part
    wanted = wanted[:, :, 1:7, 1:7].transpose(0, 2, 3, 1)
    np.testing.assert_allclose(result, wanted, rtol=1e-2)


@pytest.mark.parametrize(("kind", "last"), [("bfloat16", "conv"), ("float32", "map")])
def test_zeros_between_phases_are_no_columns_where_they_would_be_multiplied(kind, last):
    spec = ConvSpec((2, 2), ((0, 0), (0, 0)), (1, 1), (1, 1))
    x, w = (leaf(*shape)[0].cast(to_dtype(kind)) for shape in ((2, 1, 64, 6, 6), (1, 8, 64, 1, 1)))
    made = x.conv(w, spec)
    dy = leaf(*made.shape)[0].cast(made.dtype)
    (found,) = gradient([(made, dy)], [x])
    root = found.reshape((2, 64, 6, 6)).permute((0, 2, 3, 1))
    assert schedule([root], H100).kernels[-1].hero == last


@pytest.mark.parametrize("case", ["narrow", "read twice", "computed with", "no boxes"])
def test_other_copies_stay(case):
    (a, _), (b, _) = leaf(5, 16), leaf(16, 192)
    made = multiply(a, b)
    roots = {
        "narrow": [heads(made, 6)],
        "read twice": [heads(made, 3), made],
        "computed with": [heads(made, 3).binary("maximum", 0.0)],
        "no boxes": [heads(made, 3)],
    }[case]
    plan = schedule(roots, A100 if case == "no boxes" else H100)
    (kernel,) = (each for each in plan.kernels if each.hero == "contract")
    (store,) = (each.store for each in kernel.parts[0].computes if each.store)
    assert len(store[1].terms) == 2, "rows and columns"


def test_columns_of_zeros_are_only_added_to_a_plain_product():
    i, j, k = Axis("i", 4), Axis("j", 6), Axis("k", 8)
    a = Expr("load", (), (0, axis_index(i) * 8 + axis_index(k)), float32)
    b = Expr("load", (), (1, axis_index(k) * 6 + axis_index(j)), float32)
    both = Expr("mul", (a, b), None, float32)
    test = (axis_index(k), 0, 6)
    inside = Expr("guard", (both, const(0, float32)), (test,), float32)
    apart = Axis("between_0", 2)
    copy = Copy(2, 3, (j, i), (1, 6), axis_index(i), (apart,), ((axis_index(apart), 0, 0),))

    def made(body: Expr) -> Part | None:
        store = 2, axis_index(i) * 6 + axis_index(j)
        compute = Compute((i, j), (k,), "sum", body, float32, store)
        return with_zeros(Part((i, j), (compute,)), copy)

    assert made(inside) is None and made(a) is None
    found = made(both)
    assert found is not None and found.rows == (i, apart, j)


def test_what_numbers_an_array_once():
    i, j = Axis("i", 4), Axis("j", 6)
    whole = axis_index(i) + axis_index(j) * 4
    assert in_order(whole, 24) == (i, j)
    assert in_order(whole, 48) is None and in_order(whole + 1, 24) is None
    assert in_order(axis_index(i) + axis_index(j) * 5, 24) is None
    assert in_order(axis_index(i) + axis_index(j) // 2 * 4, 12) is None


def test_a_copy_that_is_assigned_stays():
    (a, _), (b, _), (held, _) = leaf(5, 16), leaf(16, 192), leaf(3, 5, 64)
    plan = schedule([build.assign(held, heads(multiply(a, b), 3))], H100)
    assert [kernel.hero for kernel in plan.kernels] == ["contract", "map"]
