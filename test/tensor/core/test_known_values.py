"""Values that are known while operations are recorded."""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import ValueRangeError
from picograd.tensor.core.known_values import CHECKED, check_between, known_values

pytestmark = pytest.mark.usefixtures("cpu_by_default")  # values are looked at on the host


def test_what_is_known() -> None:
    given = Tensor([1, 0])
    np.testing.assert_array_equal(known_values(given.node), [1, 0])
    constant = picograd.zeros(2, 3).reshape(6)
    np.testing.assert_array_equal(known_values(constant.node), np.zeros(6))
    assert known_values((given + 1).node) is None  # nothing is computed
    assert known_values(picograd.arange(CHECKED + 1).realize().node) is None


def test_checks() -> None:
    check_between("op", "p", Tensor([0.0, 1.0]).node, 0.0, 1.0)
    for wrong in ([0.5, 1.5], [-0.1], [float("nan")]):
        with pytest.raises(ValueRangeError, match="op: p has values outside"):
            check_between("op", "p", Tensor(wrong).node, 0.0, 1.0)
