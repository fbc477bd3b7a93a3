"""Kernels of one elementwise op in one dtype, and what they are given."""

import numpy as np
from cuda_tools import from_raw, load, to_raw

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

COUNT = 300
FLOATS = (float16, bfloat16, float32, float64)
SOME_INTEGERS = (uint8, int8, int32, int64, uint32)
SKIPPED = ("cast", "bitcast")
CASTS = [(a, b) for a in ALL for b in ALL if a is not b]


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


def all_cases():
    ops = [op for op, row in OPS.items() if row.is_elementwise]
    return [(op, dtype) for op in ops if op not in SKIPPED for dtype in dtypes_of(op)]


def check_case(op, dtype, kernel, run):
    """Run a kernel by `run(arrays by slot)`, which gives what is in each slot then."""
    raw = [
        to_raw(values, slot.dtype)
        for values, slot in zip(inputs_of(op, kernel), kernel.slots, strict=False)
    ]
    arrays = [from_raw(x, s.dtype) for x, s in zip(raw, kernel.slots, strict=False)]
    got = run(dict(enumerate(arrays)))[len(arrays)]
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


def check_cast(source, to, run):
    values = np.arange(COUNT) % 50 * 2.0
    array = from_raw(to_raw(values, source), source)
    expected = from_raw(to_raw(array, to), to)
    np.testing.assert_array_equal(run({0: array})[1], expected, err_msg=f"{source} to {to}")
