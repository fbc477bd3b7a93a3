"""Sums over the rows of a task: what they add up, block by block, and where they are stored."""

import pytest
from attention_forms import causal, plain, with_gradients

from picograd.codegen.templates import attention_cpu
from picograd.codegen.tile import For, format_tiles
from picograd.schedule.schedule import schedule
from picograd.target import Target

SMALL = Target("llvm", "test", 16)  # four floats a vector


def last_part(form, *shapes):
    kernel = schedule(with_gradients(form, *shapes), SMALL).kernels[-1]
    return attention_cpu.build(kernel, SMALL)


@pytest.mark.parametrize("form", [plain, causal])
def test_a_task_has_all_rows(form):
    tiles = last_part(form, (1, 2, 70, 8), (1, 2, 75, 8), (1, 2, 75, 12))
    (part,) = tiles.parts
    assert [axis.size for axis in part.grid] == [2]
    sums = [tile for tile in part.tiles if tile.shape[0] == 128]  # two blocks of 64 places
    assert [tile.shape for tile in sums] == [(128, 8), (128, 16)]
    assert any(isinstance(step, For) and step.axis.name == "rows" for step in part.steps)
    text = format_tiles(tiles)
    assert text.count("Dot(") == 5 and "-> " not in text


def test_equal_operands_are_packed_once():
    """Values of the rows lie along their columns, rows of scores in lanes."""
    (part,) = last_part(plain, (1, 2, 70, 8), (1, 2, 75, 8), (1, 2, 75, 12)).parts
    shapes = {tile.name: tile.shape for tile in part.tiles if tile.name.startswith("across")}
    assert sorted(shapes.values()) == [(5, 8, 8), (5, 8, 16)]  # nine panels in two rounds
