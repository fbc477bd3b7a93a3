"""Op and DTypeRule: what a row answers about itself."""

import pytest

from picograd.dtype import bool_, float32, int8
from picograd.graph.row import ANY, COMPARE, FLOAT, NUMBER, DTypeRule, Op, Role, ops_of, table


def test_result_dtype() -> None:
    assert NUMBER.result(int8) is int8 and COMPARE.result(float32) is bool_
    assert DTypeRule(("bool",), True).result(bool_) is bool_


def test_rules_list_kinds() -> None:
    assert FLOAT.kinds == ("float",) and "bool" not in NUMBER.kinds
    assert set(ANY.kinds) == {"bool", "uint", "int", "float", "float8", "complex"}


def test_row_and_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("picograd.graph.row.OPS", {})
    monkeypatch.setattr("picograd.graph.row.BY_ROLE", {role: set() for role in Role})
    plain = Op("twice", Role.ELEMENTWISE, 1, NUMBER)
    smooth = Op("view", Role.VIEW, 1, ANY, vjp=lambda g, y, x: (g,))
    assert plain.is_elementwise and not plain.is_differentiable
    assert smooth.is_differentiable and not smooth.is_elementwise
    assert table(plain, smooth) == {"twice": plain, "view": smooth}
    assert ops_of(Role.VIEW) == {"view"}
