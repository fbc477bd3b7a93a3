"""Products of boxes: values at both levels, resources and opcodes by NVRTC, which one is chosen."""

import dataclasses
import re
from types import SimpleNamespace

import numpy as np
import pytest
import twin_products
from box_products import TF32, TWO, numbers, program_of, results, tiles_of
from cuda_tools import H200, compile_cuda, disassemble, from_raw, matmul_kernel, source_of

from picograd import Tensor
from picograd.codegen import boxes, interpret_program, interpret_tile
from picograd.codegen.render.cuda import render
from picograd.codegen.templates import contract_cuda, contract_tma
from picograd.codegen.tensor_core import SimtSchedule
from picograd.codegen.tile import Store
from picograd.dtype import bfloat16, float8_e4m3fn, float8_e5m2, float16, float32
from picograd.errors import InternalError
from picograd.schedule.index import axis_index
from picograd.schedule.loop import Compute, Expr, Slot
from picograd.schedule.schedule import schedule

TOLERANCE = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-5}
CASES = {
    "several tiles a block, more steps than stages": (
        (128, 128),
        dict(m=256, n=256, k=640, dtype=bfloat16, b="nk"),
    ),
    "one step": ((128, 128), dict(m=256, n=256, k=64, dtype=bfloat16, b="nk")),
    "one team, ragged": ((64, 128), dict(m=100, n=200, k=600, dtype=bfloat16)),
    "both along M and N": ((128, 192), dict(m=200, n=200, k=200, dtype=float16, a="km")),
    "two warpgroups a team": ((128, 256), dict(m=200, n=264, k=200, dtype=float16, a="km")),
    "narrow": ((128, 64), dict(m=300, n=40, k=136, dtype=bfloat16, b="nk")),
    "batch and epilogue": (
        (128, 128),
        dict(m=200, n=200, k=72, dtype=float16, a="km", b="nk", batch=3, epilogue="bias_relu"),
    ),
    "float32 out": (
        (128, 128),
        dict(m=136, n=200, k=72, dtype=bfloat16, b="nk", out_dtype=float32),
    ),
    "rows no box can have": (
        (128, 128),
        dict(m=136, n=203, k=72, dtype=bfloat16, b="nk", out_dtype=float32),
    ),
    "transposed out": ((128, 128), dict(m=136, n=200, k=72, dtype=float16, out="nm")),
    "rows of tiles that fill no group": ((64, 128), dict(m=600, n=264, k=64, dtype=bfloat16)),
    "the smallest tiles": ((64, 64), dict(m=70, n=72, k=136, dtype=bfloat16, b="nk")),
    "a row": ((64, 64), dict(m=1, n=136, k=136, dtype=bfloat16, b="nk")),
    "a column": ((64, 64), dict(m=136, n=1, k=136, dtype=bfloat16, b="nk")),
    "columns that are no whole pieces": (
        (192, 96),
        dict(m=200, n=200, k=136, dtype=bfloat16, b="nk"),
    ),
    "a part of two and a half pieces": (
        (128, 160),
        dict(m=130, n=328, k=72, dtype=float16, b="nk"),
    ),
    "such columns in rows": ((192, 96), dict(m=200, n=203, k=72, dtype=bfloat16, b="nk")),
    "several products, of which each block keeps one's columns": (
        (128, 64),
        dict(m=400, n=40, k=136, dtype=bfloat16, b="nk", batch=2),
    ),
    "two columns of tiles, of which each block keeps one": (
        (64, 128),
        dict(m=200, n=200, k=72, dtype=float16, a="km", b="nk"),
    ),
    "a few rows": ((64, 128), dict(m=16, n=264, k=136, dtype=bfloat16, b="nk")),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    block, case = CASES[name]
    want, tile, program = results(case, block)
    limit = TOLERANCE[case.get("out_dtype", case["dtype"]).name] * np.abs(want).max()
    assert np.abs(tile - want).max() < limit
    assert np.abs(program - want).max() < limit


CLUSTER_CASES = {
    "a row of tiles too few": dict(m=300, n=300, k=200, dtype=bfloat16, b="nk"),
    "slabs along N, more steps than stages": dict(m=256, n=296, k=328, dtype=float16, a="km"),
}


@pytest.mark.parametrize("block", [(128, 256), (64, 128)])
@pytest.mark.parametrize("name", CLUSTER_CASES)
def test_blocks_bring_boxes_to_one_another(name, block):
    case = CLUSTER_CASES[name]
    want, tile, program = results(case, block, together=2)
    limit = TOLERANCE[case["dtype"].name] * np.abs(want).max()
    assert np.abs(tile - want).max() < limit
    assert np.abs(program - want).max() < limit


def test_blocks_that_bring_boxes_to_one_another_want_the_same(monkeypatch):
    def turned(place, rows, columns, blocks, group):
        return place // columns, place % columns

    monkeypatch.setattr(contract_tma, "order", turned)
    with pytest.raises(InternalError, match="different boxes"):
        results(dict(m=256, n=512, k=72, dtype=bfloat16, b="nk"), (128, 256), together=2)


def test_rows_of_tiles_and_their_groups_are_whole_clusters():
    schedule = SimpleNamespace(block=(128, 256), together=2)
    assert [contract_tma.rows_of_tiles(m, schedule) for m in (1, 256, 257, 600)] == [2, 2, 4, 6]
    held = contract_tma.CACHED // 5
    assert held > contract_tma.GROUP_ROWS
    assert contract_tma.group_of(10, held, 1) == 5  # of the cache's 5, two groups
    assert contract_tma.group_of(10, held, 2) == 6
    assert contract_tma.group_of(12, contract_tma.CACHED, 1) <= contract_tma.GROUP_ROWS


def test_columns_of_one_tile_are_kept():
    """Three steps of K: as many stages of the right operand, and more of the left one."""
    kernel = matmul_kernel(1024, 40, 136, bfloat16, b="nk")
    part = tiles_of(kernel, (128, 64)).parts[0]
    stages = {tile.name: tile.stages for tile in part.tiles if tile.name in "ab"}
    left, right = part.steps[0].body[1].produce
    assert right.is_kept and not left.is_kept and stages == {"a": 10, "b": 3}
    kernel = matmul_kernel(1024, 40, 2000, bfloat16, b="nk")
    part = tiles_of(kernel, (128, 64)).parts[0]
    assert not part.steps[0].body[1].produce[1].is_kept, "32 stages leave no room"


def test_columns_of_several_products_are_kept_where_that_takes_few_more_waves():
    cases = (4, 132, 40, 132, True), (8, 132, 40, 128, True), (8, 33, 40, 132, False)
    more = (2, 132, 80, 132, True), (3, 132, 40, 132, False), (133, 8, 40, 132, False)
    for batch, rows, n, blocks, is_kept in (*cases, *more):
        kernel = matmul_kernel(128 * rows, n, 136, bfloat16, b="nk", batch=batch)
        (loop,) = tiles_of(kernel, (128, 64), H200).parts[0].steps
        assert loop.block.size == blocks
        assert loop.body[1].produce[1].is_kept == is_kept


def test_rows_reach_to_the_end_of_a_chunk():
    """In an array with rows of 64: no element of a neighbouring row is between."""
    kernel = matmul_kernel(128, 56, 64, bfloat16)
    made = tiles_of(kernel, (64, 64)).parts[0].steps[0].body[1].produce[1]
    assert made.tensor.sizes[0] == 56
    side = boxes.Side(dataclasses.replace(made, tensor=narrow(made.tensor, 53, 64)), None, False)
    assert boxes.whole_chunks(side).copy.tensor.sizes[0] == 56
    side = boxes.Side(dataclasses.replace(made, tensor=narrow(made.tensor, 53, 53)), None, False)
    assert boxes.whole_chunks(side).copy.tensor.sizes[0] == 53


def narrow(tensor, length, stride):
    """A map whose rows are shorter than it is from one to the next."""
    return dataclasses.replace(tensor, sizes=(length, *tensor.sizes[1:]), strides=(stride,))


TF32_CASES = {
    "several steps": dict(m=256, n=200, k=136, b="nk"),
    "batch and epilogue": dict(m=130, n=136, k=72, b="nk", batch=2, epilogue="bias_relu"),
}


@pytest.mark.parametrize("name", TF32_CASES)
def test_float32_is_read_as_tf32(name):
    """10 bits of each mantissa, cut off: 1e-3 of each product at most; sums are of float32."""
    want, tile, program = results(TF32_CASES[name] | {"dtype": float32}, target=TF32)
    assert np.abs(tile - want).max() < 1e-5 * np.abs(want).max()
    error = np.linalg.norm(program - want) / np.linalg.norm(want)
    assert 1e-5 < error < 1e-3


FLOAT8_CASES = {
    "more steps than stages": ((64, 128), dict(m=100, n=136, k=1168, b="nk"), float8_e4m3fn),
    "a step behind the last turn": ((64, 64), dict(m=70, n=136, k=640, b="nk"), float8_e4m3fn),
    "two warpgroups, epilogue": (
        (128, 128),
        dict(m=130, n=136, k=144, b="nk", epilogue="bias_relu"),
        float8_e5m2,
    ),
}


@pytest.mark.parametrize("name", FLOAT8_CASES)
def test_float8_is_summed_in_float32(name):
    block, case, dtype = FLOAT8_CASES[name]
    want, tile, program = results(case | {"dtype": dtype, "out_dtype": float32}, block)
    assert np.abs(tile - want).max() < 1e-5 * np.abs(want).max()
    assert np.abs(program - want).max() < 1e-5 * np.abs(want).max()


def test_float8_of_two_kinds():
    kernel = matmul_kernel(64, 128, 64, float8_e4m3fn, b="nk", out_dtype=float32)
    (part,) = kernel.parts
    left, right = part.computes[0].body.args
    right = Expr("load", (), right.args[0].arg, float8_e5m2)
    right = Expr("cast", (right,), None, float32)
    body = Expr("mul", (left, right), None, float32)
    first = dataclasses.replace(part.computes[0], body=body)
    slots = (kernel.slots[0], Slot(float8_e5m2, 128 * 64, "in"), kernel.slots[2])
    part = dataclasses.replace(part, computes=(first, *part.computes[1:]))
    kernel = dataclasses.replace(kernel, slots=slots, parts=(part,))
    program = program_of(tiles_of(kernel, (64, 128)))
    arrays = numbers(kernel)
    wide = [from_raw(x, s.dtype).astype(float) for x, s in zip(arrays, slots, strict=True)]
    interpret_program.interpret(program, arrays)
    want = wide[0].reshape(64, 64) @ wide[1].reshape(128, 64).T
    np.testing.assert_allclose(arrays[2].reshape(64, 128), want, rtol=1e-5, atol=1e-3)
    assert "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e5m2" in render(program)


@pytest.mark.parametrize("rows, width", [(4096, 128), (128, 64)])
def test_resources_and_opcodes_of_float8(tmp_path, rows, width):
    kernel = matmul_kernel(rows, 4096, 4096, float8_e4m3fn, b="nk", out_dtype=bfloat16)
    cubin, log = compile_cuda(source_of(contract_cuda.build(kernel, H200))[0], "sm_90a")
    assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log) and "C75" not in log, log
    sass = disassemble(cubin, tmp_path)
    assert f"QGMMA.64x{width}x32.F32.E4M3.E4M3" in sass and "MEMBAR.ALL.GPU" not in sass


