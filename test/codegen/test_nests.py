"""Which steps share a loop nest: elements may be stored while they are reduced, sums may not."""

import pytest

from picograd.codegen.linearize_cpu import SHORT_CHAIN, SHORT_ROW, linearize
from picograd.codegen.linearize_cpu_pack import as_bounds
from picograd.codegen.nests import group_length, is_pointwise, stretches
from picograd.codegen.render.llvm import render
from picograd.codegen.templates.reduce import build
from picograd.codegen.tile import Accumulate, Assign, Store
from picograd.dtype import float32
from picograd.schedule.index import Axis, axis_index, constant
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot, const
from picograd.target import Target

ROW, COLUMN = Axis("row", 1000), Axis("column", 64)
PLACE = axis_index(ROW) * 64 + axis_index(COLUMN)
LOAD = Expr("load", (), (0, PLACE), float32)
TOTAL = Expr("tile", (), ("total", (axis_index(COLUMN),)), float32)
REDUCE = Accumulate("total", (COLUMN,), (ROW,), "sum", LOAD)


def test_elements_are_stored_in_the_loops_that_reduce_them() -> None:
    store = Store(1, PLACE, (ROW, COLUMN), LOAD)
    assert group_length([REDUCE, REDUCE, store], 0) == 3
    assert group_length([REDUCE, Store(1, PLACE, (COLUMN, ROW), LOAD)], 0) == 1


def test_what_reads_a_sum_waits_for_it() -> None:
    away = Expr("sub", (LOAD, TOTAL), None, float32)
    assert group_length([REDUCE, Store(1, PLACE, (ROW, COLUMN), away)], 0) == 1


def test_a_reduction_that_goes_on_is_no_window() -> None:
    few = Axis("few", 4)
    assert is_pointwise(Accumulate("total", (COLUMN,), (few,), "sum", LOAD))
    assert not is_pointwise(Accumulate("total", (COLUMN,), (few,), "sum", LOAD, False))
    assert is_pointwise(Accumulate("total", (COLUMN,), (), "sum", LOAD, False))
    inside = Expr("guard", (LOAD, const(0, float32)), ((axis_index(COLUMN) - 3, 0, 60),), float32)
    assert not is_pointwise(Accumulate("total", (COLUMN,), (), "sum", inside, False)), "bounds"


def test_few_sums_are_added_to_in_the_innermost_loop() -> None:
    window, many = Axis("window", 49), Axis("many", 4096)
    assert not is_pointwise(Accumulate("total", (COLUMN,), (window,), "sum", LOAD))
    assert is_pointwise(Accumulate("total", (many, COLUMN), (window,), "sum", LOAD))
    assert not is_pointwise(Accumulate("total", (many, COLUMN), (ROW,), "sum", LOAD))


def test_elements_that_are_read_again_are_reduced_in_loops_if_there_are_many() -> None:
    centred = Expr("sub", (LOAD, TOTAL), None, float32)
    for size, is_window in ((8, True), (12, False)):
        over = (Axis("over", size),)
        assert is_pointwise(Accumulate("squares", (COLUMN,), over, "sum", centred)) == is_window
        assert is_pointwise(Accumulate("squares", (COLUMN,), over, "sum", LOAD))


def test_assignments_at_one_point_share_a_nest() -> None:
    first = Assign("v", (COLUMN,), const(1.0, float32))
    value = Expr("tile", (), ("v", (axis_index(COLUMN),)), float32)
    assert group_length([first, Store(1, axis_index(COLUMN), (COLUMN,), value)], 0) == 2


def test_conditions_on_an_axis_are_bounds() -> None:
    low, high = as_bounds((axis_index(ROW) - 3, 0, 9), ROW, ()) or (None, None)
    assert (low, high) == (axis_index(ROW) * 0 + 3, axis_index(ROW) * 0 + 13)
    assert as_bounds((axis_index(ROW) * -1, 0, 9), ROW, ()) is None


@pytest.mark.parametrize("step", [1, 2, 3])
def test_bounds_of_an_axis_that_moves_in_steps_hold_what_fulfils_the_condition(step: int) -> None:
    for offset in range(-7, 8):
        test = axis_index(ROW) * step + offset, 0, 9
        low, high = as_bounds(test, ROW, ()) or (constant(0), constant(0))
        inside = [n for n in range(-9, 20) if 0 <= step * n + offset <= 9]
        assert list(range(low.const, high.const)) == inside


