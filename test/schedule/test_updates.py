"""Writes of parts touch those parts: which assignments are updates, and in which order they run."""

from collections.abc import Callable
from typing import Any

import numpy as np
import plain_nodes
import pytest
from interpreted_cuda import interpreted_cuda
from plan_support import VALUES, check_plan, copies, leaf, run

from picograd import Tensor
from picograd.buffer import Buffer, Storage
from picograd.dtype import float32, int64
from picograd.graph import build
from picograd.graph.interpret import interpret
from picograd.graph.node import Node, constant, toposort
from picograd.graph.parts import Steps, put, shown
from picograd.schedule.index import Axis, axis_index, evaluate
from picograd.schedule.plan import Plan
from picograd.schedule.schedule import schedule
from picograd.schedule.updates import Update, shown_source, take_updates
from picograd.target import SERIAL, cuda_target

ROW: Steps = (("slice", ((3, 4, 1), (0, 4, 1))), ("reshape", (4,)))
NEXT: Steps = (("slice", ((4, 5, 1), (0, 4, 1))), ("reshape", (4,)))
ROWS: Steps = (("slice", ((1, 9, 2), (0, 4, 1))),)
COLUMN: Steps = (("slice", ((0, 10, 1), (2, 3, 1))), ("reshape", (10,)))
TURNED: Steps = (("permute", (1, 0)), ("slice", ((1, 3, 1), (0, 10, 3))))
FLAT: Steps = (("reshape", (40,)), ("slice", ((5, 38, 3),)))
BACKWARDS: Steps = (("slice", ((2, 6, 1), (1, 4, 1))), ("flip", (0, 1)))
ALL = (ROW, NEXT, ROWS, COLUMN, TURNED, FLAT, BACKWARDS)
CUDA = cuda_target("sm_90a")


def shape_of(steps: Steps) -> tuple[int, ...]:
    return shown(leaf(10, 4), steps).shape


def written(base: Node, steps: Steps, change: Callable[[Node], Node]) -> Node:
    return build.assign(base, put(base, change(shown(base, steps)), steps))


def sizes(plan: Plan) -> list[int]:
    """Elements that the kernels of a plan store."""
    found = []
    for kernel in plan.kernels:
        for part in kernel.parts:
            stored = [np.prod([a.size for a in c.axes]) for c in part.computes if c.store]
            found += [int(n) for n in stored]
    return found


@pytest.mark.parametrize("steps", ALL)
def test_a_part_is_one_kernel_that_stores_it_alone(steps: Steps) -> None:
    base, value = leaf(10, 4), leaf(*shape_of(steps))
    plan = check_plan([build.assign(base, put(base, value, steps))], 1)
    assert sizes(plan) == [value.size] and not copies(plan) and not plan.arenas
    plan = check_plan([written(base, steps, lambda old: old * 2 + 1)], 1)
    assert sizes(plan) == [value.size] and not copies(plan) and not plan.arenas


@pytest.mark.parametrize("steps", ALL)
def test_indices_of_a_part_are_its_places(steps: Steps) -> None:
    shape = shape_of(steps)
    axes = [Axis(f"a{d}", n) for d, n in enumerate(shape)]
    found = shown_source((10, 4), steps, tuple(axis_index(axis) for axis in axes))
    at = dict(zip(axes, np.indices(shape), strict=True))
    places = [np.broadcast_to(evaluate(each, at, lambda e: None), shape) for each in found]
    zeros = constant(0, (10, 4), int64, "cpu")
    (wanted,) = interpret([shown(zeros.iota(0) * 4 + zeros.iota(1), steps)])
    np.testing.assert_array_equal(places[0] * 4 + places[1], wanted)


@pytest.mark.parametrize("monoid", [None, "sum", "max"])
@pytest.mark.parametrize("shape", [(10, 4), (20, 4)])
def test_a_scatter_goes_into_the_memory(monoid: str | None, shape: tuple[int, int]) -> None:
    base, values, index = leaf(*shape), leaf(2, 4), leaf(2, dtype=int64, below=10)
    whole = base.scatter(values, [index], (0,), monoid)
    if shape == (20, 4):
        steps: Steps = (("slice", ((0, 20, 2), (0, 4, 1))),)
        whole = put(base, shown(base, steps).scatter(values, [index], (0,), monoid), steps)
    plan = check_plan([build.assign(base, whole)], 1)
    assert plan.kernels[0].hero == "scatter" and not copies(plan) and not plan.arenas


