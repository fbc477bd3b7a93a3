"""Boxes: how K is cut into steps, and which arrays have boxes."""

from dataclasses import replace

import numpy as np
import pytest
from box_products import TWO, numbers, program_of, tiles_of
from cuda_tools import from_raw, matmul_kernel
from interpreted_cuda import interpreted_cuda

from picograd import Tensor, nn
from picograd.codegen import boxes, interpret_program, interpret_tile
from picograd.codegen.boxes import Persistent, places_of, view_of
from picograd.codegen.operands import analyse
from picograd.codegen.templates import contract_cuda
from picograd.dtype import bfloat16, float32, int64
from picograd.helpers import product
from picograd.schedule.index import Axis, Dynamic, atom_index, axis_index, constant
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot


def test_a_step_is_a_position_of_the_outer_axes_and_64_of_the_inner_ones():
    r, s, c = Axis("r", 3), Axis("s", 2), Axis("c", 100)
    depth = boxes.Depth((r, s), (c,), 64)
    assert depth.blocks == 2 and depth.count == 12
    step = constant(7)  # r 1, s 1, the second half of the channels
    assert [value.const for value in depth.values(step).values()] == [1, 1]
    assert depth.position(step).const == 64


def test_depths_are_whole_or_by_the_last_axis():
    plain = analyse(matmul_kernel(64, 64, 128, bfloat16))
    assert [each.count for each in boxes.depths(plain, bfloat16)] == [2]
    assert [each.count for each in boxes.depths(plain, float32)] == [4], "32 of a row"
    whole = replace(plain, depth=(Axis("taps", 9), Axis("c", 64)))
    assert [each.count for each in boxes.depths(whole, bfloat16)] == [9, 9]
    few = replace(whole, depth=(Axis("taps", 9), Axis("c", 4)))
    assert [each.count for each in boxes.depths(few, bfloat16)] == [1]


def test_flipped_axes_count_from_their_end():
    o, r, c = Axis("o", 64), Axis("r", 3), Axis("c", 64)
    index = axis_index(o) * 192 + axis_index(r) * -64 + axis_index(c) + 128
    view = boxes.view_of(index, (c,), (o,), (r,), 2)
    assert view.offset == 0 and view.strides == (192, 64) and view.flipped == {r}
    assert view.places_of({r: constant(0)})[0].const == 2
    assert view.places_of({r: constant(2)})[0].const == 0


def test_what_no_map_has():
    assert boxes.is_possible(0, (64, 64), (64,), 2)
    assert not boxes.is_possible(1, (64, 64), (64,), 2), "16 bytes"
    assert not boxes.is_possible(0, (64, 64), (63,), 2)
    assert not boxes.is_possible(0, (64,) * 6, (64,) * 5, 2), "five dimensions"


def row_major(*axes):
    """Number positions over axes, the last one fastest."""
    place = constant(0)
    for axis in axes:
        place = place * axis.size + axis_index(axis)
    return place


def in_heads(rows, heads, width, columns, is_turned):
    """Make the product of an array [part, image, head, row, width] and a matrix, or its gradient.

    In the arrays of heads, rows and columns of the product's left operand are several axes.
    """
    part, image, head = Axis("part", 2), Axis("image", 2), Axis("head", heads)
    row, lane, column = Axis("row", rows), Axis("lane", width), Axis("column", columns)
    left = row_major(part, image, head, row, lane)
    tall, wide = (image, row), (part, head, lane)
    if is_turned:
        tall, wide = wide, tall
    right, out = row_major(*wide, column), row_major(*tall, column)
    slots = [Slot(bfloat16, 4 * heads * rows * width, "in")]
    slots.append(Slot(bfloat16, columns * product(axis.size for axis in wide), "in"))
    slots.append(Slot(float32, columns * product(axis.size for axis in tall), "out"))
    loads = (Expr("load", (), (n, index), bfloat16) for n, index in enumerate((left, right)))
    body = Expr("mul", tuple(Expr("cast", (x,), None, float32) for x in loads), None, float32)
    space = (*tall, column)
    compute = Compute(space, wide, "sum", body, float32)
    end = Compute(space, (), None, Expr("ref", (), 0, float32), float32, (2, out))
    return Kernel("heads", "contract", tuple(slots), (), (Part(space, (compute, end)),))