def test_resources_and_opcodes_of_tf32(tmp_path):
    asked = dataclasses.replace(H200, tf32=True)
    tiles = contract_cuda.build(matmul_kernel(4096, 4096, 4096, float32, b="nk"), asked)
    cubin, log = compile_cuda(source_of(tiles)[0], "sm_90a")
    assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log) and "C75" not in log, log
    sass = disassemble(cubin, tmp_path)
    assert "HGMMA.64x256x8.F32.TF32" in sass and "MEMBAR.ALL.GPU" not in sass


def test_two_outputs_leave_through_one_memory_if_they_have_one_dtype():
    for dtype, count in ((bfloat16, 2), (float32, 1)):
        kernel = with_second_output(matmul_kernel(136, 200, 72, bfloat16, b="nk"), dtype)
        tiles = tiles_of(kernel)
        stores = [s for s in tiles.parts[0].steps[0].body if isinstance(s, Store)]
        assert len(stores) == 2 and sum(s.box is not None for s in stores) == count
        generator = np.random.default_rng(0)
        arrays = [generator.integers(-2, 3, slot.size).astype(float) for slot in kernel.slots]
        values = [x.astype(np.float32) for x in arrays]
        interpret_tile.interpret(tiles, values)
        raw = [bits(x, slot.dtype) for x, slot in zip(arrays, kernel.slots, strict=True)]
        interpret_program.interpret(program_of(tiles), raw)
        want = arrays[0].reshape(136, 72) @ arrays[1].reshape(200, 72).T
        for factor, slot in ((1, 2), (2, 3)):
            np.testing.assert_array_equal(values[slot].reshape(136, 200), factor * want)
            np.testing.assert_array_equal(raw[slot], bits(factor * want, kernel.slots[slot].dtype))


