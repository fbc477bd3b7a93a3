"""Kernels of arrays that end: right up to the end, nothing written beyond, masks in reductions."""

from typing import Any

import numpy as np
import pytest
from plan_support import TARGET, VALUES, leaf

from picograd.buffer import RuntimeScalar
from picograd.dtype import float32, int64
from picograd.errors import InternalError
from picograd.graph.bounded import End, ended
from picograd.graph.node import Node
from picograd.schedule.canonical import canonical_key
from picograd.schedule.index import Axis, Dynamic, atom_index, axis_index
from picograd.schedule.interpret import interpret
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot
from picograd.schedule.plan import KernelLaunch, Plan
from picograd.schedule.schedule import schedule
from picograd.schedule.verify import verify

COUNT = RuntimeScalar(5)
FIRST = (End(0, 1, 0, COUNT),)


def run(plan: Plan) -> list[Any]:
    """Run a plan whose outputs and temporaries are full of NaN before."""
    memory = [np.full(slot.size, np.nan, slot.dtype.numpy) for slot in plan.slots]
    memory[: len(plan.inputs)] = [VALUES[node].copy().reshape(-1) for node in plan.inputs]
    scalars = [node.arg.value for node in plan.scalars]
    for step in plan.steps:
        assert isinstance(step, KernelLaunch)
        values = [scalars[number] for number in step.scalars]
        interpret(step.kernel, [memory[number] for number in step.slots], values)
    return [memory[number].reshape(plan.slots[number].shape) for number in plan.outputs]


def poisoned(*shape: int) -> Node:
    """A leaf of 8 rows, of which 5 are there."""
    node = leaf(*shape)
    VALUES[node][5:] = np.nan
    return node


def test_a_map_and_a_sum_end() -> None:
    x = poisoned(8, 3)
    double = ended(x * 2.0, FIRST)
    total = ended(double.reduce("sum", (0,)), (), (FIRST,))
    found, summed = run(schedule([double, total], TARGET))
    np.testing.assert_allclose(found[:5], 2 * VALUES[x][:5])
    assert np.isnan(found[5:]).all()
    np.testing.assert_allclose(summed, 2 * VALUES[x][:5].sum(0), rtol=1e-6)


def test_a_product_of_rows_that_end_and_the_sum_over_them() -> None:
    x, w = poisoned(8, 4), leaf(4, 6)
    product = ended(x.contract(w, ((0, 1), (1, 2), (0, 2))), FIRST)
    again = x.contract(product, ((0, 1), (0, 2), (1, 2)))
    found, summed = run(schedule([product, ended(again, (), (FIRST, FIRST))], TARGET))
    wanted = VALUES[x][:5] @ VALUES[w]
    np.testing.assert_allclose(found[:5], wanted, rtol=1e-5)
    assert np.isnan(found[5:]).all()
    np.testing.assert_allclose(summed, VALUES[x][:5].T @ wanted, rtol=1e-4, atol=1e-5)


def test_a_part_ends_where_all_that_it_stores_does() -> None:
    x = leaf(8, 3)
    some, whole = ended(x * 2.0, FIRST), x + 1.0
    found, all_of_it = run(schedule([some, whole], TARGET))
    np.testing.assert_allclose(found[:5], 2 * VALUES[x][:5])
    np.testing.assert_allclose(all_of_it, VALUES[x] + 1)


def test_axes_that_end_merge_with_those_inside_them() -> None:
    x = leaf(8, 3, 2)
    inner = (End(1, 1, 0, COUNT),)
    (kernel,) = schedule([ended(x * 2.0, FIRST)], TARGET).kernels
    assert "part [a0:48] if -48<=a0 + -6*[scalar0]<=-1" in repr(kernel)
    (kernel,) = schedule([ended(leaf(3, 8, 2) * 2.0, inner)], TARGET).kernels
    assert "part [a0:3, b1:16] if -16<=b1 + -2*[scalar0]<=-1" in repr(kernel)
    digits = (End(0, 1, 8, COUNT),)  # 4 rows of 8, of which as many are there as COUNT says
    (kernel,) = schedule([ended(leaf(32) * 2.0, digits)], TARGET).kernels
    assert "part [a0_0:4, a0_1:8] if -8<=a0_1 + -1*[scalar0]<=-1" in repr(kernel)
    plain = schedule([leaf(32) * 2.0], TARGET).kernels[0]
    assert canonical_key(plain) != canonical_key(kernel)


def test_equal_nodes_with_other_ends_are_two() -> None:
    x = leaf(8, 3)
    cut, whole = run(schedule([ended(x * 2.0, FIRST), x * 2.0], TARGET))
    np.testing.assert_allclose(cut[:5], 2 * VALUES[x][:5])
    np.testing.assert_allclose(whole, 2 * VALUES[x])


def test_broken_ends_are_found() -> None:
    row = Axis("i", 4)
    body = Expr("load", (), (0, axis_index(row)), float32)
    slots = Slot(float32, 4, "in"), Slot(float32, 4, "out")
    compute = Compute((row,), (), None, body, float32, (1, axis_index(row)))
    scalar = atom_index(Dynamic(Expr("scalar", (), 1, int64), 0, 4))
    for index, problem in (
        (axis_index(row) - scalar, "unknown scalar"),
        (axis_index(Axis("j", 4)), "axes unbound"),
        (atom_index(Dynamic(body, 0, 4)), "no runtime scalar"),
    ):
        part = Part((row,), (compute,), ends=((index, -4, -1),))
        with pytest.raises(InternalError, match=problem):
            verify(Kernel("test", "map", slots, (int64,), (part,)))
