"""The structural key: what is in it, what is not, and in which order leaves are found."""

import pytest

from picograd import Tensor
from picograd.buffer import RuntimeScalar
from picograd.engine.plan_key import graph_key, leaf_buffer, walk_pending, with_scalars
from picograd.engine.realize import realize
from picograd.graph.build import const
from picograd.number import given


def node(*shape):
    return Tensor.ones(*shape, device="cpu").contiguous().realize().node


def key(*roots):
    return graph_key(roots).key


def test_other_buffers_same_key():
    a, b = node(2, 3), node(2, 3)
    assert key(a + b) == key(node(2, 3) + node(2, 3))
    assert graph_key([a + b]).buffers == [leaf_buffer(a), leaf_buffer(b)]


@pytest.mark.parametrize(
    "make",
    [
        lambda a, b: a + a,  # which leaves are the same buffer
        lambda a, b: a * b,
        lambda a, b: (a + b).cast(Tensor([1]).dtype),
        lambda a, b: (a + b).reshape((3, 2)),
        lambda a, b: (a + b) + a,
    ],
)
def test_other_structure_other_key(make):
    a, b = node(2, 3), node(2, 3)
    assert key(make(a, b)) != key(a + b)


def test_shapes_dtypes_and_roots_count():
    a, b = node(2, 3), node(2, 3)
    assert key(node(3, 2) + node(3, 2)) != key(a + b)
    total = a + b
    assert key(total) != key(total, total.unary("exp"))
    exp, sin = total.unary("exp"), total.unary("sin")
    assert key(exp, sin) != key(sin, exp)


@pytest.mark.parametrize(
    "pair", [(0.0, -0.0), (1.0, 2.0), (float("nan"), 0.0), (float("inf"), float("-inf"))]
)
def test_constants_are_told_apart(pair):
    a = node(2)
    keys = [key(a.binary("maximum", const(value, a.shape, a.dtype, "cpu"))) for value in pair]
    assert keys[0] != keys[1]


def test_the_value_of_a_runtime_scalar_is_not_in_the_key():
    x = Tensor.rand(4, device="cpu").node  # its counter and its seed are scalars
    y = Tensor.rand(4, device="cpu").node
    first, second = graph_key([x]), graph_key([y])
    assert first.key == second.key
    assert [type(s) for s in first.scalars] == [RuntimeScalar] * 2
    assert first.scalars[0] is not second.scalars[0]  # the counters
    assert first.scalars[1] is second.scalars[1]  # the seed, which both draw from


def test_walk_stops_at_realized_nodes():
    a = node(2)
    middle = a.unary("exp")
    middle.realized = leaf_buffer(a)
    order = walk_pending([middle.unary("sin")])
    assert [n.op for n in order] == ["exp", "sin"]


def test_a_given_number_that_was_computed_is_memory():
    number = const(given(2.5), (2,), node(2).dtype, "cpu")
    realize([number])
    total = node(2) + number
    found = graph_key([total])
    assert (len(found.buffers), found.scalars) == (2, [])
    assert with_scalars([total], found) == [total]
    realize([total])
    assert leaf_buffer(total) is not None


def test_inputs_come_first_and_once():
    a = node(2)
    b = a.unary("exp")
    order = walk_pending([(b + b) * b])
    assert [n.op for n in order] == ["buffer", "exp", "add", "mul"]


def test_deep_graphs_do_not_recurse():
    deep = node(2)
    for _ in range(20_000):
        deep = deep.unary("sin")
    assert len(walk_pending([deep])) == 20_001
