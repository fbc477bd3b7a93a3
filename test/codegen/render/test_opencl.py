"""OpenCL C against the op table's NumPy meaning: run on the host, through a small shim."""

import re
from functools import partial

import numpy as np
import pytest
from cuda_tools import compile_opencl, load, matmul_kernel, run_host
from elementwise_kernels import (
    CASTS,
    all_cases,
    cast_kernel,
    check_case,
    check_cast,
    elementwise_kernel,
)
from rowwise_cases import arrays_of, compare, make, wanted, written

from picograd.codegen.pipeline import generate, tile
from picograd.codegen.program import Instr, Program
from picograd.codegen.render.opencl import OpenclWriter, for_type, helpers
from picograd.codegen.templates import contract, reduce
from picograd.codegen.templates import map as map_template
from picograd.dtype import bool_, float16, float32, float64, int8, int32, uint32, uint64
from picograd.graph.random import random_halves
from picograd.schedule.draws import half_drawn
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Compute, Kernel, Part, Slot, const
from picograd.target import opencl_target

TARGET = opencl_target("a device", units=2, shared_bytes=64 << 10)


def test_every_op_in_every_dtype() -> None:
    cases = all_cases()
    kernels = [elementwise_kernel(*case) for case in cases]
    built = [map_template.build(kernel, TARGET) for kernel in kernels]
    library = compile_opencl(built, TARGET)
    for (op, dtype), kernel, tile_kernel in zip(cases, kernels, built, strict=True):
        check_case(op, dtype, kernel, partial(run_host, library, tile_kernel))


def test_casts_between_all_dtypes() -> None:
    built = [map_template.build(cast_kernel(*pair), TARGET) for pair in CASTS]
    library = compile_opencl(built, TARGET)
    for pair, tile_kernel in zip(CASTS, built, strict=True):
        check_cast(*pair, partial(run_host, library, tile_kernel))


def reduction(name: str, sizes: tuple[int, int], monoid: str) -> Kernel:
    i, k = Axis("i", sizes[0]), Axis("k", sizes[1])
    read = load(0, axis_index(i) * sizes[1] + axis_index(k), float32)
    compute = Compute((i,), (k,), monoid, read, float32, (1, axis_index(i)))
    slots = (Slot(float32, sizes[0] * sizes[1], "in"), Slot(float32, sizes[0], "out"))
    return Kernel(name, "reduce.row", slots, (), (Part((i,), (compute,)),))


def test_reductions_exchange_values_of_lanes_and_blocks() -> None:
    drawn = np.random.default_rng(0)
    for sizes, monoid in (((40, 70), "sum"), ((3, 200), "max"), ((1, 70_000), "sum")):
        tile_kernel = reduce.build(reduction("reduction", sizes, monoid), TARGET)
        x = drawn.standard_normal(sizes).astype(np.float32)
        got = run_host(compile_opencl([tile_kernel], TARGET), tile_kernel, {0: x.ravel()})[1]
        np.testing.assert_allclose(got, getattr(x, monoid)(1), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [float16, float32, float64], ids=repr)
def test_products_need_no_tensor_cores(dtype) -> None:
    m, n, k = 96, 80, 72
    tile_kernel = contract.build(matmul_kernel(m, n, k, dtype), TARGET)
    drawn = np.random.default_rng(1)
    a, b = drawn.standard_normal((m, k)), drawn.standard_normal((k, n))
    a, b = a.astype(dtype.numpy), b.astype(dtype.numpy)
    library = compile_opencl([tile_kernel], TARGET)
    got = run_host(library, tile_kernel, {0: a.ravel(), 1: b.ravel()})[2].reshape(m, n)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(got, wanted, rtol=5e-3, atol=3e-2 if dtype is float16 else 1e-4)


@pytest.mark.parametrize("name", ["count_row", "move_row", "move_rows"])
def test_lanes_find_those_with_the_same_digit(name: str) -> None:
    kernel = make(name, TARGET)
    tile_kernel, arrays = tile(kernel, TARGET), arrays_of(kernel)
    place, library = written(kernel), compile_opencl([tile_kernel], TARGET)
    given = {n: a for n, a in enumerate(arrays) if kernel.slots[n].role != "out"}
    found = run_host(library, tile_kernel, given)[place]
    compare(kernel, found, wanted(kernel, arrays)[place])


def test_text_has_only_the_functions_it_calls() -> None:
    text = generate(elementwise_kernel("maximum", int8), TARGET).source
    assert re.findall(r"DEVICE (\w+ \w+)\(", text) == ["char maximum"]
    assert text.splitlines()[-1] == "}" and "template" not in text
    text = generate(elementwise_kernel("logical_and", bool_), TARGET).source
    assert "__global const boolean*" in text or "const __global boolean*" in text


def test_extensions_are_those_that_a_kernel_needs() -> None:
    assert "cl_khr" not in generate(elementwise_kernel("add", float32), TARGET).source
    assert "cl_khr_fp64 : enable" in generate(elementwise_kernel("add", float64), TARGET).source
    text = generate(reduction("rows", (40, 70), "sum"), TARGET).source
    assert "cl_khr_subgroup_shuffle : enable" in text
    assert "intel_reqd_sub_group_size(32)" in text


def test_letters_stand_for_types_alone() -> None:
    assert for_type("DEVICE T f_T(T a) { return TO(a); }", T="int") == (
        "DEVICE int f_int(int a) { return TO(a); }"
    )
    assert generate(elementwise_kernel("add", int32), TARGET).language == "opencl"


def test_functions_inside_others_have_the_types_of_all() -> None:
    constants = Instr("const", int32, arg=1), Instr("const", uint32, arg=1)
    shifts = Instr("shift_right", int32, (0, 0)), Instr("shift_left", uint32, (1, 1))
    program = Program("k", (*constants, *shifts), ())
    text = helpers(program, OpenclWriter(program).body())
    assert "is_shift(int b)" in text and "is_shift(uint b)" in text


def test_bits_of_dropout_are_those_of_the_generator() -> None:
    axis = Axis("i", 1000)
    draw = half_drawn(const(3 << 32, uint64), const(5, uint64), axis_index(axis))
    compute = Compute((axis,), (), None, draw, uint32, (0, axis_index(axis)))
    slots = (Slot(uint32, axis.size, "out"),)
    built = map_template.build(
        Kernel("draw", "map", slots, (), (Part((axis,), (compute,)),)), TARGET
    )
    found = run_host(compile_opencl([built], TARGET), built, {})[0]
    np.testing.assert_array_equal(found, random_halves(np.array(3 << 32), np.array(5), (1000,)))
