"""Kernels that scan, sort and reduce runs, built by the schedule from small graphs."""

from typing import Any

import numpy as np

from picograd.buffer import Buffer, Storage
from picograd.dtype import (
    DType,
    accumulate_dtype,
    float16,
    float32,
    float64,
    int32,
    int64,
    uint8,
    uint32,
    uint64,
)
from picograd.graph.node import Node
from picograd.graph.sorting import ordered_keys
from picograd.schedule.interpret import FOLDS, interpret
from picograd.schedule.loop import Kernel, Radix, Runs, walk
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


def radix(device: str, shape: Any, tile: int, shift: int, is_move: bool) -> Node:
    pairs = leaf(shape, uint64, device)
    tiles = -(-shape[-1] // tile)
    cells = (*shape[:-1], 256 * tiles)
    if not is_move:
        return Node("radix_count", (pairs,), (tile, shift), cells, int32, device)
    starts = leaf(cells, int32, device)
    return Node("radix_move", (pairs, starts), (tile, shift), shape, uint64, device)


def runs(
    device: str, shape: Any, axes: Any, count: int, monoid: str | None, dtype: DType, levels: int
) -> Node:
    rest = tuple(n for d, n in enumerate(shape) if d not in axes)
    wide = accumulate_dtype(dtype)
    inputs = [leaf(shape, dtype, device), leaf((count, *rest), dtype, device)]
    inputs += [leaf((count,), uint32, device), leaf((count,), int32, device)]
    for _ in range(levels):
        count //= FAN
        inputs.append(leaf((count, *rest), wide, device))
    return Node("scatter_runs", tuple(inputs), (axes, monoid, FAN), shape, dtype, device)


FAN = 4  # updates of a group, so that short runs have levels
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
RADIX: dict[str, tuple[Any, ...]] = {
    "count_row": ((3000,), 1024, 0, False),
    "count_rows": ((2, 3, 1200), 512, 8, False),
    "move_row": ((3000,), 1024, 0, True),
    "move_rows": ((2, 3, 1200), 512, 8, True),
    "move_tile": ((512,), 512, 0, True),
}
RUN_CASES: dict[str, tuple[Any, ...]] = {
    "runs_flat": ((50,), (0,), 300, "sum", float32, 3),
    "runs_rows": ((9, 3), (0,), 100, "sum", float16, 2),
    "runs_columns": ((3, 9), (1,), 40, "max", int64, 1),
    "runs_pairs": ((4, 5, 3), (2, 0), 70, "prod", float32, 2),
    "runs_set": ((9, 3), (0,), 100, None, float32, 0),
    "runs_few": ((9, 3), (0,), 7, "min", float32, 0),
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
    step: Any = kernel.parts[0].along
    if isinstance(step, Radix) and step.start is not None:
        arrays[1][...] = starts_of(step, arrays[0]).ravel()
    if isinstance(step, Runs):
        fill_runs(step, kernel, arrays)
    return arrays


def starts_of(step: Any, values: Any) -> Any:
    """Count the digits before each digit and tile of every row."""
    rows = values.reshape(-1, step.axis.size)
    digit = (rows >> np.uint64(step.shift)).astype(int) % 256
    counts = np.zeros((len(rows), 256, step.tile.size), int)
    for row, place in np.ndindex(rows.shape):
        counts[row, digit[row, place], place // step.run] += 1
    flat = counts.reshape(len(rows), -1)
    return np.cumsum(flat, axis=1) - flat


def fill_runs(step: Any, kernel: Kernel, arrays: list[Any]) -> None:
    """Make ascending keys with one long run, where runs begin, and the levels of the values."""
    slots = slots_of(kernel)
    base, rows, keys, first, *levels = (arrays[number] for number in slots)
    count = keys.size
    slices = base.size // (rows.size // count)
    some = np.random.default_rng(1).integers(0, slices, count)
    keys[...] = np.sort(np.where(np.arange(count) < count * 2 // 3, slices // 2, some))
    is_first = np.append(True, keys[1:] != keys[:-1])
    first[...] = np.maximum.accumulate(np.where(is_first, np.arange(count), 0))
    below = rows.reshape(count, -1)
    for level in levels:
        groups = len(below) // FAN
        cut = below[: groups * FAN].reshape(groups, FAN, -1).astype(level.dtype)
        below = FOLDS[step.monoid].reduce(cut, axis=1)
        level[...] = below.ravel()


def slots_of(kernel: Kernel) -> list[int]:
    """Slots of the base, the values, the keys, the first positions and the levels."""
    step: Any = kernel.parts[0].along
    exprs = (step.body, step.key, step.first, *(expr for _, expr in step.levels))
    loads = [next(e.arg[0] for e in walk(expr) if e.op == "load") for expr in exprs]
    return [step.slot, *loads]


def wanted(kernel: Kernel, arrays: list[Any]) -> list[Any]:
    result = [array.copy() for array in arrays]
    interpret(kernel, result)
    return result


def written(kernel: Kernel) -> int:
    """Number of the slot that is written."""
    return next(n for n, slot in enumerate(kernel.slots) if slot.role != "in")


def compare(kernel: Kernel, found: Any, expected: Any) -> None:
    is_half = any(slot.dtype.bits == 16 for slot in kernel.slots)
    tolerance = 2e-3 if is_half else 2e-5
    np.testing.assert_allclose(found, expected, rtol=tolerance)
