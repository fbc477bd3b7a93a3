"""Sinks: where the readers of a value end."""

from plan_support import leaf, spread

from picograd.graph import build
from picograd.graph.node import Node, toposort
from picograd.schedule.readers import Readers, find_readers


def readers(*roots: Node) -> Readers:
    order = toposort(roots)
    leaves = {id(node) for node in order if node.op == "buffer"}
    equal = {id(node): node for node in order}
    return find_readers(reversed(order), equal, {id(root) for root in roots}, leaves)


def test_elementwise_readers_of_one_output_are_one_kernel() -> None:
    x = leaf(4, 6) + 1.0
    y = x * x
    z = y + x * 2.0
    found = readers(z)
    assert [found.counts[id(node)] for node in (x, y, z)] == [1, 1, 1]
    assert found.sinks[id(x)] == found.sinks[id(y)] == (id(z), -1)


def test_what_two_outputs_read_is_read_by_two_kernels() -> None:
    x = leaf(4, 6) + 1.0
    a, b = x * 2.0, x.unary("exp")
    found = readers(a, b)
    assert found.counts[id(x)] == 2 and found.sinks[id(x)] == (id(x), -1)
    assert readers(x, a).counts[id(x)] == 2  # it is an output itself


def test_views_and_reductions_end_a_kernel() -> None:
    x = leaf(4, 4) + 1.0
    assert readers(x + x.permute((1, 0))).counts[id(x)] == 2
    rows = x.reduce("max", (1,), keepdim=True)
    assert readers(x - spread(rows, x.shape)).counts[id(x)] == 2


def test_operands_of_products_are_known_through_views() -> None:
    x, y = leaf(4, 4) + 1.0, leaf(4, 4) + 2.0
    found = readers(build.matmul(x.permute((1, 0)), leaf(4, 4)) + y)
    assert id(x) in found.operands and id(y) not in found.operands
