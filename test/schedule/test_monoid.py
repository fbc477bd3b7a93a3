"""Monoids: the identity changes nothing, for every dtype."""

import numpy as np
import pytest

from picograd.dtype import ALL, DType, bool_, float32, int8, uint16
from picograd.schedule.monoid import COMBINE, identity

FOLDS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("monoid", COMBINE)
@pytest.mark.parametrize("dtype", ALL, ids=repr)
def test_identity_changes_nothing(dtype: DType, monoid: str) -> None:
    values = np.array([0, 1]) if dtype is bool_ else np.array([0, 1, 100, 3])
    values = values.astype(dtype.numpy)
    start = np.asarray(identity(monoid, dtype), dtype.numpy)
    found = FOLDS[monoid](values, start)
    np.testing.assert_array_equal(found.astype(dtype.numpy), values)


def test_identity_is_a_python_number() -> None:
    assert type(identity("sum", float32)) is float and type(identity("prod", int8)) is int
    assert identity("sum", bool_) is False and identity("min", bool_) is True
    assert (identity("max", int8), identity("min", int8)) == (-128, 127)
    assert (identity("max", uint16), identity("min", uint16)) == (0, 65535)
    assert identity("max", float32) == -np.inf and identity("min", float32) == np.inf
