"""Nodes that stand in for others become what they stand for as soon as somebody looks."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from picograd import Tensor
from picograd.engine import followed
from picograd.engine.followed import EVENTS, MISS, Record, Template
from picograd.graph.formula import reader
from picograd.graph.node import Node


def template() -> tuple[Template, Node]:
    """Two steps over one node: its double, and that with a one more."""
    x = Tensor([1.0, 2.0]).realize().node
    facts = x.shape, x.dtype, x.device
    steps = [reader("add", (0, 0), None, *facts), reader("mul", (1, 0), None, *facts)]
    return Template(1, steps, [2]), x


def test_a_standing_node_has_all_but_what_it_reads() -> None:
    kept, x = template()
    record = Record(kept, None, [x], reached=2)
    first, second = (followed.standing_node(record, at) for at in (1, 2))
    assert (first.op, first.shape, first.realized, first.leaf) == ("add", (2,), None, None)
    with pytest.raises(AttributeError, match="no colour"):
        first.colour
    record.kept = {1: lambda: first}
    assert second.inputs == (first, x)
    assert first.inputs == (x, x)
    assert second.is_asked and not first.is_asked
    assert type(first) is type(second) is Node
    assert not hasattr(first, "record") and not hasattr(second, "record")


def test_what_is_followed_stops_at_the_first_look() -> None:
    kept, x = template()
    settled: list[Any] = []
    follower = SimpleNamespace(settle=settled.append)
    record = EVENTS.record = Record(kept, follower, [x], reached=1)
    EVENTS.take = lambda *given: MISS
    node = followed.standing_node(record, 1)
    assert node.inputs == (x, x)
    assert settled == [[x, node]]
    assert EVENTS.record is None and EVENTS.take is None
    assert record.follower is None


def test_an_event_is_shown_before_it_is_called() -> None:
    @followed.event
    def double(value: int) -> int:
        """Double it."""
        return 2 * value

    assert double(2) == 4 and double.__doc__ == "Double it."
    EVENTS.take = lambda function, args, options: 5 if args == (3,) else MISS
    try:
        assert (double(2), double(3)) == (4, 5)
    finally:
        EVENTS.take = None


@pytest.mark.parametrize(
    ("event", "is_mine", "spoilt"), [(None, True, 1), ("loop", False, 1), ("loop", True, 0)]
)
def test_a_trace_is_part_of_an_event_of_its_thread_alone(
    event: Any, is_mine: bool, spoilt: int
) -> None:
    owner, calls = threading.get_ident() if is_mine else -1, []  # type: ignore[var-annotated]
    before = EVENTS.learning
    EVENTS.learning = SimpleNamespace(event=event, owner=owner, spoil=lambda: calls.append(1))
    try:
        followed.leave_unless_inside()
    finally:
        EVENTS.learning = before
    assert len(calls) == spoilt


def test_nodes_are_listed_inputs_first() -> None:
    _, x = template()
    total = (x * x) + (x * x)
    numbers, order = {id(x): 0}, []  # type: ignore[var-annotated]
    followed.add_order([total, x], numbers, order, len(numbers), {})
    assert [node.op for node in order] == ["mul", "mul", "add"]
    assert [numbers[id(node)] for node in order] == [1, 2, 3]
