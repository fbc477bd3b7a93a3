"""Layouts and swizzles are bijections; the walks of a block visit what the layouts say."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from picograd.codegen.layout import Blocked, MmaAccumulator, WgmmaAccumulator, elements, walk
from picograd.codegen.tensor_core import MmaSchedule, SimtSchedule, multiply_tiles, shared_operand
from picograd.dtype import bfloat16, float32
from picograd.errors import InternalError
from picograd.schedule.index import Axis, evaluate

LAYOUTS = [
    MmaAccumulator((64, 64), (2, 2)),
    MmaAccumulator((128, 256), (2, 4)),
    WgmmaAccumulator(64, 2),
    Blocked((16, 32), (4, 8), (2, 4)),
    Blocked((64, 64), (16, 16), (4, 4)),
    SimtSchedule((128, 128, 8), (16, 16), 4).layout,
]


@pytest.mark.parametrize("number", range(len(LAYOUTS)))
def test_layouts_are_bijections(number):
    layout = LAYOUTS[number]
    seen = [coordinate for _, _, coordinate in elements(layout)]
    assert len(seen) == len(set(seen)) == np.prod(layout.shape)


def visited(layout, is_vector):
    """{(thread, register): coordinate} of every point of a walk."""
    thread = Axis("thread", layout.thread_count)
    found = walk(layout, thread, is_vector)
    axes = [axis for axis, _ in found.loops] + ([found.vector[0]] if found.vector else [])
    places = {}
    register = found.register(len(layout.shape))
    for point in itertools.product(range(thread.size), *(range(a.size) for a in axes)):
        values = dict(zip([thread, *axes], point, strict=True))
        at = tuple(evaluate(index, values, None) for index in found.coordinates)
        places[point[0], evaluate(register, values, None)] = at
    return places


@pytest.mark.parametrize("is_vector", [False, True])
@pytest.mark.parametrize("number", [0, 2, 3, 4])
def test_walks_follow_their_layout(number, is_vector):
    layout = LAYOUTS[number]
    expected = {(thread, register): at for thread, register, at in elements(layout)}
    assert visited(layout, is_vector) == expected


@settings(max_examples=30, deadline=None)
@given(
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.tuples(st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 8])),
    st.tuples(st.sampled_from([1, 2]), st.sampled_from([1, 2, 4])),
    st.booleans(),
)
def test_blocked_walks_follow_their_layout(shape, threads, vector, is_vector):
    layout = Blocked(shape, threads, vector)
    expected = {(thread, register): at for thread, register, at in elements(layout)}
    assert visited(layout, is_vector) == expected


@pytest.mark.parametrize("columns", [32, 64, 128, 256])
def test_swizzle_is_a_bijection_without_bank_conflicts(columns):
    operand = shared_operand(64, columns, True)
    offsets = {operand.offset(r, c) for r in range(operand.rows) for c in range(columns)}
    assert offsets == set(range(operand.size))
    for first in range(0, operand.rows, 8):
        for chunk in range(operand.chunks):
            starts = [operand.offset(row, chunk * 8) * 2 for row in range(first, first + 8)]
            assert len({start // 16 % 8 for start in starts}) == 8  # 8 x 16 bytes: all 32 banks


def test_slabs_are_a_bijection():
    operand = shared_operand(256, 64, False, 64)
    offsets = {operand.offset(k, n) for k in range(64) for n in range(256)}
    assert offsets == set(range(operand.size))
    assert operand.offset(0, 64) == 64 * 64


def test_address_text_agrees_with_offset():
    for columns in (32, 64, 128):
        operand = shared_operand(64, columns, True)
        text = operand.address("row", "chunk")
        for row, chunk in itertools.product(range(64), range(operand.chunks)):
            values = {"row": row, "chunk": chunk}
            assert eval(text, {}, values) == operand.offset(row, chunk * 8)


def test_mma_needs_a_16_bit_dtype():
    schedule = MmaSchedule((64, 64, 64), (2, 2), 3)
    assert multiply_tiles(schedule, bfloat16).function == "multiply_tiles_bfloat16_64x64x64x2x2_kk"
    with pytest.raises(InternalError, match=r"mma\.sync of float32 is not supported"):
        multiply_tiles(schedule, float32)
