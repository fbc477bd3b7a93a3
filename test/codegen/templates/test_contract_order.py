"""Order of tiles: each comes once, and those that run together are near one another."""

import pytest

from picograd.codegen.templates.contract_tma import order, order_of_shares
from picograd.schedule.index import Axis, axis_index, evaluate


def places(number, rows, columns, *options):
    """Evaluate an order at all positions."""
    axis = Axis("tile", rows * columns)
    indices = number(axis_index(axis), rows, columns, 132, *options)

    def read(expr, values):
        if expr.op == "index":
            return evaluate(expr.arg, values, lambda inner: read(inner, values))
        ((place, low, high),) = expr.arg
        is_here = low <= evaluate(place, values, lambda inner: read(inner, values)) <= high
        return read(expr.args[0 if is_here else 1], values)

    found = []
    for position in range(rows * columns):
        values = {axis: position}
        each = [evaluate(i, values, lambda expr, v=values: read(expr, v)) for i in indices]
        found.append(tuple(map(int, each)))
    return found


@pytest.mark.parametrize(("rows", "columns"), [(16, 4), (98, 4), (7, 40), (1, 9), (33, 17)])
@pytest.mark.parametrize("group", [0, 5, 40])
def test_every_tile_comes_once(rows, columns, group):
    found = places(order, rows, columns, min(group, rows))
    assert sorted(found) == [(row, column) for row in range(rows) for column in range(columns)]


def test_tiles_of_a_group_share_columns():
    found = places(order, 98, 4, 49)
    assert {column for _, column in found[:49]} == {0} and found[49] == (0, 1)
    assert max(row for row, _ in found[: 4 * 49]) == 48


@pytest.mark.parametrize(("rows", "columns"), [(4, 24), (24, 4), (12, 11)])
def test_shared_tiles_come_once(rows, columns):
    found = places(order_of_shares, rows, columns)
    assert sorted(found) == [(row, column) for row in range(rows) for column in range(columns)]


@pytest.mark.parametrize(("rows", "columns"), [(8, 4), (48, 32), (6, 30), (2, 5), (22, 30)])
def test_pairs_of_tiles_lie_one_below_the_other(rows, columns):
    """Of an even number of rows: so clusters of two blocks want the same columns."""
    found = places(order, rows, columns)
    for (row, column), following in zip(found[::2], found[1::2], strict=True):
        assert following == (row + 1, column) and row % 2 == 0
