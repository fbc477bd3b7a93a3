"""Attention on a CPU: Tile IR by its interpreter, and the kernels as they run."""

import numpy as np
import pytest
from attention_forms import (
    FORMS,
    UNBOUND,
    boolean,
    causal,
    causal_twice,
    documents,
    plain,
    sunk,
    window,
    with_gradients,
)
from plan_support import VALUES, leaf

from picograd import Tensor
from picograd.codegen import interpret_tile
from picograd.codegen.templates import attention_cpu
from picograd.codegen.tile import format_tiles, verify
from picograd.dtype import float64
from picograd.graph.interpret import interpret
from picograd.schedule import score_ranges
from picograd.schedule.interpret import interpret as interpret_kernel
from picograd.schedule.interpret_plan import allocate
from picograd.schedule.schedule import schedule
from picograd.target import Target

SMALL = Target("llvm", "test", 16)  # four floats a vector: several panels and tasks
SHAPES = (1, 2, 70, 8), (1, 2, 75, 8), (1, 2, 75, 12)


def tile_results(roots, target=SMALL):
    """Run the attention kernels of a plan as Tile IR, the others as Loop IR."""
    plan = schedule(roots, target)
    memory = allocate(plan, [VALUES[node].copy() for node in plan.inputs])
    for step in plan.steps:
        slots = [memory[slot] for slot in step.slots]
        if step.kernel.hero == "attention":
            tiles = verify(attention_cpu.build(step.kernel, target))
            interpret_tile.interpret(tiles, slots, [])
        else:
            interpret_kernel(step.kernel, slots)
    return [memory[n].reshape(plan.slots[n].shape) for n in plan.outputs]


@pytest.mark.parametrize("form", [*FORMS, *UNBOUND], ids=lambda form: form.__name__)
def test_tiles_mean_what_the_graph_means(form):
    np.random.seed(0)
    roots = with_gradients(form, *SHAPES)
    for found, wanted in zip(tile_results(roots), interpret(roots, values=VALUES), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_sinks():
    """A logit a head, of which some are greater than all scores of a row."""
    np.random.seed(0)
    roots = with_gradients(sunk, *SHAPES, (1, 2, 1, 1))
    kernels = schedule(roots, SMALL).kernels
    assert [kernel.hero for kernel in kernels[:1]] == ["attention"] and len(kernels) <= 6
    for found, wanted in zip(tile_results(roots), interpret(roots, values=VALUES), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_documents(monkeypatch):
    """Tasks look up which blocks their rows see."""
    monkeypatch.setattr(score_ranges, "LEAST", 64)
    np.random.seed(0)
    shapes = (1, 2, 150, 8), (1, 2, 150, 8), (1, 2, 150, 12)
    roots = with_gradients(documents, *shapes)
    kernels = schedule(roots, SMALL).kernels
    assert sum("ranges" in kernel.name for kernel in kernels) == 1  # one kernel has both sides
    found = tile_results(roots)
    for each, wanted in zip(found, interpret(roots, values=VALUES), strict=True):
        np.testing.assert_allclose(each, wanted, rtol=1e-4, atol=1e-4)


def texts_of(form):
    """Write the Tile IR of the attention kernels of a form with gradients."""
    plan = schedule(with_gradients(form, *SHAPES), SMALL)
    kernels = [kernel for kernel in plan.kernels if kernel.hero == "attention"]
    return [format_tiles(attention_cpu.build(kernel, SMALL)) for kernel in kernels]


def test_masks_in_memory_are_read_along_their_rows():
    """They are turned before; gradients of keys have rows of masks in their lanes."""
    forward, *_ = texts_of(boolean)
    lines = [line.strip() for line in forward.splitlines() if "not_equal(" in line]
    assert lines and all("not_equal(beside0[place, lane], 0.0)" in line for line in lines)


def test_exponentials_are_computed_once_for_all_weights():
    *_, last = texts_of(plain)
    lines = [line.strip() for line in last.splitlines() if "exp(" in line]
    assert len(lines) == 2 and all(line.startswith("power0 [") for line in lines)


def on_nodes(form, *arrays, **options):
    nodes = [Tensor(array, device="cpu", **options).realize().node for array in arrays]
    return Tensor.from_node(form(*nodes)), nodes


@pytest.mark.parametrize("form", [plain, causal, causal_twice, window])
@pytest.mark.parametrize("rows, columns", [(16, 16), (33, 100), (130, 257)])
def test_kernels_as_they_run(form, rows, columns):
    generator = np.random.default_rng(0)
    shapes = (2, 2, rows, 16), (2, 2, columns, 16), (2, 2, columns, 24)
    arrays = [generator.standard_normal(shape).astype(np.float32) for shape in shapes]
    output, _ = on_nodes(form, *arrays)
    wide = [leaf(*shape, dtype=float64) for shape in shapes]
    VALUES.update(dict(zip(wide, (array.astype(np.float64) for array in arrays), strict=True)))
    (wanted,) = interpret([form(*wide)], values=VALUES)
    np.testing.assert_allclose(output.numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_nan_and_infinities_stay_in_their_rows():
    generator = np.random.default_rng(1)
    q, k, v = generator.standard_normal((3, 1, 1, 40, 16)).astype(np.float32)
    q[0, 0, 3, 0], q[0, 0, 7, 0] = np.nan, np.inf
    output, nodes = on_nodes(plain, q, k, v)
    (wanted,) = interpret([plain(*nodes)])
    found = output.numpy()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    assert np.isnan(found[0, 0, 3]).all() and not np.isnan(found[0, 0, 4:7]).any()
