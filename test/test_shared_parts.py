"""Recursion over nodes whose parts are shared, and which lie deep inside each other."""

from collections import Counter
from threading import Thread

import pytest

from picograd.shared_parts import once_a_node

COUNT = 3000  # far more calls inside each other than Python has frames for


def test_each_part_is_asked_once_and_at_any_depth() -> None:
    asked: Counter[int] = Counter()

    class Node:
        def __init__(self, *parts: "Node") -> None:
            self.parts = parts

    @once_a_node
    def paths(node: Node, unit: int) -> int:
        """Count the paths to the ends of a node."""
        asked[id(node)] += 1
        return sum(paths(part, unit) for part in node.parts) if node.parts else unit

    node, every = Node(), []
    for _ in range(COUNT):
        every.append(node)
        node = Node(node, node)
    assert paths(node, 3) == 3 * 2**COUNT
    assert len(asked) == COUNT + 1 and max(asked.values()) <= 3
    assert paths(node, 1) == 2**COUNT  # nothing is left of the call before


def test_functions_that_call_one_another() -> None:
    @once_a_node
    def is_even(number: int) -> bool:
        return number == 0 or is_odd(number - 1)

    @once_a_node
    def is_odd(number: int) -> bool:
        return number != 0 and is_even(number - 1)

    assert is_even(60) and not is_odd(60)
    assert [is_even(number) for number in range(4)] == [True, False, True, False]


def test_an_error_leaves_nothing_behind() -> None:
    @once_a_node
    def half(number: int) -> int:
        if number % 2:
            raise ValueError(number)
        return half(number // 2) if number else 0

    for _ in range(2):
        with pytest.raises(ValueError, match="^3$"):
            half(12)
    with pytest.raises(ValueError, match="^1$"):
        half(2)


def test_threads_have_answers_of_their_own() -> None:
    found: dict[int, int] = {}

    @once_a_node
    def total(depth: int, unit: int) -> int:
        return unit + total(depth - 1, unit) if depth else 0

    def work(unit: int) -> None:
        for _ in range(20):
            found[unit] = total(500, unit)

    threads = [Thread(target=work, args=(unit,)) for unit in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {unit: 500 * unit for unit in range(4)}
