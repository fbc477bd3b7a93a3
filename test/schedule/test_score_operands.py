"""Where in memory operands of scores are, and whether boxes can bring them."""

import pytest
from plan_support import leaf

from picograd.dtype import bfloat16, int64
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.score_operands import Boxed, is_boxed, memory_index, paged_index
from picograd.schedule.values import facts_of

BATCH, PLACES, SIZE = 0, 1, 2


def boxed(node, has_pages=True):
    """Say that a value (batch, places, size) is streamed."""
    order, pending = [], [node]
    while pending:
        each = pending.pop()
        order.append(each)
        pending += each.inputs
    facts = facts_of(list(dict.fromkeys(reversed(order))), [node])
    return Boxed(facts[id(node)], (BATCH, PLACES, SIZE), {SIZE}, {BATCH}, (PLACES,), has_pages)


def paged(places, size=64):
    """Read pages of places in the order of a table."""
    pages = leaf(9, places, size, dtype=bfloat16)
    table = leaf(2, 3, dtype=int64, below=9)
    return pages.gather((table,), (0,)).reshape((2, 3 * places, size))


def test_an_element_of_a_view():
    node = leaf(4, 2, 64, dtype=bfloat16).permute((1, 0, 2))
    axes = [Axis("a", size) for size in node.shape]
    index = memory_index(boxed(node).operand, tuple(map(axis_index, axes)))
    assert [dict(index.terms)[axis] for axis in axes] == [64, 128, 1]


@pytest.mark.parametrize("places, has_pages", [(32, True), (8, True), (20, False), (1, False)])
def test_pages_that_boxes_can_have(places, has_pages):
    found = boxed(paged(places))
    assert (paged_index(found, found.axes()) is not None) is has_pages
    assert is_boxed(found, set()), "as it lies, once it is gathered"


def test_only_what_is_streamed_has_pages():
    found = boxed(paged(32), has_pages=False)
    assert paged_index(found, found.axes()) is None


def test_rows_of_pages_lie_at_multiples_of_16_bytes():
    assert not is_boxed(boxed(paged(32, 36)), set())


def test_pages_in_the_other_order_have_no_boxes():
    pages = leaf(9, 32, 64, dtype=bfloat16).flip((0,))
    table = leaf(2, 3, dtype=int64, below=9)
    found = boxed(pages.gather((table,), (0,)).reshape((2, 96, 64)))
    assert paged_index(found, found.axes()) is None
