"""Op and DTypeRule: what a row answers about itself."""

from picograd.dtype import bool_, float32, int8
from picograd.graph.row import ANY, COMPARE, FLOAT, NUMBER, DTypeRule, Op, table


def test_result_dtype() -> None:
    assert NUMBER.result(int8) is int8 and COMPARE.result(float32) is bool_
    assert DTypeRule(("bool",), True).result(bool_) is bool_


def test_rules_list_kinds() -> None:
    assert FLOAT.kinds == ("float",) and "bool" not in NUMBER.kinds
    assert set(ANY.kinds) == {"bool", "uint", "int", "float", "float8"}


def test_row_and_table() -> None:
    plain = Op("twice", "unary", 1, NUMBER)
    smooth = Op("view", "view", 1, ANY, vjp=lambda g, y, x: (g,))
    assert plain.is_elementwise and not plain.is_differentiable
    assert smooth.is_differentiable and not smooth.is_elementwise
    assert table(plain, smooth) == {"twice": plain, "view": smooth}
