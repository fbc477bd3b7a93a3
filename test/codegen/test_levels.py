"""Every elementwise row of the op table x every dtype it takes, through every level.

The graph interpreter, the Loop, Tile and Program interpreters and the compiled CPU kernel give the
same values. A new row is tested by existing.
"""

from collections.abc import Sequence
from typing import Any

import harness
import numpy as np
import plain_nodes
import pytest
from compare import widen

from picograd.buffer import Buffer, Storage
from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.pipeline import linearize, tile
from picograd.conversion import convert, to_bits
from picograd.dtype import ALL, DType, bool_
from picograd.graph import build
from picograd.graph import interpret as interpret_graph
from picograd.graph.elementwise import ELEMENTWISE
from picograd.graph.node import Node
from picograd.graph.row import Op
from picograd.schedule import interpret as interpret_loops
from picograd.schedule.loop import Kernel
from picograd.schedule.plan import KernelLaunch
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

COUNT = 14
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 4e-6, "float64": 1e-13}
ROWS = [row for row in ELEMENTWISE.values() if row.name not in ("cast", "bitcast")]
CUDA = cuda_target("sm_90a")


def sample(row: Op, dtype: DType, seed: int) -> Any:
    """Values of the row's domain, as `dtype.numpy`; floats include special values."""
    random, (low, high) = np.random.default_rng(seed), row.domain
    if dtype is bool_:
        return random.integers(0, 2, COUNT).astype(bool)
    if dtype.is_integer:
        lowest = max(int(np.ceil(low)), 0) if dtype.kind == "uint" else int(np.ceil(low))
        return random.integers(lowest, int(high) + 1, COUNT).astype(dtype.numpy)
    values = np.round(random.uniform(low, high, COUNT) * 16) / 16
    if row.arity == 1:
        values[:5] = [np.nan, np.inf, 0.0, 1.0, -np.inf]
    return convert(values, dtype)


def leaf(dtype: DType) -> Node:
    return plain_nodes.buffer(Storage(Buffer("cpu", dtype, COUNT, 0)), (COUNT,))


def stored(array: Any, dtype: DType) -> Any:
    return to_bits(array, dtype)


def run_loops(kernel: Kernel, arrays: list[Any]) -> list[Any]:
    interpret_loops.interpret(kernel, arrays)
    return arrays


def run_tiles(kernel: Kernel, arrays: list[Any]) -> list[Any]:
    interpret_tile.interpret(tile(kernel, harness.TARGET), arrays)
    return arrays


def run_program(kernel: Kernel, arrays: list[Any], target: Any = harness.TARGET) -> list[Any]:
    raw = [stored(a, s.dtype) for a, s in zip(arrays, kernel.slots, strict=True)]
    interpret_program.interpret(linearize(tile(kernel, target), target), raw)
    return [widen(a, s.dtype) for a, s in zip(raw, kernel.slots, strict=True)]


def run_cuda_program(kernel: Kernel, arrays: list[Any]) -> list[Any]:
    return run_program(kernel, arrays, CUDA)


def run_cpu(kernel: Kernel, arrays: list[Any]) -> list[Any]:
    raw = [stored(a, s.dtype) for a, s in zip(arrays, kernel.slots, strict=True)]
    found = harness.run(kernel, raw, passes=None)
    return [widen(a, s.dtype) for a, s in zip(found, kernel.slots, strict=True)]


LEVELS = {
    "loops": run_loops,
    "tiles": run_tiles,
    "program": run_program,
    "CUDA program": run_cuda_program,
    "CPU": run_cpu,
}


def check_levels(root: Node, leaves: Sequence[Node], arrays: Sequence[Any]) -> None:
    """Compare every level with the graph interpreter."""
    (wanted,) = interpret_graph.interpret([root], values=dict(zip(leaves, arrays)))
    plan = schedule([root], harness.TARGET)
    (launch,) = plan.steps
    assert isinstance(launch, KernelLaunch)
    number_of = {slot: position for position, slot in enumerate(launch.slots)}
    for level, run in LEVELS.items():
        slots = [np.zeros(slot.size, slot.dtype.numpy) for slot in launch.kernel.slots]
        for slot, node in enumerate(plan.inputs):
            slots[number_of[slot]] = np.array(arrays[leaves.index(node)])
        found = run(launch.kernel, slots)[number_of[plan.outputs[0]]]
        label = f"{root.op} of {leaves[-1].dtype.name} on {level}"
        if not root.dtype.is_float:
            np.testing.assert_array_equal(found, wanted, label)
            continue
        limit = TOLERANCE.get(root.dtype.name, 0.0)  # 8-bit floats are not computed with
        found, exact = found.astype(np.float64), wanted.astype(np.float64)
        np.testing.assert_allclose(found, exact, limit, limit, err_msg=label)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(row: Op) -> None:
    for dtype in (d for d in ALL if d.kind in row.dtype_rule.kinds):
        dtypes = (bool_, dtype, dtype) if row.arity == 3 and row.linear else (dtype,) * row.arity
        leaves = [leaf(each) for each in dtypes]
        arrays = [sample(row, each, seed) for seed, each in enumerate(dtypes)]
        check_levels(build.elementwise(row.name, *leaves), leaves, arrays)


@pytest.mark.parametrize("source", ALL, ids=lambda dtype: dtype.name)
def test_cast(source: DType) -> None:
    values = np.array([0, 1, 2, 3, 5, 77, 100, 120, 1, 0, 7, 9, 11, 13])
    values = values % 2 if source is bool_ else values
    x = leaf(source)
    for target in (d for d in ALL if d is not source):
        is_signed = source.kind == "int" or (source.is_float and target.kind != "uint")
        given = values * np.where(np.arange(COUNT) % 3 == 1, -1, 1) if is_signed else values
        if source.is_float and target.kind == "uint":  # beyond the signed range of these bits
            limit = {8: 7, 16: 14}.get(source.bits, target.bits - 2)
            given = np.append(given[1:], 3 * 2 ** min(limit, target.bits - 2))
        check_levels(build.cast(x, target), [x], [convert(given, source)])


@pytest.mark.parametrize("source", ALL, ids=lambda dtype: dtype.name)
def test_bitcast(source: DType) -> None:
    values = np.arange(COUNT) % (2 if source is bool_ else 64)
    x = leaf(source)
    for target in (d for d in ALL if d.bits == source.bits and d is not source):
        if bool_ not in (source, target):
            check_levels(build.bitcast(x, target), [x], [values.astype(source.numpy)])
