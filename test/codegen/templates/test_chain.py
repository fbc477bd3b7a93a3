"""Chains of maps: what a block exchanges lies in shared memory, and nobody reads it too early."""

from typing import Any

import numpy as np
import pytest

from picograd.codegen.interpret_program import interpret
from picograd.codegen.interpret_tile import interpret as interpret_tile
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.program import verify as verify_program
from picograd.codegen.templates.chain import build, threads_of
from picograd.codegen.tile import Barrier, verify
from picograd.dtype import float32
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.interpret import interpret as interpret_loops
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot
from picograd.target import cuda_target

GPU = cuda_target("sm_90a")


def op(name: str, *args: Expr) -> Expr:
    return Expr(name, args, None, float32)


def chain(blocks: int, size: int, maps: int) -> Kernel:
    """Add to each element that at the other end of its row, several times."""
    parts = []
    for n in range(maps):
        block, column, place = Axis("block", blocks), Axis("column", 1), Axis("i", size)
        here = axis_index(block) * size + axis_index(place)
        there = axis_index(block) * size + size - 1 - axis_index(place)
        a, b = (Expr("load", (), (n, index), float32) for index in (here, there))
        body = op("add", a, op("mul", b, Expr("const", (), 0.5, float32)))
        compute = Compute((block, column, place), (), None, body, float32, (n + 1, here))
        parts.append(Part((block, column, place), (compute,)))
    roles = ["in", *["shared"] * (maps - 1), "out"]
    slots = tuple(Slot(float32, blocks * size, role) for role in roles)
    return Kernel("turns", "chain", slots, (), tuple(parts))


def arrays(kernel: Kernel) -> list[Any]:
    x = np.random.default_rng(0).normal(size=kernel.slots[0].size).astype("f4")
    return [x, *[np.full(slot.size, np.nan, "f4") for slot in kernel.slots[1:]]]


@pytest.mark.parametrize(("size", "maps"), [(40, 3), (33, 2), (1100, 3)])
def test_values(size: int, maps: int) -> None:
    """Fewer elements than threads, odd rows, and several elements a thread."""
    kernel = chain(3, size, maps)
    tiles = verify(build(kernel, GPU))
    wanted, of_tiles, found = arrays(kernel), arrays(kernel), arrays(kernel)
    interpret_loops(kernel, wanted)
    interpret_tile(tiles, of_tiles)
    interpret(verify_program(linearize(tiles, GPU)), found)
    for each in (of_tiles, found):
        np.testing.assert_array_equal(each[-1], wanted[-1])
        assert np.isnan(each[1]).all()  # shared: not in memory


@pytest.mark.parametrize(
    ("steps", "threads"),
    [((512, 512), 512), ((256, 128, 128), 128), ((64, 64, 64, 513), 64), ((20,), 32)],
)
def test_few_threads_are_left_over(steps: tuple[int, ...], threads: int) -> None:
    assert threads_of(steps) == threads


def test_one_tile_is_written_when_all_have_read() -> None:
    (part,) = build(chain(3, 40, 4), GPU).parts
    assert [tile.shape for tile in part.tiles if tile.space == "shared"] == [(2, 32)]
    assert sum(isinstance(step, Barrier) for step in part.steps) == 5  # 3 writes, 2 after reads