def bits(values, dtype):
    """Contents of a buffer, of numbers that bfloat16 has."""
    narrow = np.asarray(values, np.float32).reshape(-1)
    return narrow if dtype is float32 else (narrow.view(np.uint32) >> 16).astype(np.uint16)


def with_second_output(kernel, dtype):
    """Store twice the product too."""
    (part,) = kernel.parts
    product = Expr("ref", (), 0, float32)
    double = Expr("mul", (product, Expr("const", (), 2.0, float32)), None, float32)
    if dtype is not float32:
        double = Expr("cast", (double,), None, dtype)
    place = part.computes[-1].store[1]
    more = Compute(part.computes[0].axes, (), None, double, dtype, (3, place))
    slots = (*kernel.slots, Slot(dtype, kernel.slots[2].size, "out"))
    parts = (dataclasses.replace(part, computes=(*part.computes, more)),)
    return dataclasses.replace(kernel, slots=slots, parts=parts)


LARGE = [
    dict(m=4096, n=4096, k=4096, dtype=bfloat16, b="nk"),
    dict(m=4096, n=4096, k=4096, dtype=float16, a="km", epilogue="bias_relu"),
    dict(m=8192, n=8192, k=8192, dtype=bfloat16, b="nk"),
    dict(m=1024, n=1024, k=1024, dtype=bfloat16),
    dict(m=6000, n=6000, k=6000, dtype=bfloat16, b="nk"),
    dict(m=16384, n=64, k=512, dtype=bfloat16, b="nk", batch=2),
]
WIDTHS = [256, 256, 192, 128, 256, 64]