@pytest.mark.parametrize("length", [4, 8, 48])
def test_the_end_of_rows_is_a_bound_of_their_loop(length: int) -> None:
    """A branch there would keep LLVM from reducing several rows in a vector."""
    row, column, target = Axis("row", 100003), Axis("column", length), Target("llvm", "test", 64)
    value = Expr("load", (), (0, axis_index(row) * length + axis_index(column)), float32)
    total = Compute((row,), (column,), "sum", value, float32, (1, axis_index(row)))
    slots = Slot(float32, row.size * length, "in"), Slot(float32, row.size, "out")
    kernel = Kernel("rows", "reduce.row", slots, (), (Part((row,), (total,)),))
    program = linearize(build(kernel, target), target)
    assert not any(each.op == "if" for each in program.instructions)
    unrolled = [each.arg[1] for each in program.instructions if each.op == "loop"]
    assert (True in unrolled) == (length <= SHORT_ROW)


def test_sums_that_need_not_wait_share_a_loop_and_elements_are_stored_in_the_last() -> None:
    """Gradients of a batch norm: two sums, what follows from them, the elements, and their sum."""
    wide, column, rows = Target("llvm", "test", 64), Axis("column", 32), Axis("row", 300)
    place = axis_index(rows) * 32 + axis_index(column)
    x = Expr("load", (), (0, place), float32)
    first = Compute((column,), (rows,), "sum", x, float32, None)
    mean = Compute((column,), (), None, Expr("neg", (ref(0),), None, float32), float32, None)
    square = Expr("mul", (x, x), None, float32)
    second = Compute((column,), (rows,), "sum", square, float32, (1, axis_index(column)))
    away = Expr("add", (Expr("add", (x, ref(1)), None, float32), ref(2)), None, float32)
    stored = Compute((column, rows), (), None, away, float32, (2, place))
    last = Compute((column,), (rows,), "sum", ref(3), float32, (3, axis_index(column)))
    part = Part((column,), (first, mean, second, stored, last))
    sizes = ((9600, "in"), (32, "out"), (9600, "out"), (32, "out"))
    slots = tuple(Slot(float32, size, kind) for size, kind in sizes)
    kernel = Kernel("gradients", "reduce.col", slots, (), (part,))
    program = linearize(build(kernel, wide), wide)
    assert sum(each.op == "load" for each in program.instructions) == 2
    text = render(program)
    loops = text.count(", !llvm.loop ")
    assert text.count("distinct") == loops > 0 and "followup_vectorized" in text


def ref(number: int) -> Expr:
    return Expr("ref", (), number, float32)


def test_a_row_shorter_than_a_vector_begins_with_half_of_one() -> None:
    assert stretches(8, False) == [(0, 8)] and stretches(16, False) == [(0, 16)]
    assert stretches(9, False) == [(0, 8), (8, 9)] and stretches(15, False) == [(0, 8), (8, 15)]


def test_columns_are_whole_vectors_and_pieces_of_one() -> None:
    assert stretches(8, True) == [(0, 8)] and stretches(48, True) == [(0, 48)]
    assert stretches(15, True) == [(0, 8), (8, 12), (12, 14), (14, 15)]
    assert stretches(33, True) == [(0, 32), (32, 33)]
    assert stretches(1000, True) == [(0, 1000)], "what is left over of many takes little time"


@pytest.mark.parametrize("length", [8, 12, 15, 16])
def test_short_rows_that_are_worked_on_again_are_unrolled(length: int) -> None:
    row, column, target = Axis("row", 100003), Axis("column", length), Target("llvm", "test", 64)
    place = axis_index(row) * length + axis_index(column)
    value = Expr("load", (), (0, place), float32)
    total = Compute((row,), (column,), "max", value, float32)
    away = Compute((row, column), (), None, Expr("sub", (value, ref(0)), None, float32), float32)
    again = Compute((row,), (column,), "sum", ref(1), float32, (1, axis_index(row)))
    slots = Slot(float32, row.size * length, "in"), Slot(float32, row.size, "out")
    part = Part((row,), (total, away, again))
    program = linearize(build(Kernel("rows", "reduce.row", slots, (), (part,)), target), target)
    unrolled = [each.arg[1] for each in program.instructions if each.op == "loop"]
    assert (True in unrolled) == (length <= SHORT_CHAIN)
