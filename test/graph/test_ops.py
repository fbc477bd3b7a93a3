"""The op table: every row is complete for its role, under its own name."""

import pytest

from picograd.graph.ops import OPS, TABLES
from picograd.graph.row import BY_ROLE, Role


def test_no_row_hides_another() -> None:
    names = [name for table in TABLES for name in table]
    assert len(names) == len(set(names)) and set(names) == OPS.keys()


def test_every_op_has_one_role() -> None:
    found = [name for names in BY_ROLE.values() for name in names]
    assert sorted(found) == sorted(OPS)


@pytest.mark.parametrize("name", OPS)
def test_row_is_complete(name: str) -> None:
    row = OPS[name]
    assert row.name == name and row.domain[0] < row.domain[1]
    if row.is_elementwise:
        assert row.arity in (1, 2, 3)
    if row.role is Role.COMPOSITE and name != "custom":
        assert (row.expand is None) != (row.expand_on is None)
