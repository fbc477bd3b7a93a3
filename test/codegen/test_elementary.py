"""The formulas of elementary.py, angles.py and error_function.py, here and in the CUDA text.

Their errors over the whole range are measured in test/ops/test_accuracy.py.
"""

from typing import Any

import numpy as np
import pytest
from cases import binary, unary
from cuda_tools import compile_host, run_host
from harness import run

from picograd.codegen.angles import ANGLES
from picograd.codegen.elementary import EXPONENTIALS
from picograd.codegen.logistic import LOGISTIC
from picograd.codegen.templates import map as map_template
from picograd.dtype import DType, float32, float64
from picograd.graph.elementwise import ELEMENTWISE
from picograd.schedule.loop import Kernel
from picograd.target import cuda_target

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.0, 3e38, -3e38, 1e-45, -1e-40)
OWN_ON_CPU = {(op, float32) for op in ("exp2", "log1p")} | {("tan", float64)}
NAMES = [*EXPONENTIALS, *ANGLES, *LOGISTIC, "erfc"]
CASES = [(name, dtype) for name in NAMES for dtype in (float32, float64)]
CASES += [(name, float32) for name in ("exp", "tanh", "sin", "cos", "pow")]


def points(dtype: DType) -> Any:
    generator = np.random.default_rng(0)
    sizes = np.exp(generator.uniform(-60, 60, 500)) * generator.choice((-1, 1), 500)
    return np.concatenate([SPECIAL, sizes, generator.uniform(-2, 2, 500)]).astype(dtype.numpy)


def arguments(name: str, dtype: DType) -> list[Any]:
    x = points(dtype)
    if ELEMENTWISE[name].arity == 1:
        return [x]
    a, b = (grid.ravel() for grid in np.meshgrid(x[:20], x[:20]))
    return [np.concatenate([a, x]), np.concatenate([b, x[::-1]])]


def kernel_of(name: str, dtype: DType) -> Kernel:
    make = unary if ELEMENTWISE[name].arity == 1 else binary
    return make(name, dtype, len(arguments(name, dtype)[0])).kernel


@pytest.mark.parametrize("name, dtype", CASES, ids=str)
def test_values_everywhere(name: str, dtype: DType) -> None:
    inputs = arguments(name, dtype)
    found = run(kernel_of(name, dtype), [*inputs, np.zeros_like(inputs[0])])[-1]
    with np.errstate(all="ignore"):
        function: Any = ELEMENTWISE[name].numpy
        want = function(*inputs).astype(dtype.numpy)
    np.testing.assert_allclose(found, want, rtol=8 * np.finfo(dtype.numpy).eps, atol=0)
    zero = (found == 0) & (want == 0)
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(want[zero]))


def test_cuda_text_has_the_same_bits() -> None:
    cases = [case for case in CASES if case not in OWN_ON_CPU]
    kernels = [kernel_of(*case) for case in cases]
    tiles = [map_template.build(kernel, cuda_target("sm_90a")) for kernel in kernels]
    library = compile_host(tiles)
    for (name, dtype), kernel, tile_kernel in zip(cases, kernels, tiles, strict=True):
        inputs = arguments(name, dtype)
        found = run(kernel, [*inputs, np.zeros_like(inputs[0])])[-1]
        there = run_host(library, tile_kernel, dict(enumerate(inputs)))[len(inputs)]
        np.testing.assert_array_equal(there, found, err_msg=f"{name} {dtype}")


@pytest.mark.parametrize("dtype", [float32, float64], ids=repr)
def test_exact_where_the_result_is(dtype: DType) -> None:
    low, high = (-149, 127) if dtype is float32 else (-1074, 1023)
    whole = np.arange(low, high + 1).astype(dtype.numpy)
    powers = np.ldexp(np.ones_like(whole), whole.astype(int))
    found = run(unary("exp2", dtype, len(whole)).kernel, [whole, np.zeros_like(whole)])[1]
    np.testing.assert_array_equal(found, powers)
    found = run(unary("log2", dtype, len(whole)).kernel, [powers, np.zeros_like(whole)])[1]
    np.testing.assert_array_equal(found, whole)
    tens = np.array([float(10**k) for k in range(11 if dtype is float32 else 23)], dtype.numpy)
    found = run(unary("log10", dtype, len(tens)).kernel, [tens, np.zeros_like(tens)])[1]
    np.testing.assert_array_equal(found, np.arange(len(tens)))
