"""The order of tiles: which positions of a persistent loop share operands in the L2 cache."""

from math import gcd

from picograd.dtype import int64
from picograd.schedule.index import Dynamic, Index, atom_index
from picograd.schedule.loop import Condition, Expr

GROUP_ROWS = 8  # tiles of rows that run together, for the L2 cache


def order(
    position: Index, rows: int, columns: int, blocks: int, group: int = 0
) -> tuple[Index, Index]:
    """Number tiles so that those that run together share operands in the L2 cache.

    Rows of tiles that are left when all groups are full are a group of their own.
    """
    if not group:
        group = next(g for g in (GROUP_ROWS, 4, 2, 1) if rows % g == 0)
        if group < 4 and columns * GROUP_ROWS > blocks:  # else any group is soon done with
            group = min(GROUP_ROWS, rows)
    inside = position % (group * columns)
    first = position // (group * columns) * group
    row = first + inside % group
    column = inside // group
    rest = rows % group
    full = rows - rest
    if not rest:
        return row, column
    inside = position - full * columns
    is_full = position, 0, full * columns - 1
    row = either(is_full, row, inside % rest + full, rows)
    return row, either(is_full, column, inside // rest, columns)


def either(condition: Condition, index: Index, other: Index, size: int) -> Index:
    """Choose an index where a condition holds, else another, of 0 .. size - 1."""
    here = Expr("index", (), index, int64)
    there = Expr("index", (), other, int64)
    found = Expr("guard", (here, there), (condition,), int64)
    chosen = Dynamic(found, 0, size - 1)
    return atom_index(chosen)


def order_of_shares(position: Index, rows: int, columns: int, blocks: int) -> tuple[Index, Index]:
    """Number tiles that blocks share so that those at one place of K read few long operands.

    Tiles a `period` apart begin at the same place, and are neighbours along the shorter side.
    """
    count = gcd(rows * columns, blocks)
    period = rows * columns // count
    number = position % period * count + position // period
    if columns <= rows:
        return number // columns, number % columns
    return number % rows, number // rows
