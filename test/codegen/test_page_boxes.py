"""Attention over caches in pages that a table in memory orders: one kernel reads them where they
are."""

import math

import numpy as np
import pytest
from plan_support import VALUES, leaf

from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import TEMPLATES
from picograd.codegen.program import verify as verify_program
from picograd.codegen.tile import verify
from picograd.conversion import from_bits, to_bits
from picograd.dtype import bfloat16, float32, int32, int64
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.schedule.interpret import interpret as interpret_kernel
from picograd.schedule.interpret_plan import allocate
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

FEW = cuda_target("sm_90a", multiprocessors=6)
PRODUCT = (0, 1, 2, 3), (0, 1, 4, 3), (0, 1, 2, 4)
WEIGHTED = (0, 1, 2, 4), (0, 1, 4, 3), (0, 1, 2, 3)


def rounded(node):
    VALUES[node] = from_bits(to_bits(VALUES[node], node.dtype), node.dtype)
    return node


def cache(pages, table, is_turned):
    """Read pages (count, places, heads, size) as keys (batch, heads, all, size)."""
    batch, many = table.shape
    found = pages.gather((table,), (0,))
    order = (0, 2, 1, 3, 4) if is_turned else (0, 3, 1, 2, 4)
    found = found.permute(order)
    _, heads, _, places, size = found.shape
    return found.reshape((batch, heads, many * places, size))


def attended(q, k, v, lengths=None):
    """Attend from rows to keys before a length, which groups of heads share."""
    groups = q.shape[1] // k.shape[1]

    def repeated(x):
        wide = x.reshape((*x.shape[:2], 1, *x.shape[2:]))
        wide = wide.expand((*x.shape[:2], groups, *x.shape[2:]))
        return wide.reshape((x.shape[0], x.shape[1] * groups, *x.shape[2:]))

    k, v = map(repeated, (k, v))
    scores = q.contract(k, PRODUCT) * 0.1
    if lengths is None:
        return build.softmax(scores, 3).contract(v, WEIGHTED)
    length = lengths.reshape((lengths.shape[0], 1, 1, 1)).expand(scores.shape)
    seen = scores.iota(3).binary("less", length)
    weights = seen.where(build.softmax(seen.where(scores, -math.inf), 3), 0)
    return weights.contract(v, WEIGHTED)


def paged(places, many, *, batch=1, rows=1, size=64, dtype=bfloat16, is_turned=False, lengths=None):
    """Attend to a cache of `many` pages a sequence; two heads of keys, four of queries."""
    np.random.seed(0)
    count = 2 * batch * many + 1
    shape = (count, 2, places, size) if is_turned else (count, places, 2, size)
    q, k, v = map(rounded, (leaf(*s, dtype=dtype) for s in ((batch, 4, rows, size), shape, shape)))
    table = leaf(batch, many, dtype=int32, below=count)
    VALUES[table] = np.random.permutation(count)[: batch * many].reshape(batch, many)
    length = None
    if lengths is not None:
        length = leaf(batch, dtype=int64, below=2)
        VALUES[length] = np.array(lengths)
    return attended(q, cache(k, table, is_turned), cache(v, table, is_turned), length)


def stored(node):
    """Bits of an array in memory."""
    return np.array(VALUES[node]).reshape(-1)


def run_kernel(kernel, values, is_program):
    """Run an attention kernel by one of the interpreters of what a GPU runs."""
    tiles, slots = verify(TEMPLATES[kernel.hero](kernel, FEW)), kernel.slots
    if not is_program:
        interpret_tile.interpret(tiles, values)
        return
    raw = [to_bits(value, slot.dtype) for value, slot in zip(values, slots, strict=True)]
    interpret_program.interpret(verify_program(linearize(tiles, FEW)), raw)
    for value, bits, slot in zip(values, raw, slots, strict=True):
        value[...] = from_bits(bits, slot.dtype)


def heroes_that_are_right(roots):
    """Run a plan, its attention as tiles and as a program; list its kernels."""
    plan = schedule(roots, FEW)
    wanted = interpret(roots, values=VALUES)
    for is_program in (False, True):
        memory = allocate(plan, list(map(stored, plan.inputs)))
        for step in plan.steps:
            values = [memory[number] for number in step.slots]
            if step.kernel.hero == "attention":
                run_kernel(step.kernel, values, is_program)
            else:
                interpret_kernel(step.kernel, values)
        for number, each in zip(plan.outputs, wanted, strict=True):
            missed = np.linalg.norm(np.float64(memory[number].reshape(each.shape)) - each)
            assert missed <= 0.015 * np.linalg.norm(each)
    return [step.kernel.hero for step in plan.steps]


