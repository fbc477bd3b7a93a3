"""The ancestor's import path: `from picograd.draw_utils import draw_dot`."""

from picograd.draw import draw_dot

__all__ = ["draw_dot"]
