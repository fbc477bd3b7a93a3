"""Kernels that scan, sort and reduce runs, built by the schedule; their checks on every level."""

from functools import cache
from typing import Any

import numpy as np
from cuda_tools import H200, compile_cuda, compile_host, run_host, source_of
from harness import TARGET, run

from picograd.buffer import Buffer, RuntimeScalar, Storage
from picograd.codegen.interpret_program import interpret as interpret_program
from picograd.codegen.interpret_tile import interpret as interpret_tiles
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import tile
from picograd.codegen.tile import format_tiles, verify
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
from picograd.graph.binning import shape_of
from picograd.graph.bounded import End, ended
from picograd.graph.node import Node, constant
from picograd.graph.sorting import ordered_keys
from picograd.schedule.interpret import FOLDS, interpret
from picograd.schedule.loop import Bins, Kernel, Radix, Runs, walk
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target


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


def radix(
    device: str, shape: Any, tile: int, shift: int, is_move: bool, dtype: DType = uint64
) -> Node:
    pairs = leaf(shape, dtype, device)
    tiles = -(-shape[-1] // tile)
    cells = (*shape[:-1], 256 * tiles)
    if not is_move:
        return Node("radix_count", (pairs,), (tile, shift), cells, int32, device)
    counted = leaf(cells, int32, device)
    return Node("radix_move", (pairs, counted), (tile, shift), shape, dtype, device)


def runs(
    device: str, shape: Any, axes: Any, count: int, monoid: str | None, dtype: DType, levels: int,
    lanes: int = 0,
) -> Node:  # fmt: skip
    """With lanes, runs are known by their bounds, and their keys are in no order."""
    rest = tuple(n for d, n in enumerate(shape) if d not in axes)
    wide = accumulate_dtype(dtype)
    inputs = [leaf(shape, dtype, device), leaf((count, *rest), dtype, device)]
    number = shape[0] if lanes else count
    inputs.append(leaf((number,), uint32, device))
    inputs += [leaf((number,), int32, device) for _ in range(2 if lanes else 1)]
    for _ in range(levels):
        count //= FAN
        inputs.append(leaf((count, *rest), wide, device))
    arg = axes, monoid, FAN, *([lanes] if lanes else [])
    return Node("scatter_runs", tuple(inputs), arg, shape, dtype, device)


FAN = 4  # updates of a group, so that short runs have levels
SCANS: dict[str, tuple[Any, ...]] = {
    "vector": ((5,), 0, "sum", float32),
    "rows": ((7, 1000), 1, "sum", float32),
    "rows_aligned": ((7, 1024), 1, "max", float32),
    "rows_tiles": ((3, 4100), 1, "sum", float32),
    "columns_half": ((9, 50, 33), 1, "sum", float16),
    "rows_short": ((9, 50), 1, "min", int64),
    "rows_tiny": ((300, 20), 1, "sum", float32),
    "rows_of_four": ((300, 4), 1, "sum", float32),
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
RUNS: dict[str, tuple[Any, ...]] = {
    "sort_runs": ((900, 1), 1, float32, False, 400),
    "sort_digits": ((300, 1), 1, int64, True),
}
RADIX: dict[str, tuple[Any, ...]] = {
    "count_row": ((3000,), 1024, 0, False),
    "count_rows": ((2, 3, 1200), 512, 8, False),
    "move_row": ((3000,), 1024, 0, True),
    "move_rows": ((2, 3, 1200), 512, 8, True),
    "move_tile": ((512,), 512, 0, True),
    "move_short": ((2, 700), 256, 5, True, uint32),
}
RUN_CASES: dict[str, tuple[Any, ...]] = {
    "runs_flat": ((50,), (0,), 300, "sum", float32, 3),
    "runs_rows": ((9, 3), (0,), 100, "sum", float16, 2),
    "runs_columns": ((3, 9), (1,), 40, "max", int64, 1),
    "runs_pairs": ((4, 5, 3), (2, 0), 70, "prod", float32, 2),
    "runs_set": ((9, 3), (0,), 100, None, float32, 0),
    "runs_few": ((9, 3), (0,), 7, "min", float32, 0),
    "bounds_flat": ((9,), (0,), 300, "sum", float32, 2, 32),
    "bounds_pairs": ((20, 2), (0,), 300, "max", float16, 1, 16),
    "bounds_wide": ((9, 40), (0,), 200, "prod", float32, 3, 1),
    "bounds_few": ((3,), (0,), 20, "min", float64, 0, 32),
}


BINS: dict[str, tuple[Any, ...]] = {
    "bins_rows": (3, 700, 50, 2, float32, "rows", 32),
    "bins_apart": (3, 700, 50, 2, float32, "parts", 32),
    "bins_few": (1, 5000, 3, 4, int64, "rows", 32),
    "bins_shared": (2, 3000, 700, 2, float32),
    "bins_turns": (1, 900, 300, 1, float32),
    "bins_many": (2, 900, 6000, 1, float64),
    "bins_short": (5, 3, 7, 1, int32),
    "bins_turned": (3, 700, 40, 5, float32, "turned", 32),
    "bins_uneven": (2, 701, 50, 3, float32, "rows", 32, 1),
    "bins_uneven_parts": (2, 701, 50, 3, float32, "parts", 32, 1),
    "bins_more": (3, 700, 50, 2, float32, "rows", 32, 1),
    "bins_short_more": (5, 3, 7, 1, int32, "rows", 1, 1),
    "bins_counted": (1, 5000, 60, 2, int32, "rows", 1, 2),
    "bins_counted_turned": (3, 900, 700, 1, int32, "turned", 1, 2),
    "bins_beside": (40, 700, 50, 1, float32, "beside", 32),
    "bins_beside_turns": (9, 9000, 700, 1, float64, "beside", 32, 1),
}


def bins(
    device: str,
    rows: int,
    count: int,
    number: int,
    parts: int,
    dtype: DType,
    form: str = "rows",
    lanes: int = 1,
    more: int = 0,
) -> Node:
    """Numbers past the last bin are left out; with `more`, what is not there is not 0."""
    values, numbers = leaf((rows, count), dtype, device), leaf((rows, count), int32, device)
    if form == "beside":
        values = leaf((count, rows), dtype, device).permute((1, 0))
        numbers = leaf((1, count), int32, device).expand((rows, count))
    if more > 1:
        values = constant(1, (rows, count), dtype, device)
    inputs = values + more if more == 1 else values, numbers
    arg = number, parts, lanes, form
    shape = shape_of(arg, (rows, count))
    return Node("bin_sums", inputs, arg, shape, dtype, device)


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
    if isinstance(step, Radix) and step.counted is not None:
        arrays[1][...] = counted_of(step, arrays[0]).ravel()
    if isinstance(step, Runs):
        fill_runs(step, kernel, arrays)
    if isinstance(step, Bins):
        keys = arrays[0 if is_alone(step.body) else 1]
        keys[::7] *= -1  # those below the first bin are left out, too
    return arrays


def is_alone(body: Any) -> bool:
    """Tell whether a value is no element of an array."""
    return not any(each.op == "load" for each in walk(body))


def counted_of(step: Any, values: Any) -> Any:
    """Count each digit in every row, up to each tile."""
    rows = values.reshape(-1, step.axis.size)
    digit = (rows >> step.shift).astype(int) % 256
    counts = np.zeros((len(rows), 256, step.tile.size), int)
    for row, place in np.ndindex(rows.shape):
        counts[row, digit[row, place], place // step.run] += 1
    return np.cumsum(counts, axis=-1)


def fill_runs(step: Any, kernel: Kernel, arrays: list[Any]) -> None:
    """Make ascending keys with one long run, where runs begin, and the levels of the values."""
    slots = slots_of(kernel)
    base, rows, keys, first, *levels = (arrays[number] for number in slots)
    random, count = np.random.default_rng(1), step.axis.size
    if step.stop:
        stop, *levels = levels
        keys[...] = random.permutation(keys.size)
        stop[...] = np.sort(random.integers(0, count, keys.size))
        stop[-1], stop[keys.size // 2 :] = count, stop[-1]
        first[1:], first[0] = stop[:-1], 0
    else:
        slices = base.size // (rows.size // count)
        some = random.integers(0, slices, count)
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
    bounds = [step.stop] if step.stop else []
    exprs = (step.body, step.key, step.first, *bounds, *(expr for _, expr in step.levels))
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


def make(name: str, target: Target) -> Kernel:
    device = "cpu" if target.language == "llvm" else "cuda:0"
    if name in SCANS:
        return kernel_of(name, scan(device, *SCANS[name]), target)
    if name in BINS:
        return kernel_of(name, bins(device, *BINS[name]), target)
    if name in RADIX:
        return kernel_of(name, radix(device, *RADIX[name]), target)
    if name in RUN_CASES:
        return kernel_of(name, runs(device, *RUN_CASES[name]), target)
    return kernel_of(name, sort(device, *(SORTS | RUNS)[name]), target)


def check_cpu(name: str) -> None:
    """Compare Tile IR and the CPU with Loop IR."""
    kernel = make(name, TARGET)
    arrays = arrays_of(kernel)
    expected = wanted(kernel, arrays)
    tiles, found = verify(tile(kernel, TARGET)), [array.copy() for array in arrays]
    interpret_tiles(tiles, found)
    compare(kernel, found[-1], expected[-1])
    compare(kernel, run(kernel, arrays)[-1], expected[-1])


def check_stops(node: Node, axis: int, is_sort: bool) -> None:
    """Along the axis, and along another one: what is beyond stays as it was."""
    count, rows = node.shape[axis] - 9, max(node.shape[0] - 2, 1)
    ends = End(axis, 1, 0, RuntimeScalar(count)), End(0, 1, 0, RuntimeScalar(rows))
    plan = schedule([ended(node, ends)], TARGET)
    launch: Any = plan.steps[-1]
    kernel, scalars = launch.kernel, [plan.scalars[n].arg.value for n in launch.scalars]
    arrays = arrays_of(kernel)
    if is_sort:  # the greatest keys lie beyond
        arrays[0].reshape(node.shape[1], -1)[count:] = 1e9
    expected, found = ([array.copy() for array in arrays] for _ in range(2))
    interpret(kernel, expected, scalars)
    interpret_tiles(verify(tile(kernel, TARGET)), found, scalars)
    compare(kernel, found[-1], expected[-1])
    compare(kernel, run(kernel, arrays, scalars)[-1], expected[-1])
    untouched = (expected[-1] == arrays[-1]).reshape(node.shape)
    assert untouched.any() and not untouched.all()


@cache
def library() -> tuple[dict[str, Kernel], dict[str, Any], Any]:
    """Compile the cases of all files into one library."""
    names = [*SCANS, *SORTS, *RUNS, *RADIX, *RUN_CASES, *BINS]
    kernels = {name: make(name, H200) for name in names}
    tiles = {name: tile(kernel, H200) for name, kernel in kernels.items()}
    return kernels, tiles, compile_host(list(tiles.values()))


def check_cuda(name: str) -> None:
    """Compare Tile IR and the text for CUDA, run through the shim, with Loop IR."""
    kernels, tiles, compiled = library()
    kernel, arrays = kernels[name], arrays_of(kernels[name])
    expected, found = wanted(kernel, arrays), [array.copy() for array in arrays]
    interpret_tiles(tiles[name], found)
    place = written(kernel)
    compare(kernel, found[place], expected[place])
    given = {n: a for n, a in enumerate(arrays) if kernel.slots[n].role != "out"}
    for is_reversed in (False, True):
        (made,) = run_host(compiled, tiles[name], given, (), is_reversed).values()
        compare(kernel, made, expected[place])


def check_barriers(name: str) -> None:
    """The Program interpreter refuses a read of what another thread wrote since the barrier."""
    kernels, tiles, _ = library()
    arrays = arrays_of(kernels[name])
    expected = wanted(kernels[name], arrays)
    interpret_program(linearize(tiles[name], H200), arrays)
    place = written(kernels[name])
    compare(kernels[name], arrays[place], expected[place])


def check_no_spills(name: str) -> None:
    """Compile with NVRTC for two architectures."""
    tiles = library()[1]
    for arch in ("sm_80", "sm_90a"):
        cubin, log = compile_cuda(source_of(tiles[name], cuda_target(arch))[0], arch)
        assert cubin and "0 bytes spill stores" in log


def step_count(name: str) -> int:
    """Count the lines of a kernel's Tile IR."""
    return len(format_tiles(tile(make(name, H200), H200)).splitlines())
