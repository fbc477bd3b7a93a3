"""Maps of several arrays that exchange elements are told apart, so that each array has a chain."""

import time
from dataclasses import replace

from plan_support import check_plan, leaf

from picograd.graph.node import Node
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

GPU = replace(cuda_target("sm_90a"), multiprocessors=4)
ROWS, COUNT = 8, 512


def turned(x: Node, rounds: int = 2) -> Node:
    """Add to an array itself, turned round along its rows, several times, each time in memory."""
    for _ in range(rounds):
        x = (x + x.flip((1,)) * 0.25).unary("tanh").stored()
    return x


def heroes(*roots: Node) -> list[str]:
    return [kernel.hero for kernel in check_plan(list(roots), target=GPU).kernels]


def test_two_arrays_have_a_chain_each() -> None:
    first, second = turned(leaf(ROWS, COUNT), 3), turned(leaf(2 * ROWS, COUNT), 3)
    assert heroes(first, second) == ["chain", "chain"]


def test_what_is_made_of_both_is_a_strand_of_its_own() -> None:
    first, second = turned(leaf(ROWS, COUNT), 3), turned(leaf(ROWS, COUNT), 3)
    both = turned((first + second.flip((0,))).stored(), 3)
    assert heroes(both) == ["chain", "chain", "chain"]


def test_a_table_that_both_read_is_of_neither() -> None:
    table = leaf(1, COUNT).iota(1).cast(leaf(1).dtype).unary("cos").stored()
    wide = table.flip((1,)).expand((ROWS, COUNT))
    found = [turned((leaf(ROWS, COUNT) + wide).stored(), 3) for _ in range(2)]
    assert heroes(*found) == ["map", "chain", "chain"]


def test_a_strand_waits_for_what_it_reads() -> None:
    """The table is behind the first map, though nothing else is."""
    first = turned(leaf(ROWS, COUNT), 1)
    other = turned(leaf(2 * ROWS, COUNT), 3)
    table = leaf(1, COUNT).iota(1).cast(first.dtype).unary("cos").stored()
    last = (first + first.flip((1,)) * table.flip((1,)).expand(first.shape)).stored()
    assert sorted(heroes(turned(last, 1), other)) == ["chain", "chain", "map", "map"]


def test_two_maps_share_launches() -> None:
    """As Winograd's transforms do, of which more would take longer to launch."""
    found = [turned(leaf(ROWS, COUNT + n)) for n in range(2)]
    assert len(heroes(*found)) == 2


def test_maps_that_exchange_nothing_share_launches() -> None:
    found = [(leaf(ROWS, COUNT + n) * 2).stored() for n in range(3)]
    assert heroes(*found) == ["map"]


def test_a_cpu_has_no_strands() -> None:
    first, second = turned(leaf(ROWS, COUNT)), turned(leaf(ROWS, COUNT))
    plan = check_plan([first, second])
    assert [len(kernel.parts) for kernel in plan.kernels] == [1, 1]  # alike


def test_long_strands_take_linear_time() -> None:
    def seconds(rounds: int) -> float:
        x, k = turned(leaf(3, 4), rounds), turned(leaf(3, 5), rounds)
        start = time.thread_time()
        schedule([x, k], GPU, verify=False)
        return time.thread_time() - start

    seconds(20)
    few = min(seconds(100) for _ in range(3))
    assert seconds(400) < 8 * few
