"""Rows that begin between vectors: values by both interpreters, and what stays whole."""

import numpy as np
import plain_nodes
import pytest
from cuda_tools import from_raw, to_raw

from picograd.buffer import Buffer, Storage
from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import tile
from picograd.codegen.templates.uneven_rows import cut_uneven
from picograd.codegen.tile import verify
from picograd.dtype import DType, bfloat16, float32
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Compute, Expr, Part
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

GPU = cuda_target("sm_90a", 2)
WIDTHS = [1100, 1101, 1102, 1103, 2055]


def leaf(shape: tuple[int, ...], dtype: DType) -> Node:
    return plain_nodes.buffer(Storage(Buffer("cpu", dtype, int(np.prod(shape)), 0)), shape)


def softmax(x):
    return build.softmax(x, 1)


def norm(x):
    return build.layer_norm(x, 1, None, None, 1e-5)


def softmax_gradient(x):
    return gradient([(softmax(x), x)], [x])[0]


def wanted_softmax(x):
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def wanted_norm(x):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


def wanted_softmax_gradient(x):
    found = wanted_softmax(x)
    return found * (x - (found * x).sum(1, keepdims=True))


CASES = [
    (softmax, wanted_softmax),
    (norm, wanted_norm),
    (softmax_gradient, wanted_softmax_gradient),
]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=repr)
@pytest.mark.parametrize(("formula", "wanted"), CASES)
def test_values(formula, wanted, dtype, width):
    x = leaf((5, width), dtype)
    (kernel,) = schedule([formula(x)], GPU).kernels
    tiles = verify(tile(kernel, GPU))
    rng = np.random.default_rng(0)
    given = [
        from_raw(to_raw(rng.standard_normal(slot.size), dtype), dtype)
        if slot.role == "in"
        else np.full(slot.size, np.nan, np.float32)
        for slot in kernel.slots
    ]
    programs = [to_raw(each, dtype) for each in given]
    right = wanted(np.asarray(given[0], np.float64).reshape(5, width))
    program = linearize(tiles, GPU)
    assert any(
        each.lanes == 16 // dtype.itemsize for each in program.instructions if each.op == "load"
    )
    interpret_program.interpret(program, programs)
    interpret_tile.interpret(tiles, given, (), is_reversed=True)
    tolerance = 1e-5 if dtype is float32 else 5e-3
    for found in (given[1], from_raw(programs[1], dtype)):
        off = np.linalg.norm(np.asarray(found, np.float64).reshape(5, width) - right)
        assert off < tolerance * np.linalg.norm(right)


@pytest.mark.parametrize(
    ("stride", "first", "width", "lanes"),
    [
        (2048, 0, 2048, 0),
        (2056, 0, 2049, 4),
        (2049, 0, 2048, 4),
        (2048, 3, 2048, 4),
        (900, 1, 900, 0),
    ],
)
def test_long_rows_between_vectors_are_cut(stride, first, width, lanes):
    """Even rows stay whole, and short ones."""
    row, column = Axis("row", 8), Axis("column", width)
    index = axis_index(row) * stride + axis_index(column) + first
    total = Compute((row,), (column,), "sum", Expr("load", (), (0, index), float32), float32)
    part = Part((row,), (total,))
    found, count = cut_uneven(part, {0: 4})
    assert count == lanes
    assert (found == part) == (lanes == 0)
