"""Boxes: how K is cut into steps, and which arrays have boxes."""

from dataclasses import replace

from cuda_tools import matmul_kernel

from picograd.codegen import boxes
from picograd.codegen.operands import analyse
from picograd.dtype import bfloat16, float32
from picograd.schedule.index import Axis, axis_index, constant


def test_a_step_is_a_position_of_the_outer_axes_and_64_of_the_inner_ones():
    r, s, c = Axis("r", 3), Axis("s", 2), Axis("c", 100)
    depth = boxes.Depth((r, s), (c,), 64)
    assert depth.blocks == 2 and depth.count == 12
    step = constant(7)  # r 1, s 1, the second half of the channels
    assert [value.const for value in depth.values(step).values()] == [1, 1]
    assert depth.position(step).const == 64


def test_depths_are_whole_or_by_the_last_axis():
    product = analyse(matmul_kernel(64, 64, 128, bfloat16))
    assert [each.count for each in boxes.depths(product, bfloat16)] == [2]
    assert [each.count for each in boxes.depths(product, float32)] == [4], "32 of a row"
    whole = replace(product, depth=(Axis("taps", 9), Axis("c", 64)))
    assert [each.count for each in boxes.depths(whole, bfloat16)] == [9, 9]
    few = replace(whole, depth=(Axis("taps", 9), Axis("c", 4)))
    assert [each.count for each in boxes.depths(few, bfloat16)] == [1]


def test_flipped_axes_count_from_their_end():
    o, r, c = Axis("o", 64), Axis("r", 3), Axis("c", 64)
    index = axis_index(o) * 192 + axis_index(r) * -64 + axis_index(c) + 128
    view = boxes.view_of(index, (c,), (o,), (r,), 2)
    assert view.offset == 0 and view.strides == (192, 64) and view.flipped == {r}
    assert boxes.place_of(view, r, constant(0)).const == 2
    assert boxes.place_of(view, r, constant(2)).const == 0


def test_what_no_map_has():
    assert boxes.is_possible(0, (64, 64), (64,), 2)
    assert not boxes.is_possible(1, (64, 64), (64,), 2), "16 bytes"
    assert not boxes.is_possible(0, (64, 64), (63,), 2)
    assert not boxes.is_possible(0, (64,) * 6, (64,) * 5, 2), "five dimensions"