@pytest.mark.parametrize("number", range(len(LARGE)))
def test_resources_and_opcodes(number, tmp_path):
    """No spill, no serialised product, no barrier of the whole GPU; the opcodes that we mean."""
    tiles = contract_cuda.build(matmul_kernel(**LARGE[number]), H200)
    cubin, log = compile_cuda(source_of(tiles)[0], "sm_90a")
    assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log), log
    assert "C75" not in log and "serialized" not in log, log
    sass = disassemble(cubin, tmp_path)
    kind = "BF16" if LARGE[number]["dtype"] is bfloat16 else "F32"
    assert f"HGMMA.64x{WIDTHS[number]}x16.F32" in sass and kind in sass
    for opcode in ("UTMALDG", "UTMASTG", "SYNCS.PHASECHK", "ELECT"):
        assert opcode in sass, opcode
    for opcode in ("MEMBAR.ALL.GPU", "MEMBAR.SC", "LDL", "STL"):
        assert opcode not in sass, opcode
    assert ("UTMALDG.2D.MULTICAST" in sass) == (LARGE[number]["m"] == 6000)
    assert ("USETMAXREG" in sass) == (tiles.threads == 384)


def no_spills(tiles):
    _, log = compile_cuda(source_of(tiles)[0], "sm_90a")
    return "0 bytes spill stores" in log and "C75" not in log


