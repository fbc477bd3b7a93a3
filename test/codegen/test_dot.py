"""Where operands are that no tile has: taps under strides, matrices in memory."""

from dataclasses import replace

from picograd.codegen.dot import Digit, Dot, InPlace, Runs, format_dot, places_of
from picograd.schedule.index import constant


def test_taps_of_a_phase_are_neighbours() -> None:
    digit = Digit(5, 1, 2, 100)
    assert [digit.place(number) for number in range(5)] == [0, 100, 1, 101, 2]
    assert repr(digit) == "(5, 1, 2 phases 100 apart)" and repr(Digit(3, -4)) == "(3, -4)"


def test_the_last_digit_counts_fastest() -> None:
    assert list(places_of((Digit(2, 10), Digit(3, -1)), 5)) == [5, 4, 3, 15, 14, 13]


def test_a_matrix_in_memory_has_rows_that_are_so_far_apart() -> None:
    place = InPlace(1, constant(7), 20).at(constant(3))
    assert place.index == constant(10)
    assert place.elements(10, 2, 3).tolist() == [[10, 11, 12], [30, 31, 32]]
    dot = Dot("c", "a", "b", 4, b_place=place)
    assert format_dot(dot).endswith(" b lies in s1[10] by 20")


def test_runs_are_the_same_product_further_on() -> None:
    zero = constant(0)
    dot = Dot("c", "a", "b", 4, acc_origin=(zero, constant(5)), b_origin=(zero, constant(7)))
    assert list(dot.each_run()) == [dot]
    runs = list(replace(dot, runs=Runs(3, 20, 1)).each_run())
    assert [each.acc_origin for each in runs] == [(zero, constant(n)) for n in (5, 25, 45)]
    assert [each.b_origin for each in runs] == [(zero, constant(n)) for n in (7, 27, 47)]
    assert format_dot(replace(dot, runs=Runs(3, 20, 1))).endswith(" in 3 runs 20 apart")
