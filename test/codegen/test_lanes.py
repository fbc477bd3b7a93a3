"""What the lanes of a vector read: steps of one, whole vectors, tests that all of them pass."""

import pytest

from picograd.codegen.lanes import is_beside, is_uniform, is_unit
from picograd.schedule.index import Axis, axis_index, constant

I = Axis("i", 8)  # noqa: E741
J = Axis("j", 4)


@pytest.mark.parametrize(
    ("index", "wanted"),
    [
        (axis_index(I) + 3, True), (axis_index(I) + axis_index(J) * 8, True),
        (axis_index(I) * 2, False), (axis_index(J), False),
        (axis_index(I) + axis_index(I) // 4, False),
    ],
)  # fmt: skip
def test_is_unit(index, wanted: bool) -> None:
    assert is_unit(index, I) is wanted


def test_a_test_is_uniform_if_its_edges_are_whole_vectors() -> None:
    index = axis_index(Axis("o", 3)) * 8 + axis_index(I)
    assert is_uniform((index, 0, 15), I, 8)
    assert not is_uniform((index, 0, 14), I, 8)
    assert not is_uniform((index + 1, 0, 15), I, 8)
    assert not is_uniform((constant(3), 0, 15), I, 8)


def test_neighbours_from_a_multiple_of_the_lanes_on_are_a_vector() -> None:
    lane = axis_index(J)
    rows = axis_index(Axis("o", 3))
    assert is_beside(lane + rows * 8 + 4, J, 4)
    assert not is_beside(lane + rows * 8 + 2, J, 4)
    assert not is_beside(lane + rows * 6, J, 4)
    assert not is_beside(lane * 2 + rows * 8, J, 4)
