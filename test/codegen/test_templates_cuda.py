"""The map, reduce and scatter templates for CUDA, run on the host through the shim."""

from functools import cache
from typing import Any

import pytest
from cases import Case
from compare import check_arrays, inputs
from cuda_tools import H200, compile_cuda, compile_host, run_host, source_of
from structured import (
    STRUCTURED,
    column_statistics,
    column_sum,
    cross_entropy,
    layer_norm,
    softmax,
    streamed,
    total,
)

from picograd.codegen.pipeline import tile
from picograd.codegen.tile import format_tiles

LARGE = {
    "softmax_wide": lambda: softmax(6, 2052),
    "softmax_aligned": lambda: softmax(20, 512),
    "layer_norm_aligned": lambda: layer_norm(17, 256),
    "column_split": lambda: column_sum(500, 132),
    "column_narrow": lambda: column_statistics((90, 14, 2), 8),
    "column_odd": lambda: column_statistics((300, 3), 5),
    "streamed_columns": lambda: streamed(5000, 132),
    "streamed_odd": lambda: streamed(4001, 7),
    "streamed_rows": lambda: streamed(9, 5003, is_column=False),
    "streamed_long_rows": lambda: streamed(2, 40000, is_column=False),
    "total_split": lambda: total(40001),
    "total_vectors": lambda: total(41000),
    "cross_entropy_wide": lambda: cross_entropy(19, 1500),
}
CASES = {**STRUCTURED, **LARGE}


@cache
def library() -> tuple[dict[str, Case], dict[str, Any], Any]:
    """Compile every case into one library."""
    cases = {name: make() for name, make in CASES.items()}
    tiles = {}
    for name, case in cases.items():
        object.__setattr__(case.kernel, "name", name)
        tiles[name] = tile(case.kernel, H200)
    return cases, tiles, compile_host(list(tiles.values()))


@pytest.mark.parametrize("name", CASES)
def test_runs_right(name: str) -> None:
    cases, tiles, compiled = library()
    case = cases[name]
    for is_reversed in (False, True):
        given = {n: a for n, a in enumerate(inputs(case)) if case.kernel.slots[n].role != "out"}
        found = run_host(compiled, tiles[name], given, case.scalars, is_reversed)
        check_arrays(case, [found.get(n, a) for n, a in enumerate(inputs(case))])


@pytest.mark.parametrize(
    "name", ["softmax_aligned", "column_split", "column_narrow", "adam", "total_split"]
)
def test_compiles_without_spills(name: str) -> None:
    _, tiles, _ = library()
    cubin, log = compile_cuda(source_of(tiles[name])[0], "sm_90a")
    assert cubin and "0 bytes spill stores" in log


def test_what_a_column_reads_once_is_read_before_its_rows() -> None:
    """And both sums run in one loop, all of whose threads have elements."""
    _, tiles, _ = library()
    source = source_of(tiles["column_narrow"])[0]
    before, loop = source[source.index("__global__") :].split("for (", 1)
    assert before.count("(s1 +") == 1 and loop.count("(s1 +") == 0
    assert before.count("(s0 +") == 0 and loop.count("(s0 +") == 1
    text = format_tiles(tiles["column_narrow"])
    assert "threads (2,) x vector (4,), first fastest" in text
