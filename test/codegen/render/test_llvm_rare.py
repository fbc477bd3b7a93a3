"""Rare arguments: vectors take the library's function for the lanes that need it, and no others."""

import numpy as np
import pytest
from cases import binary, unary
from harness import TARGET, run
from llvmlite import binding

from picograd.code import ALL, FEW
from picograd.codegen.interpret_program import interpret
from picograd.codegen.pipeline import generate, linearize, tile
from picograd.codegen.program import RARE_FROM, Instr
from picograd.codegen.render.llvm_rare import (
    LANES,
    library_declaration,
    library_lines,
    rare_functions,
)
from picograd.codegen.render.llvm_types import type_name
from picograd.dtype import DType, float32, float64
from picograd.runtime.llvm import Job, host

HUGE = (1e13, -3e15, 1e22, 3.4e38, -2.5e30)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_lanes_of_all_kinds(name: str, size: int) -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(-100, 100, size).astype(np.float32)
    x[:: 5 if size > 1 else 1] = np.resize(HUGE, x[:: 5 if size > 1 else 1].shape)
    case = unary(name, float32, size)
    found = run(case.kernel, [x, np.zeros_like(x)])[1]
    want = getattr(np, name)(x.astype(np.float64))
    np.testing.assert_allclose(found, want, rtol=2e-7)
    arrays = [x, np.zeros_like(x)]
    interpret(linearize(tile(case.kernel, TARGET), TARGET), arrays)
    np.testing.assert_allclose(arrays[1], want, rtol=2e-6)


def test_few_passes_leave_out_what_the_vectoriser_would_call() -> None:
    code = generate(unary("sin", float32, 7).kernel, TARGET)
    assert code.is_small
    found = [Job(code, host(), passes).assembly() for passes in (FEW, ALL)]
    assert ["rare_sin_f32_v8:" in text for text in found] == [False, True]


@pytest.mark.parametrize("dtype", [float32, float64], ids=repr)
def test_remainders_are_exact(dtype: DType) -> None:
    generator = np.random.default_rng(0)
    x, y = np.exp(generator.uniform(-50, 50, (2, 3000))) * generator.choice((-1, 1), (2, 3000))
    edges = [0.0, -0.0, 1.0, -3.0, 0.1, 5e-324, 1e-45, 3e38, np.inf, -np.inf, np.nan]
    first, second = (grid.ravel() for grid in np.meshgrid(edges, edges))
    whole = np.arange(1, 500) * 0.1  # their quotients by 0.1 are rounded to whole numbers
    x = np.concatenate([x, first, whole, whole * 2.0**-900]).astype(dtype.numpy)
    divisors = np.repeat((0.1, 0.1 * 2.0**-900), len(whole))
    y = np.concatenate([y, second, divisors]).astype(dtype.numpy)
    with np.errstate(all="ignore"):
        want, rest = np.mod(x, y), np.fmod(x, y)
    want = np.where(np.isinf(y) & np.isfinite(x) & (rest != 0) & ((rest < 0) != (y < 0)), y, want)
    found = run(binary("mod", dtype, len(x)).kernel, [x, y, np.zeros_like(x)])[2]
    np.testing.assert_array_equal(found, want)
    part = slice(0, len(x), 50)
    arrays = [x[part], y[part], np.zeros_like(x[part])]
    made = binary("mod", dtype, len(x[part])).kernel
    interpret(linearize(tile(made, TARGET), TARGET), arrays)
    np.testing.assert_allclose(arrays[2], want[part], rtol=1e-6)


def test_infinite_angles_are_nan() -> None:
    x = np.array([np.inf, -np.inf, np.nan, -0.0, RARE_FROM], np.float32)
    found = run(unary("sin", float32, 5).kernel, [x, np.zeros_like(x)])[1]
    assert np.isnan(found[:3]).all() and np.signbit(found[3])
    np.testing.assert_allclose(found[4], np.sin(float(x[4])), rtol=1e-6)


def test_text_has_every_variant() -> None:
    text = "\n".join(rare_functions([("sin", float32, 2)]))
    assert all(f"@rare_sin_f32_v{lanes}(" in text for lanes in LANES)
    assert rare_functions([]) == []


@pytest.mark.parametrize("dtype", [float32, float64], ids=repr)
@pytest.mark.parametrize("lanes", [1, 4])
def test_other_ops_are_functions_of_the_library(dtype: DType, lanes: int) -> None:
    """What has no formula here is the library's function of its name, lane by lane."""
    instr = Instr("cbrt", dtype, (0,), None, lanes)
    vector, wide = type_name(dtype, lanes), type_name(float64, lanes)
    lines = list(library_lines(7, instr, [f"{vector} %v0"]))
    assert sum("call double @cbrt(double" in line for line in lines) == lanes
    assert [line for line in lines if "fpext" in line] == (
        [f"%w7.0 = fpext {vector} %v0 to {wide}"] if dtype is float32 else []
    )
    assert lines[-1].startswith("%v7 = ")
    assert library_declaration("hypot", 2) == "declare double @hypot(double, double)"
    module = "\n  ".join(
        [library_declaration("cbrt", 1), f"define {vector} @f({vector} %v0) {{", *lines]
    )
    binding.parse_assembly(f"{module}\n  ret {vector} %v7\n}}").verify()
