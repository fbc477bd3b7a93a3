"""Few rows on Hopper: blocks share the places of a stream; grouped heads, lengths in memory."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from attention_forms import repeated
from cuda_tools import compile_cuda, disassemble
from plan_support import VALUES, leaf

from picograd.buffer import Storage
from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.boxes import Pipeline
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.program import verify as verify_program
from picograd.codegen.render.cuda import render
from picograd.codegen.streams import analyse
from picograd.codegen.templates import attention_cuda
from picograd.codegen.templates.attention_frame import SPAN, Schedule
from picograd.codegen.templates.attention_splits import REGISTERS, shared_out, split_count
from picograd.codegen.tile import LastBlock, format_tiles, verify
from picograd.conversion import from_bits, to_bits
from picograd.dtype import bfloat16, int64
from picograd.graph import build
from picograd.graph.interpret import interpret
from picograd.graph.node import Node
from picograd.schedule.index import Axis
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

FEW = cuda_target("sm_90a", multiprocessors=6)
PRODUCT, WEIGHTED = ((0, 1, 2, 3), (0, 1, 4, 3), (0, 1, 2, 4)), ((0, 1, 2, 4), (0, 1, 4, 3))


def decoded(q, k, v, length=None):
    """Attend from the last rows of `length` places; a length is one number, or one a batch."""
    copies = q.shape[1] // k.shape[1]
    k, v = repeated(k, copies), repeated(v, copies)
    s = q.contract(k, PRODUCT) * 0.1
    if length is None:
        return build.softmax(s, 3).contract(v, (*WEIGHTED, (0, 1, 2, 3)))
    wide = length.reshape((length.shape[0], 1, 1, 1)).expand(s.shape)
    seen = s.iota(3).binary("less", wide + s.iota(2) - (s.shape[2] - 1))
    weights = seen.where(build.softmax(seen.where(s, -math.inf), 3), 0)
    return weights.contract(v, (*WEIGHTED, (0, 1, 2, 3)))


def plan_of(q, k, v, lengths=None, target=FEW):
    """Schedule attention of three shapes."""
    np.random.seed(0)
    leaves = [leaf(*shape, dtype=bfloat16) for shape in (q, k, v)]
    for node in leaves:
        VALUES[node] = from_bits(to_bits(VALUES[node], bfloat16), bfloat16)
    length = None
    if lengths is not None:
        length = leaf(len(lengths), dtype=int64, below=2)
        VALUES[length] = np.array(lengths)
    output = decoded(*leaves, length)
    return schedule([output], target), output


def run(kernel, arrays, is_reversed=False):
    """Run the kernel by both interpreters."""
    for values in run_all(kernel, [*arrays, None], is_reversed):
        yield values[-1]


def run_all(kernel, arrays, is_reversed=False):
    """Run the kernel by both interpreters; an array that is None is a result."""
    tiles, slots = verify(attention_cuda.build(kernel, FEW)), kernel.slots
    given = list(zip(arrays, slots, strict=True))
    values = [np.full(slot.size, np.nan, np.float32) if x is None else x for x, slot in given]
    interpret_tile.interpret(tiles, values, is_reversed=is_reversed)
    yield values
    program = verify_program(linearize(tiles, FEW))
    raw = [to_bits(value, slot.dtype) for value, slot in zip(values, slots, strict=True)]
    interpret_program.interpret(program, raw)
    yield [from_bits(value, slot.dtype) for value, slot in zip(raw, slots, strict=True)]


@pytest.mark.parametrize(
    "q, k, lengths",
    [
        ((1, 4, 1, 64), (1, 2, 500, 64), None),
        ((2, 2, 5, 128), (2, 1, 300, 128), None),
        ((1, 2, 3, 64), (1, 2, 400, 64), [290]),
        ((2, 2, 1, 64), (2, 1, 400, 64), [1, 300]),
        ((2, 1, 2, 64), (2, 1, 100, 64), [100, 1]),  # one block
        ((1, 1, 1, 64), (1, 1, 300, 64), [1 << 40]),
        ((1, 1, 1, 64), (1, 1, 300, 64), [-(1 << 40)]),
    ],
)
def test_values(q, k, lengths):
    plan, output = plan_of(q, k, k, lengths)
    (kernel,) = plan.kernels
    (wanted,) = interpret([output], values=VALUES)
    arrays = [np.array(VALUES[node]).reshape(-1) for node in plan.inputs]
    for found in run(kernel, arrays):
        missed = np.linalg.norm(found.reshape(wanted.shape) - wanted)
        assert missed <= 0.015 * np.linalg.norm(wanted)


@pytest.mark.parametrize("groups, rows, width", [(1, 130, 64), (2, 150, 128), (1, 3, 128)])
def test_splits_leave_tiles_of_rows_and_what_rows_have(groups, rows, width, monkeypatch):
    """Maxima and totals are stored too, as gradients want them."""
    own = Schedule(groups, SPAN * width // 64, REGISTERS[groups])
    monkeypatch.setattr(attention_cuda, "schedules", lambda stream, target: [own])
    monkeypatch.setattr(
        attention_cuda, "shared_out", lambda stream, each, _: replace(each, splits=2)
    )
    np.random.seed(0)
    q, k, v = leaves = [leaf(1, 2, size, width, dtype=bfloat16) for size in (rows, 300, 300)]
    for node in leaves:
        VALUES[node] = from_bits(to_bits(VALUES[node], bfloat16), bfloat16)
    s = q.contract(k, PRODUCT) * 0.1
    peak = s.reduce("max", (3,), True)
    powers = (s - peak.expand(s.shape)).unary("exp")
    total = powers.reduce("sum", (3,), True)
    weights = powers / total.expand(s.shape)
    roots = [weights.contract(v, (*WEIGHTED, (0, 1, 2, 3))), peak, total]
    plan = schedule(roots, FEW)
    (step,) = plan.steps
    inputs = dict(zip((n for n, x in enumerate(plan.slots) if x.kind == "input"), plan.inputs))
    arrays = [np.ravel(VALUES[inputs[n]]) if n in inputs else None for n in step.slots]
    results = dict(zip(plan.outputs, interpret(roots, values=VALUES), strict=True))
    for values in run_all(step.kernel, arrays):
        for number, value in zip(step.slots, values, strict=True):
            wanted = results.get(number, np.zeros(0))
            missed = np.linalg.norm(value.reshape(wanted.shape) - wanted) if wanted.size else 0
            assert missed <= 0.015 * np.linalg.norm(wanted)


def test_splits_are_added_up_in_their_order():
    plan, _ = plan_of((1, 2, 3, 64), (1, 1, 700, 64), (1, 1, 700, 64))
    (kernel,) = plan.kernels
    arrays = [np.array(VALUES[node]).reshape(-1) for node in plan.inputs]
    first, second = (next(run(kernel, arrays, is_reversed)) for is_reversed in (False, True))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("queries, width, lines", [(4, 128, 4), (5, 128, 8), (4, 64, 8)])
def test_no_more_lines_are_added_up_than_threads_have(queries, width, lines):
    """Four rows of wide heads take all threads: of eight lines half would be nobody's."""
    plan, _ = plan_of((1, queries, 1, width), (1, 1, 700, width), (1, 1, 700, width))
    (part,) = attention_cuda.build(plan.kernels[0], FEW).parts
    found = [tile.shape[2] for tile in part.tiles if tile.name.startswith("left")]
    assert found and set(found) == {lines}


