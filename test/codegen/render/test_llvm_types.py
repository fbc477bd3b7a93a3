"""How LLVM IR spells types and constants."""

import numpy as np
import pytest

from picograd import Tensor
from picograd.codegen.render.llvm_types import (
    integer_bounds,
    literal,
    mangled,
    memory_type,
    type_name,
)
from picograd.dtype import (
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)


def test_spellings() -> None:
    assert type_name(float16) == "half" and type_name(bool_, 4) == "<4 x i1>"
    assert memory_type(bool_, 4) == "<4 x i8>" and mangled(float64, 2) == "v2f64"


def test_constants() -> None:
    assert literal(True, bool_) == "true" and literal(200, int8) == "-56"
    assert literal(200, uint8) == literal(-56, uint8) and literal(1.5, float64)[:5] == "0x3FF"
    assert literal(0.1, float32) != literal(0.1, float64)
    assert literal(1e300, float32) == literal(float("inf"), float32)


@pytest.mark.parametrize("source", [float16, float32, float64])
@pytest.mark.parametrize("target", [int8, uint8, int32, uint32, int64, uint64])
def test_bounds_are_the_last_floats_that_an_integer_holds(source, target):
    least, most = integer_bounds(source, target)
    info = np.iinfo(target.numpy)
    assert int(least) >= info.min and int(most) <= info.max
    largest = float(np.finfo(source.numpy).max)
    gap = 1.0 if most == largest else float(np.spacing(source.numpy.type(most)))
    above = most + max(1.0, gap)
    assert above > largest or int(above) > info.max


@pytest.mark.parametrize("source", [float16, bfloat16, float32, float64])
@pytest.mark.parametrize("target", [int8, int16, int32, int64, uint8, uint16, uint32, uint64])
def test_floats_saturate_in_loops_and_alone(source, target):
    info = np.iinfo(target.numpy)
    ends = [float(each) for each in (info.min, info.max)]
    numbers = [0.5, -1.99, 127.9, -128.9, 2.0**31, 65504.0, np.inf, -np.inf, np.nan, *ends]
    for values in (Tensor(numbers * 9, dtype=source), Tensor(numbers, dtype=source)[1:2]):
        found = values.realize().to(target).tolist()
        for number, whole in zip(values.to(float64).tolist(), found, strict=True):
            wanted = np.nan_to_num(number, nan=0.0, posinf=info.max, neginf=info.min)
            assert whole == min(max(int(wanted), info.min), info.max)
