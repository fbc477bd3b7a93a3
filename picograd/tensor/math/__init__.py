"""Elementwise functions: operators, rounding, logarithms, gamma and Bessel functions."""
