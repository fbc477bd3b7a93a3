"""Gradients of attention on Hopper: values of Tile IR and of the program, resources by NVRTC."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from attention_forms import (
    LABELS,
    UNBOUND,
    WEIGHTED,
    additive,
    alibi,
    biased,
    biased_documents,
    boolean,
    causal,
    causal_twice,
    differential,
    documents,
    dropped,
    few_rows_see,
    grouped,
    grouped_beside,
    is_seen,
    latent,
    learned,
    merged_batch,
    one_more,
    plain,
    product,
    sigmoid,
    softcap,
    sunk,
    weigh,
    window,
    with_logarithms,
)
from cuda_tools import compile_cuda, disassemble
from plan_support import VALUES, leaf

from picograd import Tensor, explain
from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.program import verify as verify_program
from picograd.codegen.render.cuda import render
from picograd.codegen.stream_masks import emptied
from picograd.codegen.streams import analyse
from picograd.codegen.templates import attention_cuda, attention_frame, attention_gradient_cuda
from picograd.codegen.templates.attention_frame import SPAN, Schedule
from picograd.codegen.templates.attention_splits import REGISTERS
from picograd.codegen.tile import format_tiles, verify
from picograd.conversion import from_bits, to_bits
from picograd.dtype import bfloat16, float16
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.nn import functional
from picograd.schedule import score_ranges
from picograd.schedule.interpret import interpret as interpret_kernel
from picograd.schedule.interpret_plan import allocate
from picograd.schedule.loop import dynamics_of
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

FEW = cuda_target("sm_90a", multiprocessors=3)  # several tiles a block
FORMS = [plain, causal, causal_twice, window, additive, boolean, softcap, alibi, merged_batch]


def rounded(node):
    if node.dtype is bfloat16:
        VALUES[node] = from_bits(to_bits(VALUES[node], bfloat16), bfloat16)
    return node


def gradients_of(form, shapes, dtype=bfloat16):
    leaves = [rounded(leaf(*shape, dtype=dtype)) for shape in shapes]
    output = form(*leaves)
    found = gradient([(output, rounded(leaf(*output.shape, dtype=dtype)))], leaves)
    return [output, *(each for each in found if each is not None)]


def shapes_of(rows, columns, depth, width):
    return (1, 2, rows, depth), (1, 2, columns, depth), (1, 2, columns, width)


def streams_of(plan):
    return [step for step in plan.kernels if step.hero == "attention"]


def run_tiles(kernel, slots):
    interpret_tile.interpret(verify(attention_cuda.build(kernel, FEW)), slots)


def run_program(kernel, slots):
    """Run the program on numbers in storage format."""
    program = verify_program(linearize(attention_cuda.build(kernel, FEW), FEW))
    raw = [to_bits(value, slot.dtype) for value, slot in zip(slots, kernel.slots, strict=True)]
    interpret_program.interpret(program, raw)
    for value, bits, slot in zip(slots, raw, kernel.slots, strict=True):
        value[...] = from_bits(bits, slot.dtype)


def results(roots, run, least=3):
    """Run the attention kernels of a plan by `run`, the others as Loop IR."""
    plan = schedule(roots, FEW)
    memory = allocate(plan, [VALUES[node].copy() for node in plan.inputs])
    for array, slot in zip(memory, plan.slots, strict=True):
        if slot.kind != "input" and slot.dtype.is_float:
            array.fill(np.nan)
    for step in plan.steps:
        slots = [memory[slot] for slot in step.slots]
        is_stream = step.kernel.hero == "attention"
        (run if is_stream else interpret_kernel)(step.kernel, slots)
    assert len(streams_of(plan)) >= least, plan.reasons
    return [memory[n].reshape(plan.slots[n].shape) for n in plan.outputs]


def check(form, shapes, run, dtype=bfloat16, least=3):
    np.random.seed(0)
    roots = gradients_of(form, shapes, dtype)
    for found, wanted in zip(
        results(roots, run, least), interpret(roots, values=VALUES), strict=True
    ):
        missed = np.linalg.norm(np.float64(found) - wanted)
        assert missed < 0.02 * np.linalg.norm(wanted)  # the graph rounds scores on the way


@pytest.mark.parametrize("form", [*FORMS, with_logarithms], ids=lambda form: form.__name__)
def test_tiles_mean_what_the_graph_means(form):
    check(form, shapes_of(150, 150, 64, 64), run_tiles)


@pytest.mark.parametrize("form", UNBOUND, ids=lambda form: form.__name__)
def test_weights_without_a_total(form):
    """Blocks that a mask hides are left out: sigmoids, ReLU and its square are 0 of -inf."""
    shapes = shapes_of(150, 150, 64, 64)
    check(form, shapes, run_tiles, least=2)
    for kernel in streams_of(schedule(gradients_of(form, shapes), FEW)):
        hidden = emptied(analyse(kernel, kernel.parts[-1]))
        assert bool(hidden) == (form is not sigmoid)


@pytest.mark.parametrize("run", [run_tiles, run_program])
def test_sums_with_one_more_term(run):
    """A sink is where the maximum of a row begins; what is divided by is made of the stream's."""
    check(one_more, shapes_of(150, 150, 64, 64), run)
    check(sunk, (*shapes_of(150, 150, 64, 64), (1, 2, 1, 1)), run)


