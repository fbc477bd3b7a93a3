"""Sinks: where the readers of a value end."""

import plain_nodes
from plan_support import leaf, spread

from picograd.dtype import bfloat16, float32, int64
from picograd.graph import build
from picograd.graph.node import Node, toposort
from picograd.schedule.group import Facts
from picograd.schedule.readers import find_readers
from picograd.schedule.values import facts_of


def readers(*roots: Node) -> dict[Node, Facts]:
    found = facts_of(toposort(roots), roots)
    find_readers(list(found.values()), {found[id(root)] for root in roots})
    return {facts.node: facts for facts in found.values()}


def test_elementwise_readers_of_one_output_are_one_kernel() -> None:
    x = leaf(4, 6) + 1.0
    y = x * x
    z = y + x * 2.0
    found = readers(z)
    assert [found[node].kernels for node in (x, y, z)] == [1, 1, 1]
    assert found[x].sink == found[y].sink == (found[z].number, -1)


def test_what_two_outputs_read_is_read_by_two_kernels() -> None:
    x = leaf(4, 6) + 1.0
    a, b = x * 2.0, x.unary("exp")
    found = readers(a, b)
    assert found[x].kernels == 2 and found[x].sink == (found[x].number, -1)
    assert readers(x, a)[x].kernels == 2  # it is an output itself


def test_views_and_reductions_end_a_kernel() -> None:
    x = leaf(4, 4) + 1.0
    assert readers(x + x.permute((1, 0)))[x].kernels == 2
    rows = x.reduce("max", (1,), keepdim=True)
    assert readers(x - spread(rows, x.shape))[x].kernels == 2


def test_operands_of_products_are_known_through_views() -> None:
    x, y = leaf(4, 4) + 1.0, leaf(4, 4) + 2.0
    found = readers(build.matmul(x.permute((1, 0)), leaf(4, 4)) + y)
    assert found[x].is_operand and not found[y].is_operand


def test_operands_of_products_are_known_in_wider_dtypes() -> None:
    """Parts of a weight's gradient are added in float32; a bias adds up the same gradient."""
    narrow, wide = leaf(4, 4).cast(bfloat16) + 1.0, leaf(4, 4) + 2.0
    found = readers(build.matmul(narrow.cast(float32), wide.cast(bfloat16).cast(float32)))
    assert found[narrow].is_operand and not found[wide].is_operand


def test_places_that_have_more_dimensions_than_their_table_are_no_windows() -> None:
    """`table[i, j] * y` took the axes of the gather for the sizes of a window."""
    places = [leaf(2, 2, 2, dtype=int64) for _ in range(2)]
    found = readers(plain_nodes.gather(leaf(5, 5), places, (0, 1)) * leaf(2, 2, 2))
    assert not any(facts.tap_rows for facts in found.values())
