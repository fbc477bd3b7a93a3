"""Every elementwise op, spelled in CUDA C, against the op table's NumPy meaning."""

from functools import partial

import numpy as np
import pytest
from cuda_tools import compile_cuda, compile_host, disassemble, load, run_host, source_of
from elementwise_kernels import (
    CASTS,
    all_cases,
    cast_kernel,
    check_case,
    check_cast,
    dtypes_of,
    elementwise_kernel,
)

from picograd.codegen.templates import map as map_template
from picograd.codegen.templates import reduce
from picograd.dtype import bfloat16, float16, float32, float64  # fmt: skip
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot
from picograd.target import cuda_target

TARGET = cuda_target("sm_90a")


def test_every_op_in_every_dtype():
    cases = all_cases()
    kernels = [elementwise_kernel(*case) for case in cases]
    built = [map_template.build(kernel, TARGET) for kernel in kernels]
    library = compile_host(built)
    for (op, dtype), kernel, tile_kernel in zip(cases, kernels, built, strict=True):
        check_case(op, dtype, kernel, partial(run_host, library, tile_kernel))


def test_casts_between_all_dtypes():
    built = [map_template.build(cast_kernel(*pair), TARGET) for pair in CASTS]
    library = compile_host(built)
    for pair, tile_kernel in zip(CASTS, built, strict=True):
        check_cast(*pair, partial(run_host, library, tile_kernel))


@pytest.mark.parametrize("arch, first", [("sm_80", 0), ("sm_90a", 3)])
def test_every_op_compiles_with_nvrtc(arch, first):
    """The text is one for both, so each compiles every other case."""
    cases = [(op, d) for op in dict(all_cases()) for d in dtypes_of(op)[first::6]]
    text = "".join(
        source_of(map_template.build(elementwise_kernel(*case), TARGET))[0] for case in cases
    )
    cubin, log = compile_cuda(text, arch)
    assert cubin and "error" not in log


def test_special_float_constants():
    axis = Axis("i", 4)
    at = axis_index(axis)
    computes, slots = [], []
    values = (np.inf, -np.inf, np.nan, 1e-40, -0.0, 65504.0, 3.0e38)
    for number, value in enumerate(values):
        for dtype in (float32, float64):
            constant = Expr("const", (), value, dtype)
            computes.append(Compute((axis,), (), None, constant, dtype, (len(slots), at)))
            slots.append(Slot(dtype, 4, "out"))
        assert number < 7
    kernel = Kernel("constants", "map", tuple(slots), (), (Part((axis,), tuple(computes)),))
    tile_kernel = map_template.build(kernel, TARGET)
    got = run_host(compile_host([tile_kernel]), tile_kernel, {})
    for number, value in enumerate(values):
        np.testing.assert_array_equal(got[2 * number], np.full(4, value, np.float32))
        np.testing.assert_array_equal(got[2 * number + 1], np.full(4, value))


@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=repr)
def test_neighbours_are_rounded_two_at_a_time(dtype, tmp_path):
    i = Axis("i", 4096)
    body = Expr("cast", (load(0, axis_index(i), float32),), None, dtype)
    part = Part((i,), (Compute((i,), (), None, body, dtype, (1, axis_index(i))),))
    slots = (Slot(float32, 4096, "in"), Slot(dtype, 4096, "out"))
    text = source_of(map_template.build(Kernel("rounding", "map", slots, (), (part,)), TARGET))[0]
    assert "round_lanes<" in text
    cubin, _ = compile_cuda(text, "sm_90a")
    sass = disassemble(cubin, tmp_path)
    assert "F2FP." in sass and "F2F." not in sass


def test_extremes_of_reductions_are_one_instruction():
    i, k = Axis("i", 64), Axis("k", 4096)
    for monoid, name in (("max", "maximum"), ("min", "minimum")):
        read = load(0, axis_index(i) * 4096 + axis_index(k), float32)
        compute = Compute((i,), (k,), monoid, read, float32, (1, axis_index(i)))
        slots = (Slot(float32, 64 * 4096, "in"), Slot(float32, 64, "out"))
        kernel = Kernel("extreme", "reduce.row", slots, (), (Part((i,), (compute,)),))
        assert f"quick_{name}(v" in source_of(reduce.build(kernel, TARGET))[0]