def test_a_function_of_the_product_leaves_it_registers():
    kernel = matmul_kernel(8192, 8192, 8192, bfloat16)
    (part,) = kernel.parts
    hero, end = part.computes
    body = Expr(
        "cast", (Expr("exp", (Expr("ref", (), 0, float32),), None, float32),), None, bfloat16
    )
    parts = (dataclasses.replace(part, computes=(hero, dataclasses.replace(end, body=body))),)
    tiles = contract_cuda.build(dataclasses.replace(kernel, parts=parts), H200)
    assert tiles.parts[0].tiles[0].layout.register_count <= 128
    assert no_spills(tiles)
    assert contract_cuda.build(kernel, H200).parts[0].tiles[0].shape == (128, 192)


@pytest.mark.parametrize("m, n", [(200, 200), (256, 264), (100, 128)])
def test_what_is_dear_is_computed_in_a_loop_over_the_rounded_product(m, n):
    """Each part of a tile waits in a slot; other arrays are read 16 bytes at a time."""
    kernel = with_gelu_gradient(matmul_kernel(m, n, 72, bfloat16, b="nk"))
    tiles = tiles_of(kernel)
    store = tiles.parts[0].steps[0].body[-1]
    assert store.box.is_rolled and tiles.parts[0].tiles[-1].stages == 4  # of 64 columns, 16 rows
    generator = np.random.default_rng(0)
    arrays = [generator.integers(-2, 3, slot.size).astype(float) for slot in kernel.slots]
    values = [x.astype(np.float32) for x in arrays]
    interpret_tile.interpret(tiles, values)
    raw = [bits(x, slot.dtype) for x, slot in zip(arrays, kernel.slots, strict=True)]
    interpret_program.interpret(program_of(tiles), raw)
    product = arrays[0].reshape(m, 72) @ arrays[1].reshape(n, 72).T
    want = product * np.tanh(arrays[3].reshape(m, n) * 0.25)
    np.testing.assert_allclose(values[2].reshape(m, n), want, rtol=2**-8)
    found = (raw[2].astype(np.uint32) << 16).view(np.float32).reshape(m, n)
    np.testing.assert_allclose(found, want, rtol=2**-8)
    source = render(program_of(contract_cuda.build(kernel, H200), H200))
    assert source.count("quick_exp2(v") == 8  # the neighbours of a lane: no text for each register
    assert "Vector<uint32, 4>*)(s3" in source


