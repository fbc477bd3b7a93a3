"""Points dealt by their steps: every step to one block, in stretches that are about equal."""

import pytest

from picograd.codegen.tile_pipeline import Persistent, Shares, Teams
from picograd.helpers import ceil_div
from picograd.schedule.index import Axis, axis_index, evaluate


@pytest.mark.parametrize("points, depth, blocks", [(4, 9, 3), (96, 256, 132), (2, 5, 7), (7, 3, 7)])
def test_every_step_is_dealt_once(points, depth, blocks):
    shares = Shares(depth, Axis("first", depth), Axis("stop", depth + 1))
    taken, owners = {}, {}
    for block in range(blocks):
        stretch = shares.stretch(points, blocks, block)
        steps = sum(stop - first for _, first, stop in stretch)
        assert points * depth // blocks <= steps <= ceil_div(points * depth, blocks)
        assert [point for point, _, _ in stretch] == sorted(
            {p for p, _, _ in stretch}, reverse=True
        )
        # who leaves a part does so at its first point, and waits for others only after that
        assert all(stop == depth for _, _, stop in stretch[1:])
        for point, first, stop in stretch:
            owners.setdefault(point, block)
            for step in range(first, stop):
                assert taken.setdefault((point, step), block) == block
    assert len(taken) == points * depth
    at = Axis("point", points)
    for point, block in owners.items():
        found = shares.first_block(axis_index(at), points, blocks)
        assert evaluate(found, {at: point}, lambda expr: 0) == block


def test_whole_points_are_dealt_in_turn():
    axes = Axis("batch", 2), Axis("tile", 4)
    loop = Persistent(axes, Axis("block", 3), Teams(2, 128, (40, 232)), ())
    assert [loop.points_of(block) for block in range(3)] == [[0, 3, 6], [1, 4, 7], [2, 5]]
