"""The portable functions: exact enough, and the same bits from LLVM and from the CUDA text."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import unary
from cuda_tools import compile_host, run_host, source_of
from harness import run

from picograd.codegen.templates import map as map_template
from picograd.dtype import DType, float32, float64
from picograd.runtime.nvrtc import OPTIONS
from picograd.target import cuda_target

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 0.25, 1e9, 89.0, -104.0, -745.0)
TINY = {float32: 1e-45, float64: 5e-324}
TURN = 2 * np.longdouble("3.14159265358979323846264338327950288")
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "portable_log": np.log,
    "portable_exp": np.exp,
    "portable_cos_turn": lambda x: np.cos((x - np.round(x)) * TURN),
}
CASES = [(name, dtype) for name in FUNCTIONS for dtype in (float32, float64)]


def points(dtype: DType) -> Any:
    generator = np.random.default_rng(0)
    wide = (generator.uniform(-3, 3, 2000), np.exp(generator.uniform(-80, 80, 2000)),
            generator.uniform(0, 1, 2000), SPECIAL, (TINY[dtype],))  # fmt: skip
    return np.concatenate(wide).astype(dtype.numpy)


@pytest.mark.parametrize("name, dtype", CASES, ids=str)
def test_values_and_bits(name: str, dtype: DType) -> None:
    x = points(dtype)
    kernel = unary(name, dtype, len(x)).kernel
    found = run(kernel, [x, np.zeros_like(x)])[1]
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name](x.astype(np.longdouble))
        want = exact.astype(dtype.numpy)
        # A cosine near 0 is exact to a step of 1; the others to units in the last place.
        least = 1.0 if name == "portable_cos_turn" else 0.0
        unit = np.spacing(np.maximum(np.abs(want), np.asarray(least, dtype.numpy)))
        error = np.abs(found - exact) / unit
    is_same = (found == want) | (np.isnan(found) & np.isnan(want))
    assert (is_same | (error < 2)).all(), (x[~is_same & ~(error < 2)], found, want)
    tile_kernel = map_template.build(kernel, cuda_target("sm_90a"))
    there = run_host(compile_host([tile_kernel]), tile_kernel, {0: x})[1]
    np.testing.assert_array_equal(there, found)  # -0 and NaN as well:
    np.testing.assert_array_equal(np.signbit(there[there == 0]), np.signbit(found[found == 0]))


def test_no_compiler_contracts() -> None:
    """The CUDA text says fma where it means it, and NVRTC is told to make no others."""
    kernel = unary("portable_log", float32, 64).kernel
    source, _ = source_of(map_template.build(kernel, cuda_target("sm_90a")))
    assert "multiply_add(" in source and "-fmad=false" in OPTIONS
