"""Random initial values: their bounds and spread, and the same ones again from a seed."""

import numpy as np
import pytest

from picograd import Tensor

BOUNDED = {  # the bound of |x|, or None for a normal distribution, and the standard deviation
    "scaled_uniform": (lambda: Tensor.scaled_uniform(64, 32), 2048**-0.5, (3 * 2048) ** -0.5),
    "glorot_uniform": (lambda: Tensor.glorot_uniform(64, 8, 4), 0.25, 0.25 / 3**0.5),
    "kaiming_uniform": (lambda: Tensor.kaiming_uniform(64, 32, a=1.0), (3 / 32) ** 0.5, 32**-0.5),
    "kaiming_normal": (lambda: Tensor.kaiming_normal((64, 32), a=0.0), None, 0.25),
    "uniform": (lambda: Tensor.uniform(64, 32, low=-2.0, high=2.0), 2.0, 2 / 3**0.5),
    "normal": (lambda: Tensor.normal(64, 32, mean=0.0, std=3.0), None, 3.0),
    "randn": (lambda: Tensor.randn(64, 32), None, 1.0),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_random(name: str) -> None:
    draw, bound, std = BOUNDED[name]
    Tensor.manual_seed(3)
    values = draw().numpy()
    Tensor.manual_seed(3)
    np.testing.assert_array_equal(values, draw().numpy())
    assert values.dtype == np.float32 and values.size == 2048
    assert bound is None or np.abs(values).max() <= bound
    assert abs(values.std() / std - 1.0) < 0.05
    assert abs(values.mean()) < 0.1 * std
