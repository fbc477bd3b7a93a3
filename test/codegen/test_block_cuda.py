"""A block of threads: what it puts where, and how wide its indices are."""

import numpy as np
from cuda_tiles import build, run, tile_read, values
from cuda_tools import compile_cuda, load, row_major, source_of

from picograd.codegen.layout import Blocked
from picograd.codegen.tile import Assign, Barrier, Store, Tile, TilePart
from picograd.dtype import float32
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Slot, const


def test_transpose_through_shared_memory():
    i, j, layout = Axis("i", 32), Axis("j", 32), Blocked((32, 32), (4, 32), (1, 1))
    tile = Tile("tile", (32, 32), float32, "shared", row_padding=1)
    steps = (
        Assign("tile", (i, j), load(0, row_major(i, j), float32), layout=layout),
        Barrier(),
        Store(1, row_major(i, j), (i, j), tile_read("tile", j, i), (), layout),
    )
    slots = [Slot(float32, 1024, "in"), Slot(float32, 1024, "out")]
    x = values(1024).reshape(32, 32)
    got = run(build("transpose", slots, [TilePart((), (tile,), steps)], 128), {0: x})[1]
    np.testing.assert_array_equal(got.reshape(32, 32), x.T)


def test_wide_indices_are_used_only_where_needed():
    axis, grid = Axis("i", 256), Axis("block", 4)
    sources = []
    for size in (1 << 10, 1 << 32):
        place = axis_index(grid) * (size // 4) + axis_index(axis)
        store = Store(0, place, (axis,), const(1.0, float32))
        slots = [Slot(float32, size, "out")]
        sources.append(source_of(build("wide", slots, [TilePart((grid,), (), (store,))], 256))[0])
    assert "int64 v" not in sources[0].split("extern")[-1]
    assert "const int64 v" in sources[1].split("extern")[-1]
    compile_cuda(sources[1], "sm_80")
