"""Basic and index-tensor selection on nodes: reading, and writing as its way back."""

import random

import numpy as np
import pytest
from graph_support import leaf, value

from picograd import Tensor
from picograd.errors import PicogradError
from picograd.number import GivenInt
from picograd.tensor.indexing import indexing as i

A = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
ROWS = np.array([[2, 0], [1, 1]])
ITEMS = [
    (1,), (slice(None, None, -1),), (Ellipsis, -1), (None, slice(1, 3)), (slice(2, 0, -1), 2),
    (slice(0, 0),), (slice(None), slice(3, None, -2), slice(1, 4, 2)),
    (ROWS,), (slice(None), ROWS), (ROWS, slice(None), ROWS), (slice(1), None, ROWS),
]  # fmt: skip


def told(node):
    """Describe views, and which of their numbers a user gave."""
    if not node.inputs:
        return id(node)
    arg = [[(type(x), int(x)) for x in np.ravel(np.array(row, object))] for row in node.arg]
    return node.op, arg, node.shape, told(node.inputs[0])


def item_drawn(draw):
    ends = [*range(-5, 6), None, None]
    start, stop = draw.choice(ends), draw.choice(ends)
    is_moving = isinstance(start, int) and stop is not None
    span = slice(GivenInt(start) if is_moving else start, stop, draw.choice([None, None, 1, -1]))
    return draw.choice([None, Ellipsis, GivenInt(draw.randint(-5, 4)), span, span])


def test_what_is_chosen_the_short_way_is_what_parse_and_take_give() -> None:
    draw, count = random.Random(0), 0
    for _ in range(3000):
        node = leaf(np.zeros([draw.choice([0, 1, 2, 4]) for _ in range(draw.randint(0, 3))]))
        items = [item_drawn(draw) for _ in range(draw.randint(0, 4))]
        if (found := i.chosen(node, items)) is not None:
            assert told(found) == told(i.take(node, i.parse(node.shape, items))), items
            count += 1
    assert count > 1000


def nodes(items):
    return tuple(leaf(item) if isinstance(item, np.ndarray) else item for item in items)


@pytest.mark.parametrize("items", ITEMS, ids=repr)
def test_take_equals_numpy(items) -> None:
    selection = i.parse(A.shape, nodes(items))
    np.testing.assert_array_equal(value(i.take(leaf(A), selection)), A[items])


@pytest.mark.parametrize("items", [x for x in ITEMS if not any(y is ROWS for y in x)] + [(ROWS,)])
def test_put_writes_what_take_reads(items) -> None:
    wanted = A.copy()
    wanted[items] = 7.0
    selection = i.parse(A.shape, nodes(items))
    np.testing.assert_array_equal(value(i.put(leaf(A), selection, 7.0)), wanted)


def test_masked_fill_and_gather() -> None:
    found = value(i.masked_fill(leaf(A), leaf(A % 2 == 0), -1.0))
    with pytest.raises(PicogradError, match="masked_fill: value has shape"):
        i.masked_fill(leaf(A), leaf(A % 2 == 0), leaf(A))
    np.testing.assert_array_equal(found, np.where(A % 2 == 0, -1, A))
    order = A.astype(np.int64)[:, :, :2] % 5
    found = value(i.gather("gather", leaf(A), 2, leaf(order)))
    np.testing.assert_array_equal(found, np.take_along_axis(A, order, 2))
    found = value(i.index_select(leaf(A), 1, leaf(np.array([3, 3, 0]))))
    np.testing.assert_array_equal(found, A[:, [3, 3, 0]])


@pytest.mark.parametrize("items", [(..., ...), (..., 1, ...), (0, ..., ...), (..., None, ...)])
def test_only_the_first_ellipsis_has_axes(items) -> None:
    torch = pytest.importorskip("torch")
    wanted = torch.from_numpy(A)[items].numpy()
    np.testing.assert_array_equal(value(i.take(leaf(A), i.parse(A.shape, items))), wanted)
    np.testing.assert_array_equal(Tensor(A)[items].numpy(), wanted)


@pytest.mark.parametrize("items", [(3,), (0, 0, 0, 0), (slice(0, 1, 0),)])
def test_mistakes(items) -> None:
    with pytest.raises(PicogradError):
        i.parse(A.shape, items)