def test_a_scatter_that_leaves_some_out_goes_into_the_memory() -> None:
    base, values, index = leaf(10, 4), leaf(3, 4), leaf(3, dtype=int64, below=10)
    inside = leaf(3, dtype=int64, below=2).binary("equal", 1)
    whole = base.scatter(values, [index], (0,), None, inside)
    assert not copies(check_plan([build.assign(base, whole)], 1))


def test_a_scatter_of_what_it_reads_is_computed_before() -> None:
    base, index = leaf(6, 4), leaf(6, dtype=int64, below=6)
    for values in (base, base * 2, shown(base, (("flip", (0,)),))):
        for at in (index, base.slice(((0, 6, 1), (0, 1, 1))).reshape((6,)).cast(int64)):
            clamped = at.binary("maximum", 0).binary("minimum", 5)
            root = build.assign(base, base.scatter(values, [clamped], (0,), "sum"))
            plan = check_plan([root])
            assert not copies(plan)


def test_a_scatter_on_cuda_is_sorted_and_stays_in_place() -> None:
    base, values = (plain_nodes.buffer(Storage(Buffer("cuda:0", float32, n * 4, 0)), (n, 4))
                    for n in (500, 100))  # fmt: skip
    index = plain_nodes.buffer(Storage(Buffer("cuda:0", int64, 100, 0)), (100,))
    root = build.assign(base, base.scatter(values, [index], (0,), "sum"))
    plan = schedule([root], CUDA)
    assert plan.kernels[-1].hero == "runs" and not copies(plan)
    assert plan.steps[-1].slots.count(plan.outputs[0]) == 1


