"""Sums of multiples of sums: gradients of what a bias of attention is made of."""

import numpy as np
import pytest
from attention_forms import is_seen, product, weigh
from plan_support import VALUES, leaf, spread

from picograd.dtype import bfloat16, float32
from picograd.graph import build
from picograd.graph.expand import realized
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.graph.node import toposort
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.joined_sums import join_sums
from picograd.schedule.schedule import schedule
from picograd.schedule.weighted_sums import expanded
from picograd.target import Target, cuda_target

TARGET = cuda_target("sm_90a")


def spread_slope(slope, shape):
    """One number a head for all of a matrix."""
    return slope.reshape((slope.size, 1, 1)).expand(shape)


def away(q, k):
    """Distances of rows and places, of each head."""
    shape = q.shape[1], q.shape[2], k.shape[2]
    return (build.iota(shape, 2, q.device) - build.iota(shape, 1, q.device)).cast(float32)


def biased(s, bias):
    return is_seen(s).where(s.cast(float32) + spread(bias.reshape((1, *bias.shape)), s.shape), -1e9)


def attended(s, v):
    return weigh(build.softmax(s, 3).cast(v.dtype), v)


def sloped(q, k, v, slope):
    """ALiBi whose slopes are learned: a bias that the batch shares."""
    s, far = product(q, k), away(q, k)
    return attended(biased(s, far * spread_slope(slope, far.shape)), v)


def logarithmic(q, k, v, slope):
    """Kernels of logarithms of distances (KERPLE): two derivatives of one sum."""
    s, far = product(q, k), away(q, k)
    near = (far * far * spread_slope(slope, far.shape) + 1.0).unary("log")
    return attended(biased(s, near * spread_slope(slope * 0.5, far.shape)), v)


def of_length(q, k, v, slope):
    """A factor of a row, as the logarithm of what it sees, and a number a head."""
    s = product(q, k).cast(float32)
    rows = (build.iota((*s.shape[1:3], 1), 1, q.device) + 1).cast(float32).unary("log")
    factor = rows * spread_slope(slope, rows.shape)
    s = s * spread(factor.reshape((1, *factor.shape)), s.shape)
    return attended(is_seen(s).where(s, -1e9), v)


def roots_of(form, dtype):
    np.random.seed(0)
    leaves = [leaf(2, 3, 64, 16, dtype=dtype) for _ in range(3)]
    leaves.append(leaf(3))
    VALUES[leaves[3]] = np.abs(VALUES[leaves[3]])
    output = form(*leaves)
    return [output, *gradient([(output, leaf(*output.shape, dtype=dtype))], leaves)]


@pytest.mark.parametrize("form", [sloped, logarithmic, of_length])
def test_scores_stream_and_their_sums_are_one_kernel(form):
    plan = schedule(roots_of(form, bfloat16), TARGET)
    heroes = [kernel.hero for kernel in plan.kernels]
    assert heroes.count("attention") == 3 and len(heroes) == 4, plan.reasons
    assert max(slot.size for slot in plan.slots) <= 2 * 3 * 64 * 16  # no matrix is in memory


@pytest.mark.parametrize("form", [sloped, logarithmic, of_length])
@pytest.mark.parametrize("target", [Target("llvm", "test", 64), TARGET], ids=["cpu", "cuda"])
def test_values(form, target):
    roots = roots_of(form, float32)
    plan = schedule(roots, target)
    found = interpret_plan(plan, [VALUES[node] for node in plan.inputs])
    for value, wanted in zip(found, interpret(roots, values=VALUES), strict=True):
        missed = np.linalg.norm(np.float64(value.reshape(wanted.shape)) - wanted)
        assert missed < 1e-4 * np.linalg.norm(wanted)


def test_a_sum_that_is_read_too_stays():
    """The gradient of a bias in memory is asked for beside that of its slopes."""
    q, k, v = (leaf(2, 3, 64, 16, dtype=bfloat16) for _ in range(3))
    slope = leaf(3)
    bias = away(q, k) * spread_slope(slope, (3, 64, 64)) + leaf(3, 64, 64)
    output = attended(biased(product(q, k), bias), v)
    roots = [output, *gradient([(output, leaf(*output.shape, dtype=bfloat16))], [bias, slope])]
    roots = expanded(roots, toposort(roots, realized), TARGET)
    assert join_sums(roots, toposort(roots, realized), TARGET) == roots
    alone = [roots[0], roots[2]]
    assert join_sums(alone, toposort(alone, realized), TARGET) != alone
