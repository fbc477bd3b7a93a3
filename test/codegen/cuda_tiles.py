"""Small kernels in Tile IR, run as CUDA on the host through the shim."""

import numpy as np
from cuda_tools import compile_cuda, compile_host, run_host, source_of

from picograd.codegen.tile import TileKernel
from picograd.dtype import float32
from picograd.schedule.index import axis_index
from picograd.schedule.loop import Expr, Kernel

ROWS, COLUMNS = 16, 100
MONOIDS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


def tile_read(name, *axes, dtype=float32):
    return Expr("tile", (), (name, tuple(axis_index(a) for a in axes)), dtype)


def build(name, slots, parts, threads):
    kernel = Kernel(name, "reduce.row", tuple(slots), (), ())
    return TileKernel(kernel, tuple(parts), threads)


def values(count, seed=0):
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32)


def run(tile_kernel, inputs):
    """Run in both thread orders; a missing barrier shows as a difference."""
    library = compile_host([tile_kernel])
    one = run_host(library, tile_kernel, inputs)
    two = run_host(library, tile_kernel, inputs, is_reversed=True)
    for slot, array in one.items():
        np.testing.assert_array_equal(array, two[slot])
    cubin, log = compile_cuda(source_of(tile_kernel)[0], "sm_90a")
    assert cubin and "0 bytes spill stores" in log
    return one