@pytest.mark.parametrize(
    "form, groups, run",
    [
        (plain, 2, run_tiles),
        (causal, 1, run_program),
        (boolean, 1, run_tiles),
        (grouped, 2, run_tiles),
    ],
)
def test_streams_that_blocks_share(form, groups, run, monkeypatch):
    """Each block takes one tile's part; the last of a tile adds up."""
    own = Schedule(groups, SPAN, REGISTERS[groups])
    monkeypatch.setattr(
        attention_cuda, "shared_out", lambda stream, each, _: replace(each, splits=2)
    )
    for module in (attention_cuda, attention_gradient_cuda):
        monkeypatch.setattr(module, "schedules", lambda stream, *target: [own])
    monkeypatch.setitem(globals(), "FEW", cuda_target("sm_90a", multiprocessors=24))
    check(form, shapes_of(100, 100, 64, 64), run)


@pytest.mark.parametrize(
    "form", [plain, causal_twice, softcap, dropped], ids=lambda form: form.__name__
)
def test_programs_mean_what_the_graph_means(form):
    check(form, shapes_of(150, 150, 64, 64), run_program)


@pytest.mark.parametrize("rows, columns, depth, width", [(40, 200, 32, 96), (300, 70, 128, 128)])
def test_sides_of_different_sizes(rows, columns, depth, width):
    check(plain, shapes_of(rows, columns, depth, width), run_tiles, float16)


@pytest.mark.parametrize("form", [causal_twice, window], ids=lambda form: form.__name__)
def test_large_blocks(form, monkeypatch):
    monkeypatch.setattr(attention_frame, "FEW_PLACES", 0)
    check(form, shapes_of(150, 150, 64, 64), run_tiles)


@pytest.mark.parametrize("run, length", [(run_tiles, 400), (run_program, 150)])
def test_documents(run, length, monkeypatch):
    """Blocks that ranges leave out are not brought: by rows forward, then by rows and places."""
    monkeypatch.setattr(score_ranges, "LEAST", 64)
    shapes = shapes_of(length, length, 64, 64)
    check(documents, shapes, run)
    plan = schedule(gradients_of(documents, shapes), FEW)
    assert sum("ranges" in kernel.name for kernel in plan.kernels) == 2
    for kernel in streams_of(plan):
        (loop,) = attention_cuda.build(kernel, FEW).parts[0].steps
        (pipeline,) = (step for step in loop.body if hasattr(step, "produce"))
        for end in (pipeline.first, pipeline.stop):
            assert end is not None and any(dynamics_of(end))


@pytest.mark.parametrize("run, length", [(run_tiles, 300), (run_program, 150)])
def test_a_mask_of_rows_alone_hides_all_of_a_row_or_nothing(run, length):
    check(few_rows_see, shapes_of(length, length, 64, 64), run)


