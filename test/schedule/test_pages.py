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
from picograd.graph.interpret import interpret
from picograd.schedule.index import Axis, Dynamic, atom_index, axis_index
from picograd.schedule.loop import Expr
from picograd.schedule.pages import pages_of
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


def run_all(plan):
    """Run the only kernel of a plan by both interpreters."""
    (step,) = plan.steps
    kernel, slots = step.kernel, step.kernel.slots
    tiles = verify(TEMPLATES[kernel.hero](kernel, FEW))
    inputs = dict(zip((n for n, x in enumerate(plan.slots) if x.kind == "input"), plan.inputs))
    values = [np.array(VALUES[inputs[number]]).reshape(-1) for number in step.slots[:-1]]
    values.append(np.full(slots[-1].size, np.nan, np.float32))
    interpret_tile.interpret(tiles, values)
    yield values[-1]
    program = verify_program(linearize(tiles, FEW))
    raw = [to_bits(value, slot.dtype) for value, slot in zip(values, slots, strict=True)]
    interpret_program.interpret(program, raw)
    yield from_bits(raw[-1], slots[-1].dtype)


@pytest.mark.parametrize(
    "places, many, options",
    [
        (16, 20, {}),
        (16, 21, {"size": 128, "lengths": [200]}),  # the last block has few places
        (64, 5, {"is_turned": True}),
        (8, 30, {"batch": 2, "lengths": [1, 130]}),
        (256, 2, {"batch": 3, "is_turned": True, "lengths": [0, 512, 257]}),
        (96, 3, {"rows": 70}),
        (48, 5, {"rows": 5, "dtype": float32}),
    ],
)
def test_values(places, many, options):
    output = paged(places, many, **options)
    plan = schedule([output], FEW)
    (wanted,) = interpret([output], values=VALUES)
    for found in run_all(plan):
        missed = np.linalg.norm(found.reshape(wanted.shape) - wanted)
        assert missed <= 0.015 * np.linalg.norm(wanted)
