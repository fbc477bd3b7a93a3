"""Names beside functions of rows: numbers and dtypes."""

import numpy as np

import picograd
from picograd.tensor import families


def test_functions_of_families() -> None:
    assert families.__all__ == sorted(families.__all__)
    for name in families.__all__:
        found, own = getattr(picograd, name), getattr(families, name)
        assert found is own or found == own
        assert name in picograd.__all__
    for value in families.newaxis, families.pi:
        assert value is None or abs(value - np.pi) < 1e-15