def test_keys_that_no_row_sees():
    """Tiles of them have no stream: what is held for them is not read."""
    check(causal, shapes_of(64, 300, 64, 64), run_program)


def test_heads_that_share_keys():
    """Gradients of the keys are those of every head, and are added up behind."""
    check(grouped, ((1, 4, 150, 64), (1, 2, 150, 64), (1, 2, 150, 64)), run_tiles)


@pytest.mark.parametrize("rows, run", [(20, run_tiles), (150, run_tiles), (150, run_program)])
def test_scores_that_are_a_sum_of_products(rows, run):
    """They have one tile; keys that heads share have gradients that are added up behind."""
    shapes = (*shapes_of(rows, 150, 64, 48), (1, 2, rows, 32), (1, 150, 32))
    check(latent, shapes, run)
    for kernel in streams_of(schedule(gradients_of(latent, shapes), FEW)):
        tiles = attention_cuda.build(kernel, FEW).parts[0].tiles
        scores = [tile.name for tile in tiles if tile.name.startswith("score")]
        has_peak = any(tile.name == "greatest" for tile in tiles)
        assert len(scores) == 2 - has_peak


@pytest.mark.parametrize(
    "rows, places, run", [(40, 300, run_tiles), (150, 150, run_tiles), (150, 150, run_program)]
)
def test_softmaxes_that_share_a_stream(rows, places, run, monkeypatch):
    """Each has a peak, a total and a product; splits of few rows leave all of them."""
    if rows == 40:
        monkeypatch.setitem(globals(), "FEW", cuda_target("sm_90a", multiprocessors=24))
    first, second = (1, 2, rows, 32), (1, 2, places, 32)
    shapes = first, second, (1, 2, places, 64), first, second, (1, 1, 1, 1)
    form = partial(differential, is_masked=rows > 40)
    check(form, shapes, run)
    (kernel, *_) = streams_of(schedule(gradients_of(form, shapes), FEW))
    names = {tile.name for tile in attention_cuda.build(kernel, FEW).parts[0].tiles}
    assert any(name.startswith("left") for name in names) == (rows == 40)


@pytest.mark.parametrize("rows", [20, 70])
def test_rows_of_two_axes(rows):
    """Few rows are one tile if boxes bring them together: here they are tiles of one axis."""
    check(grouped_beside, ((1, rows, 2, 2, 64), (1, 70, 2, 64), (1, 70, 2, 64)), run_tiles)


@pytest.mark.parametrize("axes", [(1, 2, 1, 1), (1, 1, 1, 80)])
def test_sums_stream_beside_products(axes):
    """Gradients of what scales scores: of a head, of a column."""
    shapes = (1, 2, 70, 64), (1, 2, 80, 64), (1, 2, 80, 64), axes
    check(learned, shapes, run_tiles)


@pytest.mark.parametrize("run, window", [(run_tiles, 0), (run_program, 0), (run_tiles, 9)])
def test_gradients_of_a_bias_are_stored(run, window):
    """Of all places: what the mask hides is 0, also in blocks that are not brought."""
    shapes = (*shapes_of(150, 150, 64, 64), (2, 150, 150))
    check(partial(biased, window=window), shapes, run)


@pytest.mark.parametrize("run, window", [(run_tiles, 0), (run_program, 0), (run_tiles, 9)])
def test_gradients_of_a_bias_that_a_batch_shares(run, window):
    """They are stored as bfloat16 where the mask shows any, and summed behind."""
    shapes = *[(2, 1, 136, 64)] * 3, (1, 136, 136)
    check(partial(biased, window=window), shapes, run)


@pytest.mark.parametrize(
    "places, depth, expected, count",
    [
        (136, 64, True, 2),  # with the mask and without; what it hides nobody reads
        (150, 64, False, 3),  # rows do not begin at 16 bytes, nor with a run of 8
        (136, 256, False, 2),  # a box is wider than the block of the stream
    ],
)
def test_what_is_kept_leaves_in_boxes(places, depth, expected, count):
    shapes = *[(2, 1, places, depth)] * 3, (1, places, places)
    plan = schedule(gradients_of(biased, shapes), FEW)
    (kernel,) = (each for each in streams_of(plan) if each.slots[-1].size == 2 * places**2)
    text = format_tiles(attention_cuda.build(kernel, FEW))
    number = len(kernel.slots) - 1
    stores = [line for line in text.splitlines() if f" s{number}[" in line and "] = " in line]
    assert len(stores) == count
    assert {"in boxes of leaving" in each for each in stores} == {expected}


