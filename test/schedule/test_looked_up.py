"""Products with rows of one 1 become lookups, and sums of what has one number."""

import numpy as np
import pytest
from attention_forms import product, weigh
from plan_support import VALUES, leaf, spread

from picograd.dtype import bfloat16, float32, int64
from picograd.graph import build
from picograd.graph.expand import realized
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.graph.node import toposort
from picograd.schedule.looked_up import look_up
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

TARGET = cuda_target("sm_90a")
PLACES, COUNT, HEADS = 40, 6, 2


def rows_of_one(number, is_turned=False):
    """One 1 in each row, where a number is the position; a column of positions is spread."""
    shape = (*number.shape, COUNT)
    wide = number.reshape((*number.shape, 1)).expand(shape)
    if is_turned:
        positions = build.iota((COUNT,), 0, number.device).reshape((1, 1, COUNT)).expand(shape)
        return positions.binary("equal", wide).cast(float32)
    return wide.binary("equal", build.iota(shape, 2, number.device)).cast(int64).cast(float32)


def tabled(q, k, v, table, number, is_turned=False):
    bias = rows_of_one(number, is_turned).contract(table, ((0, 1, 3), (3, 2), (2, 0, 1)))
    s = product(q, k)
    s = s.cast(float32) + spread(bias.reshape((1, *bias.shape)), s.shape)
    return weigh(build.softmax(s, 3).cast(v.dtype), v)


def graph(dtype=float32, below=COUNT, is_turned=False):
    np.random.seed(0)
    leaves = [leaf(2, HEADS, PLACES, 16, dtype=dtype) for _ in range(3)]
    leaves.append(leaf(COUNT, HEADS))
    number = leaf(PLACES, PLACES, dtype=int64, below=below)
    output = tabled(*leaves, number, is_turned)
    return [output, *gradient([(output, leaf(*output.shape, dtype=dtype))], leaves)]


@pytest.mark.parametrize("below", [COUNT, COUNT + 3])
@pytest.mark.parametrize("is_turned", [False, True])
def test_values_are_those_of_the_product(below, is_turned):
    """Numbers that are no position of the table give 0, and add nothing to its gradient."""
    roots = graph(below=below, is_turned=is_turned)
    found = look_up(roots, toposort(roots, realized), TARGET)
    sizes = [node.size for node in toposort(found, realized)]
    assert max(sizes) < PLACES * PLACES * COUNT <= max(n.size for n in toposort(roots, realized))
    values = interpret(found, values=VALUES), interpret(roots, values=VALUES)
    for value, wanted in zip(*values, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-5)


def test_a_table_takes_no_kernel_of_its_own():
    roots = graph(bfloat16)
    assert [kernel.hero for kernel in schedule(roots[:1], TARGET).kernels] == ["attention"]
    assert sum(kernel.hero == "attention" for kernel in schedule(roots, TARGET).kernels) == 3


def test_other_graphs_keep_their_products():
    """Zeros times what is not finite are NaN there, as they are written."""
    table = leaf(COUNT, HEADS)
    root = rows_of_one(leaf(PLACES, PLACES, dtype=int64, below=COUNT)).contract(
        table, ((0, 1, 3), (3, 2), (0, 1, 2))
    )
    assert look_up([root], toposort([root], realized), TARGET) == [root]
