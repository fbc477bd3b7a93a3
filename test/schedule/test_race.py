"""A kernel races if it reads, at one point, what it overwrites at another."""

import pytest

from picograd.dtype import float32
from picograd.schedule.index import Axis, Index, axis_index, constant
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Scatter, Slot
from picograd.schedule.race import has_race

I = Axis("i", 8)  # noqa: E741
HERE = axis_index(I)
BEHIND = HERE * -1 + 7


def load(index: Index, slot: int = 0) -> Expr:
    return Expr("load", (), (slot, index), float32)


def compute(body: Expr, store: Index | None = HERE) -> Compute:
    return Compute((I,), (), None, body, float32, (0, store) if store is not None else None)


def kernel(*parts: Part, role: str = "inout") -> Kernel:
    return Kernel("k", "map", (Slot(float32, 8, role),), (), parts)


def part(*computes: Compute) -> Part:
    return Part((I,), computes)


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ([part(compute(load(HERE)))], False),
        ([part(compute(load(BEHIND)))], True),
        ([part(compute(load(HERE), None), compute(load(HERE)))], False),
        ([part(compute(load(HERE)), compute(load(HERE), None))], True),
        ([part(compute(load(HERE))), part(compute(load(HERE), None))], True),
        ([part(Compute((), (I,), "sum", load(HERE), float32, (0, HERE)))], True),
    ],
    ids=["same element", "another element", "read before", "read after", "another part", "reduce"],
)
def test_has_race(parts: list[Part], wanted: bool) -> None:
    assert has_race(kernel(*parts)) is wanted


def test_only_slots_written_in_place_count() -> None:
    assert not has_race(kernel(part(compute(load(BEHIND))), role="out"))


def test_a_scatter_is_in_order_anyway() -> None:
    step = Scatter((I,), (), "sum", load(constant(0)), 0, HERE)
    assert not has_race(kernel(Part((), (), step)))
