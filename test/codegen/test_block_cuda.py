"""A block of threads: what it puts where, and how wide its indices are."""

import numpy as np
import pytest
from cuda_tiles import build, run, tile_read, values
from cuda_tools import compile_cuda, compile_host, disassemble, load, row_major, run_host, source_of

from picograd.codegen.block_cuda import as_sign, in_rounds
from picograd.codegen.layout import Blocked, WgmmaAccumulator, walk
from picograd.codegen.templates import map as map_template
from picograd.codegen.tile import Assign, Barrier, Store, Tile, TilePart
from picograd.dtype import bool_, float32, uint32, uint64
from picograd.graph.ops import OPS
from picograd.graph.random import random_halves
from picograd.schedule.draws import half_drawn
from picograd.schedule.index import Axis, axis_index, constant, substitute
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot, const
from picograd.target import cuda_target


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


def test_booleans_of_bits_are_signs():
    """What is less than a number, whatever that is, as the sign of a difference of 32 bits."""
    bits = np.array([0, 1, 999, 65535], np.uint32)
    draw = half_drawn(const(3, uint64), const(0, uint64), axis_index(Axis("i", 4)))
    for most in (0, 1, 1000, 65535, 65536, 1 << 31, (1 << 32) - 1):
        sign = as_sign(Expr("less", (draw, const(most, uint32)), None, bool_))
        less, shift = sign.args
        least = OPS["minimum"].numpy(*(np.uint32(each.arg) for each in less.args[1].args))
        found = (bits - least) >> np.uint32(shift.arg)
        np.testing.assert_array_equal(found, bits < most)
    other = Expr("less", (const(1, uint32), const(2, uint32)), None, bool_)
    assert as_sign(other) is other


@pytest.mark.parametrize("size, across", [(128, 4), (96, 4), (16, 2)])
def test_rounds_have_what_blocks_of_bits_serve(size, across):
    """Every place of a walk once, in its order; within a round those of 32 columns."""
    found = walk(WgmmaAccumulator(size, 1), Axis("thread", 128), False)
    rounds = in_rounds(found)
    sizes = [(axis.name, axis.size) for axis, _ in rounds.loops]
    assert sizes == [("turn", size // 8 // across), ("near", across), ("half", 2), ("pair", 2)]

    def places(walked):
        axes = [axis for axis, _ in walked.loops]
        for at in np.ndindex(*(axis.size for axis in axes)):
            values = dict(zip(axes, map(constant, at)))
            yield [substitute(each, values) for each in walked.coordinates]

    assert list(places(rounds)) == list(places(found))


def test_products_of_words_are_told(tmp_path):
    """Of 20 products of a block none has a sum of 64 bits behind it."""
    axis = Axis("i", 1 << 16)
    draw = half_drawn(const(3, uint64), const(0, uint64), axis_index(axis))
    compute = Compute((axis,), (), None, draw, uint32, (0, axis_index(axis)))
    slots = (Slot(uint32, axis.size, "out"),)
    kernel = Kernel("draw", "map", slots, (), (Part((axis,), (compute,)),))
    built = map_template.build(kernel, cuda_target("sm_90a"))
    text, _ = source_of(built)
    body = text.split("extern")[-1]
    assert "wide_product((uint32)" in body and " * 3449720151ull" not in body
    cubin, _ = compile_cuda(text, "sm_90a")
    products = disassemble(cubin, tmp_path).count("IMAD.WIDE.U32")
    assert 0 < products <= 4 * 20
    library = compile_host([built])
    found = run_host(library, built, {})[0]
    np.testing.assert_array_equal(found, random_halves(np.array(3), np.array(0), (axis.size,)))
