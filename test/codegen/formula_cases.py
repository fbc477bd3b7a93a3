"""Checks of the formulas of elementary functions: their values, and the bits of the CUDA text.

Their errors over the whole range are measured in test/ops/test_accuracy.py.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
from cases import binary, unary
from cuda_tools import compile_host, run_host
from harness import run

from picograd.codegen.elementary import ANGLES, EXPONENTIALS
from picograd.codegen.quick import LOGISTIC
from picograd.codegen.templates import map as map_template
from picograd.dtype import DType, float32, float64
from picograd.graph.elementwise import ELEMENTWISE
from picograd.schedule.loop import Kernel
from picograd.target import cuda_target

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.0, 3e38, -3e38, 1e-45, -1e-40)
OWN_ON_CPU = {(op, float32) for op in ("tanh",)} | {("tan", float64)}
NAMES = [*EXPONENTIALS, *ANGLES, *LOGISTIC, "erfc"]
CASES = [(name, dtype) for name in NAMES for dtype in (float32, float64)]
PLAIN = ("exp", "tanh", "sin", "cos", "pow")
CASES += [(name, float32) for name in PLAIN]


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


def check_values(name: str, dtype: DType) -> None:
    """Compare with NumPy at points of every size."""
    inputs = arguments(name, dtype)
    found = run(kernel_of(name, dtype), [*inputs, np.zeros_like(inputs[0])])[-1]
    with np.errstate(all="ignore"):
        function: Any = ELEMENTWISE[name].numpy
        want = function(*inputs).astype(dtype.numpy)
    np.testing.assert_allclose(found, want, rtol=8 * np.finfo(dtype.numpy).eps, atol=0)
    zero = (found == 0) & (want == 0)
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(want[zero]))


@cache
def library() -> tuple[dict[Any, Any], Any]:
    """Compile the cases of all files into one library."""
    cases = [case for case in CASES if case not in OWN_ON_CPU]
    kernels = [kernel_of(*case) for case in cases]
    tiles = [map_template.build(kernel, cuda_target("sm_90a")) for kernel in kernels]
    return dict(zip(cases, zip(kernels, tiles))), compile_host(tiles)


def check_bits(names: Iterable[str]) -> None:
    """Compare the bits of the CUDA text with those of the CPU."""
    made, compiled = library()
    for (name, dtype), (kernel, tile_kernel) in made.items():
        if name in names:
            inputs = arguments(name, dtype)
            found = run(kernel, [*inputs, np.zeros_like(inputs[0])])[-1]
            there = run_host(compiled, tile_kernel, dict(enumerate(inputs)))[len(inputs)]
            np.testing.assert_array_equal(there, found, err_msg=f"{name} {dtype}")


def cases_of(names: Iterable[str]) -> list[tuple[str, DType]]:
    return [case for case in CASES if case[0] in names]
