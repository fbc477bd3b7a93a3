"""Scans, sorts and runs on every level: Tile IR, the CPU, and CUDA through the shim and NVRTC."""

from functools import cache
from typing import Any

import pytest
from cuda_tools import H200, compile_cuda, compile_host, run_host, source_of
from harness import TARGET, run
from rowwise_cases import (
    RADIX,
    RUN_CASES,
    RUNS,
    SCANS,
    SORTS,
    arrays_of,
    compare,
    kernel_of,
    radix,
    runs,
    scan,
    sort,
    wanted,
    written,
)

from picograd.buffer import RuntimeScalar
from picograd.codegen.interpret_program import interpret as interpret_program
from picograd.codegen.interpret_tile import interpret
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import tile
from picograd.codegen.tile import format_tiles, verify
from picograd.dtype import float32, int32
from picograd.graph.ends import End, ended
from picograd.schedule.interpret import interpret as interpret_loops
from picograd.schedule.loop import Kernel
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target

BARRIERS = ["rows_tiles", "rows_aligned", "sort_columns", "move_row", "count_row", "runs_flat"]
STOPPED = {"long": ((300, 5), 1, int32, False), "short": ((50, 5), 1, float32, False)}
SPILLING = ["rows", "rows_log", "column_chunks", "sort_runs", "move_rows", "runs_flat", "runs_rows"]
CUDA = [*SCANS, *SORTS, *RUNS, *RADIX, *RUN_CASES]


def make(name: str, target: Target) -> Kernel:
    device = "cpu" if target.language == "llvm" else "cuda:0"
    if name in SCANS:
        return kernel_of(name, scan(device, *SCANS[name]), target)
    if name in RADIX:
        return kernel_of(name, radix(device, *RADIX[name]), target)
    if name in RUN_CASES:
        return kernel_of(name, runs(device, *RUN_CASES[name]), target)
    return kernel_of(name, sort(device, *(SORTS | RUNS)[name]), target)


@pytest.mark.parametrize("name", ["rows", "chunks_rest", "column_chunks", *STOPPED])
def test_cpu_stops_where_nobody_looks(name: str) -> None:
    """Along the axis, and along another one: what is beyond stays as it was."""
    node = scan("cpu", *SCANS[name]) if name in SCANS else sort("cpu", *STOPPED[name])
    axis = node.arg[int(name in SCANS)]
    count, rows = node.shape[axis] - 9, max(node.shape[0] - 2, 1)
    ends = End(axis, 1, 0, RuntimeScalar(count)), End(0, 1, 0, RuntimeScalar(rows))
    plan = schedule([ended(node, ends)], TARGET)
    launch: Any = plan.steps[-1]
    kernel, scalars = launch.kernel, [plan.scalars[n].arg.value for n in launch.scalars]
    arrays = arrays_of(kernel)
    if name in STOPPED:  # the greatest keys lie beyond
        arrays[0].reshape(node.shape[1], -1)[count:] = 1e9
    expected, found = ([array.copy() for array in arrays] for _ in range(2))
    interpret_loops(kernel, expected, scalars)
    interpret(verify(tile(kernel, TARGET)), found, scalars)
    compare(kernel, found[-1], expected[-1])
    compare(kernel, run(kernel, arrays, scalars)[-1], expected[-1])
    untouched = (expected[-1] == arrays[-1]).reshape(node.shape)
    assert untouched.any() and not untouched.all()


@pytest.mark.parametrize("name", [*SCANS, *SORTS])
def test_cpu(name: str) -> None:
    kernel = make(name, TARGET)
    arrays = arrays_of(kernel)
    expected = wanted(kernel, arrays)
    tiles, found = verify(tile(kernel, TARGET)), [array.copy() for array in arrays]
    interpret(tiles, found)
    compare(kernel, found[-1], expected[-1])
    compare(kernel, run(kernel, arrays)[-1], expected[-1])


@cache
def library() -> tuple[dict[str, Kernel], dict[str, Any], Any]:
    """Compile every case into one library."""
    kernels = {name: make(name, H200) for name in CUDA}
    tiles = {name: tile(kernel, H200) for name, kernel in kernels.items()}
    return kernels, tiles, compile_host(list(tiles.values()))


@pytest.mark.parametrize("name", CUDA)
def test_cuda(name: str) -> None:
    kernels, tiles, compiled = library()
    kernel, arrays = kernels[name], arrays_of(kernels[name])
    expected, found = wanted(kernel, arrays), [array.copy() for array in arrays]
    interpret(tiles[name], found)
    place = written(kernel)
    compare(kernel, found[place], expected[place])
    given = {n: a for n, a in enumerate(arrays) if kernel.slots[n].role != "out"}
    for is_reversed in (False, True):
        (made,) = run_host(compiled, tiles[name], given, (), is_reversed).values()
        compare(kernel, made, expected[place])


@pytest.mark.parametrize("name", BARRIERS)
def test_shared_memory_is_read_behind_barriers(name: str) -> None:
    """The Program interpreter refuses a read of what another thread wrote since the barrier."""
    kernels, tiles, _ = library()
    arrays = arrays_of(kernels[name])
    expected = wanted(kernels[name], arrays)
    interpret_program(linearize(tiles[name], H200), arrays)
    place = written(kernels[name])
    compare(kernels[name], arrays[place], expected[place])


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", SPILLING)
def test_compiles_without_spills(name: str, arch: str) -> None:
    _, tiles, _ = library()
    cubin, log = compile_cuda(source_of(tiles[name], cuda_target(arch))[0], arch)
    assert cubin and "0 bytes spill stores" in log


def test_the_step_count_does_not_depend_on_the_size() -> None:
    for name in ("rows", "sort_runs", "move_rows", "runs_flat"):
        assert len(format_tiles(tile(make(name, H200), H200)).splitlines()) <= 6