@pytest.mark.parametrize(
    "places, depth, expected",
    [(136, 64, True), (150, 64, False), (136, 128, True)],  # the last in narrower blocks
)
def test_a_bias_comes_in_boxes(places, depth, expected):
    """Rows that begin at 16 bytes: threads read its elements beside the rows of the products."""
    shapes = *[(2, 1, places, depth)] * 3, (1, places, places)
    plan = schedule(gradients_of(biased, shapes), FEW)
    texts = [format_tiles(attention_cuda.build(each, FEW)) for each in streams_of(plan)[1:]]
    assert ["tile='spread0'" in text for text in texts] == [expected] * 2


@pytest.mark.parametrize("run", [run_tiles, run_program])
@pytest.mark.parametrize("depth, scores", [(128, [2]), (136, [2, 1])])
def test_wide_gradients_are_parts_of_one_launch(depth, scores, run):
    """Registers have no room for those of keys and of values beyond 128: the latter read less."""
    shapes = [(1, 1, 72, depth)] * 3
    check(causal, shapes, run)
    plan = schedule(gradients_of(causal, shapes), FEW)
    *_, kernel = streams_of(plan)
    assert len(plan.kernels) == 3
    parts = attention_cuda.build(kernel, FEW).parts
    products = [sum(tile.name.startswith("score") for tile in part.tiles) for part in parts]
    assert products == scores


@pytest.mark.parametrize("run", [run_tiles, run_program])
def test_a_boolean_mask_comes_in_boxes(run):
    """Rows are queries, then keys: the mask is read along, then across."""
    shapes = [(1, 2, 144, 64)] * 3
    check(boolean, shapes, run)
    plan = schedule(gradients_of(boolean, shapes), FEW)
    texts = [format_tiles(attention_cuda.build(each, FEW)) for each in streams_of(plan)[1:]]
    assert all("tile='spread0'" in text for text in texts)


def test_those_who_share_a_bias_are_beside_one_another():
    plan = schedule(gradients_of(biased, (*[(2, 3, 136, 64)] * 3, (3, 136, 136))), FEW)
    for kernel in streams_of(plan):
        stream = analyse(kernel, kernel.parts[0])
        assert [axis.size for axis in stream.batch] == [2, 3]
        batch = attention_cuda.with_sharers_beside(stream).batch
        assert [axis.size for axis in batch] == [3, 2]


def test_a_bias_beside_documents(monkeypatch):
    """Ranges that are found leave out blocks of what is kept, too: it is 0 there."""
    monkeypatch.setattr(score_ranges, "LEAST", 64)
    shapes = (*shapes_of(400, 400, 64, 64), (2, 400, 400))
    check(biased_documents, shapes, run_tiles)
    plan = schedule(gradients_of(biased_documents, shapes), FEW)
    assert sum("ranges" in kernel.name for kernel in plan.kernels) == 2


def test_what_is_kept_of_hidden_places_is_computed_there():
    """Gradients of weights are what they are, where the weights are 0 too."""
    np.random.seed(0)
    q, k, v, g = (rounded(leaf(1, 2, 200, 64, dtype=bfloat16)) for _ in range(4))
    s = product(q, k) * 0.3
    weights = build.softmax(is_seen(s).where(s, -np.inf), 3)
    inner = g.contract(v, LABELS)
    slopes = weights * inner
    roots = [weigh(weights, v), inner, slopes.contract(k, WEIGHTED)]
    plan = schedule(roots, FEW)
    memory = allocate(plan, [VALUES[node].copy() for node in plan.inputs])
    for step in plan.steps:
        run_tiles(step.kernel, [memory[slot] for slot in step.slots])
    assert len(plan.steps) == 2
    for n, wanted in zip(plan.outputs, interpret(roots, values=VALUES), strict=True):
        missed = np.linalg.norm(memory[n].reshape(wanted.shape) - wanted)
        assert missed < 0.02 * np.linalg.norm(wanted)


