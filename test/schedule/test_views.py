"""What views do to labels, storage order and windows."""

import plain_nodes
import pytest
from attention_forms import normed, rotated
from plan_support import TARGET, check_plan, leaf, spread

from picograd.dtype import float16, float32, float64, int64
from picograd.graph import build
from picograd.graph.node import Node
from picograd.schedule.group import FREE, Facts, Group
from picograd.schedule.views import (
    dimension_map,
    fold_count,
    iota_dimension,
    kept_labels,
    reduced_order,
    shared_inputs,
    strip_views,
    view_labels,
    view_order,
    view_windows,
)
from picograd.target import Target, cuda_target

X = leaf(2, 3, 4)


def facts(node: Node, *inputs: Facts, **known: object) -> Facts:
    found = Facts(node, 0, inputs)
    for name, value in known.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        (X.permute((2, 0, 1)), (2, 0, 1)),
        (X.reshape((2, 1, 3, 4)), (0, -1, 1, 2)),
        (X.reshape((6, 4)), None),
        (spread(leaf(1, 3), (5, 3)), (-1, 1)),
        (build.flip(X, (1,)), (0, -1, 2)),
        (build.pad(X, ((0, 0), (1, 1), (0, 0)), 0.0), (0, -1, 2)),
        (plain_nodes.window(X, ((2, 2, 1, 1),)), (0, 1, -1, -1)),
    ],
)
def test_dimension_map(node: Node, wanted: tuple[int, ...] | None) -> None:
    assert dimension_map(node) == wanted


def test_labels_follow_whole_dimensions() -> None:
    source = facts(X, labels=(0, FREE, 2))
    turned = facts(X.permute((2, 0, 1)), source)
    assert view_labels(turned, source, (2, 0, 1)) == (2, 0, FREE)
    assert view_labels(turned, source, (1, -1)) is None, "dimension 0 and 2 are lost"
    assert view_labels(turned, source, None) is None


@pytest.mark.parametrize(("size", "wanted"), [(4, (0, FREE)), (1, None)])
def test_what_is_padded_is_free_unless_it_was_one_element(size: int, wanted: object) -> None:
    source = facts(leaf(3, size), labels=(0, FREE))
    padded = facts(source.node.pad(((0, 0), (2, 1))), source)
    assert view_labels(padded, source, (0, -1)) == wanted


def test_a_grand_value_may_not_spread() -> None:
    small = leaf(1)
    source = facts(small, labels=(FREE,), is_grand=True)
    assert view_labels(facts(spread(small, (5,)), source), source, (-1,)) is None


def test_storage_order_follows_the_input() -> None:
    order = (0, 2, 1)
    assert view_order(X.permute((1, 2, 0)), order, (1, 2, 0)) == (2, 1, 0)
    assert view_order(build.flip(X, (1,)), order, (0, -1, 2)) == (0, 2, 1)
    window = plain_nodes.window(X, ((2, 2, 1, 1),))
    assert view_order(window, order, None) == (0, 2, 1, 3)
    assert view_order(X.reshape((24,)), order, None) == (0,)
    assert view_order(X.reshape((2, 3, 2, 2)), order, None) == (0, 2, 3, 1), "4 is split"
    assert view_order(X.reshape((6, 4)), order, None) == (1, 0), "3 is nearer than 4"
    assert reduced_order(order, (1,)) == (0, 1)
    assert reduced_order(None, (1,)) is None


def test_window_dimensions_are_tracked() -> None:
    node = plain_nodes.window(X, ((1, 2, 1, 1), (2, 3, 1, 1)))
    source = facts(node, windows=view_windows(node, facts(X), None))
    assert source.windows == {3, 4}
    merged = node.reshape((*node.shape[:3], 6))
    assert view_windows(merged, source, None) == {3}
    broken = node.reshape((node.size,))
    assert view_windows(broken, source, None) == frozenset()


def test_views_are_stripped_but_not_a_narrowing_cast() -> None:
    source = facts(X, is_source=True, is_loaded=True)
    view = facts(X.permute((2, 0, 1)), source)
    wide = facts(build.cast(leaf(2, dtype=float16), float32), view)
    assert strip_views(wide) is source
    narrow = facts(build.cast(X, float16), view)
    assert strip_views(narrow) is narrow


