"""The order of tiles: every tile once, and neighbours that share operands."""

import pytest

from picograd.codegen.templates.tile_order import order, order_of_shares
from picograd.schedule.index import Dynamic, constant


def place(number: int, numbering, *sizes) -> tuple[int, int]:
    """Find the row and column of a tile."""
    return tuple(value_of(index) for index in numbering(constant(number), *sizes))


def value_of(index) -> int:
    """Compute an index whose atoms are choices between constants."""
    total = index.const
    for atom, factor in index.terms:
        assert isinstance(atom, Dynamic)
        here, there = atom.expr.args
        held = all(lo <= test.const <= hi for test, lo, hi in atom.expr.arg)
        total += factor * value_of((here if held else there).arg)
    return total


@pytest.mark.parametrize("numbering", [order, order_of_shares])
@pytest.mark.parametrize("rows, columns", [(8, 4), (47, 32), (6, 3), (5, 30)])
def test_every_tile_is_run_once(numbering, rows, columns):
    found = {place(n, numbering, rows, columns, 132) for n in range(rows * columns)}
    assert found == {(row, column) for row in range(rows) for column in range(columns)}


@pytest.mark.parametrize("rows, columns", [(8, 4), (48, 32), (6, 30), (2, 5), (22, 30)])
def test_pairs_of_tiles_lie_one_below_the_other(rows, columns):
    """Of an even number of rows: so clusters of two blocks want the same columns."""
    for number in range(0, rows * columns, 2):
        row, column = place(number, order, rows, columns, 132)
        assert place(number + 1, order, rows, columns, 132) == (row + 1, column) and row % 2 == 0
