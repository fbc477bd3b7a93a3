"""Groups in an order where what is overwritten in parts was read before."""

from picograd.dtype import float32
from picograd.graph.node import Node
from picograd.schedule.group import Facts, Group
from picograd.schedule.write_order import deepen, ordered, reads_of


def groups(*depths: int) -> list[Group]:
    return [Group(n, "map", depth, (), (), "cpu") for n, depth in enumerate(depths)]


def depths(found: list[Group]) -> list[int]:
    return [group.depth for group in found]


def test_ordered_leaves_out_cycles_and_what_needs_them() -> None:
    assert ordered({0: set(), 1: {0}, 2: {1}}) == [0, 1, 2]
    assert ordered({0: {1}, 1: {0}, 2: set(), 3: {0}}) == [2]


def test_a_write_goes_below_what_reads_the_old_value() -> None:
    found = groups(2, 1, 2)  # a reader of the old value, the write, a reader of the next one
    deepen(found, {0: set(), 1: set(), 2: {1}}, {1: {0}})
    assert depths(found) == [2, 3, 4]


def test_who_reads_both_values_keeps_its_place() -> None:
    found = groups(2, 1, 1)
    deepen(found, {0: {1}, 1: set(), 2: {0}}, {1: {0}})
    assert depths(found) == [2, 1, 3], "what it needs still runs before it"


def test_a_group_that_is_deeper_loads_what_it_computed() -> None:
    first, second = groups(1, 1)
    leaf = Facts(Node("buffer", (), None, (4,), float32, "cpu"), 0, (), True, True)
    made = [leaf]
    for number in range(1, 4):
        node = Node("exp", (made[-1].node,), None, (4,), float32, "cpu")
        made.append(Facts(node, number, (made[-1],)))
    _, value, between, last = made
    value.group, last.group = first, second
    first.members, second.members = [value], [last]
    assert reads_of(second) == [leaf], "one depth: it computes the value, too"
    second.depth = 2
    assert reads_of(second) == [value]
    between.inputs = (leaf,)
    second.reads = (-1, [])
    assert reads_of(second) == [leaf]
    second.depth = 3
    assert reads_of(second) == [leaf]
