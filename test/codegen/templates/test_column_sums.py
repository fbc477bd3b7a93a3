"""Rows and sums over all of them in one kernel: values by both interpreters, and the text."""

from dataclasses import replace

import numpy as np
import plain_nodes
import pytest
from cuda_tools import compile_cuda, from_raw, source_of, to_raw

from picograd.buffer import Buffer, Storage
from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import tile
from picograd.codegen.templates import reduce
from picograd.codegen.templates.column_sums import block_threads
from picograd.codegen.tile import verify
from picograd.dtype import DType, bfloat16, float32
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule import column_sums as joining
from picograd.schedule.loop import Expr, Kernel, Part, rewrite
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target

EIGHT_THOUSAND = Storage(Buffer("cpu", float32, 8192, 0))
TWO = cuda_target("sm_90a", 2)  # few processors: each walks several rows


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    """Small arrays are not worth it."""
    monkeypatch.setattr(joining, "takes_column_sums", lambda *known: True)


def norm_gradients(shape: tuple[int, ...], dtype: DType, target: Target = TWO) -> Kernel:
    """The gradients of a norm by x, its weight and its bias; reads g, the weight and x."""
    size = int(np.prod(shape))
    x, g = (plain_nodes.buffer(Storage(Buffer("cpu", dtype, size, 0)), shape) for _ in range(2))
    w, b = (
        plain_nodes.buffer(Storage(Buffer("cpu", dtype, shape[-1], 0)), shape[-1:])
        for _ in range(2)
    )
    out = build.layer_norm(x, 1, w, b, 1e-5)
    (kernel,) = schedule(list(gradient([(out, g)], [x, w, b])), target).kernels
    return kernel


def wanted(g, w, x, width):
    """The same in float64."""
    g, x = g.reshape(-1, width), x.reshape(-1, width)
    centred = x - x.mean(1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    plain, gw = centred * scale, g * w
    for_x = gw - gw.mean(1, keepdims=True) - plain * (gw * plain).mean(1, keepdims=True)
    return (for_x * scale).ravel(), (g * plain).sum(0), g.sum(0)


@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=repr)
@pytest.mark.parametrize("shape", [(67, 40), (5, 8), (9, 1100), (64, 256)])
def test_values(shape, dtype):
    kernel = norm_gradients(shape, dtype)
    tiles = verify(tile(kernel, TWO))
    assert len(tiles.parts[0].ahead) == 1
    generator = np.random.default_rng(0)
    given = [
        from_raw(to_raw(generator.standard_normal(slot.size), dtype), dtype)
        if slot.role == "in"
        else np.full(slot.size, np.nan, np.float32)
        for slot in kernel.slots
    ]
    programs = [to_raw(each, dtype) for each in given]
    interpret_program.interpret(linearize(tiles, TWO), programs)
    wide = [np.asarray(each, np.float64) for each in given[:3]]
    interpret_tile.interpret(tiles, given, (), is_reversed=True)
    tolerance = 1e-5 if dtype is float32 else 5e-3
    for number, right in enumerate(wanted(*wide, shape[-1]), 3):
        for found in (given[number], from_raw(programs[number], dtype)):
            off = np.linalg.norm(np.asarray(found, np.float64) - right)
            assert off < tolerance * np.linalg.norm(right)


@pytest.mark.parametrize(
    ("dtype", "width", "bounds"),
    [
        (float32, 4096, "256, 2"),
        (bfloat16, 4096, "128, 3"),
        (float32, 768, "128, 3"),
        (bfloat16, 768, "128, 3"),
    ],
    ids=repr,
)
def test_few_threads_hold_a_row_and_its_sums(dtype, width, bounds):
    """Rows of 768 were for 64 threads, those of 4096 16-bit floats for 256."""
    kernel = norm_gradients((16384, width), dtype, cuda_target("sm_90a"))
    text, _ = source_of(tile(kernel, cuda_target("sm_90a")))
    assert f"__launch_bounds__({bounds})" in text
    _, log = compile_cuda(text, "sm_90a")
    assert " 0 bytes spill stores" in log


def test_sums_of_columns_beside_them_have_the_threads_of_the_block():
    """A part of another launch that joins is of 256 threads only where all are."""
    small = plain_nodes.buffer(Storage(Buffer("cpu", float32, 8 * 32 * 12, 0)), (8, 32, 12))
    (columns,) = schedule([small.reduce("sum", (1,))], TWO).kernels
    kernel = norm_gradients((4096, 768), float32)
    threads = block_threads(kernel)
    assert threads == 128
    made = reduce.threads_for(kernel, columns.parts[0], TWO, columns.parts[0].rows, True)
    assert made is not None and threads % made.layout().thread_count == 0
    assert made.inner * made.threads[-1] == threads


def doubled(x: Node) -> Node:
    return x + x


def of_short_columns(x: Node) -> Node:
    return build.reshape(x, (1024, 2, 4)).reduce("sum", (1,)) + 0.0


@pytest.mark.parametrize(("beside", "threads"), [(doubled, 256), (of_short_columns, 128)])
def test_parts_beside_them_have_the_threads_of_the_launch(beside, threads):
    """Blocks of sums are smaller than those of maps, which share the launch."""
    alone = norm_gradients((67, 40), float32)
    (other,) = schedule([beside(plain_nodes.buffer(EIGHT_THOUSAND, (8192,)))], TWO).kernels
    moved = tuple(moved_part(part, len(alone.slots)) for part in other.parts)
    slots, parts = (*alone.slots, *other.slots), (*alone.parts, *moved)
    both = replace(alone, slots=slots, parts=parts)
    tiles = verify(tile(both, TWO))
    given = [np.ones(slot.size, np.float32) for slot in slots]
    interpret_tile.interpret(tiles, given)
    assert block_threads(alone) == 128
    assert linearize(tiles, TWO).threads == block_threads(both) == threads
    assert (given[-1] == 2).all()


def moved_part(part: Part, by: int) -> Part:
    """Count the slots of a part from another place."""

    def moved(expr: Expr) -> Expr | None:
        if expr.op != "load":
            return None
        return Expr("load", (), (expr.arg[0] + by, expr.arg[1]), expr.dtype)

    computes = [
        replace(c, body=rewrite(c.body, {}, moved), store=(c.store[0] + by, c.store[1]))
        for c in part.computes
    ]
    return replace(part, computes=tuple(computes))
