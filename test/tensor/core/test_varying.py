"""Numbers of a way: which of them may be others the next time."""

from typing import Any

import pytest

from picograd.dtype import float32
from picograd.graph.node import Node, constant
from picograd.number import Given, given, noting
from picograd.tensor.core import varying
from picograd.tensor.core.ways import IS, Event


def number(value: Any) -> Node:
    return constant(value, (), float32, "cpu")


def told(*args: Any) -> Event:
    return Event(None, [*args], [], ())


def test_a_number_that_an_event_was_given_may_be_another() -> None:
    found, event, node = varying.Varying({}), told((varying.NUMBER, 0.25)), number(given(0.25))
    found.add(event, [node])
    assert found.may_vary and event.numbers == [(0, id(node.arg))] and not event.derived


def test_so_may_one_that_is_made_of_it_later() -> None:
    first, second = told((varying.NUMBER, 0.25)), told((IS, None))
    share = number(given(0.25))
    with noting({}) as notes:
        rest = number(1 - share.arg)
    found = varying.Varying(notes)
    found.add(first, [share])
    found.add(second, [rest])
    assert found.may_vary and not second.numbers
    assert [float(each) for each, _, _ in second.derived][-1] == 0.75
    assert second.derived[-1][0] is rest.arg


def test_a_whole_number_beside_is_no_reason() -> None:
    """It is the same each time; but a float like it could be either."""
    for share, may_vary in ((0.25, True), (10.0, False)):
        event = told((varying.NUMBER, share), (IS, 10))
        found = varying.Varying({})
        found.add(event, [number(given(share)), number(Given(10.0))])
        assert found.may_vary is may_vary


@pytest.mark.parametrize("origin", ["unknown", "twice", "unused", "lost"])
def test_none_may_where_it_is_not_known_of_which_it_was_made(origin: str) -> None:
    event, nodes = told((varying.NUMBER, 0.25)), [number(given(0.25))]
    with noting({}) as notes:
        if origin == "lost":
            number(given(3e38) * 10)
    found = varying.Varying(notes)
    if origin == "unknown":
        nodes.append(number(Given(0.75)))
    if origin == "twice":
        event.args.append((varying.NUMBER, 0.25))
    found.add(event, [] if origin == "unused" else nodes)
    assert not found.may_vary


def test_factors_are_no_special_cases() -> None:
    assert varying.as_factor((IS, 0.3)) == (varying.FACTOR, 0.3)
    for value in (0.0, -0.0, 1.0, -1.0, float("inf"), float("nan"), 1e39, 2, True):
        assert varying.as_factor((IS, value)) == (IS, value)
