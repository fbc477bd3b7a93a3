"""The verifier refuses broken kernels, and proves the bounds of guarded loads."""

import pytest

from picograd.dtype import float32, int32
from picograd.errors import InternalError
from picograd.schedule.index import Axis, Dynamic, Index, atom_index, axis_index
from picograd.schedule.loop import Compute, Condition, Expr, Kernel, Part, Slot, const
from picograd.schedule.verify import verify

ROW, COLUMN = Axis("i", 4), Axis("j", 3)
i, j = axis_index(ROW), axis_index(COLUMN)


def load(index: Index, slot: int = 0) -> Expr:
    return Expr("load", (), (slot, index), float32)


def guard(value: Expr, *tests: Condition) -> Expr:
    return Expr("guard", (value, const(0.0, float32)), tests, float32)


def kernel(*computes: Compute, hero: str = "map", size: int = 12) -> Kernel:
    slots = (Slot(float32, size, "in"), Slot(float32, 12, "out"))
    return Kernel("test", hero, slots, (), (Part((ROW, COLUMN), computes),))


def compute(body: Expr, store: tuple[int, Index] | None = (1, i * 3 + j)) -> Compute:
    return Compute((ROW, COLUMN), (), None, body, float32, store)


def row(body: Expr) -> Compute:
    return Compute((ROW,), (COLUMN,), "sum", body, float32)


def ref(number: int) -> Expr:
    return Expr("ref", (), number, float32)


def test_good_kernels_pass() -> None:
    verify(kernel(compute(load(i * 3 + j))))
    verify(kernel(row(load(i * 3 + j)), compute(ref(0))))
    verify(kernel(compute(guard(load(i * 3 + j - 3), (i - 1, 0, 2)))))
    verify(kernel(compute(guard(load(i * 3 + j - 4), (i * 3 + j - 4, 0, 11)))))


@pytest.mark.parametrize("broken, problem", [
    (kernel(compute(load(i * 3 + j)), hero="magic"), "unknown hero"),
    (kernel(compute(load(i * 3 + j + 1))), "load outside s0"),
    (kernel(compute(load(i * 3 + j), (1, i * 4 + j))), "store outside s1"),
    (kernel(compute(load(i * 3 + j), (0, i * 3 + j))), "is stored but is an input"),
    (kernel(compute(load(axis_index(Axis("k", 2))))), "uses axes it does not bind"),
    (kernel(compute(ref(0))), "refers to %0"),
    (kernel(compute(ref(1)), row(load(i))), "refers to %1"),
    (kernel(compute(load(i), None), Compute((ROW,), (), None, ref(0), float32)), "axes unbound"),
    (kernel(Compute((ROW,), (COLUMN,), None, load(i), float32)), "no monoid"),
    (kernel(Compute((ROW, ROW), (), None, load(i), float32)), "an axis bound twice"),
    (kernel(compute(Expr("load", (), (0, i), int32))), "body and value"),
    (kernel(compute(load(i, 7))), "no slot s7"),
    (kernel(compute(Expr("scalar", (), 0, float32))), "unknown scalar0"),
    (kernel(compute(guard(load(i * 3 + j - 4), (i - 1, 0, 2)))), "load outside s0"),
])  # fmt: skip
def test_broken_kernels_are_refused(broken: Kernel, problem: str) -> None:
    with pytest.raises(InternalError, match=problem):
        verify(broken)


def test_a_kernel_needs_parts_and_computes() -> None:
    with pytest.raises(InternalError, match="without parts"):
        verify(Kernel("test", "map", (), (), ()))
    with pytest.raises(InternalError, match="without computes"):
        verify(kernel())


def test_run_time_indices_keep_their_promise() -> None:
    row_number = Dynamic(Expr("load", (), (2, i), int32), 0, 3)
    body = load(atom_index(row_number) * 3 + j)
    slots = (*kernel(compute(body)).slots, Slot(int32, 4, "in"))
    verify(Kernel("test", "map", slots, (), (Part((ROW, COLUMN), (compute(body),)),)))


def test_bounds_no_rule_proves_are_looked_at() -> None:
    tests = ((i * i_step + j, 2, 5), (i - j, 0, 1))
    verify(kernel(compute(guard(load(i * 5 - j * 2), *tests)), size=12))
    with pytest.raises(InternalError, match="load outside"):
        verify(kernel(compute(guard(load(i * 5 - j * 2), *tests)), size=5))


i_step = 2