@pytest.mark.parametrize("m, n", [(200, 200)])
def test_an_output_without_the_product_rides_with_a_rolled_one(m, n):
    """Both read the other array once, and its own leaves in pieces of 16 bytes."""
    kernel = with_gelu_gradient(matmul_kernel(m, n, 72, bfloat16, b="nk"))
    (part,) = kernel.parts
    hero, end = part.computes
    other = Expr("cast", (Expr("load", (), (3, end.store[1]), bfloat16),), None, float32)
    quarter = Expr("mul", (other, Expr("const", (), 0.25, float32)), None, float32)
    body = Expr("cast", (Expr("tanh", (quarter,), None, float32),), None, bfloat16)
    beside = dataclasses.replace(end, body=body, store=(4, end.store[1]))
    slots = (*kernel.slots, Slot(bfloat16, kernel.slots[2].size, "out"))
    parts = (dataclasses.replace(part, computes=(hero, end, beside)),)
    kernel = dataclasses.replace(kernel, slots=slots, parts=parts)
    rider, store = tiles_of(kernel).parts[0].steps[0].body[-2:]
    assert rider.rides and store.box.is_rolled
    generator = np.random.default_rng(0)
    arrays = [generator.integers(-2, 3, slot.size).astype(float) for slot in kernel.slots]
    values = [x.astype(np.float32) for x in arrays]
    interpret_tile.interpret(tiles_of(kernel), values)
    raw = [bits(x, slot.dtype) for x, slot in zip(arrays, kernel.slots, strict=True)]
    interpret_program.interpret(program_of(tiles_of(kernel)), raw)
    want = np.tanh(arrays[3] * 0.25)
    np.testing.assert_allclose(values[4], want, rtol=2**-8)
    np.testing.assert_allclose((raw[4].astype(np.uint32) << 16).view(np.float32), want, rtol=2**-8)
    product = (arrays[0].reshape(m, 72) @ arrays[1].reshape(n, 72).T).reshape(-1)
    found = (raw[2].astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(found, product * want, rtol=2**-7)
    source = render(program_of(contract_cuda.build(kernel, H200), H200))
    assert source.count("quick_exp2(v") == 8 and "Vector<bfloat16, 8>*)(s4" in source


def with_gelu_gradient(kernel):
    """Multiply the rounded product by a function of another array of its shape."""
    (part,) = kernel.parts
    hero, end = part.computes
    rounded = Expr("cast", (Expr("ref", (), 0, float32),), None, bfloat16)
    other = Expr("cast", (Expr("load", (), (3, end.store[1]), bfloat16),), None, float32)
    quarter = Expr("mul", (other, Expr("const", (), 0.25, float32)), None, float32)
    factor = Expr("tanh", (quarter,), None, float32)
    wide = Expr("cast", (rounded,), None, float32)
    body = Expr("cast", (Expr("mul", (wide, factor), None, float32),), None, bfloat16)
    computes = hero, dataclasses.replace(end, body=body)
    slots = (*kernel.slots, Slot(bfloat16, kernel.slots[2].size, "in"))
    parts = (dataclasses.replace(part, computes=computes),)
    return dataclasses.replace(kernel, slots=slots, parts=parts)


@pytest.mark.parametrize("is_rounded, dtype", [(False, bfloat16), (True, float32)])
def test_a_dear_function_is_computed_where_the_exact_product_is(is_rounded, dtype):
    kernel = matmul_kernel(200, 200, 72, bfloat16, b="nk", out_dtype=dtype)
    (part,) = kernel.parts
    hero, end = part.computes
    product = Expr("ref", (), 0, float32)
    if is_rounded:
        product = Expr("cast", (Expr("cast", (product,), None, bfloat16),), None, float32)
    body = Expr("cast", (Expr("exp", (product,), None, float32),), None, dtype)
    parts = (dataclasses.replace(part, computes=(hero, dataclasses.replace(end, body=body))),)
    for block in ((128, 128), (64, 128)):  # the slots of the latter are as many as its pieces
        tiles = tiles_of(dataclasses.replace(kernel, parts=parts), block)
        assert not tiles.parts[0].steps[0].body[-1].box.is_rolled
        program_of(tiles)


def test_rolled_stores_are_of_whole_pieces():
    """An output may leave in boxes of rows that end between two pieces of 16 bytes."""
    schedule = contract_tma.SCHEDULES[1].with_slots()
    rounded = Expr("cast", (Expr("tile", (), ("acc", ()), float32),), None, bfloat16)
    wide = Expr("cast", (rounded,), None, float32)
    expr = Expr("cast", (Expr("tanh", (wide,), None, float32),), None, bfloat16)
    for columns, is_whole in ((200, True), (203, False)):
        contraction = SimpleNamespace(sizes=(1, 200, columns, 72))
        assert contract_tma.is_rolled(contraction, expr, schedule) == is_whole


def test_an_array_becomes_dimensions_of_a_map():
    kernel = matmul_kernel(128, 256, 64, bfloat16, b="nk", batch=3)
    (part,) = kernel.parts
    z, m, _ = part.computes[0].axes
    (k,) = part.computes[0].reduce
    whole = axis_index(z) * 8192 + axis_index(m) * 64 + axis_index(k)
    view = boxes.view_of(whole, (k,), (m,), (z,), 2)
    assert (view.offset, view.sizes, view.strides, view.wide) == (0, (64, 128, 3), (64, 8192), (z,))
    for place in (whole + 1, whole + axis_index(k), axis_index(m) * 64 + axis_index(k) // 2):
        assert boxes.view_of(place, (k,), (m,), (z,), 2) is None
    assert boxes.chain(axis_index(m) * 64 + axis_index(k), (m, k)) == 1
    assert boxes.chain(axis_index(m) * 65 + axis_index(k), (m, k)) is None


def test_rows_of_several_arrays_are_several_products():
    """Heads of 100 places are no whole tiles: what is beyond them is neither read nor stored."""
    generator = np.random.default_rng(0)
    x, w = generator.normal(size=(2, 3, 100, 64)), generator.normal(size=(2, 64, 72))
    heads, weight = (Tensor(each).bfloat16().realize() for each in (x, w))
    made = heads.node.contract(weight.node, ((3, 0, 1, 4), (3, 4, 2), (0, 1, 2)))
    (kernel,) = schedule([made], TWO).kernels
    tiles = contract_cuda.build(kernel, TWO)
    assert isinstance(tiles.parts[0].steps[0], boxes.Persistent)
    rounded = [each.float().numpy() for each in (heads, weight)]
    values = [*(each.ravel() for each in rounded), np.full(made.size, np.nan, np.float32)]
    interpret_tile.interpret(tiles, values)
    want = np.einsum("hbtd,hdn->btn", *rounded)
    np.testing.assert_allclose(values[2].reshape(want.shape), want, rtol=8e-3, atol=1e-2)


def test_blocks_are_as_many_as_processors():
    assert tiles_of(matmul_kernel(512, 512, 64, bfloat16)).parts[0].grid[0].size == 2
    assert tiles_of(matmul_kernel(64, 64, 64, bfloat16)).parts[0].grid[0].size == 1
    assert TWO.multiprocessors == 2


TWINS = {
    "columns of weights": ((128, 128), 1, dict(m=200, n=136, k=136, dtype=bfloat16, b="nk")),
    "rows of weights, products stored": (
        (128, 256),
        1,
        dict(m=136, n=136, k=328, dtype=bfloat16, is_kept=True),
    ),
    "two fragments": ((256, 128), 1, dict(m=300, n=136, k=72, dtype=float16, b="nk")),
    "one team, turned": ((64, 128), 1, dict(m=104, n=200, k=72, dtype=float16, a="km")),
    "clusters": ((64, 128), 2, dict(m=300, n=136, k=136, dtype=bfloat16, b="nk")),
    "clusters, rows of weights": ((128, 256), 2, dict(m=264, n=264, k=72, dtype=float16)),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_tile_has_columns_of_a_product_and_of_its_twin(name):
    block, together, case = TWINS[name]
    found = [*twin_products.results(case, TWO, block, together)]
    assert len(found) == (3 if case.get("is_kept") else 1)
    for want, tile, program in found:
        limit = TOLERANCE[case["dtype"].name] * np.abs(want).max()
        assert np.abs(tile - want).max() < limit
        assert np.abs(program - want).max() < limit


def test_blocks_share_tiles_of_twins():
    """Three tiles for two blocks."""
    case = dict(m=128, n=192, k=328, dtype=bfloat16, b="nk", is_kept=True)
    for want, tile, program in twin_products.results(case, TWO, (128, 128), is_shared=True):
        limit = TOLERANCE["bfloat16"] * np.abs(want).max()
        assert np.abs(tile - want).max() < limit
        assert np.abs(program - want).max() < limit


def test_the_boxes_of_twins_fill_one_stage():
    kernel = twin_products.gated_kernel(2048, 1024, 256, bfloat16, b="nk")
    part = contract_cuda.build(kernel, H200).parts[0]
    acc, _, b, *_ = part.tiles
    assert b.shape == (acc.shape[1], 64)
    _, first, second = part.steps[0].body[1].produce
    assert (first.tile, first.start) == ("b", 0)
    assert (second.tile, second.start) == ("b", b.shape[0] // 2 * 64)


def test_twins_that_no_boxes_bring_are_multiplied_without_tensor_cores():
    kernel = twin_products.gated_kernel(100, 135, 71, bfloat16, b="nk")
    part = contract_cuda.build(kernel, TWO).parts[0]
    assert isinstance(part.steps[0].schedule, SimtSchedule)
