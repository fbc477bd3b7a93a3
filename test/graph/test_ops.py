"""The op table: every row is complete for its kind, under its own name."""

import pytest

from picograd.graph.composites import COMPOSITES
from picograd.graph.elementwise import ELEMENTWISE
from picograd.graph.norms import NORMS
from picograd.graph.ops import OPS
from picograd.graph.structure import STRUCTURE

ARITY = {"unary": 1, "binary": 2, "ternary": 3}


def test_no_row_hides_another() -> None:
    tables = (ELEMENTWISE, STRUCTURE, COMPOSITES, NORMS)
    names = [name for table in tables for name in table]
    assert len(names) == len(set(names)) and set(names) <= OPS.keys()


@pytest.mark.parametrize("name", OPS)
def test_row_is_complete(name: str) -> None:
    row = OPS[name]
    assert row.name == name and row.domain[0] < row.domain[1]
    assert row.is_elementwise == (row.kind in ARITY)
    if row.is_elementwise:
        assert row.arity == ARITY[row.kind]
    if row.kind == "composite" and name != "custom":
        assert (row.expand is None) != (row.expand_on is None)
