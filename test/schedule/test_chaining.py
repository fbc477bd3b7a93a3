"""Maps that exchange elements within rows are one kernel, where a block has room for a row."""

from dataclasses import replace

import pytest
from plan_support import check_plan, leaf

from picograd.dtype import int32
from picograd.graph.conv_winograd import multiplied, patches_of
from picograd.graph.node import Node
from picograd.schedule.chaining import GOOD, is_crowded
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

GPU = replace(cuda_target("sm_90a"), multiprocessors=4)
ROWS, COUNT = 8, 512


def turned(x: Node, axis: int, rounds: int = 2) -> list[Node]:
    """Add to an array itself, turned round along an axis, several times, each time in memory."""
    for _ in range(rounds):
        x = (x + x.flip((axis,)) * 0.25).unary("tanh").stored()
    return [x]


def heroes(*roots: Node) -> list[str]:
    return [kernel.hero for kernel in check_plan(list(roots), target=GPU).kernels]


def test_maps_within_rows_are_one_kernel() -> None:
    x = leaf(ROWS, COUNT)
    plan = check_plan(turned(x, 1, 3), 1, target=GPU)
    (kernel,) = plan.kernels
    assert kernel.hero == "chain" and [part.rows[0].size for part in kernel.parts] == [8, 8, 8]
    assert [slot.role for slot in kernel.slots] == ["in", "shared", "shared", "out"]
    assert not plan.arenas  # what is shared has no memory outside of blocks


def test_short_rows_share_a_block() -> None:
    plan = check_plan(turned(leaf(4 * COUNT, 8), 1), 1, target=GPU)
    (part, _) = plan.kernels[0].parts
    assert [axis.size for axis in part.rows] == [32, 1, 64, 4, 2]


def test_rows_of_columns_are_apart() -> None:
    assert heroes(*turned(leaf(ROWS * COUNT, 3), 0)) == ["map", "map"]


@pytest.mark.parametrize("shape", [(2, 8 * COUNT), (ROWS, 1 << 15), (ROWS, 24)])
def test_too_few_rows_too_long_ones_and_little_work_stay_apart(shape: tuple[int, int]) -> None:
    plan = schedule(turned(leaf(*shape), 1), GPU)
    assert [kernel.hero for kernel in plan.kernels] == ["map", "map"]


def test_what_others_read_is_in_memory() -> None:
    first = turned(leaf(ROWS, COUNT), 1, 1)
    assert heroes(*first, *turned(first[0], 1, 1)) == ["map", "map"]


def test_a_cpu_has_maps() -> None:
    check_plan(turned(leaf(ROWS, COUNT), 1), 2)


def test_what_is_read_later_is_in_memory() -> None:
    """By the third of the maps, which makes a chain with the second alone."""
    (first,) = turned(leaf(ROWS, COUNT), 1, 1)
    (second,) = turned(first, 1, 1)
    last = (first + second.flip((0,)) * 0.25).stored()
    assert heroes(last) == ["map", "chain"]


def test_what_joins_arrays_is_no_part_of_a_chain() -> None:
    """What it puts one behind another is computed there."""
    patches = patches_of(leaf(64, 2, 8, 8), (1, 1), (2, 2))
    made = multiplied(leaf(36, 16, 64), patches, ((0, 1, 2), (0, 2, 3), (0, 1, 3)))
    plan = schedule([made], GPU)
    assert [kernel.hero for kernel in plan.kernels] == ["map", "contract"]
    assert len(plan.joined) == 36


def test_a_longer_chain_shares_no_more_than_is_good() -> None:
    plan = check_plan(turned(leaf(ROWS, COUNT), 1), 1, target=GPU)
    (launch,) = plan.steps
    assert not is_crowded(launch, launch.kernel)
    slots = [replace(slot, size=32 * slot.size) for slot in launch.kernel.slots]
    longer = replace(launch.kernel, slots=tuple(slots))
    assert 32 * COUNT * 4 > GOOD and is_crowded(launch, longer)
    assert not is_crowded(replace(launch, kernel=longer), longer)  # it did before
    assert not is_crowded(replace(launch, kernel=replace(longer, hero="map")), longer)


@pytest.mark.parametrize("planes, kernels", [(2, ["chain"]), (16, ["map", "map"])])
def test_planes_that_are_read_by_places_stay_apart_where_they_are_many(
    planes: int, kernels: list[str]
) -> None:
    """As many lines are read as elements, if a block has all planes: see `reads_anywhere`."""
    x = leaf(ROWS, planes, COUNT)
    places = (leaf(ROWS, COUNT).unary("abs") * 9.0).cast(int32)
    places = places.binary("minimum", COUNT - 1).stored()
    wide = places.reshape((ROWS, 1, COUNT)).expand(x.shape)
    found = x.gather([x.iota(0, int32), x.iota(1, int32), wide], (0, 1, 2))
    plan = schedule([found], GPU)
    assert [kernel.hero for kernel in plan.kernels] == kernels
