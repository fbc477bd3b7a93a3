"""Decompositions at the edges: division by zero, shifts too far, negative powers, NaN, bools.

Both languages' programs are interpreted and compared with the meaning in the op table.
"""

from typing import Any

import numpy as np
import pytest
from cases import Case, binary, unary
from compare import check_arrays
from harness import TARGET, run

from picograd.codegen.decompose import COMMON, LLVM
from picograd.codegen.interpret_program import MEANINGS, interpret
from picograd.codegen.pipeline import linearize, tile
from picograd.dtype import DType, bool_, float32, int8, int32, int64, uint8, uint32, uint64
from picograd.target import Target, cuda_target

TARGETS = [TARGET, cuda_target("sm_90a")]
FLOATS = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-3]
POINTS = {
    "float": FLOATS, "int": [0, 1, -1, 2, -3, 7, 127, -128, 9, 31],
    "uint": [0, 1, 2, 3, 7, 127, 128, 255, 9, 31], "bool": [False, True],
}  # fmt: skip
INTEGER = ["floordiv", "mod", "shift_left", "shift_right", "maximum", "bitwise_xor"]
FLOAT = ["floordiv", "mod", "maximum", "minimum"]
LOGIC = ["add", "mul", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"]


def check(case: Case, target: Target) -> None:
    program = linearize(tile(case.kernel, target), target)
    arrays = [np.copy(a) for a in case.arrays]
    interpret(program, arrays, case.scalars)
    check_arrays(case, arrays)


def pairs(name: str, dtype: DType) -> Case:
    points = np.array(POINTS[dtype.kind]).astype(dtype.numpy)
    case = binary(name, dtype, points.size**2)
    case.arrays[0][:] = np.repeat(points, points.size)
    case.arrays[1][:] = np.tile(points, points.size)
    return case


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.language)
@pytest.mark.parametrize("dtype", [int32, int8, uint8, uint32], ids=repr)
@pytest.mark.parametrize("name", INTEGER)
def test_integers(name: str, dtype: DType, target: Target) -> None:
    check(pairs(name, dtype), target)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.language)
@pytest.mark.parametrize("name", FLOAT)
def test_floats(name: str, target: Target) -> None:
    check(pairs(name, float32), target)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.language)
@pytest.mark.parametrize("name", LOGIC)
def test_bools(name: str, target: Target) -> None:
    check(pairs(name, bool_), target)


@pytest.mark.parametrize("name", ["sign", "reciprocal", "rsqrt", "isnan"])
def test_unary(name: str) -> None:
    case = unary(name, float32, len(FLOATS))
    case.arrays[0][:] = FLOATS
    check(case, TARGET)


def test_integer_powers_wrap_and_negative_ones_are_whole() -> None:
    case = pairs("pow", int8)
    exponents = case.arrays[1]
    exponents[:] = np.clip(exponents, 0, 9)
    check(case, TARGET)


def test_llvm_has_all_common_ones() -> None:
    assert COMMON.keys() <= LLVM.keys()


@pytest.mark.parametrize("name", ["shift_left", "shift_right"])
@pytest.mark.parametrize("dtype", [int8, int32, int64, uint8, uint32, uint64], ids=repr)
def test_shifts_by_about_the_width(
    dtype: DType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last count that shifts, the first that leaves nothing, and negative ones.

    In LLVM a shift by the width or more has no value, so no such count may reach the instruction.
    """
    shift = {"shift_left": np.left_shift, "shift_right": np.right_shift}[name]

    def strict(x: Any, count: Any) -> Any:
        assert ((count >= 0) & (count < dtype.bits)).all()
        return shift(x, count)

    monkeypatch.setitem(MEANINGS, name, strict)
    bits, ends = dtype.bits, np.iinfo(dtype.numpy)
    counts = [0, 1, bits - 2, bits - 1, bits, bits + 1, ends.max]
    counts += [-1, -bits, ends.min] if dtype.kind == "int" else []
    numbers = [1, 3, ends.max, ends.min, ends.max - 1]
    case = binary(name, dtype, len(counts) * len(numbers))
    case.arrays[0][:] = np.repeat(np.array(numbers, dtype.numpy), len(counts))
    case.arrays[1][:] = np.tile(np.array(counts, dtype.numpy), len(numbers))
    check(case, TARGET)


@pytest.mark.parametrize("dtype", [int32, int64], ids=repr)
def test_integers_are_divided_exactly_by_way_of_floats(dtype: DType) -> None:
    random, info = np.random.default_rng(0), np.iinfo(dtype.numpy)
    edges = [0, 1, -1, 3, info.max, info.min, info.max - 1, info.min + 1, info.max // 2 + 1]
    edges += [min(each, int(info.max)) for each in (1 << 53, (1 << 53) + 1, (1 << 62) + 100)]
    first, second = (grid.ravel() for grid in np.meshgrid(*[np.array(edges, dtype.numpy)] * 2))
    drawn = random.integers(info.min, info.max, (2, 2000), dtype.numpy)
    drawn >>= random.integers(0, info.bits - 1, (2, 2000)).astype(dtype.numpy)
    x, y = np.concatenate([first, drawn[0]]), np.concatenate([second, drawn[1]])
    kept = (y != 0) & ~((x == info.min) & (y == -1))
    x, y = x[kept], y[kept]
    for name, want in (("floordiv", x // y), ("mod", x % y)):
        found = run(binary(name, dtype, len(x)).kernel, [x, y, np.zeros_like(x)])[2]
        np.testing.assert_array_equal(found, want)
