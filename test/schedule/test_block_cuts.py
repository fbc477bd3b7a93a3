"""Blocks have rows or columns of what maps share: what is in them, and what is no cut."""

from dataclasses import replace

from plan_support import check_plan, leaf

from picograd.dtype import float32
from picograd.graph.butterflies import step
from picograd.schedule.block_cuts import place_in_block, step_along
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Slot
from picograd.target import cuda_target

FEW = replace(cuda_target("sm_90a"), multiprocessors=4)


def test_columns_follow_what_lies_between_points() -> None:
    """Two steps along the first axis, where points that are transformed lie far apart."""
    first = step(leaf(1, 8, 8, 128, 2), leaf(8, 8, 2), -1, 8, 2)  # 1 8 8 128 2
    second = step(first.reshape((1, 8, 1, 1024, 2)), None, -1, 8, 2)
    plan = check_plan([second], 1, target=FEW)
    (kernel,) = plan.kernels
    assert [axis.size for axis in kernel.parts[0].rows[:2]] == [1, 4]
    assert {product_of(part.rows) for part in kernel.parts} == {4 * 512}


def product_of(axes: tuple[Axis, ...]) -> int:
    found = 1
    for axis in axes:
        found *= axis.size
    return found


def test_places_in_a_block() -> None:
    block, column, row, i = Axis("block", 4), Axis("column", 8), Axis("row", 6), Axis("i", 16)
    slot = Slot(float32, 4 * 6 * 128, "shared")
    here = axis_index(block) * 768 + axis_index(row) * 128 + axis_index(column) * 16
    inside = place_in_block(here + axis_index(i), (block, column), slot)
    assert inside == (axis_index(row) * 16 + axis_index(i), 16)
    assert place_in_block(here + axis_index(i) + 1, (block, column), slot) is None  # the next one's
    assert place_in_block(here + axis_index(i) * 2, (block, column), slot) is None
    assert place_in_block(axis_index(column) + axis_index(i) * 8, (block, column), slot) is None
    turned = (axis_index(row) + axis_index(block)) % 6 * 128 + axis_index(block) * 768
    assert place_in_block(turned, (block, Axis("column", 1)), slot) is None  # another in each


def test_steps_along_an_axis() -> None:
    axis, other = Axis("a", 64), Axis("b", 4)
    index = axis_index(axis)
    assert step_along(index // 8 * 32 + index % 8 * 2 + axis_index(other), axis) == 2
    assert step_along(axis_index(other) * 5, axis) == 0
