"""The template of reductions: of columns and of whole arrays, in blocks of threads."""

from dataclasses import replace

import numpy as np
import plain_nodes
import pytest
from cases import guard, kernel, load
from cuda_tools import source_of
from template_cases import check, check_no_spills, library, names

from picograd.buffer import Buffer, Storage
from picograd.codegen.interpret_program import interpret
from picograd.codegen.interpret_tile import interpret as interpret_tile
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.program import verify as verify_program
from picograd.codegen.templates.reduce import build
from picograd.codegen.tile import TileKernel, format_tiles, verify
from picograd.conversion import from_bits, to_bits
from picograd.dtype import DType, bfloat16, float32
from picograd.graph import build as build_graph
from picograd.graph.node import Node
from picograd.schedule.index import Axis, axis_index, constant
from picograd.schedule.loop import Compute, Expr, Part
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target


@pytest.mark.parametrize("name", names("column", "total", "streamed"))
def test_values_on_cuda(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", ["column_split", "column_narrow", "total_split"])
def test_nothing_spills(name: str) -> None:
    check_no_spills(name)


def test_what_a_column_reads_once_is_read_before_its_rows() -> None:
    """And both sums run in one loop, all of whose threads have elements."""
    _, tiles, _ = library()
    source = source_of(tiles["column_narrow"])[0]
    before, loop = source[source.index("__global__") :].split("for (", 1)
    assert before.count("(s1 +") == 1 and loop.count("(s1 +") == 0
    assert before.count("(s0 +") == 0 and loop.count("(s0 +") == 1
    text = format_tiles(tiles["column_narrow"])
    assert "threads (2,) x vector (4,), first fastest" in text


@pytest.mark.parametrize("rows, length, blocks", [(4096, 64, 256), (4096, 400, 512), (80, 64, 10)])
def test_short_rows_share_a_block(rows: int, length: int, blocks: int) -> None:
    """As many as have threads, if there are many; others have a warp each."""
    row, place = Axis("r", rows), Axis("c", length)
    body = load(0, float32, axis_index(row) * length + axis_index(place))
    total = Compute((row,), (place,), "sum", body, float32, (1, axis_index(row)))
    slots = [(float32, rows * length, "in"), (float32, rows, "out")]
    sums = kernel("sums", "reduce.row", slots, Part((row,), (total,)))
    tiles = build(sums, cuda_target("sm_90a", multiprocessors=8))
    assert tiles.parts[0].blocks == blocks


def test_short_columns_are_reduced_by_a_thread_each() -> None:
    """Four parts of many numbers, as of the gradient of a weight: no thread waits for rows."""
    part, place = Axis("part", 4), Axis("place", 100_000)
    index = axis_index(part) * 100_000 + axis_index(place)
    body = Expr("load", (), (0, index), float32)
    store = 1, axis_index(place)
    rows = (place,)
    total = Compute(rows, (part,), "sum", body, float32, store)
    slots = [(float32, 400_000, "in"), (float32, 100_000, "out")]
    parts = kernel("parts", "reduce.col", slots, Part(rows, (total,)))
    tiles = verify(build(parts, cuda_target("sm_90a", 132)))
    assert tiles.parts[0].tiles[0].layout.threads == (256, 1)
    longer = replace(total, reduce=(Axis("part", 64),))
    many = kernel("many", "reduce.col", slots, Part(rows, (longer,)))
    assert build(many, cuda_target("sm_90a", 132)).parts[0].tiles[0].layout.threads == (32,)


def test_sums_that_walk_side_by_side_are_those_of_all_rows() -> None:
    gpu = cuda_target("sm_90a", 2)
    x = plain_nodes.buffer(Storage(Buffer("cpu", float32, 4096 * 128, 0)), (4096, 128))
    tiles = long_rows(x.reduce("sum", (0,)), gpu)
    (split,) = (axis for axis in tiles.parts[0].grid if axis.name == "split")
    assert split.size > 1 and 4096 % split.size == 0
    values = np.random.default_rng(0).standard_normal((4096, 128)).astype(np.float32)
    given = [values.ravel(), np.full(128, np.nan, np.float32)]
    interpret(linearize(tiles, gpu), given)
    np.testing.assert_allclose(given[1], values.sum(0, dtype=np.float64), 1e-4, 1e-4)


def test_sums_over_images_and_rows_are_cut_along_both() -> None:
    """Guards keep the axes of images apart: 16 images are too few blocks."""
    image, row, column = Axis("image", 16), Axis("row", 56), Axis("column", 56)
    channel = Axis("channel", 128)
    place = axis_index(image) * 56 + axis_index(row)
    index = (place * 56 + axis_index(column)) * 128 + axis_index(channel)
    near = guard(load(0, float32, index - 128 * 56), 0.0, (axis_index(row) - 1, 0, 54))
    store = 1, axis_index(channel)
    total = Compute((channel,), (image, row, column), "sum", near, float32, store)
    slots = [(float32, 16 * 56 * 56 * 128, "in"), (float32, 128, "out")]
    sums = kernel("sums", "reduce.col", slots, Part((channel,), (total,)))
    (part,) = verify(build(sums, cuda_target("sm_90a", 132))).parts
    assert [axis.size for axis in part.grid] == [4, 16 * 8], "tiles of 32 channels"


def long_rows(value: Node, target: Target) -> TileKernel:
    """The kernel of a value of rows."""
    (found,) = schedule([value], target).kernels
    return verify(build(found, target))


def test_what_is_summed_and_stored_is_computed_once_and_by_blocks_that_run_at_once() -> None:
    """The values of the images' channels are read before, for the sums and for the store."""

    def leaf(*shape: int, dtype: DType = float32) -> Node:
        size = int(np.prod(shape))
        return Node("buffer", (), Storage(Buffer("cuda", dtype, size, 4096)), shape, dtype, "cuda")

    x, g = (leaf(64, 3136, 96, dtype=bfloat16).cast(float32) for _ in range(2))
    scale = build_graph.expand(leaf(64, 1, 96), x.shape)
    part = (g * build_graph.unary("sigmoid", x * scale)).cast(bfloat16)
    wide = part.cast(float32)
    sums = wide.reduce("sum", (0, 1)), (wide * x).reduce("sum", (0, 1))
    (found,) = schedule([part, *sums], cuda_target("sm_90a")).kernels
    tiles = build(found, cuda_target("sm_90a"))
    assert tiles.parts[0].blocks == 384  # of 396 places; 448, evenly, would take two turns
    source = source_of(tiles)[0]
    assert source[source.index("__global__") :].count("{quick_exp2(") == 1


def test_blocks_hold_long_rows_that_they_read_again() -> None:
    """Those of 16 bits that are only reduced stay in the cache; short ones take few threads."""
    gpu = cuda_target("sm_80", 132)
    for dtype, length, softmax, total in (
        (float32, 8192, 256, 256),
        (float32, 40000, 1024, 1024),
        (bfloat16, 40000, 1024, 256),
        (float32, 100_000, 256, 256),  # no threads hold these
    ):
        x = plain_nodes.buffer(Storage(Buffer("cpu", dtype, 256 * length, 0)), (256, length))
        wide = x.cast(float32)
        assert long_rows(build_graph.softmax(wide, 1), gpu).threads == softmax
        assert long_rows(build_graph.logsumexp(wide, 1), gpu).threads == total


@pytest.mark.parametrize("dtype", [float32, bfloat16])
def test_shared_memory_keeps_rows_of_16_bits_beside_others(dtype: DType) -> None:
    """They are read from memory once, and computed again from what each thread has read."""
    gpu, length = cuda_target("sm_80", 2), 33001
    x, y = (
        plain_nodes.buffer(Storage(Buffer("cpu", dtype, 2 * length, 0)), (2, length))
        for _ in range(2)
    )
    tiles = long_rows(build_graph.softmax(x.cast(float32), 1) * y.cast(float32), gpu)
    kept = [tile for tile in tiles.parts[0].tiles if tile.space == "shared"]
    is_narrow = dtype is bfloat16
    main = length - 5  # in vectors of 4, wherever a row begins
    assert [(tile.shape, tile.dtype) for tile in kept] == [((1, main), dtype)] * is_narrow
    assert (tiles.threads, tiles.together) == (1024, int(is_narrow))
    rng = np.random.default_rng(0)
    values = [rng.standard_normal((2, length)).astype(np.float32) for _ in range(2)]
    given = [to_bits(each.ravel(), dtype) for each in values]
    given.append(np.full(2 * length, np.nan, np.float32))
    interpret(linearize(tiles, gpu), given)
    wide = [from_bits(each, dtype).reshape(2, length).astype(np.float64) for each in given[:2]]
    powers = np.exp(wide[0])
    expected = powers / powers.sum(1, keepdims=True) * wide[1]
    np.testing.assert_allclose(given[2].reshape(2, length), expected, 3e-6, 1e-12)


@pytest.mark.parametrize(
    "dtype, length, blocks, threads",
    [
        (float32, 60000, 8, 256),
        (float32, 131073, 8, 1024),
        (bfloat16, 33001, 4, 256),
        (bfloat16, 131072, 8, 256),
    ],
)
def test_blocks_of_a_cluster_share_a_long_row(
    dtype: DType, length: int, blocks: int, threads: int
) -> None:
    """Each has a part of it, and is told of the others' maxima and sums."""
    gpu = cuda_target("sm_90a", 2)
    x = plain_nodes.buffer(Storage(Buffer("cpu", dtype, 2 * length, 0)), (2, length))
    tiles = long_rows(build_graph.softmax(x, 1), gpu)
    program = verify_program(linearize(tiles, gpu))
    assert (tiles.cluster, program.tasks, program.threads) == (blocks, 2 * blocks, threads)
    ops = [instr.op for instr in program.instructions]
    assert ops.count("store_near") >= 2 and ops.count("cluster_wait") == 3
    values = np.random.default_rng(0).standard_normal((2, length)).astype(np.float32)
    given = [to_bits(values.ravel(), dtype), to_bits(np.full(2 * length, np.nan), dtype)]
    interpret(program, given)
    powers = np.exp(from_bits(given[0], dtype).astype(np.float64).reshape(2, length))
    found = from_bits(given[1], dtype).reshape(2, length)
    tolerance = 3e-6 if dtype is float32 else 5e-3
    np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), tolerance)


