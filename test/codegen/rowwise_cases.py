"""Kernels that scan, sort and merge, built by the schedule from small graphs."""

from typing import Any

import numpy as np

from picograd.buffer import Buffer, Storage
from picograd.dtype import DType, float16, float32, float64, int32, int64, uint8, uint32
from picograd.graph.node import Node
from picograd.graph.sorting import ordered_keys
from picograd.schedule.interpret import interpret
from picograd.schedule.loop import Kernel
from picograd.schedule.schedule import schedule
from picograd.target import Target


def leaf(shape: tuple[int, ...], dtype: DType, device: str) -> Node:
    size = int(np.prod(shape))
    return Node("buffer", (), Storage(Buffer(device, dtype, size, 0)), shape, dtype, device)


def scan(device: str, shape: Any, axis: int, monoid: str, dtype: DType, chunk: int = 0) -> Node:
    x = leaf(shape, dtype, device)
    inputs = [x]
    if chunk:
        chunks = -(-shape[axis] // chunk)
        inputs.append(leaf((*shape[:axis], chunks, *shape[axis + 1 :]), dtype, device))
    arg = (monoid, axis, chunk or shape[axis])
    return Node("scan_chunks", tuple(inputs), arg, shape, dtype, device)


def sort(device: str, shape: Any, axis: int, dtype: DType, down: bool, run: int = 0) -> Node:
    keys = ordered_keys(leaf(shape, dtype, device).permute((1, 0)), down)
    arg = (axis, run or keys.shape[axis])
    return Node("sort_keys", (keys,), arg, keys.shape, int64, device)


def merge(device: str, shape: Any, axis: int, run: int) -> Node:
    inputs = (leaf(shape, uint32, device), leaf(shape, int64, device))
    return Node("merge_runs", inputs, (axis, run), shape, int64, device)


SCANS: dict[str, tuple[Any, ...]] = {
    "vector": ((5,), 0, "sum", float32),
    "rows": ((7, 1000), 1, "sum", float32),
    "rows_aligned": ((7, 1024), 1, "max", float32),
    "rows_tiles": ((3, 4100), 1, "sum", float32),
    "columns_half": ((9, 50, 33), 1, "sum", float16),
    "rows_short": ((9, 50), 1, "min", int64),
    "rows_tiny": ((300, 20), 1, "sum", float32),
    "rows_log": ((4, 2000), 1, "logaddexp", float32),
    "rows_double": ((2, 5000), 1, "prod", float64),
    "chunks": ((1, 5000), 1, "sum", float32, 1024),
    "chunks_rest": ((1, 5001), 1, "sum", float32, 1000),
    "column_chunks": ((2, 501, 7), 1, "sum", float32, 100),
    "columns_wide": ((5, 3000), 0, "sum", int32),
}
SORTS: dict[str, tuple[Any, ...]] = {
    "sort_tiny": ((1, 5), 1, float32, False),
    "sort_columns": ((7, 100), 0, float32, True),
    "sort_wide_keys": ((1000, 3), 1, int64, False),
    "sort_half": ((90, 4), 1, float16, False),
    "sort_bytes": ((2, 30), 1, uint8, False),
    "sort_down": ((300, 5), 1, int32, True),
}
RUNS: dict[str, tuple[Any, ...]] = {"sort_runs": ((3000, 1), 1, float32, False, 1024)}
MERGES: dict[str, tuple[Any, ...]] = {
    "merge_row": ((100,), 0, 8),
    "merge_rows": ((3, 37), 1, 8),
    "merge_columns": ((37, 3), 0, 4),
    "merge_even": ((64,), 0, 32),
    "merge_one": ((17,), 0, 16),
    "merge_long": ((2, 700), 1, 64),
}


def kernel_of(name: str, node: Node, target: Target) -> Kernel:
    kernel: Kernel = schedule([node], target).steps[-1].kernel  # type: ignore[union-attr]
    object.__setattr__(kernel, "name", name)
    return kernel


def arrays_of(kernel: Kernel) -> list[Any]:
    """Values near 1, so that products stay finite; whole numbers for the rest."""
    random = np.random.default_rng(0)
    arrays = []
    for slot in kernel.slots:
        if slot.dtype.is_float:
            values = random.integers(90, 111, slot.size) / 100
        else:
            values = random.integers(0, 99, slot.size)
        arrays.append(values.astype(slot.dtype.numpy))
    along: Any = kernel.parts[0].along
    if kernel.hero == "merge":  # one key a position: every run of every row is in order
        arrays[0][...] = np.arange(arrays[0].size) // 3 % 5
        arrays[0] = in_order(arrays[0], along)
    return arrays


def in_order(keys: Any, merge: Any) -> Any:
    """Sort the runs of the rows a merge reads."""
    size, rows = merge.axis.size, [axis.size for axis in merge.rows]
    stride = next(c for atom, c in merge.target.terms if atom is merge.axis)
    grid = keys.reshape(*rows, size) if stride == 1 else keys.reshape(size, *rows).T
    grid = grid.copy()
    for first in range(0, size, merge.run):
        grid[..., first : first + merge.run].sort(axis=-1)
    return np.ascontiguousarray(grid if stride == 1 else grid.T).ravel()


def wanted(kernel: Kernel, arrays: list[Any]) -> list[Any]:
    result = [array.copy() for array in arrays]
    interpret(kernel, result)
    return result


def compare(kernel: Kernel, found: Any, expected: Any) -> None:
    is_half = any(slot.dtype.bits == 16 for slot in kernel.slots)
    tolerance = 2e-3 if is_half else 2e-5
    np.testing.assert_allclose(found, expected, rtol=tolerance)
