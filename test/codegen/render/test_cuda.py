"""Every elementwise op, spelled in CUDA C, against the op table's NumPy meaning."""

import numpy as np
import pytest
from cuda_tools import (
    compile_cuda,
    compile_host,
    disassemble,
    from_raw,
    load,
    run_host,
    source_of,
    to_raw,
)

from picograd.codegen.templates import map as map_template
from picograd.codegen.templates import reduce
from picograd.dtype import (
    ALL,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
    uint32,
)  # fmt: skip
from picograd.graph.ops import OPS
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot
from picograd.target import cuda_target

COUNT = 300
FLOATS = (float16, bfloat16, float32, float64)
SOME_INTEGERS = (uint8, int8, int32, int64, uint32)
SKIPPED = ("cast", "bitcast")
TARGET = cuda_target("sm_90a")


def dtypes_of(op):
    found = []
    for dtype in (*FLOATS, *SOME_INTEGERS, bool_):
        is_bits = op.startswith(("bitwise", "shift"))
        is_integer_only = is_bits and not dtype.is_float
        if op in ("logical_and", "logical_or", "logical_not"):
            fits = dtype is bool_
        elif op.startswith("shift"):
            fits = dtype.is_integer
        elif is_bits:
            fits = is_integer_only
        elif "int" not in OPS[op].dtype_rule.kinds or op == "isnan":
            fits = dtype.is_float
        else:
            fits = dtype is not bool_
        if fits:
            found.append(dtype)
    return found


def elementwise_kernel(op, dtype):
    axis = Axis("i", COUNT)
    arity = OPS[op].arity
    result = bool_ if op in ("isnan", "less", "less_equal", "equal", "not_equal") else dtype
    arguments = tuple(load(n, axis_index(axis), dtype) for n in range(arity))
    if op == "where":
        arguments = (load(0, axis_index(axis), bool_), *arguments[1:])
    slots = [Slot(a.dtype, COUNT, "in") for a in arguments] + [Slot(result, COUNT, "out")]
    body = Expr(op, arguments, None, result)
    compute = Compute((axis,), (), None, body, result, (arity, axis_index(axis)))
    name = f"{op}_{dtype.name}"
    return Kernel(name, "map", tuple(slots), (), (Part((axis,), (compute,)),))


def inputs_of(op, kernel):
    generator = np.random.default_rng(len(kernel.name))
    found = []
    for number, slot in enumerate(kernel.slots[:-1]):
        dtype = slot.dtype
        if dtype is bool_:
            values = generator.random(COUNT) < 0.5
        elif dtype.is_float:
            low = 0.2 if op in ("pow", "log", "sqrt", "rsqrt") else -4
            values = generator.uniform(low, 4, COUNT)
            if op in ("maximum", "minimum", "isnan", "sign", "abs", "less", "equal"):
                values[::7] = np.nan
            if op in ("floordiv", "mod"):
                values = np.where(np.abs(values) < 0.2, 0.5, values)
        else:
            low = -60 if dtype.kind == "int" else 0
            values = generator.integers(low, 60, COUNT)
            if op.startswith("shift"):
                values = generator.integers(0, 60 if number == 0 else dtype.bits, COUNT)
            if op == "pow":
                values = generator.integers(0, 4, COUNT)
            if op in ("floordiv", "mod") and number == 1:
                values[values == 0] = 3
        found.append(values)
    return found


def test_every_op_in_every_dtype():
    ops = [op for op, row in OPS.items() if row.is_elementwise]
    cases = [(op, dtype) for op in ops if op not in SKIPPED for dtype in dtypes_of(op)]
    kernels = [elementwise_kernel(*case) for case in cases]
    built = [map_template.build(kernel, TARGET) for kernel in kernels]
    library = compile_host(built)
    for (op, dtype), kernel, tile_kernel in zip(cases, kernels, built, strict=True):
        raw = [
            to_raw(values, slot.dtype)
            for values, slot in zip(inputs_of(op, kernel), kernel.slots, strict=False)
        ]
        arrays = [from_raw(x, s.dtype) for x, s in zip(raw, kernel.slots, strict=False)]
        got = run_host(library, tile_kernel, dict(enumerate(arrays)))[len(arrays)]
        with np.errstate(all="ignore"):
            expected = OPS[op].numpy(*arrays)
        tolerance = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6}.get(dtype.name, 1e-12)
        np.testing.assert_allclose(
            got.astype(np.float64),
            np.asarray(expected).astype(np.float64),
            rtol=tolerance,
            atol=tolerance,
            err_msg=f"{op} {dtype.name}",
        )


def cast_kernel(source, to):
    axis = Axis("i", COUNT)
    slots = (Slot(source, COUNT, "in"), Slot(to, COUNT, "out"))
    body = Expr("cast", (load(0, axis_index(axis), source),), None, to)
    compute = Compute((axis,), (), None, body, to, (1, axis_index(axis)))
    name = f"cast_{source.name}_{to.name}"
    return Kernel(name, "map", slots, (), (Part((axis,), (compute,)),))


def test_casts_between_all_dtypes():
    pairs = [(a, b) for a in ALL for b in ALL if a is not b]
    built = [map_template.build(cast_kernel(*pair), TARGET) for pair in pairs]
    library = compile_host(built)
    values = np.arange(COUNT) % 50 * 2.0
    for (source, to), tile_kernel in zip(pairs, built, strict=True):
        array = from_raw(to_raw(values, source), source)
        got = run_host(library, tile_kernel, {0: array})[1]
        expected = from_raw(to_raw(array, to), to)
        np.testing.assert_array_equal(got, expected, err_msg=f"{source.name} to {to.name}")


@pytest.mark.parametrize("arch, first", [("sm_80", 0), ("sm_90a", 3)])
def test_every_op_compiles_with_nvrtc(arch, first):
    """The text is one for both, so each compiles every other case."""
    ops = [op for op, row in OPS.items() if row.is_elementwise]
    cases = [(op, d) for op in ops if op not in SKIPPED for d in dtypes_of(op)[first::6]]
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
