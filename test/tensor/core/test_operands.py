"""Operands: reading axes and sizes, promotion with zero-dim tensors and numbers, devices."""

import math

import numpy as np
import pytest
from graph_support import leaf

from picograd import Tensor
from picograd.dtype import float16, float32, float64, int8, int32, int64, uint8
from picograd.errors import AxisError, DeviceError, DTypeError, PicogradError, ShapeError
from picograd.graph import build
from picograd.tensor.core import operands as o

X = leaf(np.zeros((2, 3), np.float32))


def test_axes() -> None:
    assert o.as_axis(-1, 3, "sum") == 2 and o.as_axes(None, 2, "sum") == (0, 1)
    assert o.as_axes((0, -1), 3, "sum") == (0, 2)
    for wrong in (3, -4):
        with pytest.raises(AxisError, match="^sum"):
            o.as_axis(wrong, 3, "sum")
    with pytest.raises(PicogradError):
        o.as_axes((0, -3), 3, "sum")


def test_sizes_in_both_spellings() -> None:
    assert o.as_sizes((2, 3), "zeros") == o.as_sizes(((2, 3),), "zeros") == (2, 3)
    with pytest.raises(PicogradError):
        o.as_shape((2, -1), "zeros")


def test_either_spelling_but_not_both() -> None:
    assert o.either("sum", "axis", 1, "dim", o.UNSET) == 1
    assert o.either("sum", "axis", o.UNSET, "dim", 2) == 2
    assert o.either("sum", "axis", o.UNSET, "dim", o.UNSET, 7) == 7
    with pytest.raises(PicogradError):
        o.either("sum", "axis", 1, "dim", 2)


def test_zero_dim_tensors_and_numbers_raise_only_the_category() -> None:
    half, number = leaf(np.zeros(3, np.float16)), leaf(np.zeros((), np.float64))
    assert o.result_dtype(half, number) is float16
    assert o.result_dtype(leaf(np.zeros(3, np.int64)), number) is float64
    a, b = o.pair("add", half, 2.5)
    assert a.dtype is b.dtype is float16 and b.shape == (3,)
    a, b = o.pair("div", leaf(np.zeros(3, np.int8)), 2, floating=True)
    assert a.dtype is b.dtype is float32


def test_numbers_that_do_not_fit() -> None:
    assert o.wrapped_integer("add", 300, uint8) == 44
    assert o.wrapped_integer("or", 0xFFFFFFFF, int32) == -1
    assert o.fitting_integer("full", -255, uint8) == 1
    for number in (300, math.inf, math.nan, -129):
        with pytest.raises(PicogradError):
            o.fitting_integer("full", number, int8)
    with pytest.raises(DTypeError):
        o.read_scalar("add", "one")


def test_shapes_broadcast_or_say_why_not() -> None:
    a, b = o.pair("add", X, leaf(np.zeros((4, 1, 3), np.float32)))
    assert a.shape == b.shape == (4, 2, 3)
    with pytest.raises(ShapeError, match="^add"):
        o.pair("add", X, leaf(np.zeros(2, np.float32)))


def test_devices_meet_only_as_zero_dim_numbers() -> None:
    far = build.const(1.0, (2, 3), float32, "null")
    with pytest.raises(DeviceError, match="^add"):
        o.pair("add", X, far)
    a, b = o.pair("add", Tensor(1.0, device="cpu").node, far)
    assert a.device == b.device == "null"


def test_needs() -> None:
    for check, wrong in ((o.need_float, leaf(np.zeros(2, np.int64))), (o.need_integer, X)):
        with pytest.raises(DTypeError, match="^op"):
            check("op", wrong)
    with pytest.raises(ShapeError, match="^op"):
        o.need_rank("op", X, 3)
    assert o.optional_dtype(None) is None and o.optional_dtype("int64") is int64
    assert o.check_index("op", -1, 3, 0) == 2
    with pytest.raises(AxisError):
        o.check_index("op", 3, 3, 0)