@pytest.mark.parametrize("rows, is_turned", [(128, False), (128, True), (100, False), (100, True)])
def test_rows_may_be_of_several_arrays(rows, is_turned):
    """Boxes of rows lie in one of them, and so do slabs of 64 columns."""
    kernel = in_heads(rows, 3, 64, 72, is_turned)
    tiles = tiles_of(kernel)
    arrays = numbers(kernel)
    left, right = (from_raw(x, bfloat16).astype(float) for x in arrays[:2])
    left = left.reshape(2, 2, 3, rows, 64)  # part, image, head, row, lane
    order = (0, 2, 4, 1, 3) if is_turned else (1, 3, 0, 2, 4)
    left = left.transpose(order).reshape((384, 2 * rows) if is_turned else (2 * rows, 384))
    want = left @ right.reshape(left.shape[1], 72)
    values = [from_raw(x, s.dtype).copy() for x, s in zip(arrays, kernel.slots, strict=True)]
    interpret_tile.interpret(tiles, values)
    interpret_program.interpret(program_of(tiles), arrays)
    for found in (values[2], arrays[2]):
        np.testing.assert_allclose(found.reshape(want.shape), want, atol=1e-5 * np.abs(want).max())


def test_axes_that_number_elements_in_turn_are_one_dimension_where_there_are_many():
    """Batch, heads and those that share keys, beside two numbers of the plan: seven dimensions."""
    single = [Axis(name, size) for name, size in (("b", 2), ("h", 3), ("c", 4))]
    near, far = Axis("k", 64), Axis("p", 40)
    moved = [atom_index(Dynamic(Expr("scalar", (), n, int64), 0, 8)) for n in range(2)]
    steps = dict(zip(single, (12 * 3072, 4 * 3072, 3072), strict=True))
    index = axis_index(near) + axis_index(far) * 64 + moved[0] * 64 + moved[1] * 24 * 3072
    for axis, step in steps.items():
        index += axis_index(axis) * step
    places = places_of(index, (), tuple(single))
    view = view_of(index, (near,), (far,), tuple(single), 2, places)
    assert view.sizes == (64, 40, 24, 9, 9) and view.strides[0] == 64
    at = dict(zip(single, map(constant, (1, 2, 3)), strict=True))
    place = view.places_of(at)[0]
    assert place.const * view.strides[1] == sum(at[x].const * step for x, step in steps.items())


def test_boxes_do_not_reach_from_one_array_into_the_next():
    tiles = contract_cuda.build(in_heads(128, 3, 24, 72, is_turned=True), TWO)
    assert not isinstance(tiles.parts[0].steps[0], Persistent)


def test_a_number_of_the_plan_is_a_place(monkeypatch):
    """`x[i]` of stacked weights, keys and values comes in boxes, wherever it begins."""
    generator = np.random.default_rng(0)
    with interpreted_cuda(monkeypatch):

        def drawn(*shape):
            array = generator.standard_normal(shape, np.float32)
            made = Tensor(array, device="cuda").bfloat16().realize()
            return made, made.float().numpy()

        (x, a), (w, b) = drawn(64, 128), drawn(3, 128, 64)
        (q, rows), (kept, places) = drawn(1, 4, 1, 64), drawn(3, 1, 2, 128, 64)
        for n in range(3):
            np.testing.assert_allclose((x @ w[n]).float().numpy(), a @ b[n], rtol=1e-2, atol=0.1)
            k, v = kept[n], kept[n - 1]
            found = nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
            wide = [np.repeat(places[i], 2, 1) for i in (n, n - 1)]
            scores = rows @ wide[0].swapaxes(-1, -2) / 8
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            wanted = weights / weights.sum(-1, keepdims=True) @ wide[1]
            np.testing.assert_allclose(found.float().numpy(), wanted, rtol=2e-2, atol=2e-2)
