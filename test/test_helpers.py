"""Helpers: products, rounding and row-major strides."""

from itertools import product as points

from picograd.helpers import ceil_div, lying_along, product, round_up, row_major


def test_product_of_nothing_is_one() -> None:
    assert product(()) == 1
    assert product(iter([2, 3, 4])) == 24
    assert product((5, 0)) == 0


def test_rounding_up() -> None:
    for a, b in points(range(20), range(1, 7)):
        assert (ceil_div(a, b) - 1) * b < a <= ceil_div(a, b) * b
        assert round_up(a, b) % b == 0 and a <= round_up(a, b) < a + b


def test_row_major_strides() -> None:
    assert row_major(()) == ()
    assert row_major((5,)) == (1,)
    assert row_major((2, 3, 4)) == (12, 4, 1)
    assert row_major((0, 1, 2, 0)) == (2, 2, 1, 1)


def test_a_vector_lies_along_one_axis() -> None:
    assert lying_along(1, 3) == lying_along(-2, 3) == (1, -1, 1)
    assert lying_along(0, 1) == (-1,)