def test_rows_that_clusters_do_not_share() -> None:
    """Those that a block holds, those too long for a cluster, and what is only reduced."""
    gpu = cuda_target("sm_90a", 2)
    for dtype, length, is_shared in (
        (float32, 50000, False),
        (float32, 60000, True),
        (float32, 262_144, True),
        (float32, 262_152, False),
        (bfloat16, 32768, False),
        (bfloat16, 32776, True),
    ):
        x = plain_nodes.buffer(Storage(Buffer("cpu", dtype, 2 * length, 0)), (2, length))
        assert (long_rows(build_graph.softmax(x, 1), gpu).cluster > 1) == is_shared
        assert long_rows(build_graph.logsumexp(x, 1), gpu).cluster == 1


def test_a_row_of_many_threads() -> None:
    gpu = cuda_target("sm_80", 2)
    x = plain_nodes.buffer(Storage(Buffer("cpu", float32, 2 * 17000, 0)), (2, 17000))
    tiles = long_rows(build_graph.softmax(x, 1), gpu)
    assert tiles.threads == 1024
    assert any(tile.shape == (1, 17000) for tile in tiles.parts[0].tiles)  # exponentials are kept
    values = np.random.default_rng(0).standard_normal((2, 17000)).astype(np.float32)
    given = [values.ravel().copy(), np.full(values.size, np.nan, np.float32)]
    interpret(linearize(tiles, gpu), given)
    powers = np.exp(values.astype(np.float64))
    expected = powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(given[1].reshape(values.shape), expected, 3e-6)


def test_a_sum_of_few_images_in_two_orders_is_cut_along_two_axes() -> None:
    image, place, channel = Axis("image", 4), Axis("place", 3136), Axis("channel", 64)
    count = 4 * 3136 * 64
    first = axis_index(image) * 3136 * 64
    last = load(0, float32, first + axis_index(place) * 64 + axis_index(channel))
    other = load(1, float32, first + axis_index(channel) * 3136 + axis_index(place))
    body = Expr("mul", (last, other), None, float32)
    total = Compute((), (image, place, channel), "sum", body, float32, (2, constant(0)))
    slots = [(float32, count, "in"), (float32, count, "in"), (float32, 1, "out")]
    tiles = verify(
        build(kernel("sum", "reduce.all", slots, Part((), (total,))), cuda_target("sm_90a", 132))
    )
    assert tiles.parts[0].blocks > 132, "four images alone would be four blocks"
    a, b = np.random.default_rng(0).random((2, 4, 3136, 64), np.float32)
    found = [a.ravel(), b.transpose(0, 2, 1).ravel(), np.full(1, np.nan, np.float32)]
    interpret_tile(tiles, found, [])
    np.testing.assert_allclose(found[2], np.sum(a * b, dtype=np.float64), 1e-5)