def test_sums_of_rows_stream_where_no_result_is_known():
    """Without the result of attention, the sum of weights times their gradient is a stream."""
    np.random.seed(0)
    roots = gradients_of(plain, shapes_of(150, 90, 64, 64))[1:]
    assert [len(kernel.slots) for kernel in streams_of(schedule(roots, FEW))] == [4, 7, 8, 9]
    for found, wanted in zip(results(roots, run_tiles), interpret(roots, values=VALUES)):
        missed = np.linalg.norm(found - wanted)
        assert missed < 0.02 * np.linalg.norm(wanted)


@pytest.mark.parametrize("form", [plain, causal, causal_twice], ids=lambda form: form.__name__)
@pytest.mark.parametrize("depth", [64, 128])
def test_resources(form, depth):
    """No spill, no serialised product."""
    target = cuda_target("sm_90a")
    plan = schedule(gradients_of(form, shapes_of(1024, 1024, depth, depth)), target)
    assert len(plan.kernels) == 3
    for kernel in streams_of(plan)[1:]:
        text = render(linearize(attention_cuda.build(kernel, target), target))
        _, log = compile_cuda(text, "sm_90a")
        assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log), log
        assert "C75" not in log and "serialized" not in log, log


@pytest.mark.parametrize("depth", [64, 128])
def test_what_is_drawn_is_computed_once_in_a_loop(depth, tmp_path):
    """Bits for all scores of a thread, written out, are more text than a cache holds.

    Rows of 1024 begin at a counter: a block serves eight places of a row, or two of a column.
    """
    target = cuda_target("sm_90a")
    plan = schedule(gradients_of(dropped, shapes_of(1024, 1024, depth, depth)), target)
    # Forward a loop of a block for each of two rows, twice; for dk and dv one of eight.
    for kernel, blocks in zip(streams_of(plan), (4, 2, 8), strict=True):
        tiles = attention_cuda.build(kernel, target)
        text = render(linearize(tiles, target))
        cubin, log = compile_cuda(text, "sm_90a")
        products = disassemble(cubin, tmp_path).count("IMAD.WIDE.U32")
        assert products < 20 * blocks + 12, "two a round of ten, and places"
        assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log), log


@pytest.mark.parametrize("depth, few", [(64, 1024), (64, 0), (128, 0)])
def test_resources_beside_a_bias(depth, few, monkeypatch):
    monkeypatch.setattr(attention_frame, "FEW_PLACES", few)
    target = cuda_target("sm_90a")
    shapes = *[(2, 1, 1024, depth)] * 3, (1, 1024, 1024)
    plan = schedule(gradients_of(biased, shapes), target)
    for kernel in streams_of(plan)[1:]:
        text = render(linearize(attention_cuda.build(kernel, target), target))
        _, log = compile_cuda(text, "sm_90a")
        assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores", log), log
        assert "C75" not in log and "serialized" not in log, log


@pytest.mark.parametrize("depth, sizes", [(64, [128, 112]), (128, [128, 64])])
def test_blocks_are_as_wide_as_there_are_registers(depth, sizes):
    plan = schedule(gradients_of(plain, shapes_of(256, 256, depth, depth)), FEW)
    streams = [analyse(kernel, kernel.parts[0]) for kernel in streams_of(plan)[1:]]
    assert [next(attention_gradient_cuda.schedules(each)).size for each in streams] == sizes


def test_the_gradient_of_a_sum_is_no_operand_in_memory() -> None:
    q, k, v = (Tensor.zeros(1, 2, 1024, 64, dtype=bfloat16).realize() for _ in range(3))
    for each in (q, k, v):
        each.requires_grad = True
    functional.scaled_dot_product_attention(q, k, v).sum().backward()
    assert "contract" in str(explain([q.grad, k.grad, v.grad], "cuda"))
