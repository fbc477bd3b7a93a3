"""Functions for GPUs: values of the CUDA text, compiled as host C++, and where they stand.

The host's powers of 2 and reciprocals are exact; what a GPU adds is measured by bench/accuracy.py.
"""

from math import erf, erfc

import numpy as np
import pytest
from cases import binary, unary
from cuda_tools import compile_host, from_raw, run_host, source_of, to_raw

from picograd.codegen.quick import QUICK, RELAXED, TERMS, relaxed
from picograd.codegen.templates import map as map_template
from picograd.dtype import bfloat16, bool_, float16, float32, float64, int32
from picograd.schedule.loop import Expr, const
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
    assert "quick_exp2(v" in text or "whole_exp2(v" in text


@pytest.mark.parametrize("dtype", [bfloat16, float16], ids=repr)
def test_rounded_quotients_are_those_of_exact_ones(dtype):
    x = points(dtype)
    y = np.roll(x, 7)
    tiles = map_template.build(binary("div", dtype, len(x)).kernel, TARGET)
    found = np.asarray(run_host(compile_host([tiles]), tiles, {0: x, 1: y})[2], np.float64)
    with np.errstate(all="ignore"):
        want = x / y
    is_plain = np.isfinite(want) & np.isfinite(found)
    assert np.all(is_plain | (np.isinf(found) & (np.abs(want) > 65000)) | np.isnan(found + want))
    assert errors(found, want, dtype)[is_plain].max() < 0.51
    assert "quick_divide(v" in source_of(tiles)[0]


@pytest.mark.parametrize("dtype", [bfloat16, float16], ids=repr)
def test_one_plus_erf_is_as_good_as_its_terms(dtype):
    found, text = computed("relaxed_one_plus_erf", dtype)
    want = np.array([1 + erf(x) if x > 0 else erfc(-x) for x in points(dtype)])
    np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
    digits, _ = DIGITS[dtype]
    with np.errstate(invalid="ignore"):
        bound = np.ldexp(0.51, np.frexp(want)[1] - digits) + 2.0**-24
    off = np.abs(found - want)
    assert np.all((off <= bound) | np.isnan(want))
    assert "erf(v" not in text and "quick_exp2(v" in text


def term(name, x):
    """Compute terms by a kernel, and exactly; the first array is what they are of."""
    is_binary = name == "term_div"
    case = (binary if is_binary else unary)(name, float32, len(x))
    tiles = map_template.build(case.kernel, TARGET)
    given = {0: x, 1: np.roll(x, 7)} if is_binary else {0: x}
    found = run_host(compile_host([tiles]), tiles, given)[len(given)]
    with np.errstate(all="ignore"):
        return found, TERM_OF[name](*(each.astype(np.float64) for each in given.values()))


TERM_OF = {
    "term_exp": np.exp,
    "term_div": np.divide,
    "term_sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "term_silu": lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("name", ["term_exp", "term_div"])
def test_terms_of_sums_are_off_by_two_units(name):
    found, want = term(name, points(float32))
    with np.errstate(all="ignore"):
        off = errors(np.asarray(found, np.float64), want, float32)
        is_infinite = np.isinf(np.float32(want))
    np.testing.assert_array_equal(np.isinf(found), is_infinite)
    assert np.nanmax(off[~is_infinite]) < 2


@pytest.mark.parametrize("name", sorted(set(TERMS) - {"term_exp", "term_div"}))
def test_terms_that_end_before_they_are_denormal(name):
    found, want = term(name, points(float32))
    np.testing.assert_allclose(found, want, rtol=2.0**-22, atol=1e-35)


def test_a_part_that_is_rounded_is_relaxed_whoever_sees_the_rest():
    x = Expr("scalar", (), 0, float32)
    part = Expr("sigmoid", (x,), None, float32)
    wide = Expr("cast", (Expr("cast", (part,), None, bfloat16),), None, float32)
    assert relaxed(wide, ()).args[0].args[0].op == "relaxed_sigmoid"
    assert relaxed(part, ()) is part
    seen = relaxed(Expr("add", (wide, part), None, float32), ())
    assert seen.args[0].args[0].args[0].op == "sigmoid" == seen.args[1].op


def test_terms_up_to_one_are_off_by_little_beside_it():
    x = -np.abs(points(float32))
    case = unary("least_exp", float32, len(x))
    tiles = map_template.build(case.kernel, TARGET)
    found = run_host(compile_host([tiles]), tiles, {0: x})[1]
    want = np.exp(np.asarray(x, np.float64))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
    assert np.nanmax(np.abs(found - want)) < 2.0**-23


@pytest.mark.parametrize("name", QUICK)
def test_float32(name):
    found, text = computed(name, float32)
    want = EXACT[name](points(float32))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
    assert np.nanmax(errors(found, want, float32)) < 1.5
    assert "quick_exp2(v" not in text and " / v" not in text


def test_every_relaxed_function_is_tested():
    assert set(RELAXED) == {f"relaxed_{name}" for name in (*EXACT, "div", "one_plus_erf")}


def test_only_functions_of_single_precision_are_relaxed():
    x = Expr("scalar", (), 0, float32)
    for name in ("exp", "tanh"):
        assert relaxed(Expr(name, (x,), None, float32)).op == f"relaxed_{name}"
    assert relaxed(Expr("exp", (x,), None, float32), TERMS).op == "term_exp"
    wide = Expr("cast", (x,), None, float64)
    assert relaxed(Expr("exp", (wide,), None, float64)).op == "exp"
    assert relaxed(Expr("tanh", (x,), None, float32), ("relaxed_exp",)).op == "tanh"
    assert relaxed(Expr("log", (x,), None, float32)).op == "log"


def test_one_plus_erf_is_a_function_of_its_own():
    x, one = Expr("scalar", (), 0, float32), const(1.0, float32)
    term = Expr("erf", (x,), None, float32)
    for args in ((one, term), (term, one)):
        assert relaxed(Expr("add", args, None, float32)).op == "relaxed_one_plus_erf"
        assert relaxed(Expr("add", args, None, float32)).args == (x,)
        assert relaxed(Expr("add", args, None, float32), TERMS).op == "add"
    assert relaxed(Expr("add", (x, term), None, float32)).op == "add"
    assert relaxed(Expr("sub", (one, term), None, float32)).op == "sub"
    assert relaxed(term).op == "erf"


def test_what_steps_are_taken_by_is_exact():
    x, y = Expr("scalar", (), 0, float32), Expr("scalar", (), 1, float32)
    quotient = Expr("div", (x, y), None, float32)
    assert relaxed(Expr("floor", (quotient,), None, float32)).args == (quotient,)
    is_less = Expr("less", (quotient, y), None, bool_)
    other = Expr("div", (y, x), None, float32)
    chosen = relaxed(Expr("where", (is_less, other, x), None, float32))
    assert [each.op for each in chosen.args] == ["less", "relaxed_div", "scalar"]
    assert chosen.args[0].args[0].op == "div"
    count = Expr("cast", (quotient,), None, int32)
    assert relaxed(count).args == (quotient,)
