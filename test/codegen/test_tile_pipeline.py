"""Steps of pipelines: what is checked, how they print, what they mean."""

import dataclasses

import numpy as np
import pytest
from box_products import TWO, tiles_of
from cuda_tools import matmul_kernel

from picograd.codegen.interpret_tile import interpret
from picograd.codegen.tile import TileKernel, verify
from picograd.codegen.tile_pipeline import Persistent, Pipeline, Teams
from picograd.dtype import bfloat16
from picograd.errors import InternalError
from picograd.schedule.index import Axis, axis_index

SMALL = matmul_kernel(256, 128, 128, bfloat16, b="nk")


def changed(tiles: TileKernel, change) -> TileKernel:
    """Change the pipeline of a kernel."""
    (part,) = tiles.parts
    (loop,) = part.steps
    body = tuple(change(s) if isinstance(s, Pipeline) else s for s in loop.body)
    loop = dataclasses.replace(loop, body=body)
    return dataclasses.replace(tiles, parts=(dataclasses.replace(part, steps=(loop,)),))


def test_a_pipeline_fills_what_it_reads():
    tiles = tiles_of(SMALL)
    broken = changed(tiles, lambda p: dataclasses.replace(p, produce=p.produce[:1]))
    with pytest.raises(InternalError, match="a pipeline fills"):
        verify(broken)


def test_places_of_boxes_are_bound():
    def far(pipeline):
        first, *rest = pipeline.produce
        at = (axis_index(Axis("nobody", 4)), *first.at[1:])
        return dataclasses.replace(pipeline, produce=(dataclasses.replace(first, at=at), *rest))

    with pytest.raises(InternalError, match="is not bound"):
        verify(changed(tiles_of(SMALL), far))


def test_they_print():
    text = repr(tiles_of(SMALL))
    for part in ("persistent", "pipeline k_tile:2 produces:", "consumes:", "ring of 10 swizzled"):
        assert part in text, part
    assert "in boxes of leaving" in text


def test_every_point_is_visited_once_in_any_order_of_blocks():
    tiles = tiles_of(matmul_kernel(384, 384, 64, bfloat16, b="nk"))
    (loop,) = tiles.parts[0].steps
    assert isinstance(loop, Persistent) and loop.block.size == TWO.multiprocessors
    generator = np.random.default_rng(0)
    a, b = generator.integers(-2, 3, (2, 384, 64)).astype(np.float32)
    for is_reversed in (False, True):
        out = np.full(384 * 384, np.nan, np.float32)
        interpret(tiles, [a.reshape(-1), b.reshape(-1), out], is_reversed=is_reversed)
        np.testing.assert_array_equal(out.reshape(384, 384), a @ b.T)


@pytest.mark.parametrize("groups, count, blocks", [(3, 7, 4), (2, 4, 4), (5, 3, 8), (1, 9, 1)])
def test_dealt_points_are_visited_once_and_evenly(groups, count, blocks):
    points = Axis("group", groups), Axis("rows", count)
    teams = Teams(1, 128, (40, 232))
    loop = Persistent(points, Axis("blocks", blocks), teams, (), is_dealt=True)
    found = [loop.points_of(block) for block in range(blocks)]
    assert sorted(point for each in found for point in each) == list(range(groups * count))
    assert all(each == sorted(each) for each in found), "group after group"


def test_long_points_come_to_all_blocks_in_turn():
    """In each group the same places may be long; two rounds of a mask add up to the same."""
    groups, blocks = 16, 32
    points = Axis("group", groups), Axis("rows", blocks)
    loop = Persistent(points, Axis("blocks", blocks), Teams(1, 128, (40, 232)), (), is_dealt=True)
    for block in range(blocks):
        places = [point % blocks for point in loop.points_of(block)]
        assert len(set(places)) == groups, "never the same place twice"
        assert all(a + b == blocks - 1 for a, b in zip(places[::2], places[1::2], strict=True))
