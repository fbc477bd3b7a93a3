"""The kernel interpreter on kernels written by hand."""

import numpy as np
import pytest

from picograd.conversion import convert
from picograd.dtype import bfloat16, float32, int32
from picograd.errors import InternalError
from picograd.schedule.index import Axis, Dynamic, atom_index, axis_index
from picograd.schedule.interpret import interpret
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Scatter, Slot, const

ROW, COLUMN = Axis("i", 2), Axis("j", 3)
i, j = axis_index(ROW), axis_index(COLUMN)
X = Expr("load", (), (0, i * 3 + j), float32)


def ref(number: int) -> Expr:
    return Expr("ref", (), number, float32)


def run(*computes: Compute, size: int = 6) -> np.ndarray:
    slots = (Slot(float32, 6, "in"), Slot(float32, size, "out"))
    out = np.full(size, -1, np.float32)
    kernel = Kernel("test", "map", slots, (), (Part((ROW,), computes),))
    interpret(kernel, [np.arange(6, dtype=np.float32), out])
    return out


def test_levels_refer_to_each_other() -> None:
    total = Compute((ROW,), (COLUMN,), "sum", X, float32)
    away = Compute((ROW, COLUMN), (), None, Expr("sub", (X, ref(0)), None, float32), float32)
    grand = Compute((), (ROW,), "max", ref(0), float32, None)
    body = Expr("add", (ref(1), ref(2)), None, float32)
    last = Compute((COLUMN, ROW), (), None, body, float32, (1, i * 3 + j))
    found = run(total, away, grand, last)
    x = np.arange(6.0).reshape(2, 3)
    rows = x.sum(1, keepdims=True)
    np.testing.assert_allclose(found, (x - rows + rows.max()).ravel())


def test_guarded_loads_do_not_run() -> None:
    outside = Expr("load", (), (0, i * 3 + j + 2), float32)
    guarded = Expr("guard", (outside, const(9.0, float32)), ((i * 3 + j + 2, 0, 5),), float32)
    store = (1, i * 3 + j)
    found = run(Compute((ROW, COLUMN), (), None, guarded, float32, store))
    np.testing.assert_allclose(found, [2, 3, 4, 5, 9, 9])
    with pytest.raises(InternalError, match="load outside s0"):
        run(Compute((ROW, COLUMN), (), None, outside, float32, store))


def test_tests_of_a_guard_read_nothing_where_a_guard_around_it_is_false() -> None:
    # The second row is of the places that the array before names; the first has none to name.
    named = Expr("load", (), (0, i * 3 + j - 3), int32)
    place = atom_index(Dynamic(named, 0, 2))
    value = Expr("load", (), (1, place - 1), float32)
    inner = Expr("guard", (value, const(5.0, float32)), ((place - 1, 0, 1),), float32)
    outer = Expr("guard", (inner, const(9.0, float32)), ((i - 1, 0, 0),), float32)
    slots = (Slot(int32, 3, "in"), Slot(float32, 2, "in"), Slot(float32, 6, "out"))
    stored = Compute((ROW, COLUMN), (), None, outer, float32, (2, i * 3 + j))
    out = np.full(6, -1, np.float32)
    places, values = np.array([2, 0, 1], np.int32), np.array([7, 8], np.float32)
    interpret(Kernel("test", "map", slots, (), (Part((), (stored,)),)), [places, values, out])
    np.testing.assert_allclose(out, [9, 9, 9, 8, 5, 7])


@pytest.mark.parametrize("monoid, wanted", [("sum", [15, 26]), (None, [4, 25]), ("max", [10, 25])])
def test_scatter_applies_updates_in_order(monoid: str | None, wanted: list[int]) -> None:
    serial = Axis("u", 3)
    u = axis_index(serial)
    rows = Dynamic(Expr("load", (), (1, u), int32), 0, 1)
    body = Expr("load", (), (0, u), float32)
    slots = (Slot(float32, 3, "in"), Slot(int32, 3, "in"), Slot(float32, 2, "inout"))
    scatter = Scatter((serial,), (), monoid, body, 2, atom_index(rows))
    out = np.array([10, 1], np.float32)
    values, indices = np.array([1, 25, 4], np.float32), np.array([0, 1, 0], np.int32)
    kernel = Kernel("test", "scatter", slots, (), (Part((), (), scatter),))
    interpret(kernel, [values, indices, out])
    np.testing.assert_allclose(out, wanted)


def test_bfloat16_rounds_to_nearest_even() -> None:
    values = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, np.nan, np.inf], np.float32)
    wanted = [1.0, 1.0, 1 + 2**-6, np.nan, np.inf]
    np.testing.assert_array_equal(convert(values, bfloat16), np.array(wanted, np.float32))
