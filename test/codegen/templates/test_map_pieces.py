"""Elementwise loops on a CPU are cut where guards begin and end."""

from collections.abc import Iterable
from typing import Any

import harness
import pytest
import structured
from cases import guard, kernel, load, op

from picograd.codegen.templates.map import build
from picograd.codegen.templates.map_pieces import joined
from picograd.codegen.tile import Barrier, For, Store
from picograd.dtype import bool_, float32, int64
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Compute, Expr, Part, const, walk
from picograd.target import cuda_target


def stores_of(steps: Iterable[Any]) -> list[Any]:
    """List stores, also those in loops."""
    found: list[Any] = []
    for step in steps:
        found += [step] if isinstance(step, Store) else stores_of(getattr(step, "body", ()))
    return found


def test_joined_arrays_are_computed_each_in_its_own_loop() -> None:
    kernel = structured.joined().kernel
    (part,) = build(kernel, harness.TARGET).parts
    (rows,) = part.steps  # and row by row together
    assert isinstance(rows, For)
    stores = stores_of(part.steps)
    assert [[axis.size for axis in step.dims] for step in stores] == [[20], [18], [32]]
    for step in stores:
        ops = [expr.op for expr in walk(step.expr)]
        assert "guard" not in ops and ops.count("exp") == 1
    assert len(build(kernel, cuda_target("sm_90a")).parts[0].steps) == 1


def test_short_pieces_stay_together() -> None:
    (part,) = build(structured.pad().kernel, harness.TARGET).parts
    assert len(part.steps) == 1


def test_short_pieces_are_cut_off_where_elements_are_chosen_from_several() -> None:
    """`roll`: three elements first, along an axis within a task and along one that tasks share."""
    i, j = Axis("i", 9), Axis("j", 70)
    row, column = axis_index(i) * 70, axis_index(j)
    first = guard(load(0, float32, row + column + 67), 0.0, (column, 0, 2))
    rest = guard(load(0, float32, row + column - 3), 0.0, (column - 3, 0, 66))
    store = 1, row + column
    compute = Compute((i, j), (), None, op("add", first, rest), float32, store)
    slots = [(float32, 630, "in"), (float32, 630, "out")]
    (part,) = build(kernel("roll", "map", slots, Part((i, j), (compute,))), harness.TARGET).parts
    assert [step.dims[-1].size for step in stores_of(part.steps)] == [3, 67]

    long = Axis("i", 100_000)
    place = axis_index(long)
    first = guard(load(0, float32, place + 99_997), 0.0, (place, 0, 2))
    rest = guard(load(0, float32, place - 3), 0.0, (place - 3, 0, 99_996))
    compute = Compute((long,), (), None, op("add", first, rest), float32, (1, place))
    slots = [(float32, 100_000, "in"), (float32, 100_000, "out")]
    roll = kernel("roll", "map", slots, Part((long,), (compute,)))
    few, many = build(roll, harness.TARGET).parts
    assert not few.grid and many.grid
    exprs = [expr.op for part in (few, many) for step in part.steps for expr in walk(step.expr)]
    assert exprs.count("guard") <= 1  # of the last task: no choice between two


def test_axes_are_cut_where_others_are() -> None:
    """What is joined along two axes is computed in four pieces."""
    i, j = Axis("i", 40), Axis("j", 70)
    row, column = axis_index(i), axis_index(j)
    total = const(0.0, float32)
    for low, left in ((0, 0), (0, 30), (20, 0), (20, 30)):
        inside = (row - low, 0, 19), (column - left, 0, 39 if left else 29)
        total = op("add", total, guard(load(0, float32, row * 70 + column), 0.0, *inside))
    compute = Compute((i, j), (), None, total, float32, (1, row * 70 + column))
    slots = [(float32, 2800, "in"), (float32, 2800, "out")]
    (part,) = build(kernel("four", "map", slots, Part((i, j), (compute,))), harness.TARGET).parts
    assert [rows.axis.size for rows in part.steps] == [20, 20]
    stores = stores_of(part.steps)
    assert [[axis.size for axis in step.dims] for step in stores] == [[30], [40], [30], [40]]
    assert not any(expr.op == "guard" for step in stores for expr in walk(step.expr))


@pytest.mark.parametrize(
    ("op", "limit", "wanted"),
    [
        ("less", 3, ["load", "load"]),
        ("less", 2, ["where", "load"]),
        ("less", 4, ["load", "where"]),
        ("less_equal", 2, ["load", "load"]),
        ("less_equal", 1, ["where", "load"]),
        ("less_equal", 3, ["load", "where"]),
    ],
)
def test_choices_by_a_place_are_settled_in_a_piece(op: str, limit: int, wanted: list[str]) -> None:
    """A row that is written over with others at both ends: where all of a piece is on one side."""
    i, j = Axis("i", 9), Axis("j", 70)
    row, column = axis_index(i) * 70, axis_index(j)
    first = guard(load(0, float32, row + column + 67), 0.0, (column, 0, 2))
    rest = guard(load(0, float32, row + column - 3), 0.0, (column - 3, 0, 66))
    place = Expr("index", (), column, int64)
    test = Expr(op, (place, const(limit, int64)), None, bool_)
    chosen = Expr("where", (test, first, rest), None, float32)
    compute = Compute((i, j), (), None, chosen, float32, (1, row + column))
    slots = [(float32, 630, "in"), (float32, 630, "out")]
    (part,) = build(kernel("ends", "map", slots, Part((i, j), (compute,))), harness.TARGET).parts
    assert [step.expr.op for step in stores_of(part.steps)] == wanted


def test_loops_are_shared_by_stores_alone() -> None:
    """What comes between stores keeps its place, and so do stores over other rows, in order."""
    rows, others = Axis("i", 9), Axis("h", 7)
    spaces = [(rows, Axis("j", 3)), (rows, Axis("k", 5)), (others, Axis("j", 3))]
    stores = []
    for dims in spaces:
        place = axis_index(dims[0]) * 8 + axis_index(dims[1])
        stores.append(Store(0, place, dims, const(1.0, float32)))
    first, second, last = stores
    assert joined([first, Barrier(), second]) == (first, Barrier(), second)
    shared, alone = joined(stores)
    assert isinstance(shared, For) and shared.axis == rows and alone == last
    assert [step.dims for step in stores_of(shared.body)] == [dims[1:] for dims in spaces[:2]]
