"""Elementwise work behind a reshape of rows is part of the kernel that works on them."""

import pytest
from plan_support import TARGET, check_plan, leaf

from picograd.graph import build
from picograd.graph.node import Node, toposort
from picograd.schedule.late_reshapes import reshape_late
from picograd.target import Target, cuda_target

TARGETS = [TARGET, cuda_target("sm_90a")]
SHAPE, ROWS = (3, 8, 4, 6), (3, 4, 2, 24)  # images, and their groups of channels


def normed(x: Node) -> Node:
    """Images whose groups are normed."""
    return groups(x).reshape(SHAPE)


def groups(x: Node) -> Node:
    """Groups less the mean of each, over the sum of its squares."""
    rows = x.reshape(ROWS)
    mean = spread(rows.reduce("sum", (2, 3))) * (1 / 48)
    centred = rows - mean
    square = spread((centred * centred).reduce("sum", (2, 3)))
    return centred / (square + 1.0)


def spread(sums: Node) -> Node:
    """Repeat a number a group."""
    return sums.reshape((3, 4, 1, 1)).expand(ROWS)


def channels(x: Node) -> Node:
    """Repeat a number a channel."""
    return x.reshape((1, 8, 1, 1)).expand(SHAPE)


def forms() -> dict[str, Node]:
    """Work behind norms, by what it reads beside."""
    x, y, w = leaf(*SHAPE), leaf(*SHAPE), leaf(8)
    image = leaf(3, 4, 6, 8).permute((0, 3, 1, 2))
    number = leaf(1).reshape((1, 1, 1, 1)).expand(SHAPE)
    return {
        "nothing": normed(x) * 2.0,
        "an array": (normed(x) + y) * y,
        "a turned array": normed(x) * image,
        "channels": normed(x) * channels(w) + channels(w),
        "a number": normed(x) * number,
        "another norm": normed(x) + normed(y),
        "a reshape": (normed(x).reshape((3, 8, 24)) * 2.0).reshape((24, 24)) * 3.0,
    }


@pytest.mark.parametrize("target", TARGETS, ids=["cpu", "gpu"])
@pytest.mark.parametrize("name", list(forms()))
def test_what_follows_is_part_of_the_kernel(name: str, target: Target) -> None:
    check_plan([forms()[name]], 1, target=target)


def test_what_is_no_row_stays_as_it_is() -> None:
    x = leaf(*SHAPE)
    plain = (x + 1.0).reshape((3, 192)) * 2.0  # nothing is reduced
    ones = groups(x).reshape((3, 1, 4, 2, 24)) * 2.0  # no dimension is mixed
    sums = x.reduce("sum", (2, 3)).reshape((24,)) * 2.0  # a number a row
    padded = normed(x).reshape((3, 4, 48)) * leaf(3, 4, 40).pad(((0, 0), (0, 0), (8, 0)))
    weights = build.softmax(leaf(4, 2, 6), 2)
    heads = weights.contract(leaf(4, 6, 3), ((0, 1, 2), (0, 2, 3), (0, 1, 3)))
    reversed_heads = heads.flip((0,)) * 2.0  # bytes that lie elsewhere
    for root in (plain, ones, sums, padded, reversed_heads):
        assert reshape_late([root], toposort([root]), TARGET) == [root]
        check_plan([root])
    cut = normed(x).reshape((576,)) * leaf(600).slice(((24, 600, 1),)).flip((0,))
    check_plan([cut], 1)


@pytest.mark.parametrize("target", TARGETS, ids=["cpu", "gpu"])
def test_others_read_what_was_moved_in_their_shape(target: Target) -> None:
    x, w = leaf(*SHAPE), leaf(8, 5)
    y = normed(x)
    active = y * y + channels(leaf(8))
    product = active.reshape((3, 8, 24)).permute((0, 2, 1)).reshape((72, 8))
    check_plan([active, product.contract(w, ((0, 1), (1, 2), (0, 2)))], target=target)
    check_plan([active, active.reduce("sum", (0, 2))], target=target)


def test_rows_that_a_block_does_not_keep_are_read_again_by_another_kernel() -> None:
    for side, count in ((96, 1), (192, 2)):
        rows = leaf(2, 2, side, side).reshape((2, side * side * 2))
        mean = rows.reduce("sum", (1,)).reshape((2, 1)).expand(rows.shape) * (0.5 / side**2)
        moved = (rows - mean).reshape((2, 2, side, side)) * 2.0
        found = reshape_late([moved], toposort([moved]), cuda_target("sm_90a"))
        assert (found == [moved]) is (count == 2)
        check_plan([moved], 1)
