"""Register blocks of products on a CPU: they fit the registers, and divide rows where that pays."""

import pytest

from picograd.codegen.templates.register_block import heights, register_block


@pytest.mark.parametrize("registers", [16, 32])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (6, 64), (7, 1000), (1000, 1000), (3, 17)])
def test_register_block_fits(m: int, n: int, registers: int) -> None:
    rows, vectors = register_block(m, n, 16, registers)
    assert rows >= 1 and vectors >= 1 and rows * vectors + vectors < registers


def test_a_block_divides_the_rows_where_more_would_be_wasted() -> None:
    assert register_block(32, 512, 16, 32, True) == (4, 4)  # blocks of 6 would be 36 rows
    assert register_block(16, 768, 16, 32, True) == (8, 3)
    assert list(heights(512, 14, True)) == [14, 8]
    assert set(heights(9, 14, True)) == {9}
    assert list(heights(512, 14, False)) == [14]
