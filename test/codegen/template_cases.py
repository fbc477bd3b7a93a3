"""Kernels of the templates for CUDA: run on the host through the shim, compiled by NVRTC."""

from functools import cache
from typing import Any

from cases import Case
from compare import check_arrays, inputs
from cuda_tools import H200, compile_cuda, compile_host, run_host, source_of
from structured import (
    STRUCTURED,
    beside,
    column_statistics,
    column_sum,
    cross_entropy,
    layer_norm,
    softmax,
    streamed,
    total,
)

from picograd.codegen.pipeline import tile

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
    "beside_split": lambda: beside(column_sum(500, 132), total(40001), column_sum(500, 132)),
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


def check(name: str) -> None:
    """Compare a kernel's results with Loop IR, its threads in both orders."""
    cases, tiles, compiled = library()
    case = cases[name]
    for is_reversed in (False, True):
        given = {n: a for n, a in enumerate(inputs(case)) if case.kernel.slots[n].role != "out"}
        found = run_host(compiled, tiles[name], given, case.scalars, is_reversed)
        check_arrays(case, [found.get(n, a) for n, a in enumerate(inputs(case))])


def check_no_spills(name: str) -> None:
    """Compile with NVRTC."""
    cubin, log = compile_cuda(source_of(library()[1][name])[0], "sm_90a")
    assert cubin and "0 bytes spill stores" in log


def names(*words: str) -> list[str]:
    """List the cases whose names begin so."""
    return [name for name in CASES if name.startswith(words)]
