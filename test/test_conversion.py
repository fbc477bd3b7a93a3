"""Conversions in NumPy: against PyTorch where it is defined, else against exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from nasty import ALL_BITS, nasty

from picograd.conversion import FLOAT8, VALUES, convert, from_bits, to_bits
from picograd.dtype import (
    ALL,
    DType,
    bfloat16,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    uint8,
)

torch = pytest.importorskip("torch")
EIGHT = (float8_e4m3fn, float8_e5m2)
HALVES = (float16, bfloat16)


def theirs(dtype: DType):
    return getattr(torch, dtype.name)


def tensor(x, dtype):
    """PyTorch's tensor of values given as picograd holds them."""
    bits = np.ascontiguousarray(to_bits(x, dtype))
    return torch.from_numpy(bits.copy()).view(theirs(dtype))


def raw(x) -> np.ndarray:
    """Bits of PyTorch's tensor."""
    return x.view(getattr(torch, f"uint{8 * x.element_size()}")).numpy()


def same_or_nan(found, want, dtype: DType, text: str) -> None:
    """Compare bits, and NaN by being NaN."""
    is_nan = np.isnan(from_bits(found, dtype)) if dtype.is_float else np.zeros(found.shape, bool)
    if dtype.is_float:
        np.testing.assert_array_equal(is_nan, np.isnan(from_bits(want, dtype)), text)
    unsigned = f"uint{dtype.bits}"
    found, want = found.view(unsigned)[~is_nan], want.view(unsigned)[~is_nan]
    np.testing.assert_array_equal(found, want, text)


@pytest.mark.parametrize("dtype", EIGHT, ids=repr)
def test_every_code_of_8_bits(dtype: DType) -> None:
    wide = torch.arange(256).to(torch.uint8).view(theirs(dtype)).float()
    np.testing.assert_array_equal(VALUES[dtype].view(np.uint32), raw(wide))
    finite = np.arange(256)[np.isfinite(VALUES[dtype])].astype(np.uint8)
    np.testing.assert_array_equal(to_bits(from_bits(finite, dtype), dtype), finite)


@pytest.mark.parametrize("dtype", EIGHT, ids=repr)
def test_8_bit_floats_round_as_pytorch(dtype: DType) -> None:
    values = np.sort(VALUES[dtype][np.isfinite(VALUES[dtype])].astype(np.float64))
    middle = ((values[1:] + values[:-1]) / 2).astype(np.float32)
    up, down = (np.nextafter(middle, np.float32(end)) for end in (np.inf, -np.inf))
    random = np.random.default_rng(0).integers(0, 1 << 32, 20_000).astype(np.uint32)
    x = np.concatenate([middle, up, down, random.view(np.float32), nasty(float32)])
    np.testing.assert_array_equal(to_bits(x, dtype), raw(tensor(x, float32).to(theirs(dtype))))


def test_what_is_too_large_for_8_bits() -> None:
    x = np.float32([448, 464, 1e9, np.inf, -np.inf])
    assert convert(x, float8_e4m3fn).tolist() == [448, 448, 448, 448, -448]
    x = np.float32([57344, 61439, 61440, np.inf, -np.inf])
    assert convert(x, float8_e5m2).tolist() == [57344, 57344, math.inf, math.inf, -math.inf]
    assert to_bits(np.float32([np.nan, -np.nan]), float8_e5m2).tolist() == [0x7F, 0xFF]
    assert FLOAT8[float8_e4m3fn].smallest == 2.0**-9 and FLOAT8[float8_e5m2].smallest == 2.0**-16


@pytest.mark.parametrize("source", ALL, ids=repr)
def test_all_pairs_equal_pytorch(source: DType) -> None:
    x = from_bits(ALL_BITS[source.bits].view(source.storage), source) if source.bits <= 16 else None
    x = nasty(source) if x is None else x
    for target in ALL:
        if source is float64 and target in HALVES:
            continue  # PyTorch rounds twice, by way of float32
        values = x
        if source.is_float and not target.is_float and target.name != "bool":
            low, high = np.iinfo(target.numpy).min, np.iinfo(target.numpy).max
            wide = x.astype(np.float64)  # PyTorch leaves undefined what is not inside
            values = x[(wide > float(low) - 1) & (wide < float(high))]
        want = raw(tensor(values, source).to(theirs(target)))
        same_or_nan(to_bits(convert(values, target), target), want, target, f"to {target.name}")


def nearest(x: float, dtype: DType) -> float:
    """Round exactly: among the two neighbours, the nearer one, at a tie the even one."""
    bits = np.arange(1 << 15).astype(np.uint16).view(dtype.storage)
    grid = from_bits(bits, dtype)
    grid = grid[np.isfinite(grid)].astype(np.float64)
    place = int(np.searchsorted(grid, abs(x)))
    near = [p for p in (place - 1, place) if 0 <= p < grid.size]
    best = min(near, key=lambda p: (abs(Fraction(grid[p]) - Fraction(abs(x))), p % 2))
    return math.copysign(grid[best], x)


@pytest.mark.parametrize("dtype", HALVES, ids=repr)
def test_float64_rounds_once(dtype: DType) -> None:
    digits = {float16: 10, bfloat16: 7}[dtype]
    ties = [1 + (2 * k + 1) * 2.0 ** -(digits + 1) for k in range(4)]
    tiny = 2.0**-25 if dtype is float16 else 2.0**-134
    x = [tie * s * (1 + e) for tie in ties for s in (1, -3, 2**-10) for e in (0, 2**-50, -(2**-50))]
    x += [tiny * (1 + e) * k for k in (1, 3, 5) for e in (0, 2**-50, -(2**-50))]
    found = convert(np.array(x), dtype)
    assert found.tolist() == [nearest(each, dtype) for each in x]
    assert np.isinf(convert(np.array([1e300, -1e300]), dtype)).all()
    assert np.isnan(convert(np.array([np.nan]), dtype)).all()


def test_floats_saturate_as_integers() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 255.9, 256, -0.9, -1, 1e30])
    assert convert(x, uint8).tolist() == [0, 255, 0, 255, 255, 0, 0, 255]
    for dtype in (d for d in ALL if d.is_integer):
        ends = np.iinfo(dtype.numpy)
        found = convert(np.array([-1e30, 1e30, float(ends.max), float(ends.min)]), dtype)
        assert found.tolist() == [ends.min, ends.max, ends.max, ends.min]