def test_what_is_narrowed_is_stored_narrow_unless_it_is_in_memory() -> None:
    """A mean in float64 that is read as float32 is half as large to store, and needs no cast."""
    x = leaf(2, 3, dtype=float64)
    doubled = facts(build.binary("mul", x, x))
    read = facts(build.cast(doubled.node, float32), doubled)
    assert strip_views(facts(read.node.permute((1, 0)), read)) is read
    held = facts(x, is_source=True, is_loaded=True)
    assert strip_views(facts(build.cast(x, float32), held)) is held


def test_fold_count_is_the_elements_added_at_a_place() -> None:
    windows = leaf(4, 3)
    assert fold_count(build.fold(windows, ((0, 3, 1, 1),), (6,))) == 3
    assert fold_count(build.fold(windows, ((0, 3, 2, 1),), (9,))) == 2


def test_iota_is_seen_through_views() -> None:
    count = build.iota((3,), 0, "cpu", int64)
    row = facts(count.reshape((3, 1)), facts(count))
    assert iota_dimension(row) == 0
    spread_out = facts(spread(row.node, (3, 5)), row)
    assert iota_dimension(spread_out) == 0
    assert iota_dimension(facts(build.flip(count, (0,)), facts(count))) is None
    assert iota_dimension(facts(X)) is None
    assert iota_dimension(facts(spread_out.node)) is None  # it is in memory


def test_labels_of_a_reduction() -> None:
    assert kept_labels((0, 1, 2), (1,)) == (0, 2)
    assert Group(0, "map", 1, (2,), (), "cpu").kept == (0,)


def test_indices_that_every_channel_uses_are_known() -> None:
    """A CPU computes them once; where each is used once, nothing is computed again."""
    table, places = facts(Node("buffer", (), None, (8, 4), float32, "cpu")), facts(X)
    rows = Node("gather", (table.node, X), (0,), (*X.shape, 4), float32, "cpu")
    cells = Node("gather", (table.node, X, X), (0, 1), X.shape, float32, "cpu")
    found = facts(rows, table, places)
    places.size, found.size = X.size, rows.size
    assert shared_inputs(found, Target("llvm", "host", 64)) == (places,)
    assert shared_inputs(found, cuda_target("sm_90a")) == ()
    once = facts(cells, table, places, places)
    once.size = X.size
    assert shared_inputs(once, Target("llvm", "host", 64)) == ()


def test_arrays_one_behind_another_are_known() -> None:
    """A GPU computes each once: all fill a sum in equal shares."""
    pads = ((0, 0), (0, 3), (0, 0)), ((0, 0), (3, 0), (0, 0))
    halves = [(X * X).pad(each) for each in pads]
    inputs = [facts(each) for each in halves]
    found = facts(halves[0] + halves[1], *inputs)
    assert shared_inputs(found, cuda_target("sm_90a")) == tuple(inputs)
    assert shared_inputs(found, Target("llvm", "host", 64)) == ()
    other = facts(
        halves[0] + halves[0].const_like(1.0), inputs[0], facts(halves[0].const_like(1.0))
    )
    assert shared_inputs(other, cuda_target("sm_90a")) == ()


@pytest.mark.parametrize("target", [TARGET, cuda_target("sm_90a")], ids=["cpu", "gpu"])
def test_elements_that_move_inside_a_row_are_worked_on_with_it(target: Target) -> None:
    x, w, c, s = leaf(3, 20, 16), leaf(16), leaf(20, 16), leaf(20, 16)
    check_plan([rotated(normed(x, w), c, s)], 1, target=target)
    turned = normed(x, w).permute((1, 0, 2))
    check_plan([rotated(turned, leaf(3, 16), leaf(3, 16))], 1, target=target)
    flipped = normed(x, w).flip((2,)) * 2.0
    check_plan([flipped, normed(x, w)], target=target)


def test_elements_of_other_rows_are_read_from_memory() -> None:
    x, w = leaf(3, 20, 16), leaf(16)
    below = normed(x, w).slice(((0, 3, 1), (1, 20, 1), (0, 16, 1)))
    check_plan([below * 2.0, below.pad(((0, 0), (1, 0), (0, 0))) + x])
    merged = normed(x, w).reshape((3, 320)).slice(((0, 3, 1), (8, 168, 1)))
    check_plan([merged * 2.0])
