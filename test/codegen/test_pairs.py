"""Neighbours that are read together are loaded together: the parts of complex numbers."""

import numpy as np
import pytest

from picograd.codegen.interpret_program import interpret
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pairs import are_pairs, other_of
from picograd.codegen.program import Program, verify
from picograd.codegen.templates.map import build
from picograd.dtype import float32
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot
from picograd.target import cuda_target

COUNT = 30


def read(index: Index) -> Expr:
    return Expr("load", (), (0, index), float32)


def program_of(size: int, *places: Index) -> Program:
    """Add up what lies at some places of an array, and store that at each point."""
    total = read(places[0])
    for place in places[1:]:
        total = Expr("add", (total, read(place)), None, float32)
    compute = Compute((AXIS,), (), None, total, float32, (1, axis_index(AXIS)))
    slots = (Slot(float32, size, "in"), Slot(float32, COUNT, "out"))
    kernel = Kernel("pairs", "map", slots, (), (Part((AXIS,), (compute,)),))
    target = cuda_target("sm_90a")
    return verify(linearize(build(kernel, target), target))


AXIS = Axis("i", COUNT)
TWICE = axis_index(AXIS) * 2


@pytest.mark.parametrize(
    ("size", "places", "lanes"),
    [
        (60, (TWICE, TWICE + 1), {2}),
        (62, (TWICE + 1, TWICE, TWICE + 2, TWICE + 3), {2}),
        (62, (TWICE, TWICE + 1, TWICE + 2), {1}),  # of which one has no neighbour
        (61, (TWICE, TWICE + 1), {1}),  # a row of odd length may begin anywhere
        (90, (axis_index(AXIS) * 3, axis_index(AXIS) * 3 + 1), {1}),
    ],
)
def test_values(size: int, places: tuple[Index, ...], lanes: set[int]) -> None:
    program = program_of(size, *places)
    assert {each.lanes for each in program.instructions if each.op == "load"} == lanes
    x = np.random.default_rng(0).normal(size=size).astype("f4")
    found = np.zeros(COUNT, "f4")
    interpret(program, [x, found])
    numbers = np.arange(COUNT)
    step = dict(places[0].terms)[AXIS]
    wanted = sum(x[numbers * step + place.const] for place in places)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_pairs_begin_at_even_places() -> None:
    assert other_of(TWICE + 5) == TWICE + 4 and other_of(TWICE + 4) == TWICE + 5
    assert not are_pairs({TWICE + 1, TWICE + 2}) and are_pairs({TWICE + 2, TWICE + 3})
