"""The ancestor's import path still works."""

from picograd import draw, draw_utils


def test_it_is_the_same_function() -> None:
    assert draw_utils.draw_dot is draw.draw_dot
