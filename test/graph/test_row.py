"""Op and DTypeRule: what a row answers about itself."""

from collections import defaultdict

import pytest

from picograd.dtype import bool_, float32, int8
from picograd.graph.row import (
    ANY,
    COMPARE,
    EXPONENTIALS,
    FLOAT,
    NUMBER,
    OPS,
    PASSING,
    DTypeRule,
    Op,
    Role,
    ops_of,
    table,
)


def test_result_dtype() -> None:
    assert NUMBER.result(int8) is int8 and COMPARE.result(float32) is bool_
    assert DTypeRule(("bool",), True).result(bool_) is bool_


def test_rules_list_kinds() -> None:
    assert FLOAT.kinds == ("float",) and "bool" not in NUMBER.kinds
    assert set(ANY.kinds) == {"bool", "uint", "int", "float", "float8", "complex"}


def test_row_and_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("picograd.graph.row.OPS", {})
    monkeypatch.setattr("picograd.graph.row.BY_ROLE", defaultdict(set))
    plain = Op("twice", Role.ELEMENTWISE, 1, NUMBER)
    smooth = Op("view", Role.VIEW, 1, ANY, vjp=lambda g, y, x: (g,))
    assert plain.is_elementwise and not plain.is_differentiable
    assert smooth.is_differentiable and not smooth.is_elementwise
    assert table(plain, smooth) == {"twice": plain, "view": smooth}
    assert ops_of(Role.VIEW) == {"view"}


def test_a_row_that_is_added_later_is_in_all_sets() -> None:
    """What code asks of an op grows with the table: an op of a user's own is like any other."""
    own = Op("own_power", Role.ELEMENTWISE, 1, FLOAT, vjp=lambda g, y, x: (g,), is_exponential=True)
    sets = ops_of(Role.ELEMENTWISE), PASSING, EXPONENTIALS
    table(own)
    try:
        assert all(own.name in each for each in sets) and OPS[own.name] is own
    finally:
        del OPS[own.name]
        for each in sets:
            each.discard(own.name)