@pytest.mark.usefixtures("on_host")
def test_sums_that_are_no_scatter_on_cuda_keep_what_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sums at few places are masked sums, or bins: what is assigned is a value of each element."""
    random = np.random.default_rng(0)
    base, values = random.normal(size=(70, 3)), random.normal(size=(300, 3))
    index = random.integers(0, 40, 300)
    whole, part = base.copy(), base.copy()
    np.add.at(whole, index, values)
    np.add.at(part[10:50], index, values)
    with interpreted_cuda(monkeypatch):
        x, y = (Tensor(base, device="cuda:0") for _ in range(2))
        at, rows = Tensor(index, device="cuda:0"), Tensor(values, device="cuda:0")
        x.index_add_(0, at, rows)
        y[10:50].index_add_(0, at, rows)
        np.testing.assert_allclose(x.numpy(), whole, rtol=1e-9)
        np.testing.assert_allclose(y.numpy(), part, rtol=1e-9)


def test_what_is_updated() -> None:
    base, row = leaf(10, 4), leaf(4)

    def found(value: Node) -> Any:
        roots = [build.assign(base, value)]
        (node,) = take_updates(roots, toposort(roots), SERIAL)
        return node.arg

    plain = found(put(base, row, ROW))
    assert plain == Update(ROW, (4,))
    assert found(put(build.detach(base), row, ROW)) == plain
    inner: Steps = (("slice", ((1, 3, 1),)),)
    part = put(shown(base, ROW), leaf(2), inner)
    assert found(put(base, part, ROW)) == Update((*ROW, *inner), (2,))
    assert found(put(base, put(shown(base, NEXT), leaf(2), inner), ROW)) == plain, "another row"
    assert found(put(leaf(10, 4), row, ROW)) is None, "another base"
    assert found(put(base, row, ROW) * 2) is None
    flat = base.reshape((40,)).scatter(leaf(2), [leaf(2, dtype=int64)], (0,), None)
    assert found(flat.reshape((10, 4))) == Update(
        (("reshape", (40,)),), (40,), "scatter", ((0,), None)
    )


def test_what_is_read_twice_is_no_update_of_a_scatter() -> None:
    base = leaf(10, 4)
    value = base.scatter(leaf(2, 4), [leaf(2, dtype=int64)], (0,), "sum")
    roots = [build.assign(base, value), value * 2]
    check_plan(roots)
    assert take_updates(roots, toposort(roots), SERIAL)[0].arg is None


def test_rows_written_one_after_the_other_are_as_many_small_kernels() -> None:
    node = base = leaf(10, 4)
    for n in range(8):
        steps: Steps = (("slice", ((n, n + 1, 1), (0, 4, 1))),)
        node = build.assign(node, put(node, leaf(1, 4), steps))
    plan = check_plan([node], 8)
    assert sizes(plan) == [4] * 8 and not copies(plan)
    assert plan.inputs[plan.outputs[0]] is base


def test_an_older_value_is_read_before() -> None:
    base = leaf(10, 4)
    once = written(base, ROW, lambda old: old + 1)
    twice = written(once, NEXT, lambda old: old * 2)
    plan = check_plan([base * 3, once.reduce("sum", (0, 1)), twice])
    assert not copies(plan) and sorted(sizes(plan)) == [1, 4, 4, 40]


def test_rows_that_change_places() -> None:
    base = leaf(10, 4)
    first, second = shown(base, ROW), shown(base, NEXT)
    once = build.assign(base, put(base, second * 1.5, ROW))
    twice = build.assign(once, put(once, first * 2.5, NEXT))
    plan = check_plan([twice], 3)
    assert sizes(plan) == [4, 4, 4] and not copies(plan)


def test_one_that_reads_both_values_gets_a_copy() -> None:
    base = leaf(10, 4)
    once = written(base, ROW, lambda old: old + 1)
    plan = check_plan([base + once, once])
    assert copies(plan) == 2 and any("read later" in reason for reason in plan.reasons)


def test_a_part_that_reads_its_neighbours_is_computed_before() -> None:
    base = leaf(10, 4)
    upper: Steps = (("slice", ((1, 10, 1), (0, 4, 1))),)
    lower: Steps = (("slice", ((0, 9, 1), (0, 4, 1))),)
    plan = check_plan([build.assign(base, put(base, shown(base, lower), upper))], 2)
    assert sizes(plan) == [36, 36] and plan.arenas
    columns: Steps = (("slice", ((0, 10, 1), (0, 2, 1))),)
    others: Steps = (("slice", ((0, 10, 1), (2, 4, 1))),)
    check_plan([build.assign(base, put(base, shown(base, others), columns))], 1)


def test_all_of_it_and_then_a_part() -> None:
    base = leaf(10, 4)
    whole = build.assign(base, base * 2)
    plan = check_plan([written(whole, ROW, lambda old: old + 1)], 2)
    assert sizes(plan) == [40, 4] and not copies(plan) and not plan.arenas
    part = written(base, ROW, lambda old: old + 1)
    check_plan([build.assign(part, constant(0.0, (10, 4), base.dtype, "cpu"))])
    check_plan([build.assign(part, part.flip((0,)))])


def random_graph(seed: int) -> tuple[list[Node], list[Node]]:
    """Writes and reads of two memories, in any order; the roots, and the last contents."""
    random = np.random.default_rng(seed)
    now = [leaf(6, 4), leaf(6, 4)]
    known = list(now)  # whole values
    reads: list[Node] = []
    for _ in range(random.integers(2, 8)):
        which = int(random.integers(2))
        low, step = int(random.integers(0, 4)), int(random.integers(1, 3))
        count = int(random.integers(1, 3))
        steps: Steps = (("slice", ((low, min(low + count, 6), step), (0, 4, 1))),)
        if random.integers(3) == 0:
            steps = (("permute", (1, 0)), ("slice", ((low % 3, 4, step), (1, 6, 2))))
        base = now[which]
        other = known[int(random.integers(len(known)))]
        choice = int(random.integers(8))
        if choice < 4:
            value = shown(other, steps) * 2 + (shown(base, steps) if choice % 2 else 1)
            value = value.flip((0,)) if random.integers(2) else value
            now[which] = build.assign(base, put(base, value, steps))
        elif choice == 4:
            index = leaf(2, dtype=int64, below=6)
            values = other.slice(((0, 2, 1), (0, 4, 1)))
            now[which] = build.assign(base, base.scatter(values, [index], (0,), "sum"))
        elif choice == 5:
            now[which] = build.assign(base, other.flip((0,)) if random.integers(2) else base * 2)
        elif choice == 6:
            reads.append(other * 2 if random.integers(2) else other.reduce("sum", (1,)))
        else:
            known.append(other + known[0])
        known.append(now[which])
    if random.integers(2):
        reads.append(known[int(random.integers(len(known)))].permute((1, 0)))
    reads = [node for node in reads if node.op != "buffer"]
    return [*reads, *(node for node in now if node.op == "assign")], now


@pytest.mark.parametrize("seed", range(60))
def test_any_order_of_writes_and_reads(seed: int) -> None:
    roots, now = random_graph(seed)
    if not roots:
        return
    results = run(check_plan(roots, tolerance=1e-3))
    for node, value in zip(now, interpret(now, values=VALUES), strict=True):
        if node.op == "assign":
            np.testing.assert_allclose(results[roots.index(node)], value, 1e-3, 1e-3)
