"""Functions for GPUs: values of the CUDA text, compiled as host C++, and where they stand.

The host's powers of 2 and reciprocals are exact; what a GPU adds is measured by bench/accuracy.py.
"""

import numpy as np
import pytest
from cases import unary
from cuda_tools import compile_host, from_raw, run_host, source_of, to_raw

from picograd.codegen.quick import QUICK, RELAXED, relaxed
from picograd.codegen.templates import map as map_template
from picograd.dtype import bfloat16, float16, float32, float64
from picograd.schedule.loop import Expr
from picograd.target import cuda_target

TARGET = cuda_target("sm_90a")
DIGITS = {bfloat16: (8, -133), float16: (11, -24), float32: (24, -149)}  # and the least exponent
EXACT = {
    "exp": np.exp,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
}
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 88.5, 89.0, -103.9, -87.5, 6e4, -6e4)


def points(dtype):
    generator = np.random.default_rng(0)
    sizes = np.exp(generator.uniform(-16, 4.4, 799)) * generator.choice((-1, 1), 799)
    found = np.concatenate([SPECIAL, sizes, np.linspace(-1, 1, 188)])
    return from_raw(to_raw(found, dtype), dtype).astype(np.float64)


def computed(name, dtype):
    """Compute a function by the CUDA text; also gives the text."""
    x = points(dtype)
    tiles = map_template.build(unary(name, dtype, len(x)).kernel, TARGET)
    found = run_host(compile_host([tiles]), tiles, {0: x})[1]
    return np.asarray(found, np.float64), source_of(tiles)[0]


def errors(found, want, dtype):
    """Errors in units in the last place of a dtype."""
    digits, least = DIGITS[dtype]
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(want)[1] - digits, least)
        return np.abs(found - want) / np.ldexp(1.0, exponent)


@pytest.mark.parametrize("dtype", [bfloat16, float16], ids=repr)
@pytest.mark.parametrize("name", EXACT)
def test_rounded_results_are_those_of_exact_ones(name, dtype):
    found, text = computed(name, dtype)
    with np.errstate(all="ignore"):
        want = EXACT[name](points(dtype))
    is_plain = np.isfinite(want) & np.isfinite(found)
    overflows = np.isinf(found) & (np.abs(want) > {bfloat16: 3.38e38, float16: 65000}[dtype])
    assert np.all(is_plain | overflows | (np.isnan(found) & np.isnan(want)))
    is_plain &= np.abs(want) > (2.0**-126 if name in ("sigmoid", "silu") else 0)
    assert errors(found, want, dtype)[is_plain].max() < 0.51
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(want[zero]))
    assert "quick_exp2(v" in text


@pytest.mark.parametrize("name", QUICK)
def test_float32(name):
    found, text = computed(name, float32)
    want = EXACT[name](points(float32))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
    assert np.nanmax(errors(found, want, float32)) < 1.5
    assert "quick_exp2(v" not in text and " / v" not in text


def test_every_relaxed_function_is_tested():
    assert set(RELAXED) == {f"relaxed_{name}" for name in EXACT}


def test_only_functions_of_single_precision_are_relaxed():
    x = Expr("scalar", (), 0, float32)
    for name in ("exp", "tanh"):
        assert relaxed(Expr(name, (x,), None, float32)).op == f"relaxed_{name}"
    wide = Expr("cast", (x,), None, float64)
    assert relaxed(Expr("exp", (wide,), None, float64)).op == "exp"
    assert relaxed(Expr("tanh", (x,), None, float32), ("relaxed_exp",)).op == "tanh"
    assert relaxed(Expr("log", (x,), None, float32)).op == "log"