def test_blocks_behind_a_length_are_not_brought():
    """Values there are NaN: they would be multiplied by weights of 0."""
    plan, output = plan_of((1, 2, 1, 64), (1, 1, 700, 64), (1, 1, 700, 64), [130])
    (kernel,) = plan.kernels
    (wanted,) = interpret([output], values=VALUES)
    for node in plan.inputs:
        if node.shape == (1, 1, 700, 64):
            VALUES[node][:, :, 256:] = np.nan
    arrays = [np.array(VALUES[node]).reshape(-1) for node in plan.inputs]
    for found in run(kernel, arrays):
        missed = np.linalg.norm(found.reshape(wanted.shape) - wanted)
        assert missed < 0.015 * np.linalg.norm(wanted)


def test_a_part_of_every_processor_is_used():
    target = cuda_target("sm_90a", multiprocessors=132)
    for heads, length, least in ((8, 32768, 16), (64, 32768, 2), (512, 32768, 1), (8, 128, 1)):
        shapes = (1, heads, 1, 64), *((1, heads, length, 64),) * 2
        leaves = [Node("buffer", (), Storage(None), shape, bfloat16, "cpu") for shape in shapes]
        (kernel,) = schedule([decoded(*leaves)], target).kernels
        stream = analyse(kernel, kernel.parts[0])
        assert split_count(stream, Schedule(1, 128, (0, 0)), target) == least
        if heads == 512:  # five splits would take 3 % less, but for what reads apart cost
            more = replace(stream, batch=(Axis("heads", 1024),))
            assert split_count(more, Schedule(1, 64, (0, 0)), target) == 1