@pytest.mark.parametrize(
    "places, many, options",
    [
        (16, 20, {}),
        (16, 21, {"size": 128, "lengths": [200]}),  # the last block has few places
        (64, 5, {"is_turned": True}),
        (8, 30, {"batch": 2, "lengths": [1, 130]}),
        (256, 2, {"batch": 3, "is_turned": True, "lengths": [0, 512, 257]}),
        (96, 3, {"rows": 70}),
        (24, 9, {"batch": 2, "rows": 3, "size": 40}),
        (320, 1, {"batch": 2}),
        (48, 5, {"rows": 5, "dtype": float32}),
    ],
)
def test_values(places, many, options):
    assert heroes_that_are_right([paged(places, many, **options)]) == ["attention"]


def operands(*shape, batch=2, many=5):
    """Make queries, pages and a table, of which numbers come again."""
    np.random.seed(0)
    q = rounded(leaf(batch, 4, 1, 64, dtype=bfloat16))
    pages = rounded(leaf(*shape, dtype=bfloat16))
    table = leaf(batch, many, dtype=int64, below=shape[0])
    VALUES[table] = np.random.randint(0, shape[0], (batch, many))
    return q, pages, table


def test_keys_and_values_of_one_gather():
    q, pages, table = operands(12, 32, 2, 2, 64)
    found = pages.gather((table,), (0,))  # batch, many, places, keys or values, heads, size
    whole = [(0, size, 1) for size in found.shape]
    k, v = (found.slice((*whole[:3], (i, i + 1, 1), *whole[4:])) for i in range(2))
    k, v = (each.reshape((2, 160, 2, 64)).permute((0, 2, 1, 3)) for each in (k, v))
    assert heroes_that_are_right([attended(q, k, v)]) == ["attention"]


def test_a_slice_of_what_pages_hold():
    q, pages, table = operands(12, 32, 2, 64)
    k = cache(pages, table, False).slice(((0, 2, 1), (0, 2, 1), (0, 150, 1), (0, 64, 1)))
    assert heroes_that_are_right([attended(q, k, k)]) == ["attention"]
    k = cache(pages, table, False).slice(((0, 2, 1), (0, 2, 1), (3, 150, 1), (0, 64, 1)))
    assert "attention" in heroes_that_are_right([attended(q, k, k)])


@pytest.mark.parametrize("is_turned", [False, True])
def test_what_others_read_too_is_gathered_for_them(is_turned):
    shape = (12, 2, 32, 64) if is_turned else (12, 32, 2, 64)
    q, pages, table = operands(*shape)
    k = cache(pages, table, is_turned)
    columns = (0, 1, 2, 3), (3, 4), (0, 1, 2, 4)
    product = k.contract(rounded(leaf(64, 8, dtype=bfloat16)), columns)
    others = [pages.gather((table,), (0,)), product, k.unary("exp")]
    for other in others:
        assert "attention" in heroes_that_are_right([attended(q, k, k), other])


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("is_turned", [False, True])
def test_gradients_read_what_is_gathered(rows, is_turned):
    shape = (12, 2, 32, 64) if is_turned else (12, 32, 2, 64)
    _, pages, table = operands(*shape)
    q = rounded(leaf(2, 4, rows, 64, dtype=bfloat16))
    k = cache(pages, table, is_turned)
    output = attended(q, k, k)
    seed = rounded(leaf(*output.shape, dtype=bfloat16))
    roots = [output, *gradient([(output, seed)], [q, pages])]
    assert "attention" in heroes_that_are_right(roots)


def test_pages_that_are_computed_and_numbers_that_are():
    q, pages, table = operands(12, 32, 2, 64)
    k = cache(pages * 0.5 + 1, table, False)
    assert heroes_that_are_right([attended(q, k, k)]) == ["map", "attention"]
    k = cache(pages, 11 - table, False)
    assert heroes_that_are_right([attended(q, k, k)]) == ["attention"]


@pytest.mark.parametrize("places", [1, 20])
def test_pages_that_no_box_can_have_are_gathered(places):
    q, pages, table = operands(12, places, 2, 64, many=80 // places)
    k = cache(pages, table, False)
    assert heroes_that_are_right([attended(q, k, k)]) == ["map", "attention"]
