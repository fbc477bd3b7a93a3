"""The fit of erfc, evaluated in float64."""

import math

import numpy as np

from picograd.codegen.error_function import ERFC


def test_it_is_erfc_as_its_comment_says() -> None:
    for x in (0.0, 0.5, 2.0, 5.0, 20.0):
        t = 2 / (2 + x)
        found = t * math.exp(np.polynomial.polynomial.polyval(2 * t - 1, ERFC) - x * x)
        assert math.isclose(found, math.erfc(x), rel_tol=1e-13)