@pytest.mark.parametrize(
    "heads, length, width, chosen",
    [
        (8, 4096, 128, (64, 2)),  # places of a block, blocks of a processor
        (8, 8192, 128, (128, 1)),  # a block has 512 places
        (200, 1024, 128, (128, 1)),  # no splits
        (8, 4096, 64, (64, 1)),
    ],
)
def test_blocks_are_small_where_splits_have_few_places(heads, length, width, chosen):
    shapes = (1, heads, 1, width), *((1, heads, length, width),) * 2
    leaves = [Node("buffer", (), Storage(None), shape, bfloat16, "cpu") for shape in shapes]
    target = cuda_target("sm_90a", multiprocessors=132)
    (kernel,) = schedule([decoded(*leaves)], target).kernels
    first = next(attention_cuda.schedules(analyse(kernel, kernel.parts[0]), target))
    assert (first.size, first.blocks) == chosen


@pytest.mark.parametrize(
    "heads, rows, length, width, chosen",
    [
        (1, 4096, 4096, 64, (2, 4)),  # warpgroups and splits
        (2, 2048, 2048, 128, (1, 2)),
        (8, 1024, 1024, 64, (1, 1)),
        (4, 4096, 4096, 64, (2, 1)),
        (1, 256, 32768, 128, (1, 12)),  # part of a prompt behind a cache: one block adds up
        (64, 4096, 4096, 64, (3, 1)),  # as where all processors are busy
    ],
)
def test_tiles_that_leave_processors_idle_are_shared(heads, rows, length, width, chosen):
    shapes = (1, heads, rows, width), *((1, heads, length, width),) * 2
    leaves = [Node("buffer", (), Storage(None), shape, bfloat16, "cpu") for shape in shapes]
    target = cuda_target("sm_90a", multiprocessors=132)
    (kernel,) = schedule([decoded(*leaves)], target).kernels
    stream = analyse(kernel, kernel.parts[0])
    groups = 3 if width == 64 else 2
    shared = shared_out(stream, Schedule(groups, 128, REGISTERS[groups]), target)
    assert (shared.groups, shared.splits) == chosen


@pytest.mark.parametrize("length, is_short", [(300, True), (1500, True), (2500, False)])
def test_few_blocks_compute_rows_that_there_are(length, is_short):
    plan, _ = plan_of((1, 1, 1, 64), (1, 1, length, 64), (1, 1, length, 64))
    lines = format_tiles(attention_cuda.build(plan.kernels[0], FEW)).splitlines()
    powers = [line for line in lines if "score0 [" in line and "quick_exp2" in line]
    assert powers and all(("guard(0<=row<=0" in line) == is_short for line in powers)


@pytest.mark.parametrize("depth", [64, 128])
def test_resources(depth, tmp_path):
    target = cuda_target("sm_90a")
    shapes = (1, 8, 4, depth), (1, 2, 4096, depth), (1, 2, 4096, depth)
    for lengths in (None, [3000]):
        plan, _ = plan_of(*shapes, lengths, target)
        (kernel,) = plan.kernels
        tiles = attention_cuda.build(kernel, target)
        (loop,) = tiles.parts[0].steps
        assert isinstance(loop.body[-1], LastBlock)
        (pipeline,) = [step for step in loop.body if isinstance(step, Pipeline)]
        assert pipeline.is_rotated, "scores are worked on before the values are there"
        cubin, log = compile_cuda(render(linearize(tiles, target)), "sm_90a")
        assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log), log
        assert "C75" not in log and "serialized" not in log, log
        assert "MEMBAR.SC" not in disassemble(cubin, tmp_path), "one fence, by one thread"
